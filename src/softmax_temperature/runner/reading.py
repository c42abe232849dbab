"""JSON and YAML files that a person may have edited: one error that names the place where they are wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from softmax_temperature.runner.artifacts import canonical_json
from softmax_temperature.runner.errors import InputError


class Form(BaseModel):
    """What an object in a JSON file must hold, whatever else it holds; text is not converted to numbers."""

    model_config = ConfigDict(strict=True)


def read_json(path: Path, form: TypeAdapter[Any], *, remedy: str) -> Any:
    """Read a JSON file and check it against a form; returns plain values.

    Raises:
        InputError: the file is not readable, not JSON (NaN is not), or holds something else.
    """
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
        canonical_json(content).encode()
        form.validate_python(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ": ".join([str(path), *[".".join(map(str, first["loc"]))] * bool(first["loc"])])
        what = f"does not hold what it should: {first['msg'].lower()}"
        raise InputError(what, where=where, remedy=remedy) from error
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"is not readable as JSON ({error})", where=str(path), remedy=remedy) from error
    return content


def read_yaml(path: Path, *, kind: Literal["rt", "safe"] = "rt") -> Any:
    """Read a YAML 1.2 file in UTF-8; "rt" keeps comments and order, "safe" is faster. No tag constructs an object.

    Raises:
        InputError: the file is missing, or no YAML.
    """
    if not path.is_file():
        raise InputError("no such file", where=str(path), remedy="Run this in the project's root folder.")
    try:
        return YAML(typ=kind).load(path.read_text(encoding="utf-8"))
    # Invalid dates and numbers, and very deep nesting, raise Python's own errors.
    except (YAMLError, ValueError, RecursionError, AttributeError) as error:
        raise InputError(f"not readable as YAML ({error})", where=str(path), remedy="Correct that line.") from error

"""JSON files that a person may have edited: checked for what they must hold, with one error that names the place."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from softmax_temperature.runner.artifacts import canonical_json
from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


class Form(BaseModel):
    """What an object in such a file must hold, whatever else it holds; no text is taken for a number."""

    model_config = ConfigDict(strict=True)


def read_json(path: Path, form: TypeAdapter[Any], *, remedy: str) -> Any:
    """Read a JSON file.

    Args:
        path: the file, in UTF-8.
        form: what it must hold.
        remedy: for the error.

    Returns:
        Plain values, as they stand there.

    Raises:
        InputError: the file is not readable, not JSON (NaN and halves of characters are not), or holds something else.
    """
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
        canonical_json(content).encode()
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", where=str(path), remedy=remedy) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON ({error})", where=str(path), remedy=remedy) from error
    try:
        form.validate_python(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        what = f"does not hold what it should: {first['msg'].lower()}"
        raise InputError(what, where=f"{path}: {place}" if place else str(path), remedy=remedy) from error
    return content

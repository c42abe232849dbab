"""YAML files that a person may have edited: one error that names the place where they are wrong."""

from pathlib import Path
from typing import Any, Literal

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from softmax_temperature.runner.errors import InputError


def read_yaml(path: Path, *, kind: Literal["rt", "safe"] = "safe") -> Any:
    """Read a YAML 1.2 file in UTF-8; "rt" keeps comments and order, "safe" is faster. No tag constructs an object."""
    if not path.is_file():
        raise InputError("no such file", where=str(path), remedy="Run this in the project's root folder.")
    try:
        return YAML(typ=kind).load(path.read_text(encoding="utf-8"))
    # Invalid dates and numbers, and very deep nesting, raise Python's own errors.
    except (YAMLError, ValueError, RecursionError, AttributeError) as error:
        raise InputError(f"not readable as YAML ({error})", where=str(path), remedy="Correct that line.") from error

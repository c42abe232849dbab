"""Reading single files: None where there is none, and an error that names the file where it is damaged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import nbformat
import pandas as pd

from softmax_temperature.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

_DAMAGED = "Take the file from Git, or run `dvc repro`."


def read_json(path: Path) -> Any:
    """What a JSON file holds."""
    if not path.is_file():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"is not JSON ({error})", where=str(path), remedy=_DAMAGED) from error


def read_table(path: Path) -> pd.DataFrame | None:
    """A table; one without columns is as good as none."""
    if not path.is_file():
        return None
    try:
        return pd.read_csv(path)
    except pd.errors.EmptyDataError:
        return None
    except (pd.errors.ParserError, UnicodeDecodeError) as error:
        raise InputError(f"is not a table ({error})", where=str(path), remedy=_DAMAGED) from error


def read_notebook(path: Path) -> nbformat.NotebookNode | None:
    """A notebook."""
    if not path.is_file():
        return None
    try:
        notebook: nbformat.NotebookNode = nbformat.read(path, as_version=4)
    except nbformat.reader.NotJSONError as error:
        raise InputError("is not a notebook", where=str(path), remedy=_DAMAGED) from error
    return notebook

"""Reading single files: None where there is none, and an error that names the file where it is damaged."""

from __future__ import annotations

import base64
import json
import warnings
from typing import TYPE_CHECKING, Literal

import nbformat
import pandas as pd
from pydantic import TypeAdapter

from softmax_temperature.papers.shared.tables import read_csv, refuse_marks_of_a_merge
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.reading import Form, read_json

if TYPE_CHECKING:
    from pathlib import Path

DAMAGED = "Take the file from Git, or run `dvc repro`."


class _Cell(Form):
    cell_type: Literal["code", "markdown", "raw"]
    id: str = ""


class _Notebook(Form):
    """What is looked at before the notebook's own schema, because its check stumbles over it."""

    nbformat: Literal[4]
    nbformat_minor: int
    cells: list[_Cell]


_NOTEBOOK = TypeAdapter(_Notebook)


def read_table(path: Path) -> pd.DataFrame | None:
    """A table; one without columns is as good as none."""
    if not path.is_file():
        return None
    try:
        return read_csv(path)
    except InputError as error:
        if isinstance(error.__cause__, pd.errors.EmptyDataError):
            return None
        raise


def read_notebook(path: Path) -> nbformat.NotebookNode | None:
    """A notebook that is as the format says."""
    if not path.is_file():
        return None
    content = read_json(path, _NOTEBOOK, remedy=DAMAGED)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # What it would mend, with a warning, is no notebook of ours.
            nbformat.validate(content)
        notebook: nbformat.NotebookNode = nbformat.reads(json.dumps(content), as_version=4)
        for cell in notebook.cells:
            for output in cell.get("outputs", []):
                base64.b64decode(output.get("data", {}).get("image/png", ""))
    except (nbformat.ValidationError, ValueError, Warning) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"is not a notebook ({reason})", where=str(path), remedy=DAMAGED) from error
    return notebook


def read_text(path: Path) -> str:
    """A text that is there."""
    refuse_marks_of_a_merge(path)
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"is not text ({error})", where=str(path), remedy=DAMAGED) from error

"""Tables: CSV files that are equal byte for byte when their numbers are, and the numbers that the papers print."""

import re
from pathlib import Path
from typing import Any

import pandas as pd

from softmax_temperature.runner.artifacts import write_text
from softmax_temperature.runner.errors import InputError

PUBLISHED = Path("data/published")


def write_csv(path: Path, table: pd.DataFrame) -> None:
    """Write a table atomically, its numbers `rounded`."""
    write_text(path, table.map(rounded).to_csv(index=False, lineterminator="\n"))


def rounded(value: Any) -> Any:
    """A float, or those in nested lists and mappings, to nine significant digits; anything else as it is.

    Nine tell every float32 from the next, and leave out the last bits, in which machines differ.
    """
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list) else value


def read_csv(path: Path) -> pd.DataFrame:
    """Read a table that `write_csv` wrote; one without columns is empty; a missing or damaged one an `InputError`."""
    if not path.is_file():
        raise InputError("no such table", where=str(path), remedy="Run `dvc repro`, or check the profile's name.")
    remedy = "Take the file from Git, or run `dvc repro`."
    if re.search(rb"^(<{7}|>{7}) ", path.read_bytes(), re.MULTILINE):
        raise InputError("holds both sides of a merge", where=str(path), remedy=remedy)
    try:
        return pd.read_csv(path)
    except pd.errors.EmptyDataError:
        return pd.DataFrame()
    except ValueError as error:
        raise InputError(f"is not a table ({error})", where=str(path), remedy=remedy) from error


def published(paper: str, table: str) -> pd.DataFrame:
    """The numbers that a paper prints in a table, say "Table 1", one row each: model, method, metric, value, sd, ..."""
    numbers = read_csv(PUBLISHED / f"{paper}.csv")
    rows = numbers[numbers["table"] == table].reset_index(drop=True)
    if rows.empty:
        raise ValueError(f"table: {table!r} is not in data/published/{paper}.csv")
    return rows

"""Tables: CSV files that are equal byte for byte when their numbers are, and the papers' printed numbers to set beside.

Numbers are fractions and nats; percent appears only where something is shown to a person.
"""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from softmax_temperature.runner.artifacts import write_text
from softmax_temperature.runner.errors import InputError

LARGEST = 2**28  # Bytes; the longest table of results/ has 4 million.
_REMEDY = "Take the file from Git, or run `dvc repro`."
_MARK = re.compile(rb"^(<{7}|>{7}) ", re.MULTILINE)

PUBLISHED = Path("data/published")


def write_csv(path: Path, table: pd.DataFrame) -> None:
    """Write a table atomically; floats in full, so that reading gives the same bits back."""
    write_text(path, table.to_csv(index=False, lineterminator="\n"))


def read_csv(path: Path) -> pd.DataFrame:
    """Read a table that `write_csv` wrote.

    Raises:
        InputError: there is no such table, it is damaged, too large, or in the middle of a merge.
    """
    if not path.is_file():
        raise InputError("no such table", where=str(path), remedy="Run `dvc repro`, or check the profile's name.")
    refuse_marks_of_a_merge(path)
    try:
        return pd.read_csv(path)
    except ValueError as error:  # Whatever pandas finds: all of its own are ValueErrors.
        raise InputError(f"is not a table ({error})", where=str(path), remedy=_REMEDY) from error


def refuse_marks_of_a_merge(path: Path) -> None:
    """Refuse a text in which Git shows two sides of a merge; as a table it could be read, with both sides in it.

    Raises:
        InputError: it names the file; also where that is too large for any text or table of results.
    """
    if (size := path.stat().st_size) > LARGEST:
        raise InputError(f"is {size:,} bytes long, too long for a result", where=str(path), remedy=_REMEDY)
    if _MARK.search(path.read_bytes()):
        remedy = f"Take one side (`git checkout --ours {path}`), then make it again with `dvc repro`."
        raise InputError("a merge left its marks", where=str(path), remedy=remedy)


def published(paper: str, table: str) -> pd.DataFrame:
    """The numbers that a paper prints in one table, one row each: model, method, metric, value, sd, unit, ...

    Args:
        paper: its slug.
        table: as the paper names it, for instance "Table 1".
    """
    numbers = read_csv(PUBLISHED / f"{paper}.csv")
    rows = numbers[numbers["table"] == table].reset_index(drop=True)
    if rows.empty:
        raise ValueError(f"table: {table!r} is not in data/published/{paper}.csv")
    return rows

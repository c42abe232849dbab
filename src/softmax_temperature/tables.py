"""Tables: CSV files that are equal byte for byte when their numbers are, and the papers' printed numbers to set beside.

Numbers are fractions and nats; percent appears only where something is shown to a person.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from softmax_temperature.artifacts import write_text
from softmax_temperature.errors import InputError

PUBLISHED = Path("data/published")


def write_csv(path: Path, table: pd.DataFrame) -> None:
    """Write a table atomically; floats in full, so that reading gives the same bits back."""
    write_text(path, table.to_csv(index=False, lineterminator="\n"))


def read_csv(path: Path) -> pd.DataFrame:
    """Read a table that `write_csv` wrote.

    Raises:
        InputError: there is no such table.
    """
    if not path.is_file():
        raise InputError("no such table", where=str(path), remedy="Run `dvc repro`, or check the profile's name.")
    return pd.read_csv(path)


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

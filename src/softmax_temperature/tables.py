"""Tables: CSV files that are equal byte for byte when their numbers are, and the papers' printed numbers to set beside.

Numbers are fractions and nats; percent appears only where something is shown to a person.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from softmax_temperature.artifacts import write_text
from softmax_temperature.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pandas.io.formats.style import Styler

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


def only(table: pd.DataFrame, column: str) -> object:
    """The one value that a column holds; a second value is an error, so that nothing is averaged by accident."""
    values = table[column].unique()
    if len(values) != 1:
        raise ValueError(f"{column}: one value expected, found {list(values)[:5]}")
    return values[0]


def shown(table: pd.DataFrame, name: str, *, percent: Sequence[str] = (), digits: int = 3) -> Styler:
    """A table for a reader: fractions in percent where named, missing values as a dash.

    Args:
        table: what to show.
        name: unique in the notebook; pandas would otherwise draw a random one, and no two runs would be equal.
        percent: columns that hold fractions and are shown in percent.
        digits: after the point, for the other numbers.
    """
    table = table.rename(columns={column: f"{column} (%)" for column in percent})
    for column in percent:
        table[f"{column} (%)"] = 100 * table[f"{column} (%)"]
    numbers = table.select_dtypes("number").columns
    formats: dict[Any, Any] = {column: (lambda value: f"{value:.1f}") for column in numbers if column.endswith("(%)")}
    formats |= {column: _plain_number(digits) for column in numbers if not column.endswith("(%)")}
    return table.style.format(formats, na_rep="–").hide(axis="index").set_uuid(name)


def _plain_number(digits: int) -> Callable[[float], str]:
    return lambda value: f"{value:.0f}" if float(value).is_integer() else f"{value:.{digits}f}"

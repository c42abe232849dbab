"""Tables with ours beside the printed numbers, laid out for a reader.

The files are long: a row for each number. Whatever the paper, the columns before `published` name it, and its layout
follows from them: the last name that is not the metric becomes the columns of the page, the others its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.html.numbers import signed, with_deviation
from softmax_temperature.papers.shared.sources import CELLS

if TYPE_CHECKING:
    from softmax_temperature.papers.html.model import Comparison

PRINTED, OURS, METRIC = "published", "ours", "metric"
ALIKE = 2
"""Standard errors within which two numbers are called alike."""

_COUNTS = ("seeds", "folds")
_ONLY = "ours beside printed"
_DIVERGED, _MEASURED, _STATUS = "diverged", "measured", "status"


@dataclass(frozen=True)
class Number:
    """One number of ours beside a printed one; what there is not is empty.

    Attributes:
        ours: mean ± standard deviation, or that it diverged.
        count: how many runs are behind it.
        printed: likewise ± the standard deviation, where it is printed.
        difference: ours minus printed, in standard errors, with its sign.
        verdict: "above", "below" or "alike".
        cells: what ours comes from, as `sources.together` names it; empty where the table does not say.
    """

    ours: str
    count: str
    printed: str
    difference: str
    verdict: str
    cells: str


@dataclass(frozen=True)
class Layout:
    """A comparison in rows and columns.

    Attributes:
        measured: a `Number` in each cell, None where there is none; what names a row is its index.
        not_run: what is printed and was not run here, likewise; the reason is the last level of its index.
    """

    measured: pd.DataFrame
    not_run: pd.DataFrame

    @cached_property
    def printed_alone(self) -> int:
        """How many printed numbers were not run."""
        return len(_numbers(self.not_run))

    @cached_property
    def count(self) -> str:
        """How many runs are behind each measured number, if they are as many everywhere; else empty."""
        counts = {each.count for each in _numbers(self.measured)}
        return counts.pop() if len(counts) == 1 else ""


def is_comparison(table: pd.DataFrame) -> bool:
    """Whether a table has ours beside printed."""
    return {PRINTED, OURS} <= set(table.columns)


def layout(comparison: Comparison) -> Layout:
    """A comparison in rows and columns."""
    rows = comparison.numbers
    names = [str(column) for column in rows.columns[: list(rows.columns).index(PRINTED)]]
    rows = rows.assign(
        **{name: rows[name].map(_text) for name in names},
        status=rows[_STATUS].map(_text) if _STATUS in rows else _MEASURED,
    )
    here = rows[OURS].notna() | (rows[_STATUS] == _DIVERGED)
    across = next((name for name in reversed(names) if name != METRIC), None) if METRIC in names else None
    down = _down(rows, names, across)
    return Layout(_pivot(rows[here], down, across), _pivot(rows[~here], [*down, _STATUS], across))


def _down(rows: pd.DataFrame, names: list[str], across: str | None) -> list[str]:
    """What names a row of the page: all but the columns, and but the run's own name where data set and network do."""
    down = [name for name in names if name != across and (rows[name] != "").any()]
    others = [name for name in names[1:] if name in down or name == across]
    enough = len(down) > 2 and not rows[others].duplicated().any()
    return [name for name in down if name != names[0]] if enough else down


def _pivot(rows: pd.DataFrame, down: list[str], across: str | None) -> pd.DataFrame:
    places: dict[tuple[str, ...], dict[str, Number]] = {}
    for row in rows.to_dict("records"):
        place = places.setdefault(tuple(row[name] for name in down), {})
        place[row[across] if across else _ONLY] = _number(row)
    columns = list(dict.fromkeys(column for place in places.values() for column in place))
    content = [[place.get(column) for column in columns] for place in places.values()]
    index = pd.MultiIndex.from_tuples(list(places), names=down) if places else None
    return pd.DataFrame(content, index=index, columns=columns, dtype=object)


def _number(row: dict[Any, Any]) -> Number:
    difference = _difference(row)
    return Number(
        ours=_DIVERGED if row[_STATUS] == _DIVERGED else _with_deviation(row, OURS),
        count=_count(row),
        printed=_DIVERGED if row.get("published_diverged") in (True, "True") else _with_deviation(row, PRINTED),
        difference="" if np.isnan(difference) else signed(difference),
        verdict="" if np.isnan(difference) else _verdict(difference),
        cells=_text(row.get(CELLS)),
    )


def _numbers(table: pd.DataFrame) -> list[Number]:
    return [value for value in table.to_numpy().ravel() if value]


def _difference(row: dict[Any, Any]) -> float:
    """In standard errors; where the table does not say, in those of ours over runs."""
    known = row.get("difference_in_standard_errors")
    if known is not None:
        return float(known)
    count = next((row[name] for name in _COUNTS if name in row), 0)
    deviation = row.get("ours_sd") or np.nan
    return float((row[OURS] - row[PRINTED]) / deviation * count**0.5) if count > 1 else np.nan


def _verdict(difference: float) -> str:
    if abs(difference) <= ALIKE:
        return "alike"
    return "above" if difference > 0 else "below"


def _count(row: dict[Any, Any]) -> str:
    """How many runs there are, and how many of them diverged."""
    name = next((name for name in _COUNTS if name in row), None)
    if name is None or pd.isna(row[name]):
        return ""
    lost = int(row.get("diverged_seeds") or 0)
    return f"n = {row[name]:.0f}" + (f", {lost} diverged" if lost else "")


def _with_deviation(row: dict[Any, Any], column: str) -> str:
    return with_deviation(row[column], row.get(f"{column}_sd"))


def _text(value: Any) -> str:
    return "" if pd.isna(value) else str(value)

"""Tables with ours beside the printed numbers, laid out for a reader: `layout` for the report, `wide` for notebooks.

The files are long, one row per number. Whatever the paper, the columns before `published` name a number, and the layout
follows from them: the first names our run, the last that is not `metric` becomes the columns, the others the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.shared.comparison import DIFFERENCE, DIVERGED, MEASURED
from softmax_temperature.papers.shared.sources import CELLS

PRINTED, OURS, METRIC, STATUS = "published", "ours", "metric", "status"
MISSING = "–"
ALIKE = 2
"""Standard errors within which two numbers are called alike."""

_COUNTS = ("seeds", "folds")
_REMARKS = ("embeddings", "differs")
"""How our run differs from the paper's, where a table says so: these columns name a row of ours, too."""
_ONE_COLUMN = "ours beside printed"
_LARGE = 10


def number(value: Any) -> str:
    """Four digits after the point; from 10 on five in all. None and NaN are a dash."""
    if pd.isna(value):
        return MISSING
    text = f"{value:.4f}" if abs(value) < _LARGE else f"{value:.5g}"
    return _minus(text if float(text) else text.removeprefix("-"))


def with_deviation(value: Any, deviation: Any) -> str:
    """A mean ± its standard deviation, or the mean alone."""
    parts = [number(value), number(deviation)]
    return parts[0] if MISSING in parts else " ± ".join(parts)


def as_printed(value: Any) -> str:
    """A number with no more digits than it has."""
    return MISSING if pd.isna(value) else _minus(f"{value:g}")


@dataclass(frozen=True)
class Number:
    """One number of ours beside a printed one, as texts; what is missing is empty or a dash.

    Attributes:
        ours: mean ± standard deviation, or that it diverged.
        count: how many runs are behind it, and what else must be read with it.
        printed: with its standard deviation, where that is printed.
        difference: ours minus printed, in standard errors, with its sign.
        verdict: "above", "below" or "alike".
        cells: what ours comes from, as `sources.together` names it.
    """

    ours: str
    count: str
    printed: str
    difference: str
    verdict: str
    cells: str

    def __str__(self) -> str:
        if self.ours == MISSING:
            return self.printed
        said = [self.ours, *([f"printed {self.printed}"] if self.printed != MISSING else [])]
        return "; ".join(said + ([f"{self.difference} s.e."] if self.difference else []))


@dataclass(frozen=True)
class Layout:
    """A comparison in rows and columns: a `Number` or None in each cell; the index names the rows.

    Attributes:
        measured: what was run.
        not_run: what is printed and was not run here; the last level of its index is the reason.
    """

    measured: pd.DataFrame
    not_run: pd.DataFrame

    @cached_property
    def printed_alone(self) -> int:
        """How many printed numbers were not run."""
        return len(_numbers(self.not_run))

    @cached_property
    def count(self) -> str:
        """How many runs are behind each measured number, if it is the same everywhere; else empty."""
        counts = {each.count for each in _numbers(self.measured)}
        return counts.pop() if len(counts) == 1 else ""


def is_comparison(table: pd.DataFrame) -> bool:
    """Whether a table has ours beside printed numbers."""
    return {PRINTED, OURS} <= set(table.columns)


def layout(table: pd.DataFrame) -> Layout:
    """A comparison in rows and columns.

    Args:
        table: as it is made or read back.
    """
    names = [str(column) for column in table.columns[: list(table.columns).index(PRINTED)]]
    across = next((name for name in reversed(names) if name != METRIC), None) if METRIC in names else None
    remarks = [name for name in _REMARKS if name in table]
    rows = table.assign(
        **{name: table[name].map(_text) for name in (*names, *remarks)},
        status=table[STATUS].map(_text) if STATUS in table else MEASURED,
    )
    here = rows[OURS].notna() | (rows[STATUS] == DIVERGED)
    down = [name for name in names if name != across and (rows[name] != "").any()]
    others = [name for name in names[1:] if name in down or name == across]
    if len(down) > 2 and not rows[others].duplicated().any():  # The run's own name is not needed.
        down = [name for name in down if name != names[0]]
    said = [name for name in remarks if (rows[name] != "").any()]
    return Layout(_pivot(rows[here], [*down, *said], across), _pivot(rows[~here], [*down, STATUS], across))


def wide(table: pd.DataFrame) -> pd.DataFrame:
    """The same as one table of texts for a notebook: ours, printed, and the difference in standard errors.

    Args:
        table: as it is made or read back.
    """
    laid_out = layout(table)
    counts = [dict.fromkeys(each.count for each in line if each) for line in laid_out.measured.to_numpy()]
    measured = laid_out.measured.assign(runs=["; ".join(filter(None, texts)) for texts in counts])
    parts = [part.reset_index() for part in (measured, laid_out.not_run) if len(part)] or [measured]
    made = pd.concat(parts, ignore_index=True)
    return made.map(lambda value: str(value) if isinstance(value, str | Number) else MISSING)


def _pivot(rows: pd.DataFrame, down: list[str], across: str | None) -> pd.DataFrame:
    cells: dict[tuple[str, ...], dict[str, Number]] = {}
    for row in rows.to_dict("records"):
        key = tuple(row[name] for name in down)
        cells.setdefault(key, {})[row[across] if across else _ONE_COLUMN] = _number(row)
    columns = list(dict.fromkeys(column for line in cells.values() for column in line))
    content = [[line.get(column) for column in columns] for line in cells.values()]
    index = pd.MultiIndex.from_tuples(list(cells), names=down) if cells else None
    return pd.DataFrame(content, index=index, columns=columns, dtype=object)


def _number(row: dict[Any, Any]) -> Number:
    difference = _difference(row)
    verdict = "alike" if abs(difference) <= ALIKE else "above" if difference > 0 else "below"
    diverged = row.get("published_diverged") in (True, "True")
    return Number(
        ours=DIVERGED if row[STATUS] == DIVERGED else with_deviation(row[OURS], row.get("ours_sd")),
        count=_count(row),
        printed=DIVERGED if diverged else with_deviation(row[PRINTED], row.get("published_sd")),
        difference="" if np.isnan(difference) else _minus(f"{difference:+.1f}"),
        verdict="" if np.isnan(difference) else verdict,
        cells=_text(row.get(CELLS)),
    )


def _numbers(table: pd.DataFrame) -> list[Number]:
    return [value for value in table.to_numpy().ravel() if value]


def _difference(row: dict[Any, Any]) -> float:
    """In standard errors; where the table does not say, in those of ours over runs."""
    if DIFFERENCE in row:
        return float(row[DIFFERENCE])
    count = next((row[name] for name in _COUNTS if name in row), 0)
    deviation = row.get("ours_sd") or np.nan
    return float((row[OURS] - row[PRINTED]) / deviation * count**0.5) if count > 1 else np.nan


def _count(row: dict[Any, Any]) -> str:
    """How many runs finished, how many were lost, and what else the status says."""
    count = next((row[name] for name in _COUNTS if name in row), None)
    if pd.isna(count):
        return ""
    lost = [f"{row[f'{word}_seeds']:.0f} {word}" for word in (DIVERGED, "stuck") if row.get(f"{word}_seeds")]
    never = ["never redistributed"] if row.get("never_redistributed") in (True, "True") else []
    said = [row[STATUS]] if row[STATUS] not in {MEASURED, DIVERGED} else []
    runs = [f"n = {count:.0f}"] if count or not said else []
    return ", ".join([*runs, *lost, *never, *said])


def _text(value: Any) -> str:
    return "" if pd.isna(value) else str(value)


def _minus(text: str) -> str:
    """The sign of a negative number as long as a plus."""
    return text.replace("-", "−")

"""Comparisons of our values with the printed values, laid out as texts for readers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.shared.display import (
    LABELS,
    SCHEDULE_WORDS,
    is_share,
    metric_label,
    with_names,
)
from softmax_temperature.papers.shared.sources import CELLS, Linked
from softmax_temperature.papers.shared.tables import (
    DIFFERENCE,
    DIVERGED,
    MEASURED,
    METRIC,
    NO_VALUE,
    OURS,
    PRINTED,
    STATUS,
    STUCK,
)

MISSING = "–"
PAGE = 120
"""The width of a page in characters."""
_GAP = 3
"""The space between two columns, in characters."""
_REMARKS = ("embeddings", "differs")
"""Columns that describe how our run differs from the paper's.

Our values that differ in these columns are laid out in separate rows.
"""

_INSTEAD_OF_A_VALUE = (DIVERGED, NO_VALUE)
"""The statuses that a table shows where the value would be."""

TEMPERATURE = "temperature"
"""The label of the metric "temperature"."""


def number(value: Any, *, percent: bool = False, digits: int | None = None) -> str:
    """Format a number; NaN becomes a dash.

    `digits` is the number of decimal places. If it is not given, a percentage has two
    decimal places, and a number below 10 has four; a larger number has five significant
    digits.
    """
    if pd.isna(value):
        return MISSING
    if percent:
        text = f"{100 * value:,.{2 if digits is None else digits}f}"
    elif digits is not None:
        text = f"{value:,.{digits}f}"
    elif abs(value) < 10:
        text = f"{value:.4f}"
    else:
        text = f"{value:,.5g}"
    if float(text.replace(",", "")) == 0:
        text = text.removeprefix("-")
    return _with_minus(text)


def _with_minus(text: str) -> str:
    """Replace the hyphen in front of a number with a minus sign."""
    return text.replace("-", "−")


def wide(table: pd.DataFrame, across: str | None) -> pd.DataFrame:
    """Lay out a comparison as texts: our mean ± sd, next to the printed value.

    Our value links to the records of its cells.

    Args:
        table: A comparison, new or read from its file.
        across: The key whose values become columns; the other keys distinguish the
            rows. If it is None, all keys distinguish the rows.
    """
    names = list(table.columns[: table.columns.get_loc(PRINTED)])
    remarks = [name for name in _REMARKS if name in table]
    rows = _with_texts(with_names(table), [*names, *remarks])
    rows["column"] = rows[across] if across else OURS
    down = _names_of_lines(rows, names, across)
    lines: dict[Any, dict[str, str]] = {}
    counts: dict[Any, dict[str, list[str]]] = {}
    in_order = rows.sort_values("here", ascending=False, kind="stable")
    for row in in_order.to_dict("records"):
        texts = {name: row[name] for name in down}
        texts[STATUS] = row[STATUS]
        if row["here"]:
            texts[STATUS] = MISSING
            texts |= {name: row[name] or MISSING for name in remarks}
        line = tuple(texts.values())
        lines.setdefault(line, texts).update(_texts_of_number(row))
        count = _count(row)
        if count:
            columns_of = counts.setdefault(line, {})
            columns_of.setdefault(count, []).append(row["column"])
    for line, texts in lines.items():
        texts["runs"] = _counts(counts.get(line, {}))
    numbers = []
    for column in dict.fromkeys(rows["column"]):
        numbers += [column, f"{column}, printed"]
    filled = set().union(*lines.values())
    columns = [*down, *numbers, *remarks, "runs", STATUS]
    shown = [name for name in columns if name in filled]
    laid_out = pd.DataFrame(lines.values(), columns=shown, dtype=object)
    laid_out = laid_out.fillna(MISSING)
    return laid_out.rename(columns={f"{OURS}, printed": "printed"})


def _names_of_lines(
    rows: pd.DataFrame, names: list[str], across: str | None
) -> list[str]:
    """The columns of names to show before the numbers.

    If there are more than two, the first one, which names our run, is left out,
    provided that the rows are still distinct without it.
    """
    down = [name for name in names if name != across and rows[name].any()]
    without_run = [name for name in names[1:] if name in down or name == across]
    if len(down) <= 2 or rows[without_run].duplicated().any():
        return down
    return [name for name in down if name != names[0]]


def _with_texts(table: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """A copy of `table` with names and metrics as texts, and with the differences.

    The column `here` is true if our runs have a value, and also if all of them
    diverged or finished without a value. The column `percent` is true if the metric is
    a share.
    """
    rows = table.copy()
    for name, default in ((STATUS, MEASURED), (METRIC, "")):
        if name not in rows:
            rows[name] = default
    for name in [*names, STATUS]:
        rows[name] = rows[name].map(_text)
    rows["percent"] = rows[METRIC].map(is_share).astype(bool)
    signs = np.where(rows["percent"] & ~rows[METRIC].str.contains("%"), " (%)", "")
    rows[METRIC] = rows[METRIC].map(metric_label) + signs
    rows["here"] = rows[OURS].notna() | rows[STATUS].isin(_INSTEAD_OF_A_VALUE)
    if DIFFERENCE not in rows:
        unknown = pd.Series(np.nan, rows.index)
        count = rows.get("seeds", unknown)
        sd = rows.get("ours_sd", unknown).replace(0, np.nan)
        in_sds = (rows[OURS] - rows[PRINTED]) / sd
        rows[DIFFERENCE] = in_sds * count.where(count > 1) ** 0.5
    return rows


def _texts_of_number(row: dict[Any, Any]) -> dict[str, str]:
    """The texts of our value and of the printed one, if they exist, keyed by column."""
    texts: dict[str, str] = {}
    if row["here"]:
        ours = _with_sd(row, OURS)
        if row[STATUS] in _INSTEAD_OF_A_VALUE:
            ours = row[STATUS]
        texts[row["column"]] = Linked(ours, _text(row.get(CELLS)))
    is_diverged = row.get("published_diverged", False)
    printed = DIVERGED if is_diverged else _with_sd(row, PRINTED)
    if printed == MISSING:
        return texts
    if not is_diverged and pd.notna(row[DIFFERENCE]):
        printed += _with_minus(f" ({row[DIFFERENCE]:+.1f} s.e.)")
    texts[f"{row['column']}, printed"] = printed
    return texts


def _with_sd(row: dict[Any, Any], name: str) -> str:
    # More than two decimal places would be finer than the grid of temperatures.
    digits = 2 if row[METRIC] == TEMPERATURE else None
    value = number(row.get(name), percent=row["percent"], digits=digits)
    spread = row.get(f"{name}_sd")
    sd = number(spread, percent=row["percent"], digits=digits)
    if spread == 0:
        # Temperatures come from a grid, so all seeds may have the same temperature.
        return f"{value.rstrip('0').rstrip('.') if '.' in value else value} in all runs"
    return value if sd == MISSING else f"{value} ± {sd}"


def _counts(columns: dict[str, list[str]]) -> str:
    """Join the counts of a row; if they differ, name the columns with each count."""
    texts = list(columns)
    if len(columns) > 1:
        texts = [f"{count}: {', '.join(names)}" for count, names in columns.items()]
    return "; ".join(texts) or MISSING


def _count(row: dict[Any, Any]) -> str:
    """Describe how many runs finished or were lost, with remarks; "" if unknown."""
    count = row.get("seeds")
    if pd.isna(count) or not row["here"]:
        return ""
    has_remark = row[STATUS] not in {MEASURED, *_INSTEAD_OF_A_VALUE}
    texts = []
    if count or not has_remark:
        texts.append(f"n = {count:.0f}")
    for outcome in (DIVERGED, STUCK):
        lost = row.get(f"{outcome}_seeds")
        if lost:
            texts.append(f"{lost:.0f} {outcome}")
    if row.get("never_redistributed"):
        texts.append("never redistributed")
    if has_remark:
        texts.append(row[STATUS])
    return ", ".join(texts)


def _text(value: Any) -> str:
    return "" if pd.isna(value) else str(value)


def narrowest(texts: pd.DataFrame) -> int:
    """The smallest width, in characters, to which a table for readers can shrink.

    Cells are wrapped at spaces, but not before or after a "±".
    """
    columns = (" ".join(map(str, [name, *texts[name]])) for name in texts)
    pieces = (column.replace(" ± ", "_±_").split() for column in columns)
    return sum(_GAP + max(map(len, column), default=0) for column in pieces)


def in_words(table: pd.DataFrame, across: str | None) -> pd.DataFrame:
    """Lay out a comparison as `wide` does, with its factors in words."""
    return wide(with_words(table), across)


def with_words(table: pd.DataFrame) -> pd.DataFrame:
    """A copy of `table` with words for the values of factors."""
    labels = {**LABELS, "schedule": SCHEDULE_WORDS}
    words = {name: texts for name, texts in labels.items() if name in table}
    return table.replace(words)


def mean_with_sd(mean: Any, sd: Any) -> str:
    """Format a share as a percentage, ± its standard deviation if there is one."""
    text = number(mean, percent=True)
    if pd.isna(sd):
        return text
    return f"{text} ± {number(sd, percent=True)}"

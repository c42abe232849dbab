"""Tables with ours beside the printed numbers, laid out for a reader as texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.shared.display import LABELS, is_share
from softmax_temperature.papers.shared.sources import CELLS, Linked
from softmax_temperature.papers.shared.tables import (
    DIFFERENCE,
    DIVERGED,
    MEASURED,
    METRIC,
    OURS,
    PRINTED,
    STATUS,
    STUCK,
)

MISSING = "–"
_REMARKS = ("embeddings", "differs")
"""Columns on how our run differs from the paper's; they name a row of ours, too."""


def number(value: Any, *, percent: bool = False) -> str:
    """A number as text; NaN is a dash.

    A percentage has two digits after the point, a number below 10 four, and a larger
    one five digits in all.
    """
    if pd.isna(value):
        return MISSING
    text = (
        f"{100 * value:.2f}"
        if percent
        else f"{value:.4f}"
        if abs(value) < 10
        else f"{value:.5g}"
    )
    return (text if float(text) else text.removeprefix("-")).replace("-", "−")


def wide(table: pd.DataFrame, across: str | None) -> pd.DataFrame:
    """The texts of a comparison: ours as mean ± sd, beside the printed number.

    Ours is linked to its cells.

    Each value of the name `across` has columns of its own; the other names are the
    rows.
    """
    names = list(table.columns[: table.columns.get_loc(PRINTED)])
    remarks = [name for name in _REMARKS if name in table]
    rows = _with_texts(table, [*names, *remarks])
    rows["column"] = rows[across] if across else OURS
    # Before the numbers stand the names with a text, without that of the run where it
    # is not needed.
    down = [name for name in names if name != across and rows[name].any()]
    others = [name for name in names[1:] if name in down or name == across]
    down = (
        down
        if len(down) <= 2 or rows[others].duplicated().any()
        else [each for each in down if each != names[0]]
    )
    lines, counts = dict[Any, dict[str, str]](), dict[Any, dict[str, list[str]]]()
    for row in rows.sort_values("here", ascending=False, kind="stable").to_dict(
        "records"
    ):
        known = {name: row[name] for name in down} | {
            STATUS: MISSING if row["here"] else row[STATUS]
        }
        known |= {name: row[name] or MISSING for name in remarks if row["here"]}
        line = tuple(known.values())
        lines.setdefault(line, known).update(_texts_of_number(row))
        counts.setdefault(line, {}).setdefault(_count(row), []).append(row["column"])
    for line, known in lines.items():
        known["runs"] = _counts(
            {count: columns for count, columns in counts[line].items() if count}
        )
    numbers = [
        name
        for column in dict.fromkeys(rows["column"])
        for name in (column, f"{column}, printed")
    ]
    filled = set().union(*lines.values())
    order = [
        name for name in [*down, *numbers, *remarks, "runs", STATUS] if name in filled
    ]
    made = pd.DataFrame(lines.values(), columns=order, dtype=object)
    return made.fillna(MISSING).rename(columns={f"{OURS}, printed": "printed"})


def _with_texts(table: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """The rows with names and metrics as texts, and with differences.

    `here` says whether there is a number of ours, `percent` whether it is a share.
    """
    rows = table.assign(
        **{STATUS: table.get(STATUS, MEASURED), METRIC: table.get(METRIC, "")}
    )
    rows = rows.assign(**{name: rows[name].map(_text) for name in [*names, STATUS]})
    rows["percent"] = rows[METRIC].map(is_share).astype(bool)
    signs = np.where(rows["percent"] & ~rows[METRIC].str.contains("%"), " (%)", "")
    rows[METRIC] = rows[METRIC].str.replace("_", " ") + signs
    rows["here"] = rows[OURS].notna() | (rows[STATUS] == DIVERGED)
    if DIFFERENCE not in rows:
        count, sd = (
            rows.get(name, pd.Series(np.nan, rows.index))
            for name in ("seeds", "ours_sd")
        )
        rows[DIFFERENCE] = (
            (rows[OURS] - rows[PRINTED])
            / sd.replace(0, np.nan)
            * count.where(count > 1) ** 0.5
        )
    return rows


def _texts_of_number(row: dict[Any, Any]) -> dict[str, str]:
    """Our number and the printed one, where they exist, by column."""
    found: dict[str, str] = {}
    if row["here"]:
        ours = _with_sd(row, OURS, row[STATUS] == DIVERGED)
        found[row["column"]] = Linked(ours, _text(row.get(CELLS)))
    is_diverged = row.get("published_diverged", False)
    if (printed := _with_sd(row, PRINTED, is_diverged)) != MISSING:
        is_compared = not is_diverged and pd.notna(row[DIFFERENCE])
        difference = (
            f" ({row[DIFFERENCE]:+.1f} s.e.)".replace("-", "−") if is_compared else ""
        )
        found[f"{row['column']}, printed"] = printed + difference
    return found


def _with_sd(row: dict[Any, Any], name: str, diverged: bool) -> str:
    value, sd = (
        number(row.get(each), percent=row["percent"]) for each in (name, f"{name}_sd")
    )
    return DIVERGED if diverged else value if sd == MISSING else f"{value} ± {sd}"


def _counts(columns: dict[str, list[str]]) -> str:
    """The counts of a line, each with its columns where they differ."""
    named = [f"{count}: {', '.join(some)}" for count, some in columns.items()]
    return "; ".join(named if len(named) > 1 else columns) or MISSING


def _count(row: dict[Any, Any]) -> str:
    """How many runs finished, how many were lost, and what else the status says."""
    count = row.get("seeds")
    if pd.isna(count) or not row["here"]:
        return ""
    said = [row[STATUS]] if row[STATUS] not in {MEASURED, DIVERGED} else []
    runs = [f"n = {count:.0f}"] if count or not said else []
    runs += [
        f"{row[f'{word}_seeds']:.0f} {word}"
        for word in (DIVERGED, STUCK)
        if row.get(f"{word}_seeds")
    ]
    runs += ["never redistributed"] if row.get("never_redistributed") else []
    return ", ".join([*runs, *said])


def _text(value: Any) -> str:
    return "" if pd.isna(value) else str(value)


def in_words(table: pd.DataFrame, across: str | None) -> pd.DataFrame:
    """A comparison as texts, its factors in the papers' words."""
    return wide(with_words(table), across)


def with_words(table: pd.DataFrame) -> pd.DataFrame:
    """A table with the values of its factors in the papers' words."""
    words = {name: labels for name, labels in LABELS.items() if name in table}
    return table.replace(words)


def mean_with_sd(mean: Any, sd: Any) -> str:
    """A share in percent ± its standard deviation, if there is one."""
    text = number(mean, percent=True)
    if pd.isna(sd):
        return text
    return f"{text} ± {number(sd, percent=True)}"

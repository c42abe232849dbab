"""Tables with ours beside the printed numbers, laid out for a reader.

The files are long, one row per number. Whatever the paper, the columns before `published` name a number, and the layout
follows from them: the first names our run, the last that is not `metric` becomes the columns, the others the rows.
"""

import re
from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.shared.comparison import DIFFERENCE, DIVERGED, MEASURED
from softmax_temperature.papers.shared.sources import CELLS, Linked

PRINTED, OURS, METRIC, STATUS = "published", "ours", "metric", "status"
MISSING = "–"
_REMARKS = ("embeddings", "differs")
"""How our run differs from the paper's, where a table says so: these columns name a row of ours, too."""
_SHARE = re.compile(r"ece|mce|error|accuracy|auroc|top\d|s99|iou|%")
"""Metrics that are shares in the files, and percent for a reader."""
_LARGE = 10


def number(value: Any, *, percent: bool = False) -> str:
    """Four digits after the point, from 10 on five in all; of a percentage two after the point. NaN is a dash."""
    if pd.isna(value):
        return MISSING
    text = f"{100 * value:.2f}" if percent else f"{value:.4f}" if abs(value) < _LARGE else f"{value:.5g}"
    return (text if float(text) else text.removeprefix("-")).replace("-", "−")


def wide(table: pd.DataFrame) -> pd.DataFrame:
    """A comparison as texts: ours as mean ± sd, linked to its cells; beside it what is printed, and the difference.

    The difference is ours minus printed, in standard errors. Rows that were not run come last and say so.

    Args:
        table: as it is made or read back.
    """
    names = [str(column) for column in table.columns[: list(table.columns).index(PRINTED)]]
    across = next((name for name in reversed(names) if name != METRIC), None) if METRIC in names else None
    remarks = [name for name in _REMARKS if name in table]
    status = table[STATUS] if STATUS in table else pd.Series(MEASURED, table.index)
    rows = table.assign(**{name: table[name].map(_text) for name in (*names, *remarks)}, status=status.map(_text))
    here = rows[OURS].notna() | (rows[STATUS] == DIVERGED)
    down = [name for name in names if name != across and (rows[name] != "").any()]
    others = [name for name in names[1:] if name in down or name == across]
    if len(down) > 2 and not rows[others].duplicated().any():  # The run's own name is not needed.
        down = [name for name in down if name != names[0]]
    lines: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in [*rows[here].to_dict("records"), *rows[~here].to_dict("records")]:
        run = row[OURS] == row[OURS] or row[STATUS] == DIVERGED
        known = {name: row[name] for name in down} | {STATUS: MISSING if run else row[STATUS]}
        known |= {name: row[name] or MISSING for name in remarks if run}
        line = lines.setdefault(tuple(known.values()), known | {"runs": dict.fromkeys(())})
        percent = METRIC in row and bool(_SHARE.search(row[METRIC].lower()))
        if METRIC in row:
            line[METRIC] = row[METRIC].replace("_", " ") + (" (%)" if percent and "%" not in row[METRIC] else "")
        column = row[across] if across else OURS
        if run:
            line[column] = Linked(_ours(row, percent=percent), _text(row.get(CELLS)))
            line["runs"] |= dict.fromkeys(filter(None, [_count(row)]))
        if (printed := _printed(row, percent=percent)) != MISSING:
            line[f"{column}, printed"] = printed
    columns = dict.fromkeys(rows[across] if across else [OURS])
    numbers = [name for column in columns for name in (column, f"{column}, printed")]
    order = [*down, *numbers, *remarks, "runs", STATUS]
    texts = [{**line, "runs": "; ".join(line["runs"]) or MISSING} for line in lines.values()]
    made = pd.DataFrame(texts, columns=[name for name in order if any(name in line for line in texts)], dtype=object)
    return made.fillna(MISSING).rename(columns={f"{OURS}, printed": "printed"})


def _ours(row: dict[Any, Any], *, percent: bool) -> str:
    if row[STATUS] == DIVERGED:
        return DIVERGED
    sd = number(row.get("ours_sd"), percent=percent)
    return number(row[OURS], percent=percent) + ("" if sd == MISSING else f" ± {sd}")


def _printed(row: dict[Any, Any], *, percent: bool) -> str:
    if row.get("published_diverged") in (True, "True"):
        return DIVERGED
    text, sd = (number(row.get(name), percent=percent) for name in (PRINTED, "published_sd"))
    difference = _difference(row)
    said = "" if np.isnan(difference) else f" ({difference:+.1f} s.e.)".replace("-", "−")
    return text + ("" if sd == MISSING else f" ± {sd}") + said


def _difference(row: dict[Any, Any]) -> float:
    """In standard errors; where the table does not say, in those of ours over runs."""
    if DIFFERENCE in row:
        return float(row[DIFFERENCE])
    count, deviation = row.get("seeds", 0), row.get("ours_sd") or np.nan
    return float((row[OURS] - row[PRINTED]) / deviation * count**0.5) if count > 1 else np.nan


def _count(row: dict[Any, Any]) -> str:
    """How many runs finished, how many were lost, and what else the status says."""
    count = row.get("seeds")
    if pd.isna(count):
        return ""
    lost = [f"{row[f'{word}_seeds']:.0f} {word}" for word in (DIVERGED, "stuck") if row.get(f"{word}_seeds")]
    never = ["never redistributed"] if row.get("never_redistributed") in (True, "True") else []
    said = [row[STATUS]] if row[STATUS] not in {MEASURED, DIVERGED} else []
    runs = [f"n = {count:.0f}"] if count or not said else []
    return ", ".join([*runs, *lost, *never, *said])


def _text(value: Any) -> str:
    return "" if pd.isna(value) else str(value)

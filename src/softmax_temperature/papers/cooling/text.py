"""The numbers that the paper prints in its running text, beside ours."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.cooling.heating import crossings
from softmax_temperature.papers.cooling.study import (
    ACCURACY,
    FACTOR_UP_TO_1,
    FIGURE_1,
    LIMIT,
    NO_COOLING,
    SLUG,
)
from softmax_temperature.papers.shared import layout
from softmax_temperature.papers.shared.contrasts import TASK, Difference
from softmax_temperature.papers.shared.factors import where
from softmax_temperature.papers.shared.metrics import lost_text
from softmax_temperature.papers.shared.printed import published
from softmax_temperature.papers.shared.runs import Runs, cell_names
from softmax_temperature.papers.shared.sources import CELLS, Linked, together
from softmax_temperature.papers.shared.tables import (
    MEASURED,
    NOT_RUN,
    OURS,
    PRINTED,
    not_run,
    studies_of,
)

PROFILES = ("cifar10", "cooling_full", "paper")
"""The profiles that declare all of the paper's training runs on CIFAR-10."""

CROSSED = {
    "periodic": "epoch of first reset, kappa=1.0, tau_max=tau_re=100",
    "last_layer": "epoch when 1/tau first exceeds 100, last layer, kappa=0.75",
}
"""Maps each mode to the printed name of the first epoch at which the temperature
exceeds `LIMIT`.
"""
_TIMES = {
    "seconds per training epoch": "epoch_seconds",
    "seconds per Cooling step": "seconds",
    "Cooling cost as % of an epoch": "share",
}
"""Maps the printed names of times to their columns in the table `cost`."""
_POINTS = " (percentage points)"
_GAIN = f"largest gain in Fig. 1{_POINTS}"
_SETTING = list(TASK)
_COLUMNS = [
    "quantity",
    *_SETTING,
    "unit",
    PRINTED,
    OURS,
    f"{OURS}_sd",
    "seeds",
    "status",
    CELLS,
]
_ZEROS = re.compile(r"\.0+\b|(\.\d*[1-9])0+\b")


def table(runs: Runs) -> pd.DataFrame:
    """Printed values and ours, in the same row if our run matches the paper's.

    The gain is for the best factor up to 1. Epochs are means over the seeds for which
    the temperature exceeds the maximum. Times are measured by the benchmark, for the
    most expensive mode on each device.
    """
    ours = _measured(runs)
    printed_runs = runs.table[runs.table["is_printed"]]
    as_printed = {(None, None)}
    as_printed |= set(printed_runs[_SETTING].itertuples(index=False, name=None))
    rows: list[dict[str, Any]] = []
    for printed in published(SLUG, "text").to_dict("records"):
        metric = printed["metric"]
        row = _printed_row(printed)
        beside = [
            number
            for number in ours[metric]
            if (number.get("dataset"), number.get("network")) in as_printed
        ]
        below = [number for number in ours[metric] if number not in beside]
        status = not_run(PROFILES, studies_of(runs))
        if metric in _TIMES:
            status = f"{NOT_RUN}`make bench`"
        missing = {"status": status}
        rows += [row | number for number in beside or [missing]]
        rows += [row | {PRINTED: np.nan} | number for number in below]
    return pd.DataFrame(rows, columns=_COLUMNS)


def _printed_row(printed: Mapping[Any, Any]) -> dict[str, Any]:
    """The row of a printed value; a percentage becomes a fraction."""
    metric = printed["metric"]
    unit = "share" if printed["unit"] == "percent" else ""
    if metric == _GAIN:
        unit = "difference of shares"
    return {
        "quantity": metric.removesuffix(_POINTS),
        "dataset": printed["dataset"],
        "network": printed["model"],
        "unit": unit,
        PRINTED: float(printed["value"]) / (100 if unit else 1),
        "seeds": 0,
    }


def _measured(runs: Runs) -> dict[str, list[dict[str, Any]]]:
    """Map the paper's name of each metric to the rows with our values."""
    cost = runs.tables["cost"].sort_values("share")
    most_expensive = cost.drop_duplicates("device", keep="last").to_dict("records")
    ours: dict[str, list[dict[str, Any]]] = {
        metric: [
            {
                OURS: row[column],
                "status": f"`make bench` on {row['device']}: {row['size']}",
            }
            for row in most_expensive
        ]
        for metric, column in _TIMES.items()
    }
    for mode, metric in CROSSED.items():
        ours[metric] = list(_crossings(runs, mode))
    ours[_GAIN] = list(_largest_gains(runs))
    return ours


def _largest_gains(runs: Runs) -> Iterator[dict[str, Any]]:
    """Yield one row per data set and network: the gain of the best factor up to 1."""
    figure = runs.select(FIGURE_1)
    for setting, rows in figure.groupby(_SETTING, sort=False):
        here = where(**dict(zip(_SETTING, setting, strict=True)))
        gains = {}
        for factor in sorted(FACTOR_UP_TO_1.select(rows)["factor"].unique()):
            contrast = Difference(
                of=ACCURACY,
                first=FACTOR_UP_TO_1 & where(factor=factor),
                second=NO_COOLING,
                among=FIGURE_1 & here,
            )
            differences = contrast.differences(runs)
            if len(differences):
                gains[factor] = differences
        if not gains:
            continue
        best = max(gains, key=lambda factor: gains[factor].mean())
        cooled = where(mode="last_layer", factor=best).select(rows)
        compared = pd.concat([cooled, NO_COOLING.select(rows)])
        note = lost_text(compared, counted="guessing")
        gain = gains[best]
        if compared["lost"].all():
            gain = gain[:0]
        yield _ours(setting, gain, cooled, note, missing=note)


def _crossings(runs: Runs, mode: str) -> Iterator[dict[str, Any]]:
    """Yield one row per data set and network: the epoch at which `LIMIT` is exceeded.

    Only runs with Cooling in `mode` are used.
    """
    rows = crossings(runs)
    rows = rows[(rows["mode"] == mode) & (rows["limit"] == LIMIT)]
    for setting, group in rows.groupby(_SETTING, sort=False):
        epochs = group["crossed"].dropna()
        note = ""
        if len(epochs) < len(group):
            note = f"in {len(epochs)} of {len(group)} seeds"
        nothing = "the temperature does not get there"
        yield _ours(setting, epochs, group, note, missing=nothing)


def _ours(
    setting: tuple[Any, ...],
    numbers: pd.Series[float],
    behind: pd.DataFrame,
    note: str,
    *,
    missing: str,
) -> dict[str, Any]:
    status = missing
    if len(numbers):
        status = "; ".join(filter(None, (MEASURED, note)))
    return dict(zip(_SETTING, setting, strict=True)) | {
        OURS: numbers.mean(),
        f"{OURS}_sd": numbers.std(),
        "seeds": len(numbers),
        "status": status,
        CELLS: together(cell_names(behind)),
    }


def lay_out(table: pd.DataFrame) -> pd.DataFrame:
    """Lay out the table in the units of the paper, without trailing zeros."""
    is_share = table["unit"].fillna("") != ""
    is_time = table["quantity"].str.startswith("seconds")
    numbers = table[[PRINTED, OURS, f"{OURS}_sd"]]
    scaled = numbers.mul(np.where(is_share, 100, 1), axis="index").round(3)
    unit = np.select(
        [table["unit"] == "share", is_share, is_time],
        ["%", "points", "s"],
        default="epoch",
    )
    texts = layout.wide(table.assign(**scaled, unit=unit), across=None)
    for name in texts.columns.intersection([OURS, "printed"]):
        texts[name] = [
            Linked(_ZEROS.sub(r"\1", text), getattr(text, CELLS, ""))
            for text in texts[name]
        ]
    return texts

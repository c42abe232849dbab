"""The numbers in the paper's running text, ours beside the printed ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.cooling import growth, selection
from softmax_temperature.papers.cooling.records import SLUG, Records
from softmax_temperature.papers.cooling.selection import LAST, NO_COOLING, SETTING
from softmax_temperature.papers.shared.comparison import MEASURED, NOT_RUN
from softmax_temperature.papers.shared.sources import together
from softmax_temperature.papers.shared.tables import published

_POINTS = " (percentage points)"
_COLUMNS = ["quantity", *SETTING, "unit", "published", "ours", "ours_sd", "seeds", "status", "cells"]


def quantities(records: Records) -> pd.DataFrame:
    """The numbers in the running text.

    Returns:
        `_COLUMNS`. Ours (mean over seeds) is beside the printed number where the experiment is the paper's; with other
        data or another network it has a row of its own. Shares and their differences are fractions. The gain of Figure
        1 is that of the best factor up to 1, and a lost training counts as guessing in it; epochs are means over the
        seeds whose temperature gets there. Times are the benchmark's. The cells are those with Cooling.
    """
    known = selection.experiments(records)
    as_printed = set(known[known["is_printed"]][SETTING].itertuples(index=False, name=None))
    rows: list[dict[str, Any]] = []
    for printed in published(SLUG, "text").to_dict("records"):
        metric, kind = printed["metric"], "share" if printed["unit"] == "percent" else ""
        unit = "difference of shares" if metric.endswith(_POINTS) else kind
        row = {"quantity": metric.removesuffix(_POINTS), "dataset": printed["dataset"], "network": printed["model"]}
        row |= {"unit": unit, "published": float(printed["value"]) / (100 if unit else 1), "seeds": 0}
        if metric in _TIMES:
            rows += [row | each for each in _times(records, _TIMES[metric])]
            continue
        found = _MEASURES[metric](records)
        ours = [each for each in found if (each["dataset"], each["network"]) in as_printed]
        rows += [row | each for each in ours or [{"status": f"{NOT_RUN}profile cifar10"}]]
        rows += [{**row, "published": np.nan, **each} for each in found if each not in ours]
    return pd.DataFrame(rows, columns=_COLUMNS)


def _times(records: Records, column: str) -> list[dict[str, Any]]:
    """Those of the most expensive mode on each device."""
    rows = records.cost.sort_values("share").drop_duplicates("device", keep="last").to_dict("records")
    measured = [{"ours": row[column], "status": f"`make bench` on {row['device']}: {row['size']}"} for row in rows]
    return measured or [{"status": f"{NOT_RUN}`make bench`"}]


def _largest_gain(records: Records) -> list[dict[str, Any]]:
    rows = []
    for setting, some in selection.figure_1_trainings(records).groupby(SETTING, sort=False):
        pairs = {factor: selection.paired(each, LAST) for factor, each in selection.by_factor(some).items()}
        gains = {factor: each["difference"] for factor, each in pairs.items() if len(each)}
        if gains:
            best = max(gains, key=lambda factor: gains[factor].mean())
            shown = selection.by_factor(some)[best]
            note = selection.lost_by_mode(shown, LAST, NO_COOLING, counted="guessing")
            gain = gains[best][: 0 if shown["lost"].all() else None]
            rows.append(_measured(setting, gain, note, shown[shown["mode"] == LAST], missing=note))
    return rows


def _crossing(records: Records, *, mode: str) -> list[dict[str, Any]]:
    found, grown = growth.crossings(records), growth.growth(records)
    rows = []
    for setting, some in found[(found["mode"] == mode) & (found["limit"] == growth.LIMIT)].groupby(SETTING, sort=False):
        epochs = some["epoch"].dropna()
        note = f"in {len(epochs)} of {len(some)} seeds" if len(epochs) < len(some) else ""
        behind = grown[(grown["mode"] == mode) & grown["experiment"].isin(some["experiment"])]
        rows.append(_measured(setting, epochs, note, behind, missing="the temperature does not get there"))
    return rows


def _measured(
    setting: tuple[Any, ...], values: pd.Series[float], note: str, behind: pd.DataFrame, *, missing: str
) -> dict[str, Any]:
    status = selection.joined(MEASURED, note) if len(values) else missing
    row = {"ours": values.mean(), "ours_sd": values.std(), "seeds": len(values), "status": status}
    return dict(zip(SETTING, setting, strict=True)) | row | {"cells": together(behind["cells"])}


_MEASURES: dict[str, Callable[[Records], list[dict[str, Any]]]] = {
    **{metric: partial(_crossing, mode=mode) for mode, metric in growth.PRINTED.items()},
    "largest gain in Fig. 1 (percentage points)": _largest_gain,
}
"""What the trainings tell, by the metric of the printed numbers."""

_TIMES = {
    "seconds per training epoch": "epoch_seconds",
    "seconds per Cooling step": "seconds",
    "Cooling cost as % of an epoch": "share",
}
"""What the benchmark tells, by the metric of the printed numbers: a column of `Records.cost`."""

"""The numbers in the paper's running text, ours beside the printed ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.cooling.growth import LIMIT, crossings, growth
from softmax_temperature.papers.cooling.records import SLUG, Records
from softmax_temperature.papers.cooling.selection import (
    NO_COOLING,
    PERIODIC,
    SETTING,
    SIMPLEST,
    cells_of_trainings,
    experiments,
    figure_1_trainings,
    guessing,
    guessing_note,
    is_lost,
)
from softmax_temperature.papers.shared.comparison import MEASURED, NOT_RUN
from softmax_temperature.papers.shared.sources import together
from softmax_temperature.papers.shared.tables import published

NEVER = "the temperature does not get there"
_POINTS = " (percentage points)"
_COLUMNS = ["quantity", "dataset", "network", "unit", "published", "ours", "ours_sd", "seeds", "status", "cells"]


def quantities(records: Records, title: str) -> pd.DataFrame:
    """The numbers in the running text; `title` is the column `table` of the printed ones.

    Returns:
        `_COLUMNS`. Ours (mean over seeds) is beside the printed number where the experiment is the paper's; with other
        data or another network it has a row of its own. Shares and their differences are fractions. The gain of Figure
        1 is that of the best factor up to 1, and a lost training counts as guessing in it; epochs are means over the
        seeds whose temperature gets there. Times are the benchmark's. The cells are those with Cooling.
    """
    known = experiments(records)
    as_printed = set(known[known["is_printed"]][["dataset", "network"]].itertuples(index=False, name=None))
    rows: list[dict[str, Any]] = []
    for printed in published(SLUG, title).to_dict("records"):
        metric = printed["metric"]
        unit = "difference of shares" if metric.endswith(_POINTS) else "share" if printed["unit"] == "percent" else ""
        row = {
            "quantity": metric.removesuffix(_POINTS),
            "dataset": printed["dataset"],
            "network": printed["model"],
            "unit": unit,
            "published": float(printed["value"]) / (100 if unit else 1),
            "seeds": 0,
        }
        if metric in _TIMES:
            rows += [{**row, **each} for each in _times(records, _TIMES[metric])]
            continue
        found = _MEASURES[metric](records)
        ours = [each for each in found if (each["dataset"], each["network"]) in as_printed]
        rows += [{**row, **each} for each in ours or [{"status": f"{NOT_RUN}profile cifar10"}]]
        rows += [{**row, **each, "published": np.nan} for each in found if each not in ours]
    return pd.DataFrame(rows, columns=_COLUMNS)


def _times(records: Records, column: str) -> list[dict[str, Any]]:
    """Those of the most expensive mode on each device."""
    rows = records.cost.sort_values("share").drop_duplicates("device", keep="last").to_dict("records")
    measured = [{"ours": row[column], "status": f"`make bench` on {row['device']}: {row['size']}"} for row in rows]
    return measured or [{"status": f"{NOT_RUN}`make bench`"}]


def _largest_gain(records: Records) -> list[dict[str, Any]]:
    known = figure_1_trainings(records)
    known = known[(known["mode"] == NO_COOLING) | (known["factor"] <= 1)]
    rows = []
    for setting, some in known.assign(accuracy=guessing(known)).groupby(["dataset", "network"], sort=False):
        without = some[some["mode"] == NO_COOLING].set_index([*SETTING, "seed"])["accuracy"].rename("without")
        pairs = some[some["mode"] == SIMPLEST].join(without, on=[*SETTING, "seed"], how="inner")
        if pairs.empty:
            continue
        gains = (pairs["accuracy"] - pairs["without"]).groupby(pairs["factor"])
        best = gains.mean().idxmax()
        pair = some[(some["mode"] == NO_COOLING) | (some["factor"] == best)]
        note = guessing_note(pair, SIMPLEST, NO_COOLING)
        gain = gains.get_group(best) if not is_lost(pair).all() else pd.Series(dtype=float)
        rows.append(_measured(setting, gain, note, pair[pair["mode"] == SIMPLEST], missing=note))
    return rows


def _crossing(records: Records, *, mode: str) -> list[dict[str, Any]]:
    found, grown = crossings(records), growth(records)
    found = found[(found["mode"] == mode) & (found["limit"] == LIMIT)]
    rows = []
    for setting, some in found.groupby(["dataset", "network"], sort=False):
        epochs = some["epoch"].dropna()
        note = f"in {len(epochs)} of {len(some)} seeds" if len(epochs) < len(some) else ""
        behind = grown[(grown["mode"] == mode) & grown["experiment"].isin(some["experiment"])]
        rows.append(_measured(setting, epochs, note, behind, missing=NEVER))
    return rows


def _measured(
    setting: tuple[Any, ...], values: pd.Series[float], note: str, behind: pd.DataFrame, *, missing: str
) -> dict[str, Any]:
    return {
        **dict(zip(("dataset", "network"), setting, strict=True)),
        "ours": values.mean(),
        "ours_sd": values.std(),
        "seeds": len(values),
        "status": "; ".join(filter(None, (MEASURED, note))) if len(values) else missing,
        "cells": together(cells_of_trainings(behind)),
    }


_MEASURES: MappingProxyType[str, Callable[[Records], list[dict[str, Any]]]] = MappingProxyType(
    {
        "epoch of first reset, kappa=1.0, tau_max=tau_re=100": partial(_crossing, mode=PERIODIC),
        "epoch when 1/tau first exceeds 100, last layer, kappa=0.75": partial(_crossing, mode=SIMPLEST),
        "largest gain in Fig. 1 (percentage points)": _largest_gain,
    }
)
"""What the trainings tell, by the metric of the printed numbers."""

_TIMES = MappingProxyType(
    {
        "seconds per training epoch": "epoch_seconds",
        "seconds per Cooling step": "seconds",
        "Cooling cost as % of an epoch": "share",
    }
)
"""What the benchmark tells, by the metric of the printed numbers: a column of `Records.cost`."""

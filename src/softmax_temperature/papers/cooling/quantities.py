"""The numbers in the paper's running text, ours beside the printed ones."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.cooling.effects import factor_gains, figure_1_trainings
from softmax_temperature.papers.cooling.growth import LIMIT, crossings, growth
from softmax_temperature.papers.cooling.notes import guessing_note, joined
from softmax_temperature.papers.cooling.outcomes import is_lost
from softmax_temperature.papers.cooling.printed_tables import MEASURED, MISSING
from softmax_temperature.papers.cooling.records import SLUG
from softmax_temperature.papers.cooling.selection import (
    NO_COOLING,
    PERIODIC,
    SIMPLEST,
    cells_of_trainings,
    experiments,
)
from softmax_temperature.papers.shared.sources import together
from softmax_temperature.papers.shared.tables import published

if TYPE_CHECKING:
    from collections.abc import Callable

    from softmax_temperature.papers.cooling.records import Records
    from softmax_temperature.papers.cooling.table_specs import Quantities

NEVER = "the temperature does not get there"
_SHARE, _DIFFERENCE, _POINTS = "share", "difference of shares", " (percentage points)"
_SIGNS = {_SHARE: "%", _DIFFERENCE: "points"}
"""What is a fraction in the table, and how a reader sees it."""
_COLUMNS = ["quantity", "dataset", "network", "unit", "published", "ours", "ours_sd", "seeds", "status", "cells"]


def quantities(records: Records, spec: Quantities) -> pd.DataFrame:
    """The numbers in the running text.

    Args:
        records: the paper's.
        spec: where they are printed.

    Returns:
        Columns quantity, dataset, network, unit, published, ours (mean over seeds), ours_sd, seeds, status, cells (the
        trainings with Cooling that ours comes from). Ours stands beside the printed number where the experiment is the
        paper's; where it has other data or another network, in a row of its own, with those. Shares and their
        differences are fractions. The gain of Figure 1 is that of the best factor up to 1, and a lost training counts
        as guessing in it; epochs are means over the seeds whose temperature gets there. Times are the benchmark's.
    """
    known = experiments(records)
    as_printed = set(known[known["printed_model"] != ""][["dataset", "network"]].itertuples(index=False, name=None))
    rows: list[dict[str, Any]] = []
    for printed in published(SLUG, spec.title).to_dict("records"):
        unit = _unit(printed["metric"], printed["unit"])
        row = {
            "quantity": printed["metric"].removesuffix(_POINTS),
            "dataset": printed["dataset"],
            "network": printed["model"],
        }
        row |= {"unit": unit, "published": float(printed["value"]) / (100 if unit in _SIGNS else 1)}
        if printed["metric"] in _TIMES:
            rows += _timed(records, _TIMES[printed["metric"]], row)
            continue
        found = _MEASURES[printed["metric"]](records)
        ours = [each for each in found if (each["dataset"], each["network"]) in as_printed]
        rows += [{**row, **each} for each in ours] or [{**row, "seeds": 0, "status": "not run: profile cifar10"}]
        rows += [{**row, **each, "published": np.nan} for each in found if each not in ours]
    return pd.DataFrame(rows, columns=_COLUMNS)


def wide_quantities(table: pd.DataFrame) -> pd.DataFrame:
    """The quantities for a reader, shares in percent, differences of them in points.

    Args:
        table: as `quantities` returns it.
    """
    return pd.DataFrame([_row(row) for row in table.itertuples()])


def _timed(records: Records, column: str, printed: dict[str, Any]) -> list[dict[str, Any]]:
    """The dearest mode on each device."""
    rows = records.cost.sort_values("share").drop_duplicates("device", keep="last")
    if rows.empty:
        return [{**printed, "seeds": 0, "status": "not run: `make bench`"}]
    return [
        {**printed, "ours": getattr(row, column), "seeds": 0, "status": f"`make bench` on {row.device}: {row.size}"}
        for row in rows.itertuples()
    ]


def _largest_gain(records: Records) -> list[dict[str, Any]]:
    known = figure_1_trainings(records)
    known = known[(known["mode"] == NO_COOLING) | (known["factor"] <= 1)]
    rows = []
    for setting, some in known.groupby(["dataset", "network"], sort=False):
        found = factor_gains(some)
        if found.empty:
            continue
        best = found.groupby("factor").mean().idxmax()
        pair = some[(some["mode"] == NO_COOLING) | (some["factor"] == best)]
        note = guessing_note(pair, SIMPLEST, NO_COOLING)
        gain = found[found.index.get_level_values("factor") == best]
        gain = gain[:0] if is_lost(pair).all() else gain
        cooled = pair[pair["mode"] == SIMPLEST]
        rows.append(_measured(setting, gain, note, missing=note) | _cells(cooled))
    return rows


def _crossing(records: Records, *, mode: str) -> list[dict[str, Any]]:
    found, grown = crossings(records), growth(records)
    found = found[(found["mode"] == mode) & (found["limit"] == LIMIT)]
    rows = []
    for setting, some in found.groupby(["dataset", "network"], sort=False):
        epochs = some["epoch"].dropna()
        few = f"in {len(epochs)} of {len(some)} seeds" if len(epochs) < len(some) else ""
        followed = grown[(grown["mode"] == mode) & grown["experiment"].isin(some["experiment"])]
        rows.append(_measured(setting, epochs, few, missing=NEVER) | _cells(followed))
    return rows


def _measured(setting: tuple[Any, ...], values: pd.Series[float], note: str, *, missing: str) -> dict[str, Any]:
    names = dict(zip(("dataset", "network"), setting, strict=True))
    numbers = {"ours": values.mean(), "ours_sd": values.std(), "seeds": len(values)}
    return {**names, **numbers, "status": joined(MEASURED, note) if len(values) else missing}


def _cells(rows: pd.DataFrame) -> dict[str, str]:
    return {"cells": together(cells_of_trainings(rows))}


_MEASURES: MappingProxyType[str, Callable[[Records], list[dict[str, Any]]]] = MappingProxyType(
    {
        "epoch of first reset, kappa=1.0, tau_max=tau_re=100": partial(_crossing, mode=PERIODIC),
        "epoch when 1/tau first exceeds 100, last layer, kappa=0.75": partial(_crossing, mode=SIMPLEST),
        "largest gain in Fig. 1 (percentage points)": _largest_gain,
    }
)
"""What the trainings can say, by the metric of the printed numbers."""

_TIMES = MappingProxyType(
    {
        "seconds per training epoch": "epoch_seconds",
        "seconds per Cooling step": "seconds",
        "Cooling cost as % of an epoch": "share",
    }
)
"""What the benchmark can say, likewise: a column of `Records.cost`."""


def _unit(metric: str, printed: Any) -> str:
    if metric.endswith(_POINTS):
        return _DIFFERENCE
    return _SHARE if printed == "percent" else ""


def _row(row: Any) -> dict[str, Any]:
    sd = "" if np.isnan(row.ours_sd) else f" ± {_number(row.ours_sd, row.unit)}"
    ours = MISSING if np.isnan(row.ours) else _number(row.ours, row.unit) + sd + _sign(row.unit)
    names = {"quantity": row.quantity, "dataset": row.dataset, "network": row.network}
    printed = MISSING if np.isnan(row.published) else _number(row.published, row.unit) + _sign(row.unit)
    numbers = {"printed": printed, "ours": ours, "seeds": row.seeds}
    return {**names, **numbers, "status": row.status}


def _number(value: float, unit: str) -> str:
    return f"{100 * value:.1f}" if unit in _SIGNS else f"{value:.3g}"


def _sign(unit: Any) -> str:
    return f" {_SIGNS[unit]}" if unit in _SIGNS else ""

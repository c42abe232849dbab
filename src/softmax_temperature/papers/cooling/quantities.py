"""The numbers in the paper's running text, ours beside the printed ones."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.cooling.effects import factor_gains, figure_1_trainings
from softmax_temperature.papers.cooling.growth import LIMIT, crossings
from softmax_temperature.papers.cooling.printed_tables import MEASURED, MISSING
from softmax_temperature.papers.cooling.records import SLUG
from softmax_temperature.papers.cooling.selection import PERIODIC, SIMPLEST, finished
from softmax_temperature.tables import published

if TYPE_CHECKING:
    from collections.abc import Callable

    from softmax_temperature.papers.cooling.records import Records
    from softmax_temperature.papers.cooling.table_specs import Quantities

NEVER = "the temperature does not get there"
NOT_HERE = "times are no results: see benchmarks/results.json"
_COLUMNS = ["quantity", "dataset", "network", "unit", "published", "ours", "ours_sd", "seeds", "status"]


def quantities(records: Records, spec: Quantities) -> pd.DataFrame:
    """The numbers in the running text.

    Args:
        records: the paper's.
        spec: where they are printed.

    Returns:
        Columns quantity, dataset and network (empty where nothing ran; then what the paper says), unit, published, ours
        (mean over seeds), ours_sd, seeds, status. A row for each data set that gives the quantity, the best factor's
        for the gain of Figure 1; shares are fractions. Times are not compared here.
    """
    rows: list[dict[str, Any]] = []
    for printed in published(SLUG, spec.title).to_dict("records"):
        share = printed["unit"] == "percent"
        row = {"quantity": printed["metric"], "dataset": printed["dataset"], "network": printed["model"]}
        row |= {"unit": "share" if share else "", "published": float(printed["value"]) / (100 if share else 1)}
        if printed["metric"] in _MEASURES:
            found = [{**row, **ours} for ours in _MEASURES[printed["metric"]](records)]
            rows += found or [{**row, "seeds": 0, "status": "not run: profile cifar10"}]
        else:
            rows.append({**row, "seeds": 0, "status": NOT_HERE})
    return pd.DataFrame(rows, columns=_COLUMNS)


def wide_quantities(table: pd.DataFrame) -> pd.DataFrame:
    """The quantities for a reader, shares in percent.

    Args:
        table: as `quantities` returns it.
    """
    return pd.DataFrame([_row(row) for row in table.itertuples()])


def _largest_gain(records: Records) -> list[dict[str, Any]]:
    gains = factor_gains(finished(figure_1_trainings(records)))
    rows = []
    for setting, group in gains.groupby(["dataset", "network"], sort=False):
        best = group.groupby("factor").mean().idxmax()
        rows.append(_measured(setting, group[group.index.get_level_values("factor") == best]))
    return rows


def _crossing(records: Records, *, mode: str) -> list[dict[str, Any]]:
    found = crossings(records)
    found = found[(found["mode"] == mode) & (found["limit"] == LIMIT)]
    return [_measured(setting, rows["epoch"]) for setting, rows in found.groupby(["dataset", "network"], sort=False)]


def _measured(setting: tuple[Any, ...], values: pd.Series[float]) -> dict[str, Any]:
    names = dict(zip(("dataset", "network"), setting, strict=True))
    known = values.dropna()
    numbers = {"ours": known.mean(), "ours_sd": known.std(), "seeds": len(known)}
    return {**names, **numbers, "status": MEASURED if len(known) else NEVER}


_MEASURES: MappingProxyType[str, Callable[[Records], list[dict[str, Any]]]] = MappingProxyType(
    {
        "epoch of first reset, kappa=1.0, tau_max=tau_re=100": partial(_crossing, mode=PERIODIC),
        "epoch when 1/tau first exceeds 100, last layer, kappa=0.75": partial(_crossing, mode=SIMPLEST),
        "largest gain in Fig. 1 (percentage points)": _largest_gain,
    }
)
"""What the records can say, by the metric of the printed numbers."""


def _row(row: Any) -> dict[str, Any]:
    ours = _text(row.ours, row.unit) + ("" if np.isnan(row.ours_sd) else f" ± {_text(row.ours_sd, row.unit)}")
    names = {"quantity": row.quantity, "dataset": row.dataset, "network": row.network}
    numbers = {"printed": _text(row.published, row.unit), "ours": ours, "seeds": row.seeds}
    return {**names, **numbers, "status": row.status}


def _text(value: float, unit: str) -> str:
    if np.isnan(value):
        return MISSING
    return f"{100 * value:.1f} %" if unit == "share" else f"{value:.3g}"

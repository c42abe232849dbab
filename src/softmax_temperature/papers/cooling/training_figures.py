"""What happens while a network trains, with each mode of Cooling and without.

Each function takes the records and returns a figure, or None where nothing was trained for it. It shows the first data
set and network of Table 1. Lines are means over seeds, bands one standard deviation, of logarithms where the axis is
logarithmic; lost trainings are not in them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, ScalarFormatter

from softmax_temperature.papers.cooling.figures import COLOURS, PERCENT
from softmax_temperature.papers.cooling.outcomes import finished
from softmax_temperature.papers.cooling.selection import (
    MODES,
    NO_SCHEDULE,
    SCHEDULES,
    SETTING,
    TABLE_1,
    of_runs,
    setting_title,
    standard,
    trainings,
)
from softmax_temperature.papers.shared.plots import WIDTH, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from softmax_temperature.papers.cooling.records import Records

COLUMNS = 3
EFFECTS = (
    ("norms", "weight_norm", "(a) weights, all layers", "norm"),
    ("norms", "gradient_norm", "(b) gradients, all layers", "norm"),
    ("norms", "logit_norm", "(c) logits, validation data", "norm"),
    ("history", "ece", "(d) ECE, test data", "%"),
)


def training_curves(records: Records) -> Figure | None:
    """Accuracy on test data (solid) and training data (dashed) over epochs, a panel a learning-rate schedule."""
    runs = _shown_runs(records)
    if runs.empty:
        return None
    history = of_runs(records.history, runs)
    schedules = [name for name in SCHEDULES if name in set(runs["schedule"])]
    lines = -(-len(schedules) // COLUMNS)
    with style():
        figure = Figure(figsize=(WIDTH, 2.3 * lines + 0.5), layout="constrained")
        grid = figure.subplots(lines, min(COLUMNS, len(schedules)), sharex=True, sharey=True, squeeze=False)
        for axes in grid.ravel()[len(schedules) :]:
            axes.set_visible(False)
        for axes, schedule in zip(grid.ravel(), schedules, strict=False):
            rows = history[history["schedule"] == schedule]
            for split, dashes in (("train", "--"), ("test", "-")):
                _by_mode(axes, rows[rows["split"] == split], "accuracy", scale=PERCENT, linestyle=dashes)
            axes.set_title(SCHEDULES[schedule])
        for axes in grid.ravel()[: len(schedules)][-grid.shape[1] :]:
            axes.set_xlabel("epoch")
            axes.tick_params(labelbottom=True)
        for row in grid:
            row[0].set_ylabel("accuracy (%)")
        figure.suptitle(f"{setting_title(runs.iloc[0])}, by learning-rate schedule", fontsize=10)
        figure.legend(handles=_legend(runs, splits=True), loc="outside lower center", ncols=3)
    return figure


def effects(records: Records) -> Figure | None:
    """Norms of weights, gradients and logits, and the calibration error, over epochs without a schedule."""
    runs = _shown_runs(records)
    runs = runs[runs["schedule"] == NO_SCHEDULE]
    if runs.empty:
        return None
    tables = {"norms": records.norms, "history": records.history[records.history["split"] == "test"]}
    with style():
        figure = Figure(figsize=(WIDTH, 4.6), layout="constrained")
        grid = figure.subplots(2, 2, sharex=True)
        for axes, (table, column, title, unit) in zip(grid.ravel(), EFFECTS, strict=True):
            axes.set(title=title, ylabel=unit, yscale="linear" if unit == "%" else "log")
            _by_mode(axes, of_runs(tables[table], runs), column, scale=PERCENT if unit == "%" else 1)
            _label_few_decades(axes)
        for axes in grid[-1]:
            axes.set_xlabel("epoch")
        figure.suptitle(f"{setting_title(runs.iloc[0])}: no schedule", fontsize=10)
        figure.legend(handles=_legend(runs), loc="outside lower center", ncols=len(MODES))
    return figure


def _shown_runs(records: Records) -> pd.DataFrame:
    runs = finished(standard(trainings(records, TABLE_1)))
    return runs.merge(runs[SETTING].head(1))


def _by_mode(axes: Axes, rows: pd.DataFrame, column: str, *, scale: float, **look: Any) -> None:
    there, back = (np.log, np.exp) if axes.get_yscale() == "log" else (np.asarray, np.asarray)
    for mode in MODES:
        chosen = rows[rows["mode"] == mode]
        values = pd.Series(there(scale * chosen[column].to_numpy(float))).groupby(chosen["epoch"].to_numpy())
        mean, sd = values.mean(), values.std()
        axes.plot(mean.index, back(mean), color=COLOURS[mode], linewidth=1.1, **look)
        if sd.notna().any():
            bounds = back(mean - sd), back(mean + sd)
            axes.fill_between(mean.index, *bounds, color=COLOURS[mode], alpha=0.15, linewidth=0)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))


def _label_few_decades(axes: Axes) -> None:
    """Several numbers, written out, also on a logarithmic axis that holds few powers of ten."""
    low, high = axes.get_ylim()
    if axes.get_yscale() == "log" and high < 100 * low:
        axes.yaxis.set_major_locator(MaxNLocator(4) if high < 10 * low else LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(ScalarFormatter())
        axes.yaxis.set_minor_locator(NullLocator())


def _legend(runs: pd.DataFrame, *, splits: bool = False) -> list[Line2D]:
    lines = [
        Line2D([], [], color=COLOURS[mode], linewidth=1.1, label=MODES[mode])
        for mode in MODES
        if mode in set(runs["mode"])
    ]
    if splits:
        lines += [
            Line2D([], [], color="0.4", linewidth=1.1, linestyle="-", label="test data"),
            Line2D([], [], color="0.4", linewidth=1.1, linestyle="--", label="training data"),
        ]
    return lines

"""What sweeps of the inverse temperature show.

Each function takes the records and returns a figure, or None where nothing was trained for it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from softmax_temperature.papers.shared.plots import (
    BLACK,
    HUES,
    PALETTE,
    PERCENT,
    WIDTH,
    label_outside,
    legend_below,
    panels,
    seeds,
    style,
)
from softmax_temperature.papers.temperature_check import tables
from softmax_temperature.papers.temperature_check.records import Records
from softmax_temperature.papers.temperature_check.selection import UNTEMPERED, alone, several_norms, spreads, titles

PLAIN_NUMBERS = FuncFormatter(lambda value, _: f"{value:g}")
AXIS = "inverse temperature β"
COLUMNS = 3
MARKS: MappingProxyType[str, tuple[str, str, Any]] = MappingProxyType(
    {
        "post_hoc": ("post-hoc scaling", "s", HUES[0]),
        "cooling": ("Cooling", "D", HUES[2]),
        "heuristic": ("heuristic on the features", "^", HUES[1]),
        "training_best": ("best to train with", ".", BLACK),  # Last and small: seen on top of another.
    }
)


def accuracy(records: Records) -> Figure | None:
    """Test accuracy against the inverse temperature, a panel per sweep, each with its best learning rate.

    Dots are seeds, the line is their mean over those that finished; crosses at the bottom mark where some diverged. The
    dotted line is the usual softmax, the triangle the best inverse temperature by validation data.
    """
    return _panels(alone(records), _accuracy_panel, ylabel="test accuracy (%)")


def learning_rates(records: Records) -> Figure | None:
    """Accuracy on validation data over inverse temperatures and rescaled learning rates, a panel per sweep.

    A cell is the mean over seeds in percent, diverged ones counted as guessing; "div" where all of them diverged.
    """
    return _panels(tables.learning_rates(records), _rates_panel, ylabel="rescaled learning rate")


def confidence(records: Records) -> Figure | None:
    """NLL of test data before (open) and after (filled) post-hoc temperature scaling, a panel per sweep.

    If the inverse temperature only changed how sure the networks are, the filled line would be flat.
    """
    return _panels(tables.confidence(records), _confidence_panel, ylabel="test NLL (nats)")


@style()
def spread(records: Records) -> Figure | None:
    """Standard deviation of test accuracy over seeds against the inverse temperature, a line per sweep.

    There is none where all seeds diverged.
    """
    rows = alone(records)
    table = spreads(rows)
    if table.empty:
        return None
    figure, (axes,) = panels(1, width=0.6 * WIDTH, row=2.9)
    for (sweep, title), colour in zip(titles(rows).items(), sns.color_palette(PALETTE), strict=False):
        some = table[table["sweep"] == sweep].sort_values("inverse_temperature")
        x, y = some["inverse_temperature"], PERCENT * some["spread"]
        axes.plot(x, y, "o-", color=colour, markersize=3.5, linewidth=1.1, label=title)
    axes.set(xscale="log", xlabel=AXIS, ylabel="sd over seeds (points)", ylim=(0, None))
    axes.xaxis.set_major_formatter(PLAIN_NUMBERS)
    _usual(axes)
    legend_below(figure, axes, columns=1)
    return figure


def logit_norms(records: Records) -> Figure | None:
    """Test accuracy against the norm of the tempered logits at the start, a panel per sweep.

    One inverse temperature each. The grey band spans the mean accuracies that the inverse temperature alone leads to in
    the same network, from the worst to the best: the scale to judge by.
    """
    rows = several_norms(records)
    table = tables.accuracies(records)
    network = alone(records).drop_duplicates("sweep").set_index(["architecture", "dataset"])["sweep"].to_dict()

    def panel(axes: Axes, some: pd.DataFrame) -> None:
        setting = (some["architecture"].iloc[0], some["dataset"].iloc[0])
        span = table.loc[table["sweep"] == network.get(setting), "test"]
        if len(span):
            axes.axhspan(PERCENT * span.min(), PERCENT * span.max(), color="0.5", alpha=0.15, linewidth=0)
        good = some[~some["diverged"]]
        axes.scatter(
            good["initial_logit_norm"], PERCENT * good["test_accuracy"], s=14, facecolor="none", edgecolor=HUES[0]
        )
        means = good.groupby("start")[["initial_logit_norm", "test_accuracy"]].mean().sort_values("initial_logit_norm")
        axes.plot(means["initial_logit_norm"], PERCENT * means["test_accuracy"], "o-", color=HUES[0], markersize=3.5)
        # Linear below the smallest norm above 0: the centred pair starts at 0.
        positive = good.loc[good["initial_logit_norm"] > 0, "initial_logit_norm"]
        axes.set_xscale("symlog", linthresh=float(positive.min()) if len(positive) else 1.0)
        axes.set_xticks([0, *positive.groupby(good["start"]).mean().round(2)])
        axes.xaxis.set_major_formatter(PLAIN_NUMBERS)
        axes.minorticks_off()

    return _panels(rows, panel, ylabel="test accuracy (%)", xlabel="norm of βz at the start", log=False)


@style()
def three_temperatures(records: Records) -> Figure | None:
    """For each network the best inverse temperature to train with, and three others that are about the same network.

    The bar is what is as good as the best. Post-hoc: the inverse of the temperature that scales a network trained at 1.
    Cooling: the inverse of what Cooling ends with. Heuristic: what classifier_temperature predicts for its features.
    """
    table = tables.three_temperatures(records)
    if table.empty:
        return None
    figure, (axes,) = panels(1, row=0.9 + 0.55 * len(table))
    heights = np.arange(len(table))[::-1]
    axes.hlines(heights, table["training_low"], table["training_high"], color=BLACK, alpha=0.25, linewidth=6)
    for column, (label, marker, colour) in MARKS.items():
        if table[column].notna().any():
            axes.plot(table[column], heights, marker, color=colour, markersize=6, linestyle="none", label=label)
    axes.set(xscale="log", xlabel=AXIS, ylim=(-0.6, len(table) - 0.4))
    axes.set_yticks(heights, [f"{row.architecture},\n{row.dataset}" for row in table.itertuples()])
    _usual(axes)
    legend_below(figure, axes, columns=4)
    return figure


@style()
def _panels(
    rows: pd.DataFrame,
    draw: Callable[[Axes, pd.DataFrame], None],
    *,
    ylabel: str,
    xlabel: str = AXIS,
    log: bool = True,
) -> Figure | None:
    """A panel for each sweep; None without rows."""
    if rows.empty:
        return None
    names = titles(rows)
    figure, grid = panels(len(names), width=max(0.55, min(1, len(names) / COLUMNS)) * WIDTH)
    for axes, (sweep, title) in zip(grid, names.items(), strict=True):
        if log:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(PLAIN_NUMBERS)
        draw(axes, rows[rows["sweep"] == sweep])
        axes.set(xlabel=xlabel, ylabel=None)
        axes.set_title(title.replace(", ", "\n"), fontsize=8)
    label_outside(grid, y=ylabel)
    return figure


def _accuracy_panel(axes: Axes, rows: pd.DataFrame) -> None:
    seeds(axes, rows[~rows["diverged"]], "inverse_temperature", "test_accuracy", color=HUES[0])
    validation = rows.groupby("inverse_temperature")["validation_accuracy"].mean()
    best = validation.index.to_numpy(float)[validation.argmax()]
    at_edge = axes.get_xaxis_transform()
    axes.plot(best, 0.97, "v", color=BLACK, markersize=6, transform=at_edge)
    lost = sorted(rows.loc[rows["diverged"], "inverse_temperature"].unique())
    low, high = axes.get_ylim()
    if lost:
        axes.set_ylim(low - 0.1 * (high - low), high)
    axes.plot(lost, [0.04] * len(lost), "x", color=HUES[3], markersize=6, transform=at_edge)
    _usual(axes)


def _rates_panel(axes: Axes, rows: pd.DataFrame) -> None:
    table = rows.pivot(index="learning_rate", columns="inverse_temperature", values="validation").sort_index()
    lost = rows.assign(lost=rows["diverged"] == rows["runs"])
    marks = lost.pivot(index="learning_rate", columns="inverse_temperature", values="lost").reindex_like(table)
    texts = (PERCENT * table).map(lambda value: "" if np.isnan(value) else f"{value:.0f}")
    axes.set_xscale("linear")
    axes.set_facecolor("0.8")
    look = {"cmap": "viridis", "cbar": False, "annot_kws": {"fontsize": 7}}
    sns.heatmap(PERCENT * table, annot=texts, fmt="", mask=marks.eq(True), ax=axes, **look)
    for row, column in np.argwhere(marks.eq(True).to_numpy()):
        axes.text(column + 0.5, row + 0.5, "div", ha="center", va="center", fontsize=7, color=BLACK)
    axes.set_xticks(np.arange(table.shape[1]) + 0.5, [f"{value:g}" for value in table.columns], rotation=45)
    axes.set_yticks(np.arange(table.shape[0]) + 0.5, [f"{value:g}" for value in table.index], rotation=0)
    axes.invert_yaxis()


def _confidence_panel(axes: Axes, rows: pd.DataFrame) -> None:
    rows = rows.sort_values("inverse_temperature")
    x = rows["inverse_temperature"]
    axes.plot(x, rows["test_nll"], "o--", color="0.4", markersize=4, markerfacecolor="white", label="as trained")
    axes.plot(x, rows["scaled_nll"], "o-", color=HUES[0], markersize=4, label="after scaling")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(PLAIN_NUMBERS)
    _usual(axes)
    axes.legend(fontsize=7)


def _usual(axes: Axes) -> None:
    """A dotted line where the softmax is the usual one."""
    axes.axvline(UNTEMPERED, color="0.5", linewidth=0.8, linestyle=":")

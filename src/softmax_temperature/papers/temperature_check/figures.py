"""Figures of the sweeps of the inverse temperature and of the norm of the logits.

A function that draws a figure takes the runs, and returns None if there are no runs to
show. `flow_figures` has the figures of early learning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import scipy  # Imports `scipy.stats`, which takes a second, when first used.
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from softmax_temperature.papers.shared import figures
from softmax_temperature.papers.shared.display import dataset_label, network_label
from softmax_temperature.papers.shared.factors import where
from softmax_temperature.papers.shared.figures import (
    BLACK,
    HUES,
    PERCENT,
    entry,
    style,
)
from softmax_temperature.papers.shared.runs import Runs
from softmax_temperature.papers.shared.statistics import LEVEL
from softmax_temperature.papers.temperature_check import tables
from softmax_temperature.papers.temperature_check.study import (
    CHOSEN_RATE,
    NORMS,
    OWN_START,
    SAME_START,
    TUNING,
    by_sweep,
    numbers,
)

PLAIN_NUMBERS = "{x:g}"
AXIS = "inverse temperature β"
OWN_COLOUR = HUES[0]
SHARED_COLOUR = HUES[1]
DOT: Any = {"marker": "o", "markersize": 3.5}
SCALING: dict[str, Any] = {
    "test_nll": {"label": "as trained, mean ± sd", "color": "0.4", "linestyle": "--"},
    "scaled_nll": {"label": "after scaling, mean ± sd", "color": HUES[0], **DOT},
}
_OPEN: dict[str, Any] = {"linestyle": "none", "markerfacecolor": "none", "ms": 3.5}
_BEST: dict[str, Any] = {"linestyle": "none", "marker": "v", "markersize": 6}
_DIVERGED: dict[str, Any] = {"linestyle": "none", "marker": "x", "markersize": 6}
USUAL = entry("usual softmax, β = 1", color="0.5", linewidth=0.8, linestyle=":")
MARKS = {
    "post_hoc": ("temperature scaling", "s", HUES[0]),
    "cooling": ("Cooling", "D", HUES[2]),
    "heuristic": ("heuristic on the features", "^", HUES[1]),
    # The last mark is small, so that it does not hide a mark below it.
    "training_best": ("best to train with, on validation data", ".", BLACK),
}
WIDEST_SD = 60
"""The largest sd that the axis of spreads may show, in percentage points.

The true sd of accuracies cannot exceed 50 points, but its interval for two seeds has
almost no upper bound.
"""


@style()
def accuracy(runs: Runs) -> Figure | None:
    """Draw test accuracy over inverse temperatures, at the best learning rates.

    Crosses mark inverse temperatures at which a seed diverged. The triangle marks the
    inverse temperature with the best mean on validation data. The legend has entries
    for diverged seeds, and for a start that all inverse temperatures share, only if
    there are such runs.
    """
    same_start = numbers(runs, SAME_START)
    own_start = numbers(runs, CHOSEN_RATE & OWN_START)
    legend = [entry("mean", color=OWN_COLOUR, **DOT)]
    if len(same_start):
        legend = [
            entry("mean, each β its own start", color=OWN_COLOUR, **DOT),
            entry("mean, one start for all β", color=SHARED_COLOUR, **DOT),
        ]
    legend.append(entry("one seed", marker="o", color="0.4", **_OPEN))
    legend.append(entry("best mean on validation data", color=BLACK, **_BEST))
    if own_start["diverged"].any():
        legend.append(entry("a seed diverged", color=HUES[3], **_DIVERGED))
    legend.append(USUAL)
    figure, panels = panels_of(
        by_sweep(own_start), y="test accuracy (%)", legend=legend, extra=0.6
    )
    limits = []
    for axes, rows in panels:
        _accuracies(axes, rows, OWN_COLOUR)
        _accuracies(axes, _of_the_same(same_start, rows), SHARED_COLOUR)
        means = rows.groupby("inverse_temperature")["validation_accuracy"].mean()
        _mark_at_edge(axes, [means.idxmax()], 0.95, "v", BLACK)
        lost = rows.loc[rows["diverged"].astype(bool), "inverse_temperature"]
        _mark_at_edge(axes, sorted(lost.unique()), 0.06, "x", HUES[3])
        _of_inverse_temperatures(axes)
        limits.append(axes.get_ylim())
    _same_span([axes for axes, _ in panels], limits)
    return figure


def _accuracies(axes: Axes, rows: pd.DataFrame, colour: Any) -> None:
    """Draw the accuracies of the runs that did not diverge."""
    if rows.empty:
        return
    finished = _finished(rows)
    figures.seeds(axes, finished, "inverse_temperature", "test_accuracy", color=colour)


def _mark_at_edge(
    axes: Axes, places: Sequence[Any], height: float, marker: str, colour: Any
) -> None:
    """Draw marks at `places`, all at `height`, a share of the panel's height."""
    axes.plot(
        places,
        [height] * len(places),
        marker,
        color=colour,
        markersize=6,
        transform=axes.get_xaxis_transform(),
    )


def _same_span(panels: Sequence[Axes], limits: Sequence[tuple[float, float]]) -> None:
    """Give all vertical axes the same span, which is wide enough for every panel.

    Above and below the accuracies, each panel has room for the marks at its edges, even
    if the accuracies reach 0 or 100 %.

    `limits` are the current limits of each panel's vertical axis.
    """
    widest = max((high - low for low, high in limits), default=0)
    span = 1.2 * widest
    margin = 0.1 * span
    for axes, (low, high) in zip(panels, limits, strict=True):
        middle = (low + high - span) / 2
        bottom = np.clip(middle, -margin, PERCENT + margin - span)
        axes.set_ylim(bottom, bottom + span)
        axes.set_yticks(
            [tick for tick in axes.get_yticks() if max(bottom, 0) <= tick <= PERCENT]
        )
        axes.set_ylim(bottom, bottom + span)


@style()
def learning_rates(runs: Runs) -> Figure | None:
    """Draw validation accuracy over inverse temperatures and learning rates.

    At each inverse temperature, a frame marks the learning rate with the best accuracy.
    """
    tuned = numbers(runs, TUNING & OWN_START)
    rates = tuned.groupby("sweep")["learning_rate"].nunique().max()
    row = 1.6 if tuned.empty else 1.6 + max(0.2 * rates, 1.4)
    figure, panels = panels_of(
        by_sweep(tuned), y="rescaled learning rate", row=row, columns=1
    )
    if figure is None:
        return None
    for axes, rows in panels:
        _heatmap(axes, rows)
    entries: list[Any] = [
        Patch(
            facecolor="none",
            edgecolor=HUES[3],
            lw=1.6,
            label="best learning rate of each β",
        ),
    ]
    if any(axes.patches for axes, _ in panels):
        entries.append(Patch(color="0.8", label="div: every run diverged"))
    figures.legend_below(figure, entries, columns=2)
    figures.headline(
        figure, "validation accuracy (%), mean over seeds; white: not trained"
    )
    return figure


def _heatmap(axes: Axes, rows: pd.DataFrame) -> None:
    """Draw a sweep's mean accuracies in percent, and "div" where every run diverged."""
    cells = rows.groupby(["learning_rate", "inverse_temperature"])
    means = PERCENT * cells["validation_accuracy"].mean().unstack()
    # seaborn labels the axes with the names of the index and the columns, so use our
    # labels as these names.
    means = means.rename_axis(index=axes.get_ylabel(), columns=axes.get_xlabel())
    lost = cells["diverged"].all().unstack().eq(True)
    sns.heatmap(
        means,
        mask=lost | means.isna(),
        ax=axes,
        annot=True,
        fmt=".0f",
        annot_kws={"fontsize": figures.SMALLEST},
        cmap="viridis",
        cbar=False,
    )
    for row, column in np.argwhere(lost.to_numpy()):
        axes.add_patch(Rectangle((column, row), 1, 1, color="0.8", linewidth=0))
        axes.text(
            column + 0.5,
            row + 0.5,
            "div",
            ha="center",
            va="center",
            color=BLACK,
        )
    best = means.mask(lost)
    for column, name in enumerate(best):
        if best[name].notna().any():
            _frame(axes, column, int(np.nanargmax(best[name])))
    columns = [f"{value:g}" for value in means.columns]
    axes.set_xticks(np.arange(len(columns)) + 0.5, columns, rotation=45)
    rates = [np.format_float_positional(value, trim="-") for value in means.index]
    axes.set_yticks(np.arange(len(rates)) + 0.5, rates, rotation=0)
    axes.invert_yaxis()


def _frame(axes: Axes, column: int, row: int) -> None:
    """Draw a frame inside a cell of the heatmap.

    The frame is a line, because `learning_rates` takes any patch in a panel as a sign
    that every run diverged at some setting.
    """
    margin = 0.06
    left, right = column + margin, column + 1 - margin
    low, high = row + margin, row + 1 - margin
    axes.plot(
        [left, right, right, left, left],
        [low, low, high, high, low],
        color=HUES[3],
        linewidth=1.6,
    )


@style()
def confidence(runs: Runs) -> Figure | None:
    """Draw test NLL over inverse temperatures, before and after temperature scaling.

    Dashed lines show the NLL before scaling, and solid lines the NLL after scaling.
    Lines are means over seeds, and bands are standard deviations.
    """
    figure, panels = panels_of(
        by_sweep(_finished(numbers(runs, CHOSEN_RATE & OWN_START))),
        y="test NLL (nats)",
        legend=[*(entry(**look) for look in SCALING.values()), USUAL],
    )
    for axes, rows in panels:
        for column, look in SCALING.items():
            figures.band(axes, rows, "inverse_temperature", column, **look)
        # Set the log scale only now, so that the bands use arithmetic means, as the
        # table does.
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        is_wide = high > 4 * low
        locator = LogLocator(subs=(1.0, 2.0, 5.0)) if is_wide else MaxNLocator(5)
        axes.yaxis.set_major_locator(locator)
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(PLAIN_NUMBERS)
        _of_inverse_temperatures(axes)
    return figure


@style()
def spread(runs: Runs) -> Figure | None:
    """Draw the standard deviation of test accuracy over seeds, with 90 % intervals.

    The intervals assume that accuracies are normally distributed. Each line shows a
    sweep.
    """
    figure, (axes,) = figures.panels(1, row=3.4)
    sweeps = by_sweep(numbers(runs, CHOSEN_RATE & OWN_START))
    entries = []
    for place, (title, rows) in enumerate(sweeps):
        spreads = _spreads(rows)
        if spreads.empty:
            continue
        # Draw sweeps side by side, so that all bars are visible.
        shift = 1.06 ** (place - (len(sweeps) - 1) / 2)
        axes.errorbar(
            spreads.index * shift,
            spreads["sd"],
            spreads[["below", "above"]].to_numpy().T,
            fmt="-",
            color=HUES[place],
            linewidth=1.1,
            elinewidth=0.8,
            **DOT,
        )
        name = sweep_title(title, between="; ")
        entries.append(entry(name, color=HUES[place], marker="o"))
    if not entries:
        return None
    axes.set(yscale="log", xlabel=AXIS, ylabel="sd over seeds (points)")
    entries += [entry("90 % interval of the sd", color="0.4", linewidth=0.8), USUAL]
    axes.set_ylim(top=min(axes.get_ylim()[1], WIDEST_SD))
    axes.yaxis.set(
        major_locator=LogLocator(subs=(1, 2, 5)),
        major_formatter=PLAIN_NUMBERS,
        minor_formatter="",
    )
    _of_inverse_temperatures(axes)
    figures.legend_below(figure, entries, columns=1)
    return figure


def _spreads(rows: pd.DataFrame) -> pd.DataFrame:
    """The sd by inverse temperature, with the lengths of its error bars.

    The columns `sd`, `below` and `above` are in percentage points.

    Inverse temperatures at which all seeds diverged are left out, because these seeds
    agree only in having learned nothing.
    """
    temperatures = rows.groupby("inverse_temperature")
    learned = rows[~temperatures["diverged"].transform("all").astype(bool)]
    accuracies = learned.groupby("inverse_temperature")["test_accuracy"]
    table = accuracies.agg(["std", "size"]).dropna()
    sd = PERCENT * table["std"].astype(float)
    degrees = table["size"].astype(float) - 1
    low = sd * np.sqrt(degrees / scipy.stats.chi2.ppf((1 + LEVEL) / 2, degrees))
    high = sd * np.sqrt(degrees / scipy.stats.chi2.ppf((1 - LEVEL) / 2, degrees))
    return pd.DataFrame({"sd": sd, "below": sd - low, "above": high - sd})


@style()
def logit_norms(runs: Runs) -> Figure | None:
    """Draw test accuracy against the norm of the initial tempered logits.

    The grey band spans the mean accuracies that the same network reaches at its inverse
    temperatures when it starts from its own initial logits.
    """
    sweeps = by_sweep(numbers(runs, NORMS))
    judged = numbers(runs, CHOSEN_RATE & OWN_START)
    legend: list[Any] = [
        entry("mean at one norm", color=HUES[0], **DOT),
        entry("one seed", marker="o", color=HUES[0], **_OPEN),
    ]
    if any(len(_of_the_same(judged, rows)) for _, rows in sweeps):
        band = "means of this network\nover all β, norms not set"
        legend.append(Patch(color="0.5", alpha=0.15, label=band))
    figure, panels = panels_of(
        sweeps,
        x="norm of βz at the start (linear up to\nthe dotted line, then logarithmic)",
        y="test accuracy (%)",
        legend=legend,
        extra=0.7,
    )
    for axes, rows in panels:
        same = _of_the_same(judged, rows)
        span = PERCENT * same.groupby("inverse_temperature")["test_accuracy"].mean()
        if len(span):
            axes.axhspan(span.min(), span.max(), color="0.5", alpha=0.15, linewidth=0)
        _accuracies_of_norms(axes, _finished(rows))
    return figure


def _accuracies_of_norms(axes: Axes, rows: pd.DataFrame) -> None:
    """Draw the accuracy of each seed as a circle, and the means on a line."""
    points = rows[["initial_logit_norm"]].assign(
        accuracy=PERCENT * rows["test_accuracy"]
    )
    axes.scatter(
        points["initial_logit_norm"],
        points["accuracy"],
        s=14,
        facecolor="none",
        edgecolor=HUES[0],
    )
    means = points.groupby(rows["start_value"]).mean()
    means = means.sort_values("initial_logit_norm")
    axes.plot(
        means["initial_logit_norm"],
        means["accuracy"],
        "o-",
        color=HUES[0],
        markersize=3.5,
    )
    # Below the smallest positive norm the scale is linear, because the logits of a pair
    # may start at 0.
    norms = means["initial_logit_norm"]
    positive = norms[norms > 0]
    smallest = float(positive.min()) if len(positive) else 1.0
    axes.set_xscale("symlog", linthresh=smallest)
    axes.axvline(smallest, color="0.6", linewidth=0.8, linestyle=":", zorder=0)
    axes.set_xticks([0, *positive.round(2)])
    axes.xaxis.set_major_formatter(PLAIN_NUMBERS)
    axes.minorticks_off()


@style()
def three_temperatures(runs: Runs) -> Figure | None:
    """Draw the best inverse temperature for training each network, and three others.

    The others come from temperature scaling, Cooling and the heuristic. A bar spans the
    inverse temperatures that are as good as the best.
    """
    table = tables.three_temperatures(runs)
    if table.empty:
        return None
    figure, (axes,) = figures.panels(1, row=0.9 + 0.55 * len(table))
    heights = np.arange(len(table))[::-1]
    is_wide = table["training_low"] < table["training_high"]
    if is_wide.any():
        axes.hlines(
            heights[is_wide],
            table.loc[is_wide, "training_low"],
            table.loc[is_wide, "training_high"],
            color=BLACK,
            alpha=0.25,
            linewidth=6,
            label="as good to train with",
        )
    for column, (label, marker, colour) in MARKS.items():
        if table[column].notna().any():
            axes.plot(
                table[column],
                heights,
                marker,
                color=colour,
                markersize=8 if marker == "." else 6,
                linestyle="none",
                label=label,
            )
    axes.set(xlabel=AXIS, ylim=(-0.6, len(table) - 0.4))
    data = table["dataset"].map(dataset_label)
    axes.set_yticks(heights, table["architecture"] + "\n" + data)
    _of_inverse_temperatures(axes)
    handles = [*axes.get_legend_handles_labels()[0], USUAL]
    figures.legend_below(figure, handles, columns=2)
    return figure


def panels_of(
    groups: Sequence[tuple[str, pd.DataFrame]],
    *,
    y: str,
    x: str = AXIS,
    legend: Sequence[Any] = (),
    **options: Any,
) -> tuple[Figure | None, list[tuple[Axes, pd.DataFrame]]]:
    """Make a figure with empty panels, and match each panel with its rows.

    Args:
        groups: For each panel, its name (see `sweep_title`) and its rows.
        y: The y label, which only the panels on the left show.
        x: The x label, which only the lowest panels show.
        legend: The entries of the legend; without entries, there is no legend.
        options: Arguments of `figures.panels`.

    Returns:
        The figure, and a list that pairs each panel with its rows. If there are no
        groups, None and an empty list.
    """
    if not groups:
        return None, []
    options = {"row": 2.2, "columns": 2, **options}
    figure, grid = figures.panels(len(groups), **options)
    if legend:
        figures.legend_below(figure, list(legend), columns=2)
    figures.label_outside(grid, columns=options["columns"], x=x, y=y)
    panels = []
    for axes, (title, rows) in zip(grid, groups, strict=True):
        axes.set_title(sweep_title(title))
        panels.append((axes, rows))
    return figure, panels


def sweep_title(name: str, *, between: str = "\n") -> str:
    """The title of a sweep, in words for readers.

    Args:
        name: The kind of network, a comma and the name of the data set; for gradient
            flow, only the name of the network.
        between: The text between the two parts.
    """
    network, comma, data = name.rpartition(", ")
    if not comma:
        return network_label(name)
    return f"{network_label(network)}{between}{dataset_label(data)}"


def _finished(rows: pd.DataFrame) -> pd.DataFrame:
    return where(diverged=False).select(rows)


def _of_the_same(rows: pd.DataFrame, sweep: pd.DataFrame) -> pd.DataFrame:
    """The rows of `rows` that have the network and data set of `sweep`."""
    return where(network_and_data=sweep["network_and_data"].iloc[0]).select(rows)


def _of_inverse_temperatures(axes: Axes) -> None:
    """Make the x axis logarithmic, and mark the usual softmax with a dotted line."""
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(PLAIN_NUMBERS)
    axes.axvline(1, color="0.5", linewidth=0.8, linestyle=":")

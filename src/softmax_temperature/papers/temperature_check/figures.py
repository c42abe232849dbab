"""What sweeps of the inverse temperature show.

Each function takes the records and returns a figure, or None where nothing was trained for it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from scipy import stats

from softmax_temperature.papers.shared import plots
from softmax_temperature.papers.shared.plots import BLACK, HUES, PERCENT, WIDTH, entry, style
from softmax_temperature.papers.shared.statistics import LEVEL
from softmax_temperature.papers.temperature_check import tables
from softmax_temperature.papers.temperature_check.records import Records
from softmax_temperature.papers.temperature_check.selection import NORMS, SAME_START, by_sweep, chosen

PLAIN_NUMBERS = FuncFormatter(lambda value, _: f"{value:g}")
AXIS = "inverse temperature β"
STARTS = {"their own start": HUES[0], "one start for all β": HUES[1]}
SCALING: dict[str, Any] = {
    "test_nll": {"label": "as trained", "color": "0.4", "linestyle": "--"},
    "scaled_nll": {"label": "after scaling", "color": HUES[0], "marker": "o", "markersize": 3.5},
}
MARKS = {
    "post_hoc": ("post-hoc scaling", "s", HUES[0]),
    "cooling": ("Cooling", "D", HUES[2]),
    "heuristic": ("heuristic on the features", "^", HUES[1]),
    "training_best": ("best to train with", ".", BLACK),  # Last and small: seen on top of another.
}


@style()
def accuracy(records: Records) -> Figure | None:
    """Test accuracy against the inverse temperature, a panel per sweep, each with its best learning rate.

    All panels span the same number of points. Circles are seeds, the line is their mean over those that finished;
    crosses mark where some diverged, the triangle the best inverse temperature by validation data.
    """
    own, same = chosen(records), chosen(records, SAME_START)

    def panel(axes: Axes, rows: pd.DataFrame) -> None:
        for some, colour in zip((rows, _of_the_same(same, rows)), STARTS.values(), strict=True):
            if len(some):
                plots.seeds(axes, some[~some["diverged"]], "inverse_temperature", "test_accuracy", color=colour)
        best: Any = rows.groupby("inverse_temperature")["validation_accuracy"].mean().idxmax()
        lost = sorted(rows.loc[rows["diverged"], "inverse_temperature"].unique())
        look: dict[str, Any] = {"markersize": 6, "transform": axes.get_xaxis_transform()}
        axes.plot(best, 0.97, "v", color=BLACK, **look)
        axes.plot(lost, [0.04] * len(lost), "x", color=HUES[3], **look)

    legend = [entry(label, color=colour, marker="o") for label, colour in STARTS.items()] if len(same) else []
    figure, grid = panels_of(by_sweep(own), panel, ylabel="test accuracy (%)", legend=legend)
    limits = [axes.get_ylim() for axes in grid]
    half = 1.15 * max((high - low for low, high in limits), default=0) / 2
    for axes, (low, high) in zip(grid, limits, strict=True):
        axes.set_ylim((low + high) / 2 - half, (low + high) / 2 + half)
    return figure


@style()
def learning_rates(records: Records) -> Figure | None:
    """Accuracy on validation data over inverse temperatures and learning rates, mean over seeds, a panel per sweep."""

    def panel(axes: Axes, rows: pd.DataFrame) -> None:
        rows = rows.assign(lost=rows["diverged"] == rows["runs"])
        both: Any = rows.pivot(index="learning_rate", columns="inverse_temperature", values=["validation", "lost"])
        table, marks = PERCENT * both["validation"].astype(float), both["lost"].eq(True)
        texts = table.map(lambda value: "" if np.isnan(value) else f"{value:.0f}")
        look = {"cmap": "viridis", "cbar": False, "annot_kws": {"fontsize": 7}}
        sns.heatmap(table, annot=texts, fmt="", mask=marks | table.isna(), ax=axes, **look)
        for row, column in np.argwhere(marks.to_numpy()):
            axes.add_patch(Rectangle((column, row), 1, 1, color="0.8", linewidth=0))
            axes.text(column + 0.5, row + 0.5, "div", ha="center", va="center", fontsize=7, color=BLACK)
        axes.set_xticks(np.arange(table.shape[1]) + 0.5, [f"{value:g}" for value in table.columns], rotation=45)
        axes.set_yticks(np.arange(table.shape[0]) + 0.5, [f"{value:g}" for value in table.index], rotation=0)
        axes.invert_yaxis()

    sweeps = by_sweep(tables.learning_rates(records))
    return panels_of(sweeps, panel, ylabel="rescaled learning rate", row=3.0, log=False)[0]


@style()
def confidence(records: Records) -> Figure | None:
    """NLL of test data before (dashed) and after (solid) post-hoc scaling, mean ± sd over seeds, a panel per sweep."""

    def panel(axes: Axes, rows: pd.DataFrame) -> None:
        axes.set_yscale("log")
        for column, look in SCALING.items():
            plots.band(axes, rows, "inverse_temperature", column, **look)
        low, high = axes.get_ylim()
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)) if high > 4 * low else MaxNLocator(5))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(PLAIN_NUMBERS)

    rows = chosen(records)
    legend = [entry(**look) for look in SCALING.values()]
    return panels_of(by_sweep(rows[~rows["diverged"]]), panel, ylabel="test NLL (nats)", legend=legend)[0]


@style()
def spread(records: Records) -> Figure | None:
    """Standard deviation of test accuracy over seeds, a line per sweep, with 90 % intervals of normal values."""
    figure, (axes,) = plots.panels(1, width=0.75 * WIDTH, row=3.0)
    sweeps, tails = by_sweep(chosen(records)), np.array([[(1 + LEVEL) / 2], [(1 - LEVEL) / 2]])
    entries = []
    for place, (title, rows) in enumerate(sweeps):
        # Where all seeds diverged, they agree because none of them learned.
        learned = rows[~rows.groupby("inverse_temperature")["diverged"].transform("all")]
        some = learned.groupby("inverse_temperature")["test_accuracy"].agg(["std", "size"]).dropna()
        if some.empty:
            continue
        sd, degrees = PERCENT * some["std"].to_numpy(float), some["size"].to_numpy(float) - 1
        ends = sd * np.sqrt(degrees / stats.chi2.ppf(tails, degrees))
        x = some.index * 1.06 ** (place - (len(sweeps) - 1) / 2)  # Side by side, so that bars are seen.
        look: dict[str, Any] = {"color": HUES[place], "markersize": 3.5, "linewidth": 1.1, "elinewidth": 0.8}
        axes.errorbar(x, sd, abs(ends - sd), fmt="o-", **look)
        entries.append(entry(title, color=HUES[place], marker="o"))
    if not entries:
        return None
    axes.set(xscale="log", yscale="log", xlabel=AXIS, ylabel="sd over seeds (points)")
    axes.set_ylim(top=min(axes.get_ylim()[1], 60))  # Two seeds bound it by nothing, accuracies by 50.
    axes.yaxis.set_major_formatter(PLAIN_NUMBERS)
    _usual(axes)
    plots.legend_below(figure, entries, columns=1)
    return figure


@style()
def logit_norms(records: Records) -> Figure | None:
    """Test accuracy against the norm of the tempered logits at the start, a panel per sweep.

    The grey band spans the mean accuracies that the inverse temperature alone leads to in the same network.
    """
    plain = chosen(records)

    def panel(axes: Axes, some: pd.DataFrame) -> None:
        span = PERCENT * _of_the_same(plain, some).groupby("inverse_temperature")["test_accuracy"].mean()
        if len(span):
            axes.axhspan(span.min(), span.max(), color="0.5", alpha=0.15, linewidth=0)
        good = some[~some["diverged"]]
        x, y = good["initial_logit_norm"], PERCENT * good["test_accuracy"]
        axes.scatter(x, y, s=14, facecolor="none", edgecolor=HUES[0])
        means = good.groupby("start")[["initial_logit_norm", "test_accuracy"]].mean().sort_values("initial_logit_norm")
        axes.plot(means["initial_logit_norm"], PERCENT * means["test_accuracy"], "o-", color=HUES[0], markersize=3.5)
        # Linear below the smallest norm above 0: the centred network starts at 0.
        positive = means.loc[means["initial_logit_norm"] > 0, "initial_logit_norm"]
        axes.set_xscale("symlog", linthresh=float(positive.min()) if len(positive) else 1.0)
        axes.set_xticks([0, *positive.round(2)])
        axes.xaxis.set_major_formatter(PLAIN_NUMBERS)
        axes.minorticks_off()

    sweeps, label = by_sweep(chosen(records, NORMS)), "norm of βz at the start"
    return panels_of(sweeps, panel, ylabel="test accuracy (%)", xlabel=label, log=False)[0]


@style()
def three_temperatures(records: Records) -> Figure | None:
    """For each network the best inverse temperature to train with, its rivals (a bar), and three others."""
    table = tables.three_temperatures(records)
    if table.empty:
        return None
    figure, (axes,) = plots.panels(1, row=0.9 + 0.55 * len(table))
    heights = np.arange(len(table))[::-1]
    axes.hlines(heights, table["training_low"], table["training_high"], color=BLACK, alpha=0.25, linewidth=6)
    for column, (label, marker, colour) in MARKS.items():
        if table[column].notna().any():
            axes.plot(table[column], heights, marker, color=colour, markersize=6, linestyle="none", label=label)
    axes.set(xscale="log", xlabel=AXIS, ylim=(-0.6, len(table) - 0.4))
    axes.set_yticks(heights, table["architecture"] + ",\n" + table["dataset"])
    _usual(axes)
    plots.legend_below(figure, axes, columns=4)
    return figure


def panels_of(
    groups: Sequence[tuple[str, pd.DataFrame]],
    draw: Callable[[Axes, pd.DataFrame], None],
    *,
    ylabel: str,
    xlabel: str = AXIS,
    row: float = 2.4,
    log: bool = True,
    legend: Sequence[Any] = (),
) -> tuple[Figure | None, list[Axes]]:
    """A panel for each group of rows, under its title, and their axes; None without groups."""
    if not groups:
        return None, []
    columns = 2 if len(groups) in {2, 4} else 3
    figure, grid = plots.panels(len(groups), columns=columns, row=row, width=(0.55 if len(groups) == 1 else 1) * WIDTH)
    for axes, (title, rows) in zip(grid, groups, strict=True):
        axes.set_xscale("log" if log else "linear")
        draw(axes, rows)
        if log:
            _usual(axes)
        axes.set(xlabel=None, ylabel=None)
        axes.set_title(title.replace(", ", "\n"), fontsize=8)
    plots.label_outside(grid, columns=columns, x=xlabel, y=ylabel)
    if legend:
        plots.legend_below(figure, list(legend), columns=len(legend))
    return figure, grid


def _of_the_same(rows: pd.DataFrame, sweep: pd.DataFrame) -> pd.DataFrame:
    """Those of some rows that have the architecture and the data set of a sweep."""
    return rows.merge(sweep[["architecture", "dataset"]].drop_duplicates())


def _usual(axes: Axes) -> None:
    """Plain numbers, and a dotted line where the softmax is the usual one."""
    axes.xaxis.set_major_formatter(PLAIN_NUMBERS)
    axes.axvline(1, color="0.5", linewidth=0.8, linestyle=":")

"""What sweeps of the inverse temperature and measurements of early learning show.

Each function takes the records and returns a figure, or None where nothing was measured
for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator
from scipy import stats

from softmax_temperature.early_learning.courses import TIME
from softmax_temperature.early_learning.flows import FIT, SHARE, TENTH, UNIT
from softmax_temperature.papers.shared import plots
from softmax_temperature.papers.shared.plots import (
    BLACK,
    HUES,
    PERCENT,
    WIDTH,
    entry,
    style,
)
from softmax_temperature.papers.shared.statistics import LEVEL
from softmax_temperature.papers.temperature_check import early_learning as theory
from softmax_temperature.papers.temperature_check import tables
from softmax_temperature.papers.temperature_check.records import (
    NORMS,
    SAME_START,
    Records,
    by_sweep,
    chosen,
)

PLAIN_NUMBERS = "{x:g}"
AXIS = "inverse temperature β"
STARTS = {"their own start": HUES[0], "one start for all β": HUES[1]}
DOT: Any = {"marker": "o", "markersize": 3.5}
SCALING: dict[str, Any] = {
    "test_nll": {"label": "as trained", "color": "0.4", "linestyle": "--"}
}
SCALING |= {"scaled_nll": {"label": "after scaling", "color": HUES[0], **DOT}}
MARKS = {
    "post_hoc": ("post-hoc scaling", "s", HUES[0]),
    "cooling": ("Cooling", "D", HUES[2]),
    "heuristic": ("heuristic on the features", "^", HUES[1]),
    "training_best": (
        "best to train with",
        ".",
        BLACK,
    ),  # Last and small: seen on top of another.
}
DASHED: dict[str, Any] = {"color": BLACK, "linestyle": "--", "linewidth": 1.1}
DOTTED = DASHED | {"linestyle": ":"}
PREDICTED = {"unit_time": DOTTED | {"label": "predicted: to change by 1"}}
PREDICTED |= {
    "logit_time": DASHED | {"label": "predicted: to change by the norm (τ$_z$)"}
}
MEASURED = {
    UNIT: ("to change by 1", "o", HUES[0]),
    TENTH: ("to change by a tenth of the norm, × 10", "s", HUES[1]),
    FIT: ("to half of the loss", "^", HUES[2]),
}


@style()
def accuracy(records: Records) -> Figure | None:
    """Test accuracy at the best learning rates; crosses: seeds that diverged, triangle:
    best by validation data.
    """
    same, limits = chosen(records, SAME_START), dict[Axes, tuple[float, float]]()
    legend = (
        [entry(label, color=colour, marker="o") for label, colour in STARTS.items()]
        if len(same)
        else []
    )
    figure, panels = panels_of(
        by_sweep(chosen(records)), y="test accuracy (%)", legend=legend
    )
    for axes, rows in panels:
        for some, colour in zip(
            (rows, _of_the_same(same, rows)), STARTS.values(), strict=True
        ):
            if len(some):
                plots.seeds(
                    axes,
                    some[~some["diverged"]],
                    "inverse_temperature",
                    "test_accuracy",
                    color=colour,
                )
        best: Any = (
            rows.groupby("inverse_temperature")["validation_accuracy"].mean().idxmax()
        )
        lost = sorted(rows.loc[rows["diverged"], "inverse_temperature"].unique())
        for places, height, marker, colour in (
            ([best], 1.0, "v", BLACK),
            (lost, 0.04, "x", HUES[3]),
        ):
            look: Any = {
                "color": colour,
                "markersize": 6,
                "transform": axes.get_xaxis_transform(),
            }
            axes.plot(
                places,
                [height] * len(places),
                marker,
                clip_on=False,
                in_layout=False,
                **look,
            )
        _of_inverse_temperatures(axes)
        limits[axes] = axes.get_ylim()
    span = min(
        PERCENT, 1.15 * max((high - low for low, high in limits.values()), default=0)
    )
    for (
        axes,
        (low, high),
    ) in (
        limits.items()
    ):  # All panels span the same number of points, of those that there are.
        bottom = np.clip((low + high - span) / 2, 0, PERCENT - span)
        axes.set_ylim(bottom, bottom + span)
    return figure


@style()
def learning_rates(records: Records) -> Figure | None:
    """Accuracy on validation data over inverse temperatures and learning rates, mean
    over seeds, a panel per sweep.
    """
    figure, panels = panels_of(
        by_sweep(tables.learning_rates(records)), y="rescaled learning rate", row=3.0
    )
    for axes, rows in panels:
        cells: Any = rows.set_index(["learning_rate", "inverse_temperature"])
        table = PERCENT * cells["validation"].astype(float).unstack()
        table = table.rename_axis(
            index=axes.get_ylabel(), columns=axes.get_xlabel()
        )  # seaborn labels axes with these
        lost = (cells["diverged"] == cells["runs"]).unstack().eq(True)
        look = {
            "annot": True,
            "fmt": ".0f",
            "annot_kws": {"fontsize": 7},
            "cmap": "viridis",
            "cbar": False,
        }
        sns.heatmap(table, mask=lost | table.isna(), ax=axes, **look)
        for row, column in np.argwhere(lost.to_numpy()):
            axes.add_patch(Rectangle((column, row), 1, 1, color="0.8", linewidth=0))
            axes.text(
                column + 0.5,
                row + 0.5,
                "div",
                ha="center",
                va="center",
                fontsize=7,
                color=BLACK,
            )
        axes.set_xticks(
            np.arange(table.shape[1]) + 0.5,
            [f"{value:g}" for value in table.columns],
            rotation=45,
        )
        axes.set_yticks(
            np.arange(table.shape[0]) + 0.5,
            [f"{value:g}" for value in table.index],
            rotation=0,
        )
        axes.invert_yaxis()
    return figure


@style()
def confidence(records: Records) -> Figure | None:
    """NLL of test data before (dashed) and after (solid) post-hoc scaling, mean ± sd
    over seeds, a panel per sweep.
    """
    finished, legend = (
        chosen(records).query("not diverged"),
        [entry(**look) for look in SCALING.values()],
    )
    figure, panels = panels_of(by_sweep(finished), y="test NLL (nats)", legend=legend)
    for axes, rows in panels:
        for column, look in SCALING.items():
            plots.band(axes, rows, "inverse_temperature", column, **look)
        axes.set_yscale("log")  # Only now: means are arithmetic, as in the table.
        low, high = axes.get_ylim()
        axes.yaxis.set_major_locator(
            LogLocator(subs=(1.0, 2.0, 5.0)) if high > 4 * low else MaxNLocator(5)
        )
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(PLAIN_NUMBERS)
        _of_inverse_temperatures(axes)
    return figure


@style()
def spread(records: Records) -> Figure | None:
    """Standard deviation of test accuracy over seeds, a line per sweep, with 90 %
    intervals of normal values.
    """
    figure, (axes,) = plots.panels(1, width=0.75 * WIDTH, row=3.0)
    sweeps, tails, entries = (
        by_sweep(chosen(records)),
        np.array([[(1 + LEVEL) / 2], [(1 - LEVEL) / 2]]),
        [],
    )
    for place, (title, rows) in enumerate(sweeps):
        # Where all seeds diverged, they agree because none of them learned.
        learned = rows[
            ~rows.groupby("inverse_temperature")["diverged"].transform("all")
        ]
        some = (
            learned.groupby("inverse_temperature")["test_accuracy"]
            .agg(["std", "size"])
            .dropna()
        )
        if len(some):
            sd, degrees = (
                PERCENT * some["std"].to_numpy(float),
                some["size"].to_numpy(float) - 1,
            )
            bars = abs(sd * np.sqrt(degrees / stats.chi2.ppf(tails, degrees)) - sd)
            x = some.index * 1.06 ** (
                place - (len(sweeps) - 1) / 2
            )  # Side by side, so that bars are seen.
            axes.errorbar(
                x,
                sd,
                bars,
                fmt="-",
                color=HUES[place],
                linewidth=1.1,
                elinewidth=0.8,
                **DOT,
            )
            entries += [entry(title, color=HUES[place], marker="o")]
    if not entries:
        return None
    axes.set(yscale="log", xlabel=AXIS, ylabel="sd over seeds (points)")
    axes.set_ylim(
        top=min(axes.get_ylim()[1], 60)
    )  # Two seeds bound it by nothing, accuracies by 50.
    axes.yaxis.set(
        major_locator=LogLocator(subs=(1, 2, 5)),
        major_formatter=PLAIN_NUMBERS,
        minor_formatter="",
    )
    _of_inverse_temperatures(axes)
    plots.legend_below(figure, entries, columns=1)
    return figure


@style()
def logit_norms(records: Records) -> Figure | None:
    """Test accuracy against the norm of the tempered logits at the start; grey: what
    inverse temperatures span.
    """
    groups, x, y = (
        by_sweep(chosen(records, NORMS)),
        "norm of βz at the start",
        "test accuracy (%)",
    )
    figure, panels = panels_of(groups, x=x, y=y)
    for axes, some in panels:
        same = _of_the_same(chosen(records), some)
        span = PERCENT * same.groupby("inverse_temperature")["test_accuracy"].mean()
        if len(span):
            axes.axhspan(span.min(), span.max(), color="0.5", alpha=0.15, linewidth=0)
        good = some.query("not diverged").set_index("start")[
            ["initial_logit_norm", "test_accuracy"]
        ] * [1, PERCENT]
        axes.scatter(
            good["initial_logit_norm"],
            good["test_accuracy"],
            s=14,
            facecolor="none",
            edgecolor=HUES[0],
        )
        means = good.groupby("start").mean().sort_values("initial_logit_norm")
        axes.plot(*means.to_numpy().T, "o-", color=HUES[0], markersize=3.5)
        # Linear below the smallest norm above 0: the centred network starts at 0.
        positive = means.loc[means["initial_logit_norm"] > 0, "initial_logit_norm"]
        axes.set_xscale(
            "symlog", linthresh=float(positive.min()) if len(positive) else 1.0
        )
        axes.set_xticks([0, *positive.round(2)])
        axes.xaxis.set_major_formatter(PLAIN_NUMBERS)
        axes.minorticks_off()
    return figure


@style()
def three_temperatures(records: Records) -> Figure | None:
    """For each network the best inverse temperature to train with, its rivals (a bar),
    and three others.
    """
    table = tables.three_temperatures(records)
    if table.empty:
        return None
    figure, (axes,) = plots.panels(1, row=0.9 + 0.55 * len(table))
    heights = np.arange(len(table))[::-1]
    look: Any = {
        "color": BLACK,
        "alpha": 0.25,
        "linewidth": 6,
        "label": "as good as the best",
    }
    axes.hlines(heights, table["training_low"], table["training_high"], **look)
    for column, (label, marker, colour) in MARKS.items():
        if table[column].notna().any():
            axes.plot(
                table[column],
                heights,
                marker,
                color=colour,
                markersize=6,
                linestyle="none",
                label=label,
            )
    axes.set(xlabel=AXIS, ylim=(-0.6, len(table) - 0.4))
    axes.set_yticks(heights, table["architecture"] + ",\n" + table["dataset"])
    _of_inverse_temperatures(axes)
    plots.legend_below(figure, axes, columns=3)
    return figure


def panels_of(
    groups: Sequence[tuple[str, pd.DataFrame]],
    *,
    y: str,
    x: str = AXIS,
    legend: Sequence[Any] = (),
    **options: Any,
) -> tuple[Figure | None, list[tuple[Axes, pd.DataFrame]]]:
    """A figure, and its panels to draw in, one for each titled group of rows; None
    without groups.
    """
    if not groups:
        return None, []
    columns, width = (
        2 if len(groups) in {2, 4} else 3,
        (0.55 if len(groups) == 1 else 1) * WIDTH,
    )
    figure, grid = plots.panels(
        len(groups), columns=columns, width=width, **{"row": 2.4, **options}
    )
    if legend:
        plots.legend_below(figure, list(legend), columns=2)
    plots.label_outside(grid, columns=columns, x=x, y=y)
    for axes, (title, _) in zip(grid, groups, strict=True):
        axes.set_title(title.replace(", ", "\n"), fontsize=8)
    return figure, [(axes, rows) for axes, (_, rows) in zip(grid, groups, strict=True)]


def _of_the_same(rows: pd.DataFrame, sweep: pd.DataFrame) -> pd.DataFrame:
    return rows.merge(sweep[["architecture", "dataset"]].drop_duplicates())


def _of_inverse_temperatures(axes: Axes) -> None:
    """A logarithmic axis with plain numbers, and a dotted line where the softmax is the
    usual one.
    """
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(PLAIN_NUMBERS)
    axes.axvline(1, color="0.5", linewidth=0.8, linestyle=":")


@style()
def learning_curves(records: Records) -> Figure | None:
    """The loss of the first seed over the time of a flow with rate 1 and over rescaled
    time, a row per network.
    """
    rows = records.early_curves
    rows = rows[(rows["moment"] == TIME) & (rows["seed"] == rows["seed"].min())]
    networks = list(rows.groupby("network", sort=False))
    if not networks:
        return None
    values = sorted(rows["inverse_temperature"].dropna().unique())
    colours = dict(
        zip(values, sns.color_palette("viridis_r", len(values)), strict=True)
    )
    figure, grid = plots.panels(
        2 * len(networks), columns=2, row=1.75, extra=0.9, sharex="col", sharey="row"
    )
    for left, right, (network, some) in zip(
        grid[::2], grid[1::2], networks, strict=True
    ):
        for value, course in some.groupby("inverse_temperature", dropna=False):
            look = (
                {"color": colours[value], "linewidth": 1.1}
                if value in colours
                else DASHED
            )
            right.plot(course["time"] / course["unit_time"], course["loss"], **look)
            if value in colours:
                left.plot(course["time"] / value**2, course["loss"], **look)
        right.set_xscale("log")
        left.set(ylabel="loss (nats)", xscale="log")
        left.xaxis.set_major_locator(LogLocator(numticks=6))
        left.set_title(str(network), loc="left")
    grid[-2].set_xlabel("time t at rate η = 1")
    grid[-1].set_xlabel(
        "rescaled time β²ηt ÷ predicted time\nin which the logits change by 1"
    )
    entries = [
        entry(f"β = {value:g}", color=colour) for value, colour in colours.items()
    ]
    entries += [entry("linearised, any β", **DASHED)]
    plots.legend_below(figure, entries, columns=min(6, len(entries)))
    return figure


@style()
def early_logit_norms(records: Records) -> Figure | None:
    """Rescaled times of events against the norm of the tempered logits at the start,
    and as first speeds predict.
    """
    networks = theory.real_starts(records).groupby("network", sort=False)
    groups = [
        (f"{name}, β = {some['inverse_temperature'].iloc[0]:g}", some)
        for name, some in networks
    ]
    legend: list[Any] = [
        entry(each, ls="", marker=m, ms=4.5, color=hue)
        for each, m, hue in MEASURED.values()
    ]
    legend += [entry(**look) for look in PREDICTED.values()]
    legend += [Patch(color="0.93", label="small and large logits: slopes are fitted")]
    about: Any = {
        "x": "norm of the tempered\nlogits at the start",
        "y": "rescaled time β²ηt",
        "legend": legend,
    }
    figure, panels = panels_of(groups, **about, extra=0.8, sharex=True, sharey=True)
    for axes, some in panels:
        norms, scale, network = (
            some["wanted_norm"],
            float(some["images"].iloc[0]) ** 0.5,
            some["network"].iloc[0],
        )
        for event, (_, marker, colour) in MEASURED.items():
            _marks(
                axes,
                norms,
                some[event] * (1 / SHARE if event == TENTH else 1),
                marker,
                color=colour,
            )
        for column, look in PREDICTED.items():
            axes.plot(*_means(norms, some[column]), zorder=1, **look)
        axes.set(xscale="log", yscale="log")
        view = axes.get_xlim()  # It stays, whatever the grey ground reaches.
        for low, high in (
            (view[0], theory.SMALL * scale),
            (theory.LARGE * scale, view[1]),
        ):
            if low < high:
                axes.axvspan(low, high, color="0.93", linewidth=0, zorder=0)
        axes.set_xlim(view)
        said = [
            f"{fit.where}: {theory.slope_text(records, network, fit)}"
            for fit in theory.TO_HALF
        ]
        text, size = (
            "\n".join(["to half of the loss,", *said]),
            7 if len(groups) in {2, 4} else 6,
        )
        axes.text(0.03, 0.98, text, transform=axes.transAxes, va="top", fontsize=size)
    if figure:
        for axes in figure.axes:
            axes.title.set_fontsize(9)
        figure.axes[0].set_ylim(
            top=30 * figure.axes[0].get_ylim()[1]
        )  # Room for the text.
    return figure


@style()
def kernel_drift(records: Records) -> Figure | None:
    """Relative drift of the kernel when the tempered logits have changed by 1, and as
    its first speed predicts.
    """
    networks = list(theory.unit_moments(records).groupby("network", sort=False))
    if not networks:
        return None
    figure, (axes,) = plots.panels(1, width=0.8 * WIDTH, row=3.8 + 0.2 * len(networks))
    for (network, some), colour in zip(
        networks, sns.color_palette(n_colors=len(networks)), strict=True
    ):
        kinks, x = not some["smooth"].iloc[0], some["inverse_temperature"]
        label = f"{network}{' (kinks)' * kinks}: slope {theory.slope_text(records, network, theory.DRIFT)}"
        _marks(
            axes,
            x,
            some["drift"],
            "o",
            color=colour,
            markerfacecolor="white" if kinks else colour,
            label=label,
        )
        axes.plot(*_means(x, some["drift"]), color=colour, linewidth=1.1)
        axes.plot(
            *_means(x, some["drift_rate"] * some["unit_time"] / x),
            "--",
            color=colour,
            linewidth=0.9,
            alpha=0.8,
        )
    axes.plot(
        [], [], label="predicted by the first speed of the kernel: slope -1", **DASHED
    )
    axes.axhline(theory.STILL, zorder=0, label="slopes are fitted below", **DOTTED)
    axes.set(xscale="log", yscale="log", xlabel="inverse temperature β")
    axes.set_ylabel("relative drift of the kernel\nwhen the logits have changed by 1")
    plots.legend_below(figure, axes, columns=1)
    return figure


def _marks(
    axes: Axes,
    x: pd.Series[float],
    y: pd.Series[float],
    marker: str,
    *,
    color: Any,
    **look: Any,
) -> None:
    axes.plot(x, y, marker, color=color, markersize=2.2, alpha=0.5)
    axes.plot(*_means(x, y), marker, color=color, markersize=4.5, zorder=3, **look)


def _means(x: pd.Series[float], y: pd.Series[float]) -> tuple[Any, Any]:
    """The values of x, and the geometric means over equal ones; missing values are left
    out.
    """
    means = (
        pd.Series(np.log(y.to_numpy(float)), x.to_numpy(float))
        .groupby(level=0)
        .mean()
        .dropna()
    )
    return means.index, np.exp(means.to_numpy())

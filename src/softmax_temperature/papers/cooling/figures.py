"""Figures 1 and 2, and a sweep of learning rates of ours.

Each function takes the records and returns a figure, or None where nothing was trained for it. Trainings are those
without a learning-rate schedule.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from softmax_temperature.papers.cooling.effects import figure_1_trainings, rate_trainings
from softmax_temperature.papers.cooling.growth import SLOW_FACTOR, growth
from softmax_temperature.papers.cooling.outcomes import DIVERGED, STUCK, finished, is_lost
from softmax_temperature.papers.cooling.selection import (
    MODES,
    NO_COOLING,
    PERIODIC,
    SETTING,
    SIMPLEST,
    setting_title,
)
from softmax_temperature.papers.shared.plots import PALETTE, WIDTH, style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from softmax_temperature.papers.cooling.records import Records

PERCENT = 100
WARNING = "#b2182b"
_HUES = (1, 2, 0)  # Of the palette, for the modes of Cooling in their order.


def _palette() -> dict[str, Any]:
    """No Cooling in black, each mode in a colour of its own."""
    colours = sns.color_palette(PALETTE)
    return dict(zip(MODES, ["0.15", *(colours[hue] for hue in _HUES)], strict=True))


COLOURS = MappingProxyType(_palette())


def figure_1(records: Records) -> Figure | None:
    """Test accuracy against the factor of last layer Cooling, for each data set with a network.

    Dots are seeds, the line is the mean of those that finished; crosses mark factors with trainings that diverged or
    got stuck. The dashed line is the mean without Cooling, its band one standard deviation. Factors above 1 have a
    shaded panel with a scale of its own, since what they ruin would hide the differences between the others.
    """
    rows = figure_1_trainings(records)
    settings = rows[SETTING].drop_duplicates()
    if settings.empty:
        return None
    with style():
        figure = Figure(figsize=(min(1.0, 0.65 * len(settings)) * WIDTH, 3.1), layout="constrained")
        parts = [part for _, setting in settings.iterrows() for part in _ranges(rows.merge(setting.to_frame().T))]
        shares = [1 + part["factor"].nunique() for part in parts]
        panels = figure.subplots(1, len(parts), width_ratios=shares, squeeze=False)[0]
        for axes, part in zip(panels, parts, strict=True):
            _factors(axes, part)
        panels[0].set_ylabel("test accuracy (%)")
        figure.legend(handles=_factor_legend(), loc="outside lower center", ncols=3)
    return figure


def figure_2(records: Records) -> Figure | None:
    """The last layer's temperature over epochs: left with factor 0.75, right periodically redistributed with factor 1.

    A line a seed. The vertical strokes of the right panel are redistributions: from the temperature that was reached
    down to the one that the last layer keeps. The dotted line is the maximal temperature, the dashed line of the right
    panel the product of all corrections. Only the first data set and network that has either is shown.
    """
    rows = growth(records)
    if rows.empty:
        return None
    rows = rows.merge(rows[SETTING].head(1))
    shown = rows[["limit", "total", "reached", "kept"]].to_numpy()
    low, high = min(1.0, shown.min()), shown.max()
    with style():
        figure = Figure(figsize=(WIDTH, 3.3), layout="constrained")
        panels = figure.subplots(1, 2, sharex=True, sharey=True)
        for axes, mode, factor in zip(panels, (SIMPLEST, PERIODIC), (SLOW_FACTOR, 1), strict=True):
            axes.set(title=f"{MODES[mode]} Cooling, factor {factor:g}", xlabel="epoch", yscale="log")
            axes.set_ylim(0.8 * low, 1.25 * high)
            axes.axhline(rows["limit"].iloc[0], color="0.5", linewidth=0.8, linestyle=":")
            _temperatures(axes, rows[rows["mode"] == mode], COLOURS[mode])
        panels[0].set_ylabel("temperature of the last layer")
        figure.suptitle(setting_title(rows.iloc[0]), fontsize=10)
        figure.legend(handles=_growth_legend(has_resets=bool(rows["reset"].any())), loc="outside lower center", ncols=2)
    return figure


def learning_rates(records: Records) -> Figure | None:
    """Ours: test accuracy against the learning rate, with and without last layer Cooling, a panel a data set.

    Dots are seeds, lines the means of those that finished; crosses below mark rates with trainings that
    diverged or got stuck.
    """
    rows = rate_trainings(records)
    settings = rows[SETTING].drop_duplicates()
    if settings.empty:
        return None
    with style():
        figure = Figure(figsize=(min(1.0, 0.55 * len(settings)) * WIDTH, 3.1), layout="constrained")
        panels = figure.subplots(1, len(settings), squeeze=False)[0]
        for axes, (_, setting) in zip(panels, settings.iterrows(), strict=True):
            some = rows.merge(setting.to_frame().T)
            axes.set(title=setting_title(setting), xlabel="learning rate", xscale="log", xmargin=0.15)
            for mode in (NO_COOLING, SIMPLEST):
                _dots(axes, some[some["mode"] == mode], "learning_rate", COLOURS[mode], label=MODES[mode])
            _crosses(axes, some, "learning_rate")
            rates = sorted(some["learning_rate"].unique())
            axes.set_xticks(rates, [f"{rate:g}" for rate in rates])
            axes.minorticks_off()
        panels[0].set_ylabel("test accuracy (%)")
        handles = [*panels[0].get_legend_handles_labels()[0], _lost("0.4")]
        figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def _ranges(rows: pd.DataFrame) -> list[pd.DataFrame]:
    """The trainings with factors up to 1, and those with larger ones if there are any; each with those without."""
    hot, without = rows["factor"] > 1, rows["mode"] == NO_COOLING
    parts = [rows[~hot], rows[hot | without]]
    return [part for part in parts if (part["mode"] == SIMPLEST).any()]


def _factors(axes: Axes, rows: pd.DataFrame) -> None:
    without, cooled = rows[rows["mode"] == NO_COOLING], rows[rows["mode"] == SIMPLEST]
    accuracies = PERCENT * finished(without)["test_accuracy"]
    if len(accuracies):
        mean, sd = accuracies.mean(), accuracies.std()
        axes.axhline(mean, color=COLOURS[NO_COOLING], linewidth=1.2, linestyle="--")
    if len(accuracies) > 1:
        axes.axhspan(mean - sd, mean + sd, color=COLOURS[NO_COOLING], alpha=0.12, linewidth=0)
    _dots(axes, cooled, "factor", COLOURS[SIMPLEST])
    _crosses(axes, cooled, "factor")
    factors = sorted(cooled["factor"].unique())
    axes.set_xticks(factors, [f"{factor:g}" for factor in factors])
    axes.set(xlabel="Cooling factor", xlim=(factors[0] - 0.15, factors[-1] + 0.15))
    if factors[0] > 1:
        axes.set(title="above 1", facecolor="0.95")
    else:
        axes.set_title(setting_title(rows.iloc[0]))


def _dots(axes: Axes, rows: pd.DataFrame, x: str, colour: Any, *, label: str | None = None) -> None:
    """The seeds that finished, and their mean."""
    good = finished(rows)
    values = PERCENT * good["test_accuracy"]
    axes.scatter(good[x], values, s=12, facecolor="none", edgecolor=colour, linewidth=0.7)
    means = values.groupby(good[x]).mean()
    axes.plot(means.index, means, color=colour, linewidth=1.2, marker="o", markersize=3.5, label=label)


def _crosses(axes: Axes, rows: pd.DataFrame, x: str) -> None:
    """Crosses below everything else where trainings are lost, and how many of them; after all dots are drawn."""
    counts = rows.assign(lost=is_lost(rows)).groupby(["mode", x])["lost"].agg(["sum", "size"])
    counts = counts[counts["sum"] > 0].reset_index()
    modes = [mode for mode in MODES if mode in set(counts["mode"])]
    low, high = axes.get_ylim()
    axes.set_ylim(low - 0.1 * len(modes) * (high - low), high)
    place = axes.get_xaxis_transform()
    for mode, where, lost, runs in counts.itertuples(index=False, name=None):
        height = 0.04 + 0.07 * modes.index(mode)
        axes.plot(where, height, "x", color=COLOURS[mode], markersize=6, transform=place)
        look: dict[str, Any] = {"fontsize": 6.5, "va": "center", "color": COLOURS[mode]}
        axes.annotate(
            f"{lost} of {runs}",
            (where, height),
            (-6, 0),
            textcoords="offset points",
            xycoords=place,
            ha="right",
            **look,
        )


def _temperatures(axes: Axes, rows: pd.DataFrame, colour: Any) -> None:
    for _, seed in rows.groupby(["experiment", "seed"], sort=False):
        epochs, values = [0.0], [1.0]
        for row in seed.to_dict("records"):
            epochs += [row["epoch"]] * (1 + row["reset"])
            values += [row["reached"], row["kept"]][: 1 + row["reset"]]
        axes.plot(epochs, values, color=colour, linewidth=1.1)
        if seed["reset"].any():
            axes.plot(seed["epoch"], seed["total"], color=colour, linewidth=0.7, linestyle="--", alpha=0.7)
    resets = rows[rows["reset"]]
    axes.plot(resets["epoch"], resets["reached"], "v", color=WARNING, markersize=3.5)
    if rows.empty:
        axes.text(0.5, 0.5, "not trained", transform=axes.transAxes, ha="center", color="0.4")


def _factor_legend() -> list[Line2D]:
    look: dict[str, Any] = {"marker": "o", "markersize": 3.5, "label": f"{MODES[SIMPLEST]} Cooling"}
    return [
        Line2D([], [], linewidth=1.2, color=COLOURS[SIMPLEST], **look),
        Line2D(
            [], [], linewidth=1.2, linestyle="--", color=COLOURS[NO_COOLING], label=f"{MODES[NO_COOLING]}, mean ± sd"
        ),
        _lost(COLOURS[SIMPLEST]),
    ]


def _growth_legend(*, has_resets: bool) -> list[Line2D]:
    lines = [
        Line2D([], [], color="0.2", linewidth=1.1, label="temperature of the last layer, a line a seed"),
        Line2D([], [], color="0.5", linewidth=0.8, linestyle=":", label="maximal temperature"),
    ]
    if has_resets:
        triangle: dict[str, Any] = {"linestyle": "none", "marker": "v", "markersize": 3.5, "color": WARNING}
        thin: dict[str, Any] = {"linestyle": "--", "linewidth": 0.7, "color": COLOURS[PERIODIC]}
        lines += [
            Line2D([], [], label="redistributed: falls to the reset temperature", **triangle),
            Line2D([], [], label="product of all corrections", **thin),
        ]
    return lines


def _lost(colour: Any) -> Line2D:
    return Line2D([], [], linestyle="none", marker="x", markersize=6, color=colour, label=f"{DIVERGED} or {STUCK}")

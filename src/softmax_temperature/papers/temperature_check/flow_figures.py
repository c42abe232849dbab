"""Figures of early learning: networks that follow gradient flow.

Each public function takes the runs and returns a figure, or None if nothing was
measured for the figure.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator

from softmax_temperature.early_learning.courses import TIME
from softmax_temperature.early_learning.flows import FIT, SHARE, TENTH, UNIT
from softmax_temperature.papers.shared import figures
from softmax_temperature.papers.shared.display import network_label
from softmax_temperature.papers.shared.figures import BLACK, HUES, entry, style
from softmax_temperature.papers.shared.runs import Runs
from softmax_temperature.papers.temperature_check import early_learning as theory
from softmax_temperature.papers.temperature_check.figures import panels_of
from softmax_temperature.papers.temperature_check.study import (
    COURSES,
    DRIFT,
    FLOW,
    FROM_A_NORM,
    FROM_ZERO,
    LARGE,
    SMALL,
    STILL,
    time_to,
)

DASHED: dict[str, Any] = {"color": BLACK, "linestyle": "--", "linewidth": 1.1}
DOTTED: dict[str, Any] = {**DASHED, "linestyle": ":"}
PREDICTED: dict[str, Any] = {
    "unit_time": {**DOTTED, "label": "predicted: to change by 1"},
    "logit_time": {**DASHED, "label": "predicted: to change by the norm (τ$_z$)"},
}
MEASURED = {
    UNIT: ("to change by 1", "o", HUES[0]),
    TENTH: ("to change by a tenth of the norm, × 10", "s", HUES[1]),
    FIT: ("to half of the loss", "^", HUES[2]),
}
GREY = "0.93"


@style()
def learning_curves(runs: Runs) -> Figure | None:
    """Draw the first seed's loss, with one row of panels per network.

    On the left, the loss is drawn over time at learning rate 1; on the right, over
    rescaled time divided by the predicted time in which the logits change by 1.
    """
    columns = ["network", "seed", "inverse_temperature", "unit_time"]
    flows = runs.select(FLOW)[columns]
    rows = runs.tables[COURSES].join(flows, on="run", how="inner")
    rows = rows[(rows["moment"] == TIME) & (rows["seed"] == rows["seed"].min())]
    networks = list(rows.groupby("network", sort=False))
    if not networks:
        return None
    values = sorted(rows["inverse_temperature"].dropna().unique())
    palette = sns.color_palette("viridis_r", len(values))
    colours = dict(zip(values, palette, strict=True))
    figure, grid = figures.panels(
        2 * len(networks), columns=2, row=1.75, extra=0.9, sharex="col", sharey="row"
    )
    pairs = zip(grid[::2], grid[1::2], networks, strict=True)
    for left, right, (network, courses) in pairs:
        for value, course in courses.groupby("inverse_temperature", dropna=False):
            rescaled = course["time"] / course["unit_time"]
            if value not in colours:  # This is the linearised network.
                right.plot(rescaled, course["loss"], **DASHED)
                continue
            look = {"color": colours[value], "linewidth": 1.1}
            right.plot(rescaled, course["loss"], **look)
            left.plot(course["time"] / value**2, course["loss"], **look)
        right.set_xscale("log")
        left.set(ylabel="loss (nats)", xscale="log")
        left.xaxis.set_major_locator(LogLocator(numticks=6))
        left.set_title(network_label(str(network)), loc="left")
    grid[-2].set_xlabel("time t at learning rate η = 1")
    grid[-1].set_xlabel(
        "rescaled time β²ηt ÷\npredicted time in which\nthe logits change by 1"
    )
    entries = [
        entry(f"β = {_plain(value)}", color=hue) for value, hue in colours.items()
    ]
    entries.append(entry("linearised, any β", **DASHED))
    figures.legend_below(figure, entries, columns=min(6, len(entries)))
    return figure


@style()
def early_logit_norms(runs: Runs) -> Figure | None:
    """Draw rescaled times of events against the norm of the initial tempered logits.

    Lines show times predicted from the initial speed of the logits. The title of each
    panel gives the fitted slopes of the time in which the loss falls to half of its
    initial value.
    """
    chosen = runs.select(FROM_A_NORM)
    times = {event: time_to(event).of(runs, chosen) for event in MEASURED}
    rows = chosen.assign(**times)
    groups = [
        (str(network), starts)
        for network, starts in rows.groupby("network", sort=False)
    ]
    figure, panels = panels_of(
        groups,
        x="norm of the tempered\nlogits at the start",
        y="rescaled time β²ηt",
        legend=_legend_of_times(),
        row=2.9,
        extra=1.6,
        sharex=True,
        sharey=True,
    )
    if figure is None:
        return None
    for axes, starts in panels:
        norms = starts["start_norm"]
        for event, (_, marker, colour) in MEASURED.items():
            scale = 1 / SHARE if event == TENTH else 1
            _marks(axes, norms, starts[event] * scale, marker, color=colour)
        for column, look in PREDICTED.items():
            axes.plot(*_means(norms, starts[column]), zorder=1, **look)
        axes.set(xscale="log", yscale="log")
        _shade_limits(axes, float(starts["train_samples"].iloc[0]) ** 0.5)
        axes.set_title(_title_with_slopes(runs, starts))
    slopes = "slopes of the time to half of the loss, with 90 % intervals"
    predicted = " and ".join(f"{fit.slope:g} ({fit.regime})" for fit in theory.TO_HALF)
    figures.headline(figure, f"{slopes}; predicted are {predicted}")
    return figure


def _title_with_slopes(runs: Runs, starts: pd.DataFrame) -> str:
    """The title of a panel: network, inverse temperature and fitted slopes."""
    network = starts["network"].iloc[0]
    lines = [
        network_label(network).replace(" with", "\nwith"),
        f"β = {_plain(starts['inverse_temperature'].iloc[0])}",
    ]
    for fit in theory.TO_HALF:
        slope = theory.slope_text(runs, network, fit).partition(", predicted")[0]
        lines.append(f"{fit.regime}: {slope}".replace("-", "−"))
    return "\n".join(lines)


def _plain(value: float) -> str:
    """Format a number without an exponent, with commas, such as 0.1 or 100,000."""
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _legend_of_times() -> list[Any]:
    entries: list[Any] = [
        entry(label, ls="", marker=marker, ms=4.5, color=hue)
        for label, marker, hue in MEASURED.values()
    ]
    entries += [entry(**look) for look in PREDICTED.values()]
    grey = "small and large logits: slopes are fitted"
    return [*entries, Patch(color=GREY, label=grey)]


def _shade_limits(axes: Axes, scale: float) -> None:
    """Shade the norms that are small or large enough for the theory's two limits.

    The range of the axis does not change. `scale` converts the norm of one image's
    logits to the norm over all images.
    """
    view = axes.get_xlim()
    for low, high in ((view[0], SMALL * scale), (LARGE * scale, view[1])):
        if low < high:
            axes.axvspan(low, high, color=GREY, linewidth=0, zorder=0)
    axes.set_xlim(view)


@style()
def kernel_drift(runs: Runs) -> Figure | None:
    """Draw the kernel's relative drift over inverse temperatures.

    The drift is measured when the tempered logits have changed by 1. Dashed lines show
    predictions from the kernel's initial speed. The dotted line marks a drift of
    `STILL`; a slope is fitted to the inverse temperatures whose mean drift is at most
    `STILL`.
    """
    chosen = runs.select(FROM_ZERO)
    unit = runs.tables[COURSES].query("moment == @UNIT")["run"]
    chosen = chosen[chosen.index.isin(unit)]
    rows = chosen.assign(drift=DRIFT.of(runs, chosen))
    networks = list(rows.groupby("network", sort=False))
    if not networks:
        return None
    figure, (axes,) = figures.panels(1, row=3.8 + 0.2 * len(networks))
    palette = sns.color_palette(n_colors=len(networks))
    for (network, courses), colour in zip(networks, palette, strict=True):
        _drifts(axes, runs, str(network), courses, colour)
    first_speed = "predicted by the first speed of the kernel: slope −1"
    axes.plot([], [], label=first_speed, **DASHED)
    axes.axhline(STILL, zorder=0, label="slopes are fitted below", **DOTTED)
    axes.set(xscale="log", yscale="log", xlabel="inverse temperature β")
    axes.set_ylabel("relative drift of the kernel\nwhen the logits have changed by 1")
    figures.legend_below(figure, axes, columns=1)
    return figure


def _drifts(
    axes: Axes, runs: Runs, network: str, courses: pd.DataFrame, colour: Any
) -> None:
    """Draw one network's measured drifts, and those predicted by the initial speed."""
    is_smooth = bool(courses["smooth"].iloc[0])
    kinks = "" if is_smooth else " (kinks)"
    slope = theory.slope_text(runs, network, theory.KERNEL_DRIFT).replace("-", "−")
    x = courses["inverse_temperature"]
    _marks(
        axes,
        x,
        courses["drift"],
        "o",
        color=colour,
        markerfacecolor=colour if is_smooth else "white",
        label=f"{network_label(network)}{kinks}:\nslope {slope}",
    )
    axes.plot(*_means(x, courses["drift"]), color=colour, linewidth=1.1)
    predicted = courses["drift_rate"] * courses["unit_time"] / x
    axes.plot(*_means(x, predicted), "--", color=colour, linewidth=0.9, alpha=0.8)


def _marks(
    axes: Axes,
    x: pd.Series[float],
    y: pd.Series[float],
    marker: str,
    *,
    color: Any,
    **look: Any,
) -> None:
    """Draw seeds as small marks, and their geometric means as large marks."""
    axes.plot(x, y, marker, color=color, markersize=2.2, alpha=0.5)
    axes.plot(*_means(x, y), marker, color=color, markersize=4.5, zorder=3, **look)


def _means(x: pd.Series[float], y: pd.Series[float]) -> tuple[Any, Any]:
    """The distinct values of `x`, and the geometric mean of `y` at each.

    Missing values are left out.
    """
    logarithms = pd.Series(np.log(y.to_numpy(float)), x.to_numpy(float))
    means = logarithms.groupby(level=0).mean().dropna()
    return means.index, np.exp(means.to_numpy())

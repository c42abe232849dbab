"""What early learning looks like: courses over time, times over the norm of the logits, drift of the kernel.

Each function takes the records and returns a figure, or None where nothing was measured for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from softmax_temperature.early_learning.courses import TIME
from softmax_temperature.early_learning.flows import FIT, SHARE, TENTH, UNIT
from softmax_temperature.papers.shared.plots import PALETTE, WIDTH, style
from softmax_temperature.papers.temperature_check.early_learning_slopes import (
    DRIFT,
    FIT_LARGE,
    FIT_SMALL,
    LARGE,
    SMALL,
    STILL,
    Prediction,
    early_slopes,
    real_starts,
    unit_moments,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from softmax_temperature.papers.temperature_check.records import Records

COLUMNS = 2
ROOM = 30
"""Factor of the time axis, for text above the marks."""
DASHED: dict[str, Any] = {"color": "0.15", "linestyle": "--", "linewidth": 1.1}
DOTTED: dict[str, Any] = {"color": "0.15", "linestyle": ":", "linewidth": 1.1}
TIMES = (
    (UNIT, 1.0, "o", "to change by 1"),
    (TENTH, 1 / SHARE, "s", "to change by a tenth of the norm, × 10"),
    (FIT, 1.0, "^", "to half of the loss"),
)


def learning_curves(records: Records) -> Figure | None:
    """The loss over the time of a flow with rate 1 (left) and over rescaled time (right), a row a network.

    A colour an inverse temperature; the first seed of each network. Rescaled time is in units of that in which the
    logits would change by 1 at their first speed. The dashed line has the kernel of the start, for every inverse
    temperature. Courses end where a tenth of the loss is left, or where the integration did.
    """
    rows = records.early_curves
    rows = rows[(rows["moment"] == TIME) & (rows["seed"] == rows["seed"].min())]
    networks = list(dict.fromkeys(rows["network"]))
    if not networks:
        return None
    colours = _colours(rows["inverse_temperature"].dropna().unique())
    with style():
        figure = Figure(figsize=(WIDTH, 1.75 * len(networks) + 0.9), layout="constrained")
        grid = figure.subplots(len(networks), 2, sharex="col", sharey=True, squeeze=False)
        for (left, right), network in zip(grid, networks, strict=True):
            some = rows[rows["network"] == network]
            for inverse_temperature, colour in colours.items():
                course = some[some["inverse_temperature"] == inverse_temperature]
                left.plot(course["time"] / inverse_temperature**2, course["loss"], color=colour, linewidth=1.1)
                right.plot(course["time"] / course["unit_time"], course["loss"], color=colour, linewidth=1.1)
            linear = some[some["inverse_temperature"].isna()]
            right.plot(linear["time"] / linear["unit_time"], linear["loss"], **DASHED)
            left.set(ylabel="loss (nats)", xscale="log", ylim=(0, None))
            right.set(xscale="log")
            left.set_title(network, loc="left")
        grid[-1, 0].set_xlabel("time t at rate η = 1")
        grid[-1, 1].set_xlabel("rescaled time β²ηt, over that to change by 1")
        handles = [Line2D([], [], color=colour, label=f"β = {value:g}") for value, colour in colours.items()]
        handles.append(Line2D([], [], **DASHED, label="linearised, any β"))
        figure.legend(handles=handles, loc="outside lower center", ncols=min(6, len(handles)))
    return figure


def logit_norms(records: Records) -> Figure | None:
    """Rescaled times of events against the norm of the tempered logits at the start, a panel a network.

    Small marks are seeds, large ones their geometric means. The lines are what the first speed of the logits predicts:
    dotted the time to change by 1, dashed that to change by their own norm (tau_z). Slopes are fitted where the ground
    is grey; those of the time to half of the loss stand in the panel, with 90 % intervals over seeds.
    """
    rows, slopes = real_starts(records), early_slopes(records)
    networks = list(dict.fromkeys(rows["network"]))
    if not networks:
        return None
    with style():
        lines = -(-len(networks) // COLUMNS)
        width = min(COLUMNS, len(networks))
        figure = Figure(figsize=(WIDTH, 2.4 * lines + 0.8), layout="constrained")
        grid = figure.subplots(lines, width, sharex=True, sharey=False, squeeze=False)
        for axes in grid.ravel()[len(networks) :]:
            axes.set_visible(False)
        for axes, network in zip(grid.ravel(), networks, strict=False):
            some = rows[rows["network"] == network]
            for (event, factor, marker, _), colour in zip(TIMES, sns.color_palette(PALETTE), strict=False):
                _marks(axes, some, "wanted_norm", factor * some[event], colour=colour, marker=marker)
            for column, look in (("unit_time", DOTTED), ("logit_time", DASHED)):
                means = _means(some["wanted_norm"], some[column])
                axes.plot(means.index, means, zorder=1, **look)
            axes.set(xscale="log", yscale="log", title=f"{network}, β = {some['inverse_temperature'].iloc[0]:g}")
            _regimes(axes, some)
            parts = [f"{each.where}: {_slope(slopes, network, each)}" for each in (FIT_SMALL, FIT_LARGE)]
            text = "\n".join(["to half of the loss,", *parts])
            axes.set_ylim(top=ROOM * axes.get_ylim()[1])
            axes.text(0.03, 0.98, text, transform=axes.transAxes, va="top", fontsize=7)
        for axes in grid.ravel()[: len(networks)][-width:]:
            axes.set_xlabel("norm of the tempered logits at the start")
            axes.tick_params(labelbottom=True)
        for row in grid:
            row[0].set_ylabel("rescaled time β²ηt")
        figure.legend(handles=_times_legend(), loc="outside lower center", ncols=2)
    return figure


def kernel_drift(records: Records) -> Figure | None:
    """Relative drift of the kernel when the tempered logits have changed by 1, against the inverse temperature.

    Small marks are seeds, lines their geometric means, a colour a network; open marks have activations with kinks. The
    dashed lines are what the kernel's first speed predicts, in inverse proportion. The legend has fitted slopes, with
    90 % intervals over seeds, where the drift is below the dotted line.
    """
    rows = unit_moments(records)
    networks = list(dict.fromkeys(rows["network"]))
    if not networks:
        return None
    slopes = early_slopes(records)
    with style():
        figure = Figure(figsize=(0.8 * WIDTH, 3.8 + 0.2 * len(networks)), layout="constrained")
        axes = figure.subplots()
        for network, colour in zip(networks, sns.color_palette(PALETTE, len(networks)), strict=True):
            some = rows[rows["network"] == network]
            smooth = bool(some["smooth"].iloc[0])
            label = f"{network}{'' if smooth else ' (kinks)'}: slope {_slope(slopes, network, DRIFT)}"
            means = _marks(
                axes, some, "inverse_temperature", some["drift"], colour=colour, marker="o", filled=smooth, label=label
            )
            axes.plot(means.index, means, color=colour, linewidth=1.1)
            first = _means(
                some["inverse_temperature"], some["drift_rate"] * some["unit_time"] / some["inverse_temperature"]
            )
            axes.plot(first.index, first, color=colour, linestyle="--", linewidth=0.9, alpha=0.8)
        axes.plot([], [], label="predicted by the first speed of the kernel: slope -1", **DASHED)
        axes.axhline(STILL, zorder=0, label="slopes are fitted below", **DOTTED)
        axes.set(xscale="log", yscale="log", xlabel="inverse temperature β")
        axes.set_ylabel("relative drift of the kernel\nwhen the logits have changed by 1")
        figure.legend(loc="outside lower center")
    return figure


def _colours(inverse_temperatures: Sequence[float]) -> dict[float, Any]:
    values = sorted(inverse_temperatures)
    return dict(zip(values, sns.color_palette("viridis_r", len(values)), strict=True))


def _marks(
    axes: Axes, rows: pd.DataFrame, across: str, up: pd.Series[float], *, colour: Any, filled: bool = True, **look: Any
) -> pd.Series[float]:
    """Seeds as small marks and their geometric means as large ones; returns the means."""
    face = colour if filled else "white"
    label, means = look.pop("label", None), _means(rows[across], up)
    axes.plot(rows[across], up, linestyle="", color=colour, markersize=2.2, alpha=0.5, **look)
    axes.plot(
        means.index,
        means,
        linestyle="",
        color=colour,
        markerfacecolor=face,
        markersize=4.5,
        label=label,
        zorder=3,
        **look,
    )
    return means


def _means(across: pd.Series[float], up: pd.Series[float]) -> pd.Series[float]:
    """Geometric means, of what there is."""
    logarithms = pd.Series(np.log(up.to_numpy(float)), across.to_numpy(float))
    means = logarithms.groupby(level=0).mean().dropna()
    return pd.Series(np.exp(means.to_numpy()), means.index)


def _regimes(axes: Axes, rows: pd.DataFrame) -> None:
    """Grey ground where the norm of an image belongs to a limit; the view stays what it was."""
    view, scale = axes.get_xlim(), float(rows["images"].iloc[0]) ** 0.5
    for low, high in ((view[0], SMALL * scale), (LARGE * scale, view[1])):
        if low < high:
            axes.axvspan(low, high, color="0.93", linewidth=0, zorder=0)
    axes.set_xlim(view)


def _slope(slopes: pd.DataFrame, network: str, prediction: Prediction) -> str:
    """The fitted slope with its interval, and the predicted one."""
    known = ("quantity", "against", "where")
    same = np.logical_and.reduce([slopes[name] == getattr(prediction, name) for name in known])
    rows = slopes[same & (slopes["network"] == network)]
    if rows.empty:
        return "no slope"
    row = rows.iloc[0]
    interval = "" if pd.isna(row["low"]) else f" [{_number(row['low'])}, {_number(row['high'])}]"
    return f"{_number(row['slope'])}{interval}, predicted {prediction.slope:g}"


def _number(value: float) -> str:
    return f"{round(value, 3) + 0:.3f}"  # + 0: no minus zero.


def _times_legend() -> list[Line2D | Patch]:
    marks: list[Line2D | Patch] = [
        Line2D([], [], color=colour, marker=marker, linestyle="", markersize=4.5, label=label)
        for (_, _, marker, label), colour in zip(TIMES, sns.color_palette(PALETTE), strict=False)
    ]
    lines: list[Line2D | Patch] = [
        Line2D([], [], label="predicted: to change by 1", **DOTTED),
        Line2D([], [], label="predicted: to change by the norm (tau_z)", **DASHED),
        Patch(color="0.93", label="small and large logits: slopes are fitted"),
    ]
    return marks + lines

"""What early learning looks like: courses over time, times over the norm of the logits, drift of the kernel.

Each function takes the records and returns a figure, or None where nothing was measured for it.
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
from softmax_temperature.papers.shared.plots import (
    BLACK,
    PALETTE,
    WIDTH,
    entry,
    label_outside,
    legend_below,
    panels,
    style,
)
from softmax_temperature.papers.temperature_check.early_learning import (
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
from softmax_temperature.papers.temperature_check.records import Records

ROOM = 30
"""Factor of the time axis, for text above the marks."""
DASHED: dict[str, Any] = {"color": BLACK, "linestyle": "--", "linewidth": 1.1}
DOTTED: dict[str, Any] = {"color": BLACK, "linestyle": ":", "linewidth": 1.1}
TIMES = (
    (UNIT, 1.0, "o", "to change by 1"),
    (TENTH, 1 / SHARE, "s", "to change by a tenth of the norm, × 10"),
    (FIT, 1.0, "^", "to half of the loss"),
)


@style()
def learning_curves(records: Records) -> Figure | None:
    """The loss over the time of a flow with rate 1 (left) and over rescaled time (right), a row per network.

    A colour per inverse temperature; the first seed of each network. Rescaled time is in units of that in which the
    logits would change by 1 at their first speed. The dashed line has the kernel of the start, for every inverse
    temperature. Courses end where a tenth of the loss is left, or where the integration did.
    """
    rows = records.early_curves
    rows = rows[(rows["moment"] == TIME) & (rows["seed"] == rows["seed"].min())]
    networks = list(dict.fromkeys(rows["network"]))
    if not networks:
        return None
    values = sorted(rows["inverse_temperature"].dropna().unique())
    colours = dict(zip(values, sns.color_palette("viridis_r", len(values)), strict=True))
    figure, grid = panels(2 * len(networks), columns=2, row=1.75, extra=0.9, sharex="col", sharey=True)
    for left, right, network in zip(grid[::2], grid[1::2], networks, strict=True):
        some = rows[rows["network"] == network]
        for value, colour in colours.items():
            course = some[some["inverse_temperature"] == value]
            left.plot(course["time"] / value**2, course["loss"], color=colour, linewidth=1.1)
            right.plot(course["time"] / course["unit_time"], course["loss"], color=colour, linewidth=1.1)
        linear = some[some["inverse_temperature"].isna()]
        right.plot(linear["time"] / linear["unit_time"], linear["loss"], **DASHED)
        left.set(ylabel="loss (nats)", xscale="log", ylim=(0, None))
        left.xaxis.set_major_locator(LogLocator(numticks=6))
        right.set(xscale="log")
        left.set_title(network, loc="left")
    grid[-2].set_xlabel("time t at rate η = 1")
    grid[-1].set_xlabel("rescaled time β²ηt, over that to change by 1")
    entries = [entry(f"β = {value:g}", color=colour) for value, colour in colours.items()]
    entries.append(entry("linearised, any β", **DASHED))
    legend_below(figure, entries, columns=min(6, len(entries)))
    return figure


@style()
def logit_norms(records: Records) -> Figure | None:
    """Rescaled times of events against the norm of the tempered logits at the start, a panel per network.

    Small marks are seeds, large ones their geometric means. The lines are what the first speed of the logits predicts:
    dotted the time to change by 1, dashed that to change by their own norm (tau_z). Slopes are fitted where the ground
    is grey; those of the time to half of the loss are in the panel, with 90 % intervals over seeds.
    """
    rows, slopes = real_starts(records), early_slopes(records)
    networks = list(dict.fromkeys(rows["network"]))
    if not networks:
        return None
    columns = 2 if len(networks) in {2, 4} else 3
    figure, grid = panels(len(networks), columns=columns, row=2.4, extra=0.8, sharex=True, sharey=True)
    for axes, network in zip(grid, networks, strict=True):
        some = rows[rows["network"] == network]
        for (event, factor, marker, _), colour in zip(TIMES, sns.color_palette(PALETTE), strict=False):
            _marks(axes, some["wanted_norm"], factor * some[event], color=colour, marker=marker)
        for column, look in (("unit_time", DOTTED), ("logit_time", DASHED)):
            means = _means(some["wanted_norm"], some[column])
            axes.plot(means.index, means, zorder=1, **look)
        axes.set(xscale="log", yscale="log")
        axes.set_title(f"{network}\nβ = {some['inverse_temperature'].iloc[0]:g}", fontsize=9)
        _regimes(axes, some)
        parts = [f"{each.where}: {_slope(slopes, network, each)}" for each in (FIT_SMALL, FIT_LARGE)]
        text = "\n".join(["to half of the loss,", *parts])
        axes.text(0.03, 0.98, text, transform=axes.transAxes, va="top", fontsize=7 if columns == 2 else 6)
    grid[0].set_ylim(top=ROOM * grid[0].get_ylim()[1])
    label_outside(grid, columns=columns, x="norm of the tempered\nlogits at the start", y="rescaled time β²ηt")
    entries = [
        *(
            entry(label, color=colour, marker=marker, linestyle="", markersize=4.5)
            for (_, _, marker, label), colour in zip(TIMES, sns.color_palette(PALETTE), strict=False)
        ),
        entry("predicted: to change by 1", **DOTTED),
        entry("predicted: to change by the norm (tau_z)", **DASHED),
        Patch(color="0.93", label="small and large logits: slopes are fitted"),
    ]
    legend_below(figure, entries, columns=2)
    return figure


@style()
def kernel_drift(records: Records) -> Figure | None:
    """Relative drift of the kernel when the tempered logits have changed by 1, against the inverse temperature.

    Small marks are seeds, lines their geometric means, a colour per network; open marks have activations with kinks.
    The dashed lines are what the kernel's first speed predicts, in inverse proportion. The legend has fitted slopes,
    with 90 % intervals over seeds, where the drift is below the dotted line.
    """
    rows, slopes = unit_moments(records), early_slopes(records)
    networks = list(dict.fromkeys(rows["network"]))
    if not networks:
        return None
    figure, (axes,) = panels(1, width=0.8 * WIDTH, row=3.8 + 0.2 * len(networks))
    for network, colour in zip(networks, sns.color_palette(PALETTE, len(networks)), strict=True):
        some = rows[rows["network"] == network]
        smooth, x = bool(some["smooth"].iloc[0]), some["inverse_temperature"]
        label = f"{network}{'' if smooth else ' (kinks)'}: slope {_slope(slopes, network, DRIFT)}"
        means = _marks(axes, x, some["drift"], color=colour, marker="o", face=None if smooth else "white", label=label)
        axes.plot(means.index, means, color=colour, linewidth=1.1)
        first = _means(x, some["drift_rate"] * some["unit_time"] / x)
        axes.plot(first.index, first, color=colour, linestyle="--", linewidth=0.9, alpha=0.8)
    axes.plot([], [], label="predicted by the first speed of the kernel: slope -1", **DASHED)
    axes.axhline(STILL, zorder=0, label="slopes are fitted below", **DOTTED)
    axes.set(xscale="log", yscale="log", xlabel="inverse temperature β")
    axes.set_ylabel("relative drift of the kernel\nwhen the logits have changed by 1")
    legend_below(figure, axes, columns=1)
    return figure


def _marks(
    axes: Axes, x: pd.Series[float], y: pd.Series[float], *, face: Any = None, label: str | None = None, **look: Any
) -> pd.Series[float]:
    """Seeds as small marks and their geometric means as large ones; returns the means."""
    means = _means(x, y)
    axes.plot(x, y, linestyle="", markersize=2.2, alpha=0.5, **look)
    face = look["color"] if face is None else face
    axes.plot(means.index, means, linestyle="", markerfacecolor=face, markersize=4.5, label=label, zorder=3, **look)
    return means


def _means(x: pd.Series[float], y: pd.Series[float]) -> pd.Series[float]:
    """Geometric means over equal x; missing values are left out."""
    logarithms = pd.Series(np.log(y.to_numpy(float)), x.to_numpy(float))
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
    rows = slopes[slopes["network"] == network]
    for name in ("quantity", "against", "where"):
        rows = rows[rows[name] == getattr(prediction, name)]
    if rows.empty:
        return "no slope"
    row = rows.iloc[0]
    interval = "" if pd.isna(row["low"]) else f" [{_number(row['low'])}, {_number(row['high'])}]"
    return f"{_number(row['slope'])}{interval}, predicted {prediction.slope:g}"


def _number(value: float) -> str:
    return f"{round(value, 3) + 0:.3f}"  # + 0: no minus zero.

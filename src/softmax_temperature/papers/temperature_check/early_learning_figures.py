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
from softmax_temperature.papers.shared import plots
from softmax_temperature.papers.shared.plots import BLACK, HUES, WIDTH, entry, style
from softmax_temperature.papers.temperature_check import early_learning as theory
from softmax_temperature.papers.temperature_check.early_learning import LARGE, SMALL
from softmax_temperature.papers.temperature_check.records import Records

ROOM = 30  # Factor of the time axis, for text above the marks.
DASHED: dict[str, Any] = {"color": BLACK, "linestyle": "--", "linewidth": 1.1}
DOTTED = DASHED | {"linestyle": ":"}
PREDICTED = {
    "unit_time": DOTTED | {"label": "predicted: to change by 1"},
    "logit_time": DASHED | {"label": "predicted: to change by the norm (tau_z)"},
}
MEASURED: dict[str, dict[str, Any]] = {
    UNIT: {"marker": "o", "color": HUES[0], "label": "to change by 1"},
    TENTH: {"marker": "s", "color": HUES[1], "label": "to change by a tenth of the norm, × 10"},
    FIT: {"marker": "^", "color": HUES[2], "label": "to half of the loss"},
}


@style()
def learning_curves(records: Records) -> Figure | None:
    """The loss of the first seed over the time of a flow with rate 1 and over rescaled time, a row per network."""
    rows = records.early_curves
    rows = rows[(rows["moment"] == TIME) & (rows["seed"] == rows["seed"].min())]
    networks = list(rows.groupby("network", sort=False))
    if not networks:
        return None
    values = sorted(rows["inverse_temperature"].dropna().unique())
    colours = sns.color_palette("viridis_r", len(values))
    looks = {value: {"color": colour, "linewidth": 1.1} for value, colour in zip(values, colours, strict=True)}
    figure, grid = plots.panels(2 * len(networks), columns=2, row=1.75, extra=0.9, sharex="col", sharey=True)
    for left, right, (network, some) in zip(grid[::2], grid[1::2], networks, strict=True):
        for value, course in some.groupby("inverse_temperature"):
            left.plot(course["time"] / value**2, course["loss"], **looks[value])
        for value, course in some.groupby("inverse_temperature", dropna=False):
            right.plot(course["time"] / course["unit_time"], course["loss"], **looks.get(value, DASHED))
        left.set(ylabel="loss (nats)", xscale="log", ylim=(0, None))
        left.xaxis.set_major_locator(LogLocator(numticks=6))
        right.set(xscale="log")
        left.set_title(str(network), loc="left")
    grid[-2].set_xlabel("time t at rate η = 1")
    grid[-1].set_xlabel("rescaled time β²ηt, over that to change by 1")
    entries = [entry(f"β = {value:g}", color=look["color"]) for value, look in looks.items()]
    entries.append(entry("linearised, any β", **DASHED))
    plots.legend_below(figure, entries, columns=min(6, len(entries)))
    return figure


@style()
def logit_norms(records: Records) -> Figure | None:
    """Rescaled times of events against the norm of the tempered logits at the start, a panel per network.

    Small marks are seeds, large ones their geometric means; the lines are what the first speed of the logits predicts.
    """
    networks = list(theory.real_starts(records).groupby("network", sort=False))
    if not networks:
        return None
    columns = 2 if len(networks) in {2, 4} else 3
    figure, grid = plots.panels(len(networks), columns=columns, row=2.4, extra=0.8, sharex=True, sharey=True)
    for axes, (network, some) in zip(grid, networks, strict=True):
        norms, scale = some["wanted_norm"], float(some["images"].iloc[0]) ** 0.5
        for event, look in MEASURED.items():
            _marks(axes, norms, some[event] * (1 / SHARE if event == TENTH else 1), **look)
        for column, look in PREDICTED.items():
            axes.plot(*_means(norms, some[column]), zorder=1, **look)
        axes.set(xscale="log", yscale="log")
        axes.set_title(f"{network}\nβ = {some['inverse_temperature'].iloc[0]:g}", fontsize=9)
        # Grey ground where the norm of an image belongs to a limit; the view stays what it was.
        view = axes.get_xlim()
        for low, high in ((view[0], SMALL * scale), (LARGE * scale, view[1])):
            if low < high:
                axes.axvspan(low, high, color="0.93", linewidth=0, zorder=0)
        axes.set_xlim(view)
        parts = [f"{each.where}: {_slope(records, network, each)}" for each in (theory.FIT_SMALL, theory.FIT_LARGE)]
        text = "\n".join(["to half of the loss,", *parts])
        axes.text(0.03, 0.98, text, transform=axes.transAxes, va="top", fontsize=7 if columns == 2 else 6)
    grid[0].set_ylim(top=ROOM * grid[0].get_ylim()[1])
    plots.label_outside(grid, columns=columns, x="norm of the tempered\nlogits at the start", y="rescaled time β²ηt")
    entries = [entry(**look, linestyle="", markersize=4.5) for look in MEASURED.values()]
    entries += [entry(**look) for look in PREDICTED.values()]
    ground = Patch(color="0.93", label="small and large logits: slopes are fitted")
    plots.legend_below(figure, [*entries, ground], columns=2)
    return figure


@style()
def kernel_drift(records: Records) -> Figure | None:
    """Relative drift of the kernel when the tempered logits have changed by 1, against the inverse temperature.

    Small marks are seeds, lines their geometric means; dashed is what the kernel's first speed predicts.
    """
    networks = list(theory.unit_moments(records).groupby("network", sort=False))
    if not networks:
        return None
    figure, (axes,) = plots.panels(1, width=0.8 * WIDTH, row=3.8 + 0.2 * len(networks))
    for (network, some), colour in zip(networks, sns.color_palette(n_colors=len(networks)), strict=True):
        smooth, x = bool(some["smooth"].iloc[0]), some["inverse_temperature"]
        label = f"{network}{'' if smooth else ' (kinks)'}: slope {_slope(records, network, theory.DRIFT)}"
        face = colour if smooth else "white"
        _marks(axes, x, some["drift"], color=colour, marker="o", markerfacecolor=face, label=label)
        axes.plot(*_means(x, some["drift"]), color=colour, linewidth=1.1)
        first = _means(x, some["drift_rate"] * some["unit_time"] / x)
        axes.plot(*first, color=colour, linestyle="--", linewidth=0.9, alpha=0.8)
    axes.plot([], [], label="predicted by the first speed of the kernel: slope -1", **DASHED)
    axes.axhline(theory.STILL, zorder=0, label="slopes are fitted below", **DOTTED)
    axes.set(xscale="log", yscale="log", xlabel="inverse temperature β")
    axes.set_ylabel("relative drift of the kernel\nwhen the logits have changed by 1")
    plots.legend_below(figure, axes, columns=1)
    return figure


def _marks(axes: Axes, x: pd.Series[float], y: pd.Series[float], *, color: Any, marker: str, **look: Any) -> None:
    """Seeds as small marks and their geometric means as large ones."""
    shared: dict[str, Any] = {"color": color, "marker": marker, "linestyle": ""}
    axes.plot(x, y, markersize=2.2, alpha=0.5, **shared)
    axes.plot(*_means(x, y), markersize=4.5, zorder=3, **shared, **look)


def _means(x: pd.Series[float], y: pd.Series[float]) -> tuple[Any, Any]:
    """The values of x, and the geometric means over equal ones; missing values are left out."""
    means = pd.Series(np.log(y.to_numpy(float)), x.to_numpy(float)).groupby(level=0).mean().dropna()
    return means.index, np.exp(means.to_numpy())


def _slope(records: Records, network: object, prediction: theory.Prediction) -> str:
    """The fitted slope with its interval, and the predicted one."""
    slopes = theory.early_slopes(records, [prediction]).set_index("network")[["slope", "low", "high"]]
    if network not in slopes.index:
        return "no slope"
    slope, low, high = (f"{value:z.3f}" for value in slopes.loc[str(network)].astype(float))
    interval = "" if low == "nan" else f" [{low}, {high}]"
    return f"{slope}{interval}, predicted {prediction.slope:g}"

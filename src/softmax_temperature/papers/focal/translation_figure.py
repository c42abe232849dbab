"""Figure K.1: BLEU and calibration of translation models over temperatures."""

from __future__ import annotations

from string import ascii_lowercase
from types import MappingProxyType
from typing import TYPE_CHECKING

import seaborn as sns
from matplotlib.figure import Figure

from softmax_temperature.papers.shared.plots import PALETTE, WIDTH, style

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from softmax_temperature.papers.focal.records import Records

ARMS = MappingProxyType({"CE": "cross-entropy", "LS": "label smoothing", "FL": "focal loss"})
ROWS = MappingProxyType({"bleu": "test BLEU", "validation_ece": "validation ECE (%)"})
"""The two quantities, from top to bottom, and the names of their axes; both are shown times 100."""
_UNITS = 100


def figure_k1(records: Records) -> Figure | None:
    """Test BLEU above validation ECE, a column a loss: mean over seeds, and each seed as dots.

    The larger marks are the highest BLEU and the least ECE of the mean; the vertical line is temperature 1. The axis of
    BLEU need not begin at 0.

    Returns:
        The figure; None if no model was trained, or all diverged.
    """
    curves = records.translation_curves
    if curves.empty:
        return None
    with style():
        figure = Figure(figsize=(WIDTH, 3.6), layout="constrained")
        grid = figure.subplots(len(ROWS), len(ARMS), sharex=True, sharey="row")
        for line, (quantity, label), colour in zip(grid, ROWS.items(), sns.color_palette(PALETTE), strict=False):
            for axes, arm in zip(line, ARMS, strict=True):
                _panel(axes, curves[curves["arm"] == arm], quantity, colour)
            line[0].set_ylabel(label)
        grid[-1, 0].set_ylim(0, None)
        for axes, letter, name in zip(grid[0], ascii_lowercase, ARMS.values(), strict=False):
            axes.set_title(f"({letter}) {name}")
        for axes in grid[-1]:
            axes.set_xlabel("temperature")
    return figure


def _panel(axes: Axes, rows: pd.DataFrame, quantity: str, colour: tuple[float, float, float]) -> None:
    axes.axvline(1, color="0.6", linewidth=0.8, linestyle=":")
    if rows.empty:
        axes.text(0.5, 0.5, "diverged", transform=axes.transAxes, ha="center")
        return
    mean = _UNITS * rows.groupby("temperature")[quantity].mean()
    temperatures, values = mean.index.to_numpy(float), mean.to_numpy(float)
    best = int(values.argmax() if quantity == "bleu" else values.argmin())
    axes.plot(rows["temperature"], _UNITS * rows[quantity], ".", color=colour, alpha=0.5, markersize=4)
    axes.plot(temperatures, values, color=colour, linewidth=1.2)
    axes.plot(temperatures[best], values[best], "o", color=colour, markersize=5)

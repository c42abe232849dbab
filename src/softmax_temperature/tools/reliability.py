"""Reliability diagrams of a user's own predictions."""

import textwrap
from collections.abc import Mapping
from statistics import NormalDist
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from softmax_temperature.metrics import ReliabilityBins
from softmax_temperature.papers.shared.figures import (
    HUES,
    LETTER,
    SMALLEST,
    WIDTH,
    style,
)

# Maximum width of a panel in inches, so that a single panel does not fill the page.
MAX_PANEL_WIDTH = 3.4
# Width of the labels on the left, in inches.
AXIS_WIDTH = 0.6
# Height of titles, labels and the legend together, in inches.
MARGINS = 1.8
# Height of the lower row, as a fraction of the upper row.
SHARE_HEIGHT = 0.4
# Confidence level of the bars' intervals.
LEVEL = 0.90
Floats = NDArray[np.float64]


def reliability_diagram(
    tables: Mapping[str, ReliabilityBins], *, title: str | None = None
) -> Figure:
    """Draw the reliability diagrams of `tables` side by side, titled with their keys.

    The upper row shows each bin's accuracy, with Wilson's 90 % interval, and its gap to
    the bin's mean confidence. A gap above a bar shows overconfidence, and a gap inside
    a bar underconfidence. The expected calibration error, in the title, is the mean
    absolute gap, weighted by samples. The lower row shows each bin's share of the
    samples, on a logarithmic scale, because most samples are usually in the last bin.
    """
    count = len(tables)
    width = min(WIDTH, MAX_PANEL_WIDTH * count)
    letters = int(72 * (width - AXIS_WIDTH) / count / (LETTER * SMALLEST))
    with style():
        height = (1 + SHARE_HEIGHT) * (width - AXIS_WIDTH) / count + MARGINS
        figure = Figure(figsize=(width, height), layout="constrained")
        rows = figure.subplots(
            2,
            count,
            sharex=True,
            sharey="row",
            squeeze=False,
            height_ratios=[1, SHARE_HEIGHT],
        )
        for upper, lower, (name, table) in zip(*rows, tables.items(), strict=True):
            _reliability(upper, lower, table)
            error = float((table.shares * table.gaps.abs()).sum())
            text = f"{textwrap.fill(name, letters)}\nECE {100 * error:.2f} %"
            upper.set_title(text, parse_math=False)
        rows[0, 0].set(ylabel="accuracy (%)", xlim=(0, 100), ylim=(0, 100))
        fewest = min(1 / int(table.counts.sum()) for table in tables.values())
        rows[1, 0].set(ylabel="samples (%, log)", yscale="log", ylim=(50 * fewest, 100))
        rows[1, 0].yaxis.set_major_formatter("{x:g}")
        entries: list[Any] = []
        for axes in rows[:, 0]:
            handles, labels = axes.get_legend_handles_labels()
            entries += zip(handles, labels, strict=True)
        # Put bars before lines in the legend.
        entries.sort(key=lambda entry: isinstance(entry[0], Line2D))
        figure.legend(
            *zip(*entries, strict=True),
            loc="outside lower center",
            ncols=min(2, count),
        )
        if title is not None:
            figure.suptitle(title, parse_math=False)
    return figure


def _reliability(upper: Axes, lower: Axes, table: ReliabilityBins) -> None:
    parts = (table.edges, table.accuracy, table.confidence, table.shares)
    edges, accuracy, confidence, shares = (100 * part.cpu().numpy() for part in parts)
    place: Any = {
        "x": edges[:-1],
        "width": np.diff(edges),
        "align": "edge",
        "linewidth": 0.4,
    }
    blue = HUES[0]
    orange = HUES[1]
    red = HUES[3]
    sky = HUES[9]
    upper.bar(height=accuracy, color=blue, edgecolor="white", label="accuracy", **place)
    # Hatch the two kinds of gap differently, so that they can also be told apart
    # without colours.
    looks = (
        (1, "above", (*orange, 0.45), red, "/////"),
        (-1, "below", sky, blue, "\\\\\\\\\\"),
    )
    for sign, side, face, edge, hatch in looks:
        gap = np.where(
            sign * (confidence - accuracy) > 0, confidence - accuracy, np.nan
        )
        look: Any = {
            "facecolor": face,
            "edgecolor": edge,
            "hatch": hatch,
            "label": f"confidence {side} accuracy",
        }
        upper.bar(height=gap, bottom=accuracy, **place, **look)
    upper.plot(
        [0, 100],
        [0, 100],
        color="0.2",
        linewidth=0.9,
        linestyle="--",
        label="perfect calibration",
    )
    filled = (table.counts > 0).numpy()
    right = table.accuracy.numpy()[filled]
    low, high = _wilson(right, table.counts.numpy()[filled])
    # Clip at 0, because rounding may make the distance to an end slightly negative.
    reach = 100 * np.stack([right - low, high - right]).clip(min=0)
    look = {
        "fmt": "none",
        "ecolor": "0.1",
        "elinewidth": 0.9,
        "capsize": 1.5,
        "label": "90 % interval of a bar",
    }
    upper.errorbar(
        (edges[:-1] + np.diff(edges) / 2)[filled], 100 * right, reach, **look
    )
    lower.bar(height=shares, color="0.6", edgecolor="white", **place)
    for values, label, line in (
        (table.accuracy, "overall accuracy", "-"),
        (table.confidence, "mean confidence", ":"),
    ):
        overall = 100 * (table.shares * values.nan_to_num(0.0)).sum().item()
        lower.axvline(overall, color="0.1", linewidth=1.2, linestyle=line, label=label)
    lower.set(xlabel="confidence (%)")


def _wilson(shares: Floats, counts: NDArray[Any]) -> tuple[Floats, Floats]:
    """Wilson's interval at `LEVEL` for shares of `counts` samples.

    scipy.stats also has this interval, but its import takes longer than the whole
    report.
    """
    quantile = NormalDist().inv_cdf((1 + LEVEL) / 2)
    squared = quantile**2 / counts
    centre = (shares + squared / 2) / (1 + squared)
    spread = np.sqrt(squared * (shares * (1 - shares) + squared / 4)) / (1 + squared)
    return centre - spread, centre + spread

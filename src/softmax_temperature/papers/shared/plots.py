"""What all figures share: the look, panels, bands of seeds, reliability diagrams, files equal when the numbers are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image
from scipy.stats import binomtest

from softmax_temperature.runner.artifacts import atomic_file

if TYPE_CHECKING:
    from softmax_temperature.metrics import ReliabilityBins

FONT = "DejaVu Sans"  # shipped with matplotlib, so that figures are the same on every machine
WIDTH = 7.0  # inches: the text width of a printed page
PALETTE = "colorblind"
HUES = sns.color_palette(PALETTE)  # Not "C0": lines look such names up when they are drawn, outside the style.
PERCENT = 100
MOST_WIDTH = 3.4  # inches a panel: a single one is not stretched over the page
AXIS_WIDTH = 0.6  # inches for the labels on the left
MARGINS = 1.8  # inches of height for titles, labels and the legend
SHARE_HEIGHT = 0.4  # of the upper row's
BLACK, WARNING = "0.15", "#b2182b"
_STYLE: Any = {  # the stubs list every key there is; seaborn's styles are plain dictionaries
    "figure.dpi": 110,
    "savefig.dpi": 160,
    "savefig.bbox": "tight",
    "font.family": FONT,
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.hashsalt": "softmax-temperature",
}


@contextmanager
def style() -> Iterator[None]:
    """Draw in the project's style inside the block or the decorated function; nothing outside it changes."""
    _use_matplotlibs_own_fonts()
    look: Any = {**sns.axes_style("ticks"), **sns.plotting_context("paper", font_scale=1.0), **_STYLE}
    with mpl.rc_context(look), sns.color_palette(PALETTE):
        yield


def panels(
    count: int, *, columns: int = 3, width: float = WIDTH, row: float = 2.5, extra: float = 0.0, **options: Any
) -> tuple[Figure, list[Axes]]:
    """A figure with panels in rows of at most `columns`; sizes, `extra` for titles and legends, are in inches."""
    rows = -(-count // columns)
    figure = Figure(figsize=(width, row * rows + extra), layout="constrained")
    grid = list(figure.subplots(rows, min(columns, count), squeeze=False, **options).ravel())
    for axes in grid[count:]:
        axes.set_visible(False)
    return figure, grid[:count]


def label_outside(grid: list[Axes], *, columns: int = 3, x: str = "", y: str = "") -> None:
    """Name the axes of a grid of `panels` once: x below the last panel of each column, y left of each row."""
    columns = min(columns, len(grid))
    for axes in grid[-columns:] if x else ():
        axes.set_xlabel(x)
        axes.tick_params(labelbottom=True)
    for axes in grid[::columns] if y else ():
        axes.set_ylabel(y)


def legend_below(
    figure: Figure, entries: Axes | list[Any], *, columns: int, title: str | None = None, **options: Any
) -> Figure:
    """The figure with a legend under all panels, of the entries of one of them or of the artists given, and a title."""
    handles = entries if isinstance(entries, list) else entries.get_legend_handles_labels()[0]
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, **options)
    if title is not None:
        figure.suptitle(title, fontsize=10)
    return figure


def entry(label: str, **look: Any) -> Line2D:
    """A line or mark for a legend."""
    return Line2D([], [], label=label, **look)


def band(axes: Axes, rows: pd.DataFrame, x: str, y: str, *, scale: float = 1.0, **look: Any) -> None:
    """Mean over rows of equal x as a line, standard deviation as a band; of logarithms on a logarithmic axis."""
    to, back = (np.log, np.exp) if axes.get_yscale() == "log" else (np.asarray, np.asarray)
    values = pd.Series(to(scale * rows[y].to_numpy(float))).groupby(rows[x].to_numpy())
    mean, sd = values.mean(), values.std()
    axes.plot(mean.index, back(mean), **{"linewidth": 1.2, **look})
    if sd.notna().any():
        axes.fill_between(mean.index, back(mean - sd), back(mean + sd), color=look["color"], alpha=0.15, linewidth=0)


def seeds(axes: Axes, rows: pd.DataFrame, x: str, y: str, *, color: Any, label: str | None = None) -> None:
    """Each row as a circle and the means of equal x as dots on a line, in percent."""
    axes.scatter(rows[x], PERCENT * rows[y], s=12, facecolor="none", edgecolor=color, linewidth=0.7)
    means = (PERCENT * rows[y]).groupby(rows[x]).mean()
    axes.plot(means.index, means, color=color, linewidth=1.2, marker="o", markersize=3.5, label=label)


def encoded(figure: Figure, ending: str) -> bytes:
    """The file of a figure, "svg" or "png", in bytes that are equal when the numbers are.

    Notebooks are kept in Git with their pictures, and 256 colours look the same in a third of the bytes.
    """
    _use_matplotlibs_own_fonts()
    buffer = BytesIO()
    with mpl.rc_context(_STYLE):
        figure.savefig(buffer, format=ending, metadata={"Date": None} if ending == "svg" else {"Software": None})
    if ending == "png":
        picture, buffer = Image.open(buffer).convert("RGB"), BytesIO()
        picture.quantize(256).save(buffer, "png", optimize=True)
    return buffer.getvalue()


def save(figure: Figure, folder: Path, name: str, endings: Sequence[str] = ("svg", "png")) -> None:
    """Write a figure into a folder, a file for each ending."""
    for ending in endings:
        with atomic_file(folder / f"{name}.{ending}") as file:
            file.write(encoded(figure, ending))


def _use_matplotlibs_own_fonts() -> None:
    """Use the fonts that matplotlib ships: other releases draw letters differently, and a stale font list warns."""
    fonts = font_manager.fontManager
    own = {str(path) for path in Path(mpl.get_data_path(), "fonts", "ttf").glob("*.ttf")}
    fonts.ttflist = [each for each in fonts.ttflist if each.name != FONT or each.fname in own]
    for path in sorted(own - {each.fname for each in fonts.ttflist}):
        fonts.addfont(path)


def reliability_diagram(tables: Mapping[str, ReliabilityBins], *, title: str | None = None) -> Figure:
    """Panels by title: above, the accuracy of each bin and its gap to the mean confidence; below, its samples.

    The expected calibration error, in the title, averages the hatched gaps, weighted by samples. A gap on top of a bar
    is overconfidence, one inside it the opposite. Samples are on a logarithmic scale, because most are in the last bin.
    Each bar has the 90 % interval (Wilson's) of its accuracy.
    """
    count, width = len(tables), min(WIDTH, MOST_WIDTH * len(tables))
    with style():
        height = (1 + SHARE_HEIGHT) * (width - AXIS_WIDTH) / count + MARGINS
        figure = Figure(figsize=(width, height), layout="constrained")
        rows = figure.subplots(2, count, sharex=True, sharey="row", squeeze=False, height_ratios=[1, SHARE_HEIGHT])
        for upper, lower, (name, table) in zip(*rows, tables.items(), strict=True):
            _reliability(upper, lower, table)
            error = float((table.shares * table.gaps.abs()).sum())
            upper.set_title(f"{name}\nECE {100 * error:.2f} %", parse_math=False)
        rows[0, 0].set(ylabel="accuracy (%)", xlim=(0, 100), ylim=(0, 100))
        fewest = min(1 / int(table.counts.sum()) for table in tables.values())
        rows[1, 0].set(ylabel="samples (%, log)", yscale="log", ylim=(50 * fewest, 100))
        rows[1, 0].yaxis.set_major_formatter("{x:g}")
        entries = [entry for axes in rows[:, 0] for entry in zip(*axes.get_legend_handles_labels(), strict=True)]
        entries.sort(key=lambda entry: isinstance(entry[0], Line2D))  # Those of bars first.
        figure.legend(*zip(*entries, strict=True), loc="outside lower center", ncols=min(3, 1 + count), fontsize=7)
        if title is not None:
            figure.suptitle(title, fontsize=10, parse_math=False)
    return figure


def _reliability(upper: Axes, lower: Axes, table: ReliabilityBins) -> None:
    parts = (table.edges, table.accuracy, table.confidence, table.shares)
    edges, accuracy, confidence, shares = (100 * part.cpu().numpy() for part in parts)
    place: Any = {"x": edges[:-1], "width": np.diff(edges), "align": "edge", "linewidth": 0.4}
    blue, orange, red, sky = (sns.color_palette()[number] for number in (0, 1, 3, 9))
    upper.bar(height=accuracy, color=blue, edgecolor="white", label="accuracy", **place)
    # Hatched two ways, so that they can be told apart without colours.
    looks = ((1, "above", (*orange, 0.45), red, "/////"), (-1, "below", sky, blue, "\\\\\\\\\\"))
    for sign, side, face, edge, hatch in looks:
        gap = np.where(sign * (confidence - accuracy) > 0, confidence - accuracy, np.nan)
        look: Any = {"facecolor": face, "edgecolor": edge, "hatch": hatch, "label": f"confidence {side} accuracy"}
        upper.bar(height=gap, bottom=accuracy, **place, **look)
    upper.plot([0, 100], [0, 100], color="0.2", linewidth=0.9, linestyle="--", label="perfect calibration")
    filled = (table.counts > 0).numpy()
    right, counts = table.accuracy.numpy()[filled], table.counts.numpy()[filled]
    bounds = [binomtest(round(a * n), n).proportion_ci(0.9, "wilson") for a, n in zip(right, counts, strict=True)]
    reach = 100 * np.abs(np.array(bounds).T - right)
    look = {"fmt": "none", "ecolor": "0.1", "elinewidth": 0.9, "capsize": 1.5, "label": "90 % interval of a bar"}
    upper.errorbar((edges[:-1] + np.diff(edges) / 2)[filled], 100 * right, reach, **look)
    lower.bar(height=shares, color="0.6", edgecolor="white", **place)
    for values, label, line in ((table.accuracy, "overall accuracy", "-"), (table.confidence, "mean confidence", ":")):
        overall = 100 * (table.shares * values.nan_to_num(0.0)).sum().item()
        lower.axvline(overall, color="0.1", linewidth=1.2, linestyle=line, label=label)
    lower.set(xlabel="confidence (%)")

"""Tools for the figures of all papers: style, panels, bands over seeds, and files.

Equal numbers give equal files.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import matplotlib.style
import numpy as np
from matplotlib import font_manager, rcsetup
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from PIL import Image

from softmax_temperature.runner.artifacts import atomic_file

if TYPE_CHECKING:
    import pandas as pd

FONT = "DejaVu Sans"
"""The font. matplotlib ships it, so text looks the same on every machine."""
WIDTH = 5.0
"""The width of a figure in inches, unless the figure sets its own width.

On a phone, whose window is 420 CSS pixels wide, a figure is about 376 pixels wide.
There the smallest text, of `SMALLEST` points, is 9 pixels tall.
"""
SMALLEST = 9.0
"""The size of the smallest text in a figure, in points."""
LETTER = 0.57
"""The mean width of a letter, as a multiple of the font size."""
# seaborn's palette "colorblind". These are colours, not names such as "C0", because a
# name is looked up only when the figure is drawn, after the style has been reset.
HUES = tuple(
    to_rgb(color)
    for color in (
        "#0173b2",
        "#de8f05",
        "#029e73",
        "#d55e00",
        "#cc78bc",
        "#ca9161",
        "#fbafe4",
        "#949494",
        "#ece133",
        "#56b4e9",
    )
)
DPI = 160
"""The resolution of a png, in pixels per inch."""
PERCENT = 100
WIDE_GAP = 2
"""A curve is interrupted between two evaluated epochs if the distance between them is
more than `WIDE_GAP` times the usual distance.
"""
BLACK = "0.15"
WARNING = "#b2182b"
# The type is Any, because matplotlib's stubs accept only the keys that they list.
_SAVED: Any = {
    "figure.dpi": 110,
    "savefig.dpi": DPI,
    "savefig.bbox": "tight",
    "font.family": FONT,
    "font.size": SMALLEST,
    "axes.titlesize": SMALLEST,
    "figure.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.hashsalt": "softmax-temperature",
}
# Files are written without times and versions, because these can differ even if the
# numbers are equal.
_METADATA: Any = {"svg": {"Date": None}, "png": {"Software": None}}
# These are seaborn's style "ticks" and its context "paper", which scales the sizes of
# the context "notebook" by 0.8. Only our font, the font sizes and the hidden spines
# differ from them.
_DRAWN: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": ".15",
    "axes.labelcolor": ".15",
    "axes.labelsize": SMALLEST,
    "axes.linewidth": 0.8 * 1.25,
    "axes.prop_cycle": rcsetup.cycler("color", HUES),
    "grid.color": ".8",
    "grid.linewidth": 0.8,
    "legend.fontsize": SMALLEST,
    "legend.title_fontsize": SMALLEST,
    "lines.linewidth": 0.8 * 1.5,
    "lines.markersize": 0.8 * 6,
    "lines.solid_capstyle": "round",
    "patch.edgecolor": "w",
    "patch.force_edgecolor": True,
    "patch.linewidth": 0.8,
    "text.color": ".15",
    "xtick.color": ".15",
    "xtick.labelsize": SMALLEST,
    "xtick.major.size": 0.8 * 6,
    "xtick.major.width": 0.8 * 1.25,
    "xtick.minor.size": 0.8 * 4,
    "xtick.minor.width": 0.8,
    "ytick.color": ".15",
    "ytick.labelsize": SMALLEST,
    "ytick.major.size": 0.8 * 6,
    "ytick.major.width": 0.8 * 1.25,
    "ytick.minor.size": 0.8 * 4,
    "ytick.minor.width": 0.8,
    **_SAVED,
}


def colour(hue: int | None) -> Any:
    """The colour at index `hue` of the palette; black for None."""
    return BLACK if hue is None else HUES[hue]


@contextmanager
def style() -> Iterator[None]:
    """Use the project's style inside the `with` block or the decorated function.

    Afterwards matplotlib's settings are the same as before, except its list of fonts
    (see `_use_matplotlibs_own_fonts`).
    """
    with _settings(_DRAWN):
        yield


@contextmanager
def _settings(look: Any) -> Iterator[None]:
    """Use matplotlib's own defaults and `look`, instead of the user's matplotlibrc."""
    _use_matplotlibs_own_fonts()
    with mpl.style.context(["default", look]):
        yield


def panels(
    count: int,
    *,
    columns: int = 2,
    width: float = WIDTH,
    row: float = 2.5,
    extra: float = 0.0,
    **options: Any,
) -> tuple[Figure, list[Axes]]:
    """Create a figure with `count` panels, in rows of at most `columns` panels.

    Args:
        count: The number of panels.
        columns: The largest number of panels in a row.
        width: The width of the figure in inches.
        row: The height of each row in inches.
        extra: Additional height for titles and legends, in inches.
        options: Arguments of `Figure.subplots`.
    """
    rows = -(-count // columns)
    figure = Figure(figsize=(width, row * rows + extra), layout="constrained")
    grid = list(
        figure.subplots(rows, min(columns, count), squeeze=False, **options).ravel()
    )
    for axes in grid[count:]:
        axes.set_visible(False)
    return figure, grid[:count]


def label_outside(
    grid: list[Axes], *, columns: int = 2, x: str = "", y: str = ""
) -> None:
    """Label the axes of the panels in `grid`, which `panels` created.

    `x` is written below the last panel of each column, and `y` to the left of each row.
    """
    columns = min(columns, len(grid))
    for axes in grid[-columns:] if x else ():
        axes.set_xlabel(x)
        axes.tick_params(labelbottom=True)
    for axes in grid[::columns] if y else ():
        axes.set_ylabel(y)


def legend_below(
    figure: Figure,
    entries: Axes | list[Any],
    *,
    columns: int,
    title: str | None = None,
    **options: Any,
) -> Figure:
    """Add a legend below all panels and, if given, a title above; return the figure.

    Args:
        figure: The figure.
        entries: The artists to list in the legend, or a panel whose labelled artists
            are listed.
        columns: The number of columns of the legend. Fewer are used if the legend would
            be wider than the figure.
        title: The title; None for no title.
        options: Arguments of `Figure.legend`.
    """
    handles = (
        entries if isinstance(entries, list) else entries.get_legend_handles_labels()[0]
    )
    options = {"loc": "outside lower center", "columnspacing": 1.2, **options}
    for count in range(columns, 0, -1):
        legend = figure.legend(handles=handles, ncols=count, **options)
        if count == 1 or legend.get_window_extent().width <= figure.bbox.width:
            break
        legend.remove()
    if title is not None:
        headline(figure, title)
    return figure


def headline(figure: Figure, text: str) -> None:
    """Write a title above all panels, wrapped to the width of the figure."""
    letters = round(
        72 * figure.get_figwidth() / (LETTER * mpl.rcParams["figure.titlesize"])
    )
    lines = [textwrap.fill(line, letters) for line in text.splitlines()]
    figure.suptitle("\n".join(lines))


def entry(label: str, **look: Any) -> Line2D:
    """Create a line or a mark that is drawn only in a legend."""
    return Line2D([], [], label=label, **look)


def band(
    axes: Axes, rows: pd.DataFrame, x: str, y: str, *, scale: float = 1.0, **look: Any
) -> None:
    """Draw means over rows with equal x as a line, and standard deviations as a band.

    If the vertical axis is logarithmic, mean and standard deviation are computed from
    logarithms.
    """
    lines = _means(axes, rows, x, y, scale)
    _line_with_band(axes, lines, {"linewidth": 1.2, **look})


def over_epochs(
    axes: Axes, rows: pd.DataFrame, y: str, *, scale: float = 1.0, **look: Any
) -> None:
    """Draw a band over epochs, with gaps between distant epochs.

    If a study skipped epochs, dots mark the evaluated epochs. A line ends if the next
    evaluated epoch is more than `WIDE_GAP` times the usual distance away. An isolated
    epoch is drawn as a dot with a vertical line for the standard deviation.
    """
    lines = _means(axes, rows, "epoch", y, scale)
    distances = np.diff(lines.index.to_numpy(float))
    usual = 1.0
    if len(distances):
        # If there are two middle distances, the smaller one is the usual distance:
        # three epochs have only two distances, and the larger one may be a gap.
        usual = float(np.quantile(distances, 0.5, method="lower"))
    breaks = np.flatnonzero(distances > WIDE_GAP * usual) + 1
    look = {"linewidth": 1.2, **look}
    label = look.pop("label", None)
    if (distances > 1).any():
        look = {"marker": "o", "markersize": 2, **look}
    for place, part in enumerate(np.split(np.arange(len(lines)), breaks)):
        # Label only one part of the line, so that the legend has one entry for all
        # parts.
        _line_with_band(
            axes, lines.iloc[part], {**look, "label": None if place else label}
        )


def _means(
    axes: Axes, rows: pd.DataFrame, x: str, y: str, scale: float
) -> pd.DataFrame:
    """The mean for each x, and the ends of its band, which are NaN for a single row."""
    import pandas as pd

    is_logarithmic = axes.get_yscale() == "log"
    numbers = scale * rows[y].to_numpy(float)
    if is_logarithmic:
        numbers = np.log(numbers)
    groups = pd.Series(numbers).groupby(rows[x].to_numpy())
    lines = pd.DataFrame({"mean": groups.mean()})
    sd = groups.std()
    lines["low"] = lines["mean"] - sd
    lines["high"] = lines["mean"] + sd
    return lines.map(np.exp) if is_logarithmic else lines


def _line_with_band(axes: Axes, lines: pd.DataFrame, look: dict[str, Any]) -> None:
    axes.plot(lines.index, lines["mean"], **look)
    if lines["low"].isna().all():
        return
    if len(lines) == 1:
        axes.vlines(
            lines.index,
            lines["low"],
            lines["high"],
            color=look["color"],
            alpha=0.5,
            linewidth=1.5,
        )
        return
    axes.fill_between(
        lines.index,
        lines["low"],
        lines["high"],
        color=look["color"],
        alpha=0.15,
        linewidth=0,
    )


def seeds(
    axes: Axes,
    rows: pd.DataFrame,
    x: str,
    y: str,
    *,
    color: Any,
    label: str | None = None,
) -> None:
    """Draw each row as a circle, and the means for each x as connected dots.

    Values of `y` are fractions, and are drawn as percentages.
    """
    axes.scatter(
        rows[x],
        PERCENT * rows[y],
        s=12,
        facecolor="none",
        edgecolor=color,
        linewidth=0.7,
    )
    means = (PERCENT * rows[y]).groupby(rows[x]).mean()
    axes.plot(
        means.index,
        means,
        color=color,
        linewidth=1.2,
        marker="o",
        markersize=3.5,
        label=label,
    )


MANY = 12
"""Maximum number of texts of one kind, such as titles, that the alt text lists."""


def described(figure: Figure) -> str:
    """The alternative text of a figure, one sentence per element.

    The text gives the title, the finding (the figure's label), the panels, the axes
    with their named ticks, the entries of legends, the last values of curves over
    epochs, and the numbers in a panel's own legend. Elements that a figure does not
    have are left out.
    """
    panels = [axes for axes in figure.axes if axes.get_visible()]
    titles = _distinct(axes.get_title() or axes.get_title("left") for axes in panels)
    across = _distinct(axes.get_xlabel() for axes in panels)
    up = _distinct([figure.get_supylabel(), *(axes.get_ylabel() for axes in panels)])
    ticks = [
        tick.get_text()
        for axes in panels
        for tick in (*axes.get_yticklabels(), *axes.get_xticklabels())
    ]
    # Skip ticks that are numbers, which may be set as formulas.
    places = _distinct(text for text in ticks if text[:1].isalpha())
    legends = [*figure.legends, *(axes.get_legend() for axes in panels)]
    texts = [
        text for legend in legends if legend is not None for text in legend.get_texts()
    ]
    shown = _distinct(text.get_text() for text in texts if not _is_number(text))
    finding = str(figure.get_label()).rstrip(".")
    sentences = [_words(figure.get_suptitle()), finding]
    if len(titles) == 1:
        sentences.append(titles[0])
    elif titles:
        sentences.append(f"Panels: {_listed(titles)}")
    if up:
        sentences.append(f"Vertical: {_listed(up)}")
    if across:
        sentences.append(f"Horizontal: {_listed(across)}")
    if places:
        sentences.append(f"Along the axes: {_listed(places)}")
    if shown:
        sentences.append(f"Shown: {_listed(shown)}")
    sentences += filter(None, map(_ends, panels))
    sentences += filter(None, map(_numbers, panels))
    return " ".join(f"{sentence}." for sentence in sentences if sentence)


def _is_number(text: Text) -> bool:
    return re.fullmatch(r"[\d.]+( ± [\d.]+)?", text.get_text()) is not None


def _ends(axes: Axes) -> str:
    """The last value of each named curve over epochs in a panel, as text.

    The text is "" if the panel has no such curve.
    """
    if "epoch" not in axes.get_xlabel():
        return ""
    ends = []
    for line in axes.get_lines():
        values = np.asarray(line.get_ydata(), dtype=float)
        values = values[np.isfinite(values)]
        name = str(line.get_label())
        if len(values) > 2 and not name.startswith("_"):
            ends.append(f"{_words(name)} {values[-1]:.3g}")
    if not ends:
        return ""
    place = axes.get_title() or axes.get_title("left") or axes.get_ylabel()
    return f"At the end of {_words(place) or 'the curves'}: {'; '.join(ends)}"


def _numbers(axes: Axes) -> str:
    """Write the numbers in a panel's own legend as text; "" if it has none."""
    legend = axes.get_legend()
    entries = legend.get_texts() if legend is not None else []
    numbers = [_words(text.get_text()) for text in entries if _is_number(text)]
    title = _words(axes.get_title() or axes.get_title("left"))
    return f"{title}: {'; '.join(numbers)}" if numbers else ""


def _distinct(texts: Iterable[str]) -> list[str]:
    """The `texts`, cleaned by `_words`, without repeated and empty ones."""
    return list(dict.fromkeys(filter(None, map(_words, texts))))


def _words(text: str) -> str:
    """Join the lines of a text in a figure, and remove the markup of formulas."""
    plain = re.sub(r"[${}]|\\(?=\w)", "", text)
    return " ".join(plain.replace("_", "").split())


def _listed(texts: Sequence[str]) -> str:
    """Join the first `MANY` texts with semicolons, and add the number of the others."""
    if len(texts) <= MANY:
        return "; ".join(texts)
    rest = len(texts) - MANY
    return f"{'; '.join(texts[:MANY])}; and {rest} others"


def encoded(figure: Figure, ending: str) -> bytes:
    """The bytes of a figure's file, "svg" or "png"; equal numbers give equal bytes.

    A png has at most 256 colours: it looks the same as with all colours, but takes a
    third of the bytes. The size matters because Git keeps the notebooks with their
    pictures.
    """
    metadata = _METADATA[ending]
    buffer = BytesIO()
    # Do not use `style` here: it would change the sizes of the ticks that matplotlib
    # creates only when it draws.
    with _settings(_SAVED):
        figure.savefig(buffer, format=ending, metadata=metadata)
    return _png(Image.open(buffer)) if ending == "png" else buffer.getvalue()


def encoded_untrimmed(figure: Figure) -> dict[str, bytes]:
    """The bytes of a figure's files, "png" and "svg", with the margins of its layout.

    `savefig` draws a figure twice for each file, once to measure what to trim, and
    computes its layout each time. This function draws once for each file and computes
    the layout once. The figure keeps that layout.
    """
    svg = BytesIO()
    with _settings(_SAVED):
        figure.set_dpi(mpl.rcParams["savefig.dpi"])
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        picture = Image.fromarray(np.asarray(canvas.buffer_rgba()))
        # Without a layout engine, artists keep their positions from the first drawing.
        figure.set_layout_engine("none")
        FigureCanvasSVG(figure).print_svg(svg, metadata=_METADATA["svg"])
    return {"png": _png(picture), "svg": svg.getvalue()}


def _png(picture: Image.Image) -> bytes:
    """Encode `picture` as a png with at most 256 colours."""
    buffer = BytesIO()
    picture.convert("RGB").quantize(256).save(buffer, "png", optimize=True)
    return buffer.getvalue()


def save(
    figure: Figure, folder: Path, name: str, endings: Sequence[str] = ("svg", "png")
) -> None:
    """Write a figure into a folder, one file per format."""
    for ending in endings:
        with atomic_file(folder / f"{name}.{ending}") as file:
            file.write(encoded(figure, ending))


def _use_matplotlibs_own_fonts() -> None:
    """Use the fonts that matplotlib ships.

    Other releases of a font draw letters differently, and a stale list of fonts causes
    warnings.
    """
    fonts = font_manager.fontManager
    folder = Path(mpl.get_data_path(), "fonts", "ttf")
    shipped = {str(path) for path in folder.glob("*.ttf")}
    fonts.ttflist = [
        font for font in fonts.ttflist if font.name != FONT or font.fname in shipped
    ]
    listed = {font.fname for font in fonts.ttflist}
    for path in sorted(shipped - listed):
        fonts.addfont(path)

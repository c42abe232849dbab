"""What all figures share: the look, the colours, and files that are equal byte for byte when the numbers are."""

from __future__ import annotations

from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import seaborn as sns
from matplotlib import font_manager

from softmax_temperature.runner.artifacts import atomic_file

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.figure import Figure

FONT = "DejaVu Sans"  # shipped with matplotlib, so that figures are the same on every machine
WIDTH = 7.0  # inches: the text width of a printed page
PALETTE = "colorblind"
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
    "svg.fonttype": "path",
}


@contextmanager
def style() -> Iterator[None]:
    """Draw in the project's style inside the block; nothing outside it changes."""
    _use_matplotlibs_own_fonts()
    look: Any = {**sns.axes_style("ticks"), **sns.plotting_context("paper", font_scale=1.0), **_STYLE}
    with mpl.rc_context(look), sns.color_palette(PALETTE):
        yield


def save(figure: Figure, folder: Path, name: str) -> Path:
    """Write a figure as SVG and PNG.

    Args:
        figure: what to write.
        folder: where to; made when absent.
        name: without ending.

    Returns:
        The path of the PNG.
    """
    _use_matplotlibs_own_fonts()
    for ending, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
        buffer = BytesIO()
        with mpl.rc_context(_STYLE):
            figure.savefig(buffer, format=ending, metadata=metadata)
        with atomic_file(folder / f"{name}.{ending}") as file:
            file.write(buffer.getvalue())
    return folder / f"{name}.png"


def _use_matplotlibs_own_fonts() -> None:
    """Put the fonts that matplotlib ships in the place of other releases of them, or of none.

    A system may have one, which matplotlib then prefers; it numbers and draws some letters otherwise. And the list of
    fonts that matplotlib keeps for a user may be that of another installation, which it then warns of in the notebook.
    """
    fonts = font_manager.fontManager
    own = {str(path) for path in Path(mpl.get_data_path(), "fonts", "ttf").glob("*.ttf")}
    fonts.ttflist = [each for each in fonts.ttflist if each.name != FONT or each.fname in own]
    for path in sorted(own - {each.fname for each in fonts.ttflist}):
        fonts.addfont(path)

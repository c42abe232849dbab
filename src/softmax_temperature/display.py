"""Tables and figures as a notebook shows them, the same bytes from run to run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from IPython.display import HTML, Image

from softmax_temperature.plots import save

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import pandas as pd
    from matplotlib.figure import Figure

SCREEN_WIDTH = 760  # CSS pixels


def shown(table: pd.DataFrame, name: str, *, percent: Sequence[str] = (), digits: int = 3) -> HTML:
    """A table for a reader: fractions in percent where named, missing values as a dash, text escaped.

    Args:
        table: what to show.
        name: unique in the notebook; pandas would otherwise draw a random one, and no two runs would be equal.
        percent: columns that hold fractions and are shown in percent.
        digits: after the point, for the other numbers; whole ones have none, and small ones as many as it takes to show
            one. Those in percent have one.
    """
    table = table.rename(columns={column: f"{column} (%)" for column in percent})
    for column in percent:
        table[f"{column} (%)"] = 100 * table[f"{column} (%)"]
    numbers = table.select_dtypes("number").columns
    formats: Any = {column: _percent if str(column).endswith("(%)") else _number(digits) for column in numbers}
    styler = table.style.format(formats, na_rep="–", escape="html").hide(axis="index").set_uuid(name)
    styler.set_table_styles([{"selector": "th, td", "props": "text-align: left"}])
    return HTML(styler.to_html())  # type: ignore[no-untyped-call]


def drawn(figure: Figure, results: Path, name: str) -> Image:
    """Write a figure into the folder `figures` of a paper's results, and show it.

    Args:
        figure: what to draw.
        results: the paper's folder.
        name: of the files, without ending.
    """
    path = save(figure, results / "figures", name)
    return Image(data=path.read_bytes(), format="png", width=SCREEN_WIDTH)  # type: ignore[no-untyped-call]


def _percent(value: float) -> str:
    return f"{value:.1f}"


def _number(digits: int) -> Callable[[float], str]:
    def text(value: float) -> str:
        if float(value).is_integer():
            return f"{value:.0f}"
        rounded = f"{value:.{digits}f}"
        return rounded if float(rounded) else f"{value:.1g}"

    return text

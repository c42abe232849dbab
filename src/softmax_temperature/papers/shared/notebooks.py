"""Tables and figures as a notebook shows them, the same bytes from run to run."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
from IPython.display import HTML, Image, Markdown
from matplotlib.figure import Figure
from pandas.io.formats.style import Styler

from softmax_temperature.papers.shared.figures import WIDTH, encoded, save
from softmax_temperature.papers.shared.layout import MISSING
from softmax_temperature.papers.shared.sources import CELLS, Linked, link
from softmax_temperature.papers.shared.tables import DATA_MISSING, NOT_RUN

SCREEN_WIDTH = 760  # CSS pixels of a figure as wide as a page
NOTHING = "*Nothing was trained for this in this profile.*"


def found(results: str) -> Path:
    """The folder of a paper's results, from any folder of the project."""
    return next(
        (
            root / results
            for root in (Path(), *Path.cwd().parents)
            if (root / results).is_dir()
        ),
        Path(results),
    )


def shown(
    table: pd.DataFrame,
    name: str,
    *,
    percent: Sequence[str] = (),
    digits: int = 3,
    numbers: Sequence[str] | None = None,
) -> HTML | Markdown:
    """A table for a reader, as HTML.

    Missing values are a dash, and text is escaped. Printed numbers that were not run
    are folded away below the rest. A column `cells` is not shown: numbers link to the
    records of these cells.

    Args:
        table: The table.
        name: Its name, unique in the notebook: pandas would otherwise draw one.
        percent: The columns that hold fractions and are shown in percent.
        digits: Digits after the point. Whole numbers have none, small ones as many as
            show one.
        numbers: The columns that are linked; None for all that hold numbers.
    """
    if table.empty:
        return Markdown(NOTHING)  # type: ignore[no-untyped-call]
    texts = table.drop(columns=CELLS, errors="ignore")
    numeric = [
        column
        for column in texts
        if column in percent or texts[column].dtype.kind in "iuf"
    ]
    linked = numeric if numbers is None else numbers
    unlinked = [None] * len(table)
    sources = table.get(CELLS, unlinked)
    for column in texts:
        cells = sources if column in linked else unlinked
        places = digits if column in numeric else None
        values = zip(texts[column], cells, strict=True)
        texts[column] = [
            _text(value, cell, places, column in percent) for value, cell in values
        ]
    texts = texts.rename(columns={column: f"{column} (%)" for column in percent})
    return HTML(_folded(texts, name))  # type: ignore[no-untyped-call]


def _folded(texts: pd.DataFrame, name: str) -> str:
    """The HTML of a table, with the rows that were not run folded away."""
    if "status" not in texts:
        return _html(texts, name)
    status = texts["status"].astype(str)
    absent = status.str.startswith(NOT_RUN)
    names = " ".join(map(str, texts))
    if "published" not in names and "printed" not in names:
        # A table of ours is short, and has nothing printed to fold away.
        absent &= status != DATA_MISSING
    count = absent.sum()
    if count == 0:
        return _html(texts, name)
    summary = "A printed row, not run here"
    if count > 1:
        summary = f"{count} printed rows that were not run here"
    rows = _html(texts[absent], f"{name}-not-run")
    folded = f"<details><summary>{summary}</summary>{rows}</details>"
    if absent.all():
        return folded
    return _html(texts[~absent], name) + folded


def drawn(
    figure: Figure | None, results: Path, name: str, otherwise: str = ""
) -> Image | Markdown:
    """Write a figure into `figures` of a paper's results as SVG, and show it.

    If there is no figure, show the text `otherwise`.
    """
    if figure is None:
        text = f"*{otherwise}*" if otherwise else NOTHING
        return Markdown(text)  # type: ignore[no-untyped-call]
    save(figure, results / "figures", name, ["svg"])
    width = round(SCREEN_WIDTH * figure.get_figwidth() / WIDTH)
    picture = encoded(figure, "png")
    return Image(picture, format="png", width=width)  # type: ignore[no-untyped-call]


def _html(texts: pd.DataFrame, name: str) -> str:
    """A table of HTML, without columns that hold nothing."""
    is_empty = texts.isin(["", MISSING]).all()
    styler = Styler(texts.loc[:, ~is_empty], cell_ids=False)
    styler = styler.format_index(escape="html", axis=1).hide(axis="index")
    styler = styler.set_uuid(name).set_table_styles(
        [{"selector": "th, td", "props": "text-align: left"}]
    )
    return styler.to_html()


def _text(value: Any, cells: Any, digits: int | None, is_percent: bool) -> str:
    """A value with its link; `digits` is None for what is no number."""
    if pd.isna(value):
        return MISSING
    if digits is None:
        text = escape(str(value))
    elif is_percent:
        text = f"{100 * value:.1f}"
    else:
        text = _rounded(value, digits)
    if isinstance(value, Linked):
        cells = value.cells
    if isinstance(cells, str) and cells and text != MISSING:
        return link(text, cells)
    return text


def _rounded(value: float, digits: int) -> str:
    """A whole number without digits after the point; no number becomes 0."""
    if float(value).is_integer():
        return f"{value:.0f}"
    text = f"{value:.{digits}f}"
    return text if float(text) else f"{value:.1g}"

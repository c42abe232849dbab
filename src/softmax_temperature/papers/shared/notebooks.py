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
from softmax_temperature.papers.shared.tables import NOT_RUN

SCREEN_WIDTH = 760  # CSS pixels of a figure as wide as a page
NOTHING = "*Nothing was trained for this in this profile.*"


def found(results: str) -> Path:
    """The folder of a paper's results, seen from the project's root or from a folder
    inside it.
    """
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
    """A table for a reader: missing values as a dash, text escaped, what was not run
    folded away below the rest.

    A column `cells` is not shown: numbers (or the columns that `numbers` names) link to
    the records of the cells that they come from. Columns in `percent` hold fractions.
    Whole numbers have no `digits` after the point, small ones as many as show one.
    `name` is unique in the notebook; pandas would otherwise draw a random one.
    """
    if table.empty:
        return Markdown(NOTHING)  # type: ignore[no-untyped-call]
    texts = table.drop(columns=CELLS, errors="ignore")
    in_numbers = [
        column
        for column in texts
        if column in percent or texts[column].dtype.kind in "iuf"
    ]
    sources = table[CELLS] if CELLS in table else [None] * len(table)
    for column in texts:
        cells = (
            sources
            if column in (in_numbers if numbers is None else numbers)
            else [None] * len(table)
        )
        form = digits if column in in_numbers else None
        values = zip(texts[column], cells, strict=True)
        texts[column] = [
            _text(value, cell, form, column in percent) for value, cell in values
        ]
    texts = texts.rename(columns={column: f"{column} (%)" for column in percent})
    if (
        "status" not in texts
        or not (absent := texts["status"].astype(str).str.startswith(NOT_RUN)).any()
    ):
        return HTML(_html(texts, name))  # type: ignore[no-untyped-call]
    said = (
        f"{absent.sum()} printed rows that were not run here"
        if absent.sum() > 1
        else "A printed row, not run here"
    )
    folded = f"<details><summary>{said}</summary>{_html(texts[absent], f'{name}-not-run')}</details>"
    return HTML((_html(texts[~absent], name) if not absent.all() else "") + folded)  # type: ignore[no-untyped-call]


def drawn(
    figure: Figure | None, results: Path, name: str, otherwise: str = ""
) -> Image | Markdown:
    """Write a figure into `figures` of a paper's results as SVG, and show it; where
    there is none, say `otherwise`.
    """
    if figure is None:
        return Markdown(f"*{otherwise}*" if otherwise else NOTHING)  # type: ignore[no-untyped-call]
    save(figure, results / "figures", name, ["svg"])
    width = round(SCREEN_WIDTH * figure.get_figwidth() / WIDTH)
    return Image(data=encoded(figure, "png"), format="png", width=width)  # type: ignore[no-untyped-call]


def _html(texts: pd.DataFrame, name: str) -> str:
    """A table of HTML, without columns that hold nothing."""
    some = texts.loc[
        :, [column for column in texts if not texts[column].isin(["", MISSING]).all()]
    ]
    styler = (
        Styler(some, cell_ids=False)
        .format_index(escape="html", axis=1)
        .hide(axis="index")
        .set_uuid(name)
    )
    return styler.set_table_styles(
        [{"selector": "th, td", "props": "text-align: left"}]
    ).to_html()


def _text(value: Any, cells: Any, digits: int | None, is_percent: bool) -> str:
    """A value with its link; `digits` is None for what is no number."""
    if pd.isna(value):
        return MISSING
    text = escape(str(value))
    if digits is not None:
        rounded = f"{value:.{digits}f}"
        rounded = (
            f"{value:.0f}"
            if float(value).is_integer()
            else rounded
            if float(rounded)
            else f"{value:.1g}"
        )
        text = f"{100 * value:.1f}" if is_percent else rounded
    cells = value.cells if isinstance(value, Linked) else cells
    return (
        link(text, cells)
        if isinstance(cells, str) and cells and text != MISSING
        else text
    )

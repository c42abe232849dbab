"""Provenance of values: the names of cells, which lead to rows in `records.json`.

Claims, tables and notebooks name the cells behind their values. A name consists of the
stage and the cell's name in the stage, separated by a slash. A name without its last
parts refers to all cells that match the remaining parts: a name without the seed refers
to the cells of all seeds.
"""

import re
from collections.abc import Callable, Iterable
from html import escape
from typing import Self
from urllib.parse import quote, unquote

import pandas as pd

# The column of a table that has the names of the cells behind each row.
CELLS = "cells"
# The file, next to a paper's notebook, that has the records of all cells.
RECORDS = "records.json"
_SEPARATOR = "; "
_ADDRESS = re.compile(rf'href="{re.escape(RECORDS)}#([^"]*)"')


class Linked(str):
    """A text in a table, with the names of the cells behind it (see `together`)."""

    cells: str

    def __new__(cls, text: str, cells: str) -> Self:
        """Create the text with the names of its cells, of which there may be none."""
        linked = super().__new__(cls, text)
        linked.cells = cells
        return linked


def cell_of_each(stage: str, rows: pd.DataFrame, *columns: str) -> list[str]:
    """The common name of each row's cells: `stage`, then the values in `columns`."""
    names = rows[list(columns)].map(
        lambda part: f"{part:g}" if isinstance(part, int | float) else str(part)
    )
    return ["/".join([stage, *name]) for name in names.itertuples(index=False)]


def cells_of(stage: str, rows: pd.DataFrame, *columns: str) -> tuple[str, ...]:
    """The names from `cell_of_each`, without repetitions."""
    return tuple(dict.fromkeys(cell_of_each(stage, rows, *columns)))


def together(cells: Iterable[str]) -> str:
    """Join the names of cells into one text for a table, without repetitions."""
    return _SEPARATOR.join(dict.fromkeys(cells))


def apart(text: str) -> tuple[str, ...]:
    """Split a text that `together` wrote into the names of cells."""
    return tuple(filter(None, text.split(_SEPARATOR)))


def link(html: str, cells: str) -> str:
    """Link a number, given as HTML, to the records of the cells behind it.

    Args:
        html: The number.
        cells: Names of the cells, from `together`.
    """
    return f'<a href="{RECORDS}#{quote(cells)}">{html}</a>'


def relinked(html: str, address: Callable[[str], str]) -> str:
    """Replace the addresses of the links to records in HTML.

    Args:
        html: HTML with links from `link`.
        address: Function that returns a link's new address from the names of its cells.
    """

    def replace(match: re.Match[str]) -> str:
        cells = unquote(match[1])
        return f'href="{escape(address(cells))}"'

    return _ADDRESS.sub(replace, html)

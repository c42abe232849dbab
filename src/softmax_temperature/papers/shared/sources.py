"""What a number comes from: the records of all cells in `records.json`, and the names
of cells beside the number.

A name (stage and own name) stands beside numbers in claims, tables and notebooks. It
means all cells whose names begin with it: that of several seeds leaves the seed out.
"""

import re
from collections.abc import Callable, Iterable
from html import escape
from typing import Self
from urllib.parse import quote, unquote

import pandas as pd

CELLS = "cells"  # The column of a table that says what the numbers of a row come from.
# The file beside a paper's notebook that has the records of all cells.
RECORDS = "records.json"
_SEPARATOR = "; "
_ADDRESS = re.compile(rf'href="{re.escape(RECORDS)}#([^"]*)"')


class Linked(str):
    """A text of a table, with the cells behind it as `together` names them; empty where
    nothing is.
    """

    cells: str

    def __new__(cls, text: str, cells: str) -> Self:
        """The text with its cells."""
        made = super().__new__(cls, text)
        made.cells = cells
        return made


def cell_of_each(stage: str, rows: pd.DataFrame, *columns: str) -> list[str]:
    """The name of the cell of each row of the records; `columns` is what it is named
    after, in order, without seed.
    """
    names = rows[list(columns)].map(
        lambda part: f"{part:g}" if isinstance(part, int | float) else str(part)
    )
    return ["/".join([stage, *name]) for name in names.itertuples(index=False)]


def cells_of(stage: str, rows: pd.DataFrame, *columns: str) -> tuple[str, ...]:
    """The same names, each once."""
    return tuple(dict.fromkeys(cell_of_each(stage, rows, *columns)))


def together(cells: Iterable[str]) -> str:
    """The names of several cells, each once, as a table holds them."""
    return _SEPARATOR.join(dict.fromkeys(cells))


def apart(text: str) -> tuple[str, ...]:
    """The names that `together` put in one text."""
    return tuple(filter(None, text.split(_SEPARATOR)))


def link(html: str, cells: str) -> str:
    """HTML that leads from a number in a notebook to the records of its cells, named as
    by `together`.
    """
    return f'<a href="{RECORDS}#{quote(cells)}">{html}</a>'


def relinked(html: str, address: Callable[[str], str]) -> str:
    """The HTML with such links leading to other addresses, each made from the cells
    that the link names.
    """
    return _ADDRESS.sub(
        lambda found: f'href="{escape(address(unquote(found[1])))}"', html
    )

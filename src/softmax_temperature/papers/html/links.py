"""Where a number leads: to the records of the cells behind it, on the page of its paper."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from softmax_temperature.papers.shared.sources import CELLS, apart, linked, relinked
from softmax_temperature.runner.artifacts import digest_of_text

if TYPE_CHECKING:
    from softmax_temperature.papers.html.model import Paper
    from softmax_temperature.papers.html.records import Group

PAGES = "pages"
SHORT = 12
"""Characters of a digest that tell it from all others here."""


def address(cells: str, *, paper: Paper, folder: str = f"{PAGES}/") -> str:
    """Of the cells' own place, of the list of several, or of the whole page where it is not known which they are.

    Args:
        cells: as `sources.together` names them.
        paper: whose.
        folder: from the page with the link to that of the records, with a slash at its end.
    """
    groups = paper.records.behind(apart(cells))
    page = f"{folder}{paper.slug}-records.html"
    if not groups:
        return page
    return f"{page}#{groups[0].anchor if len(groups) == 1 else anchor(cells)}"


def with_addresses(html: str, *, paper: Paper, folder: str = f"{PAGES}/") -> str:
    """What a notebook shows, its links to records as links to their page."""
    return relinked(html, partial(address, paper=paper, folder=folder))


def several(paper: Paper) -> dict[str, list[Group]]:
    """What numbers of the tables come from that have more than one group of cells behind them."""
    named = [cells for one in paper.comparisons for cells in one.numbers.get(CELLS, []) if isinstance(cells, str)]
    named += [cells for table in paper.tables for cells in linked(table.html)]
    found = {cells: paper.records.behind(apart(cells)) for cells in named}
    return {cells: groups for cells, groups in found.items() if len(groups) > 1}


def anchor(cells: str) -> str:
    """The name of the place that lists several groups of cells."""
    return f"numbers-{digest_of_text(cells)[:SHORT]}"

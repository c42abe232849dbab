"""Where numbers and claims lead: to the records of the cells behind them, on the page of their paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from softmax_temperature.papers.html.model import Group, Paper, Profile
from softmax_temperature.papers.shared.sources import CELLS, apart, linked, relinked
from softmax_temperature.runner.artifacts import digest_of_text

PAGES = "pages"
SHORT = 12
"""Characters of a digest that tell it from all others here."""


@dataclass(frozen=True)
class Score:
    """A row of the scorecard.

    Attributes:
        claim: a row of `claims.json`.
        paper: its slug.
        records: address of what its number comes from.
        place: address of the paper's part of the profile's page.
        rank: of the claim among the paper's.
    """

    claim: dict[str, Any]
    paper: str
    records: str
    place: str
    rank: int


def scores(profile: Profile, *, folder: str = "") -> list[Score]:
    """One row per claim of a profile; `folder` is the path from the page to the profile, with a slash at its end."""
    pairs = [(paper, rank, claim) for paper in profile.papers for rank, claim in enumerate(paper.claims)]
    return [
        Score(
            claim=claim,
            paper=paper.slug,
            records=f"{folder}pages/{paper.slug}-records.html" + (f"#{anchor(claim)}" if behind(paper, claim) else ""),
            place=f"{folder}index.html#{paper.slug}" if folder else f"#{paper.slug}",
            rank=rank,
        )
        for paper, rank, claim in pairs
    ]


def tallies(profiles: Sequence[Profile]) -> dict[tuple[str, str], Counter[str]]:
    """How many claims have each verdict, by profile and paper."""
    return {
        (profile.name, paper.slug): Counter(claim["verdict"] for claim in paper.claims)
        for profile in profiles
        for paper in profile.papers
    }


def behind(paper: Paper, claim: dict[str, Any]) -> list[Group]:
    """The records that a claim's number comes from."""
    return paper.records.behind(claim.get("cells", ()))


def anchor(claim: dict[str, Any]) -> str:
    """The name of a claim's place on the page of records."""
    return f"claim-{claim['id']}"


def address(cells: str, *, paper: Paper, folder: str = f"{PAGES}/") -> str:
    """The place of the cells, of the list of several groups, or the whole page where the cells are not known.

    Args:
        cells: as `sources.together` names them.
        paper: whose.
        folder: from the page with the link to that of the records, with a slash at its end.
    """
    groups = paper.records.behind(apart(cells))
    page = f"{folder}{paper.slug}-records.html"
    if not groups:
        return page
    return f"{page}#{groups[0].anchor if len(groups) == 1 else anchor_of_numbers(cells)}"


def with_addresses(html: str, *, paper: Paper, folder: str = f"{PAGES}/") -> str:
    """HTML of a notebook, its links to records as links to their page."""
    return relinked(html, partial(address, paper=paper, folder=folder))


def several(paper: Paper) -> dict[str, list[Group]]:
    """The groups behind each number of the tables that has more than one group of cells behind it."""
    named = [cells for one in paper.comparisons for cells in one.numbers.get(CELLS, []) if isinstance(cells, str)]
    named += [cells for table in paper.tables for cells in linked(table.html)]
    found = {cells: paper.records.behind(apart(cells)) for cells in named}
    return {cells: groups for cells, groups in found.items() if len(groups) > 1}


def anchor_of_numbers(cells: str) -> str:
    """The name of the place that lists several groups of cells."""
    return f"numbers-{digest_of_text(cells)[:SHORT]}"

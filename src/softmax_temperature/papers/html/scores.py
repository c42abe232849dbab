"""The rows of the scorecard, and how many claims hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from softmax_temperature.papers.shared.claims import VERDICTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softmax_temperature.papers.html.model import Paper, Profile
    from softmax_temperature.papers.html.records import Group


@dataclass(frozen=True)
class Score:
    """A claim in a profile.

    Attributes:
        claim: a row of `claims.json`.
        paper: its slug.
        records: address of what its number comes from.
        place: address of the paper's part of the profile's page.
        number: its place among the paper's claims.
    """

    claim: dict[str, Any]
    paper: str
    records: str
    place: str
    number: int


def scores(profile: Profile, *, folder: str = "") -> list[Score]:
    """A row for each claim of a profile.

    Args:
        profile: whose.
        folder: from the page to the profile's folder, with a slash at its end.
    """
    pairs = [(paper, number, claim) for paper in profile.papers for number, claim in enumerate(paper.claims)]
    return [
        Score(
            claim=claim,
            paper=paper.slug,
            records=f"{folder}pages/{paper.slug}-records.html" + (f"#{anchor(claim)}" if behind(paper, claim) else ""),
            place=f"{folder}index.html#{paper.slug}" if folder else f"#{paper.slug}",
            number=number,
        )
        for paper, number, claim in pairs
    ]


def behind(paper: Paper, claim: dict[str, Any]) -> list[Group]:
    """The records that a claim's number comes from; none where the results are older than such records."""
    return paper.records.behind(claim.get("cells", ()))


def anchor(claim: dict[str, Any]) -> str:
    """The name of a claim's place on the page of records."""
    return f"claim-{claim['id']}"


def tallies(profiles: Sequence[Profile]) -> dict[tuple[str, str], dict[str, int]]:
    """How many "claims" there are, and how many of each verdict, by profile and paper."""
    return {(profile.name, paper.slug): _tally(paper.claims) for profile in profiles for paper in profile.papers}


def _tally(claims: list[dict[str, Any]]) -> dict[str, int]:
    counts = Counter(claim["verdict"] for claim in claims)
    return {"claims": len(claims), **{verdict: counts[verdict] for verdict in VERDICTS}}

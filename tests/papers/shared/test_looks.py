"""The protocol lists the same numbers of looks at the data as the claims declare."""

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from softmax_temperature.papers.shared.records import claims_of
from softmax_temperature.papers.shared.results import PAPERS

HEADING = "## Looks at today's data"
COLUMNS = ["study", "looks", "part", "data", "claims"]
ALL_PARTS = "all"


class Look(NamedTuple):
    """The number of looks at a claim's data in a study, or at one part of the claim."""

    claim: str
    study: str
    part: str
    looks: int


def listed_looks(page: str) -> list[Look]:
    """Read the looks from the table of the page, one for each claim of each row."""
    section = page.partition(f"{HEADING}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    header, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in lines
    ]
    assert header == COLUMNS
    looks = []
    for study, count, part, _, claims in rows:
        for claim in claims.split(", "):
            assert re.fullmatch(r"`[\w.-]+`", claim), claim
            looks.append(Look(claim.strip("`"), study.strip("`"), part, int(count)))
    return looks


def declared_looks() -> list[Look]:
    """The looks of all claims of all papers; a single look is not listed."""
    looks = []
    for paper in PAPERS:
        for claim in claims_of(paper):
            for study, count in claim.looks.items():
                if count > 1:
                    looks.append(Look(claim.id, study, ALL_PARTS, count))
            for study, parts in claim.looks_of_parts.items():
                looks += [
                    Look(claim.id, study, part, count) for part, count in parts.items()
                ]
    return looks


def test_claims_and_protocol_have_the_same_looks(project_root: Path) -> None:
    listed = listed_looks((project_root / "docs" / "protocol.md").read_text())
    declared = declared_looks()
    repeated = [look for look, count in Counter(listed).items() if count > 1]
    assert not repeated, "listed twice"
    assert set(listed) - set(declared) == set(), "in docs/protocol.md only"
    assert set(declared) - set(listed) == set(), "in claims.py only"

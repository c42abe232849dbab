"""The folder `results/`: files of each profile and paper, and the claims in them."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

from softmax_temperature.papers.shared.claims import (
    DIRECTIONS_ONLY,
    HOLDS,
    VERDICTS,
    task_count,
)
from softmax_temperature.params import Paper
from softmax_temperature.runner.errors import InputError

PAPERS: tuple[str, ...] = get_args(Paper)
RESULTS = Path("results")
PARAMETERS = "params.yaml"
CLAIMS = "claims.json"
ENVIRONMENT = "environment.json"
# Folder beside the papers' folders, with the contents that the report shows.
SHOWN = "shown"


def paper_folder(profile: str, paper: str) -> Path:
    """The folder of one paper's results in one profile."""
    return RESULTS / profile / paper


def read_json(path: Path) -> Any:
    """The content of a JSON file, or None if there is no such file."""
    if not path.is_file():
        return None
    return json.loads(path.read_text(encoding="utf-8"))


def profiles_with_results(results: Path = RESULTS) -> list[str]:
    """Sorted names of the profiles that have claims of at least one paper.

    Raises:
        InputError: If there are none.
    """
    profiles = sorted({path.parts[-3] for path in results.glob(f"*/*/{CLAIMS}")})
    if not profiles:
        raise InputError(
            "no results of any paper",
            where=str(results),
            remedy="Run `dvc repro` in the root folder.",
        )
    return profiles


def best_evidence(results: Path = RESULTS) -> dict[str, list[list[dict[str, Any]]]]:
    """Claims per paper, each with its rows in all studies, best evidence first.

    A decided row comes before an inconclusive one, which comes before an untested one;
    among equals, the row with more values per task comes first. Decided claims come
    before open ones, and otherwise keep their order. Profiles that show directions only
    are not studies.
    """
    studies = [
        profile
        for profile in profiles_with_results(results)
        if profile not in DIRECTIONS_ONLY
    ]
    evidence: dict[str, list[list[dict[str, Any]]]] = {}
    for paper in PAPERS:
        claims: dict[str, list[dict[str, Any]]] = {}
        for study in studies:
            for row in read_json(results / study / paper / CLAIMS) or []:
                claims.setdefault(row["id"], []).append(row)
        ranked = [sorted(rows, key=rank) for rows in claims.values()]
        evidence[paper] = sorted(ranked, key=_rank_of_claim)
    return evidence


def _rank_of_claim(rows: list[dict[str, Any]]) -> int:
    """The verdict's rank of a claim, from its ranked rows."""
    verdict_rank, _ = rank(rows[0])
    return verdict_rank


def rank(row: dict[str, Any]) -> tuple[int, float]:
    """Sort key of rows: decided verdicts first, then more values per task."""
    # The first two verdicts are both decided.
    verdict_rank = max(0, VERDICTS.index(row["verdict"]) - 1)
    values_per_task = (row["n"] or 0) / max(1, task_count(row))
    return verdict_rank, -values_per_task


def tally(rows: Iterable[dict[str, Any]]) -> str:
    """Number of rows with each verdict, as "5 hold, 2 inconclusive"."""
    counts = Counter(
        "hold" if row["verdict"] == HOLDS else row["verdict"] for row in rows
    )
    return ", ".join(
        f"{counts[verdict]} {verdict}"
        for verdict in ("hold", *VERDICTS)
        if counts[verdict]
    )

"""The folder `results/`: by profile and paper what a run leaves there, and the
scorecard of all claims in it.
"""

import json
from collections import Counter
from collections.abc import Iterable
from itertools import chain
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
PARAMETERS, CLAIMS, ENVIRONMENT = "params.yaml", "claims.json", "environment.json"
# Beside the papers' folders: of each the contents, which the report is made of.
SHOWN = "shown"


def paper_folder(profile: str, paper: str) -> Path:
    """The folder of one paper's results in one profile."""
    return RESULTS / profile / paper


def read_json(path: Path) -> Any:
    """What a JSON file below results/ holds; None where there is none."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def profiles_with_results(results: Path = RESULTS) -> list[str]:
    """The profiles that have claims of at least one paper, sorted; an `InputError` if
    there is none.
    """
    found = sorted({path.parts[-3] for path in results.glob(f"*/*/{CLAIMS}")})
    if not found:
        raise InputError(
            "no results of any paper",
            where=str(results),
            remedy="Run `dvc repro` in the root folder.",
        )
    return found


def best_evidence(results: Path = RESULTS) -> dict[str, list[list[dict[str, Any]]]]:
    """By paper, of each claim its rows in all studies, the best evidence first; then
    the claims, decided ones first.

    A decided row is better than an inconclusive one, and that better than none; of
    equal ones, that of more values a task. Claims that are equally decided keep their
    order. Profiles that show directions only are no studies.
    """
    studies = [
        profile
        for profile in profiles_with_results(results)
        if profile not in DIRECTIONS_ONLY
    ]
    found: dict[str, list[list[dict[str, Any]]]] = {}
    for paper in PAPERS:
        claims: dict[str, list[dict[str, Any]]] = {}
        for row in chain.from_iterable(
            read_json(results / study / paper / CLAIMS) or [] for study in studies
        ):
            claims.setdefault(row["id"], []).append(row)
        found[paper] = sorted(
            (sorted(rows, key=rank) for rows in claims.values()),
            key=lambda rows: rank(rows[0])[0],
        )
    return found


def rank(row: dict[str, Any]) -> tuple[int, float]:
    """Sorts rows by their evidence: decided ones come first, then those of more values
    a task.
    """
    return max(0, VERDICTS.index(row["verdict"]) - 1), -(row["n"] or 0) / max(
        1, task_count(row)
    )


def tally(rows: Iterable[dict[str, Any]]) -> str:
    """How many rows have each verdict, as "5 hold, 2 inconclusive"."""
    found = Counter(
        "hold" if row["verdict"] == HOLDS else row["verdict"] for row in rows
    )
    return ", ".join(
        f"{found[verdict]} {verdict}"
        for verdict in ("hold", *VERDICTS)
        if found[verdict]
    )

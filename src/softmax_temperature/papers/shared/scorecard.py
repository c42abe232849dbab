"""The scorecard: one row per claim, with its best evidence; docs/scorecard.md."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from softmax_temperature.papers.shared.claims import DIRECTIONS_ONLY, HOLDS, NOT_TESTED, VERDICTS, texts
from softmax_temperature.papers.shared.results import CLAIMS, PAPERS, RESULTS, read_json
from softmax_temperature.runner.artifacts import write_text
from softmax_temperature.runner.errors import InputError

OPEN, CLOSE = "<!-- scorecard -->", "<!-- /scorecard -->"
_COLUMNS = ["verdict", "claim", "where", "printed", "ours", "must lie", "study", "also"]


def profiles_with_results(results: Path = RESULTS) -> list[str]:
    """The profiles that have claims of at least one paper, sorted; an `InputError` if there is none."""
    found = sorted({path.parts[-3] for path in results.glob(f"*/*/{CLAIMS}")})
    if not found:
        raise InputError("no results of any paper", where=str(results), remedy="Run `dvc repro` in the root folder.")
    return found


def all_claims(results: Path = RESULTS) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """By profile and paper, the claims with their verdicts, as the papers' stages wrote them."""
    return {
        profile: {paper: found for paper in PAPERS if (found := read_json(results / profile / paper / CLAIMS))}
        for profile in profiles_with_results(results)
    }


def best_evidence(results: Path = RESULTS) -> dict[str, list[list[dict[str, Any]]]]:
    """By paper, of each claim its rows in all studies, the best evidence first; claims with the best evidence first.

    A decided row is better than an inconclusive one, and that better than none; of equal ones, that of more values.
    Profiles that show directions only are no studies.
    """
    studies = [papers for profile, papers in all_claims(results).items() if profile not in DIRECTIONS_ONLY]
    found: dict[str, dict[str, list[dict[str, Any]]]] = {paper: {} for paper in PAPERS}
    for paper, claims in found.items():
        for row in sorted((row for study in studies for row in study.get(paper, [])), key=rank):
            claims.setdefault(row["id"], []).append(row)
    return {paper: list(claims.values()) for paper, claims in found.items()}


def rank(row: dict[str, Any]) -> tuple[int, int]:
    """Sorts rows by their evidence: decided ones come first, then those of more values."""
    return max(0, VERDICTS.index(row["verdict"]) - 1), -(row["n"] or 0)


def tally(rows: Iterable[dict[str, Any]]) -> str:
    """How many rows have each verdict, as "5 hold, 2 inconclusive"."""
    found = Counter("hold" if row["verdict"] == HOLDS else row["verdict"] for row in rows)
    return ", ".join(f"{found[verdict]} {verdict}" for verdict in ("hold", *VERDICTS) if found[verdict])


def scorecard(results: Path = RESULTS) -> str:
    """A Markdown table for each paper: a row per claim with its best evidence; other studies' verdicts beside it."""
    parts = []
    for paper, claims in best_evidence(results).items():
        parts.append(f"### {paper.replace('_', ' ').capitalize()}: {tally(rows[0] for rows in claims) or 'no study'}")
        lines = [_COLUMNS, ["---"] * len(_COLUMNS)] if claims else []
        for best, *others in claims:
            also = [f"{row['profile']}: {texts(row)['verdict']}" for row in others if row["verdict"] != NOT_TESTED]
            said = texts(best) | {"study": best["profile"], "also": "; ".join(also) or "–"}
            said |= {"verdict": f"**{said['verdict']}**"} | ({"ours": best["note"]} if best["value"] is None else {})
            lines.append([said[name].replace("|", "/") for name in _COLUMNS])
        parts += ["\n".join(f"| {' | '.join(line)} |" for line in lines)] if lines else []
    return "\n\n".join(parts)


def write_scorecard(path: Path, results: Path = RESULTS) -> None:
    """Put the scorecard between the markers `<!-- scorecard -->` and `<!-- /scorecard -->` of a Markdown file."""
    before, found, rest = path.read_text(encoding="utf-8").partition(OPEN)
    _, closed, after = rest.partition(CLOSE)
    if not closed:
        remedy = f"Put {OPEN} and {CLOSE} around the place where it shall stand."
        raise InputError("no scorecard markers", where=str(path), remedy=remedy)
    write_text(path, f"{before}{found}\n{scorecard(results)}\n{closed}{after}")

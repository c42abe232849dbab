"""The scorecard: one row per claim, with its best evidence, and how good the criteria are; docs/scorecard.md."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from softmax_temperature.papers.shared.claims import DIRECTIONS_ONLY, NOT_TESTED, VERDICTS, measured, region, verdict
from softmax_temperature.papers.shared.power import power_table
from softmax_temperature.papers.shared.results import PAPERS, RESULTS, read_claims
from softmax_temperature.runner.artifacts import write_text
from softmax_temperature.runner.errors import InputError

START, END = "<!-- scorecard -->", "<!-- /scorecard -->"
POWER_START, POWER_END = "<!-- power -->", "<!-- /power -->"
_COLUMNS = ("verdict", "claim", "where", "printed", "ours", "must lie", "study", "also")


def profiles_with_results(results: Path = RESULTS) -> list[str]:
    """The profiles that have claims of at least one paper, sorted.

    Raises:
        InputError: there is none.
    """
    found = sorted({path.parts[-3] for path in results.glob("*/*/claims.json")})
    if not found:
        remedy = "Run `dvc repro` first, in the project's root folder."
        raise InputError("no results of any paper", where=str(results), remedy=remedy)
    return found


def all_claims(results: Path = RESULTS) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """By profile and paper, the claims with their verdicts, as the papers' stages wrote them."""
    return {
        profile: {paper: found for paper in PAPERS if (found := read_claims(results / profile / paper))}
        for profile in profiles_with_results(results)
    }


def best_evidence(results: Path = RESULTS) -> list[list[dict[str, Any]]]:
    """Of each claim its rows in all studies, the best evidence first; claims with the best evidence first.

    A decided row is better than an inconclusive one, and that better than none; of equal ones, that of more values.
    Profiles that show directions only are no studies.
    """
    rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for profile, papers in all_claims(results).items():
        for paper, claims in papers.items():
            for claim in claims if profile not in DIRECTIONS_ONLY else ():
                rows.setdefault((paper, claim["id"]), []).append(claim)
    return sorted((sorted(some, key=_rank) for some in rows.values()), key=lambda some: _rank(some[0]))


def scorecard(results: Path = RESULTS) -> str:
    """A Markdown table: one row per claim with its best evidence, and the verdicts of other studies beside it."""
    lines = [f"| {' | '.join(_COLUMNS)} |", "|---" * len(_COLUMNS) + "|"]
    return "\n".join(lines + [_line(some[0], some[1:]) for some in best_evidence(results)])


def power(results: Path = RESULTS) -> str:
    """A Markdown table: how often each criterion says "holds" without an effect, and at the printed or measured one."""
    table = power_table([some[0] for some in best_evidence(results)])
    lines = [f"| {' | '.join(table.columns)} |", "|---" * len(table.columns) + "|"]
    return "\n".join(lines + [f"| {' | '.join(map(str, row))} |" for row in table.itertuples(index=False)])


def write_scorecard(path: Path, results: Path = RESULTS) -> None:
    """Replace what stands between the markers in a Markdown file; the table of power, if it has markers for one.

    Raises:
        InputError: the file has no markers of a scorecard, or is not text.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read ({error})", where=str(path), remedy="Give a text in UTF-8.") from error
    if START not in text or END not in text.partition(START)[2]:
        remedy = f"Put {START} and {END} around the place where it shall stand."
        raise InputError("no scorecard markers", where=str(path), remedy=remedy)
    text = _replaced(text, START, END, lambda: scorecard(results))
    write_text(path, _replaced(text, POWER_START, POWER_END, lambda: power(results)))


def _replaced(text: str, start: str, end: str, make: Callable[[], str]) -> str:
    before, found, rest = text.partition(start)
    _, closed, after = rest.partition(end)
    return f"{before}{start}\n{make()}\n{end}{after}" if found and closed else text


def _rank(row: dict[str, Any]) -> tuple[int, int]:
    order = {name: max(0, place - 1) for place, name in enumerate(VERDICTS)}  # Holds and contradicted are equal.
    return order.get(row["verdict"], 1), -(row["n"] or 0)


def _line(best: dict[str, Any], others: list[dict[str, Any]]) -> str:
    also = [f"{row['profile']}: {verdict(row)}" for row in others if row["verdict"] != NOT_TESTED]
    cells = {
        "verdict": f"**{verdict(best)}**",
        "claim": best["statement"],
        "where": f"`{best['paper']}`, {best['where']}",
        "printed": "–" if best["published"] is None else f"{best['published']:g}",
        "ours": measured(best) if best["value"] is not None else best["note"],
        "must lie": region(best),
        "study": best["profile"],
        "also": "; ".join(also) or "–",
    }
    return f"| {' | '.join(str(cells[name]).replace('|', '/') for name in _COLUMNS)} |"

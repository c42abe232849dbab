"""The scorecard: every claim of every paper over all profiles that have results; the README's first table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from softmax_temperature.papers.shared.claims import measured, verdict, with_scope
from softmax_temperature.papers.shared.results import PAPERS, RESULTS, read_claims
from softmax_temperature.runner.artifacts import write_text
from softmax_temperature.runner.errors import InputError

START, END = "<!-- scorecard -->", "<!-- /scorecard -->"


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


def scorecard(results: Path = RESULTS) -> str:
    """A Markdown table: one row a claim, one column a profile; "not run" where a profile has no results of a paper.

    A verdict against a claim whose interval includes the bound of the criterion says so; so do the profiles that show
    directions only.
    """
    profiles = profiles_with_results(results)
    headings = [with_scope(profile, profile) for profile in profiles]
    lines = [f"| claim | where | printed | {' | '.join(headings)} |", "|---|---|---|" + "---|" * len(profiles)]
    for paper in PAPERS:
        rows = {profile: _claims(results, profile, paper) for profile in profiles}
        known = next((found for found in rows.values() if found), {})
        lines += [
            _line(paper, claim, [rows[profile].get(name) for profile in profiles]) for name, claim in known.items()
        ]
    return "\n".join(lines)


def all_claims(results: Path = RESULTS) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """By profile and paper, the claims with their verdicts, as the papers' stages wrote them."""
    return {
        profile: {paper: list(found.values()) for paper in PAPERS if (found := _claims(results, profile, paper))}
        for profile in profiles_with_results(results)
    }


def write_scorecard(readme: Path, results: Path = RESULTS) -> None:
    """Replace what stands between the markers in a Markdown file.

    Raises:
        InputError: the file has no such markers, or is not text.
    """
    try:
        text = readme.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read ({error})", where=str(readme), remedy="Give a text in UTF-8.") from error
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise InputError(
            "no scorecard markers", where=str(readme), remedy=f"Put {START} and {END} where it shall stand."
        )
    write_text(readme, f"{before}{START}\n{scorecard(results)}\n{END}{after}")


def _claims(results: Path, profile: str, paper: str) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in read_claims(results / profile / paper)}


def _line(paper: str, claim: dict[str, Any], found: list[dict[str, Any] | None]) -> str:
    printed = "–" if claim["published"] is None else f"{claim['published']:g}"
    cells = [f"**{verdict(row)}** {measured(row)}".strip(" –") if row else "not run" for row in found]
    return f"| {claim['statement']} | `{paper}`, {claim['where']} | {printed} | {' | '.join(cells)} |"

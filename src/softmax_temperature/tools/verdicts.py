"""The scorecard of all claims in `results/`, and rejudging from the records there."""

import textwrap
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from softmax_temperature.papers.shared import results
from softmax_temperature.papers.shared.claims import NOT_TESTED, texts
from softmax_temperature.papers.shared.records import write_derived
from softmax_temperature.papers.shared.results import RESULTS, best_evidence, tally
from softmax_temperature.runner.artifacts import write_text
from softmax_temperature.runner.errors import InputError, nearest

OPEN = "<!-- scorecard -->"
CLOSE = "<!-- /scorecard -->"
# Columns of a terminal.
WIDTH = 80
_COLUMNS = ["verdict", "claim", "where", "printed", "ours", "must lie", "study", "also"]
_EMPTY = "–"


def scorecard(results: Path = RESULTS) -> str:
    """A Markdown table for each paper, with one row per claim and its best evidence."""
    parts = []
    for paper, claims in best_evidence(results).items():
        parts.append(f"### {_heading(paper, claims)}")
        if not claims:
            continue
        lines = [_COLUMNS, ["---"] * len(_COLUMNS)]
        for rows in claims:
            fields = _fields(rows)
            fields["verdict"] = f"**{fields['verdict']}**"
            lines.append([fields[column].replace("|", "/") for column in _COLUMNS])
        parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
    return "\n\n".join(parts)


def scorecard_text(results: Path = RESULTS) -> str:
    """The scorecard for a terminal: a paragraph per claim, at most 80 columns wide."""
    parts = []
    for paper, claims in best_evidence(results).items():
        heading = _heading(paper, claims)
        parts.append(f"{heading}\n{'=' * len(heading)}")
        parts += [_paragraph(_fields(rows)) for rows in claims]
    return "\n\n".join(parts)


def _heading(paper: str, claims: Sequence[Sequence[dict[str, Any]]]) -> str:
    """Name of a paper, with the number of claims for each verdict."""
    title = paper.replace("_", " ").capitalize()
    counts = tally(rows[0] for rows in claims)
    return f"{title}: {counts or 'no study'}"


def _fields(rows: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Texts of a claim by column, from its rows in all studies, best evidence first."""
    best, *others = rows
    fields = texts(best)
    fields["study"] = best["profile"]
    if best["n"] is None:
        fields["ours"] = fields["note"]
    verdicts = []
    for row in others:
        if row["verdict"] != NOT_TESTED:
            other = texts(row)
            verdicts.append(f"{row['profile']}: {other['verdict']}, {other['ours']}")
    fields["also"] = "; ".join(verdicts) or _EMPTY
    return fields


def _paragraph(fields: dict[str, str]) -> str:
    """Verdict and claim, then the other columns that have a text, indented."""
    verdict, bracket, needed = fields["verdict"].partition(" (")
    claim = f"{verdict.upper()}{bracket}{needed}: {fields['claim']} ({fields['where']})"
    wrapper = textwrap.TextWrapper(
        WIDTH, subsequent_indent="  ", break_on_hyphens=False
    )
    lines = wrapper.wrap(claim)
    wrapper.initial_indent = "  "
    wrapper.subsequent_indent = " " * 12
    for column in ("ours", "must lie", "printed", "study", "also"):
        if fields[column] != _EMPTY:
            lines += wrapper.wrap(f"{column + ':':<10}{fields[column]}")
    return "\n".join(lines)


def write_scorecard(path: Path, results: Path = RESULTS) -> None:
    """Replace the text between the scorecard's markers in a Markdown file.

    Raises:
        InputError: If the file lacks `<!-- scorecard -->` or `<!-- /scorecard -->`.
    """
    before, _, rest = path.read_text(encoding="utf-8").partition(OPEN)
    _, closed, after = rest.partition(CLOSE)
    if not closed:
        raise InputError(
            "no scorecard markers",
            where=str(path),
            remedy=f"Put {OPEN} and {CLOSE} where the scorecard belongs.",
        )
    write_text(path, f"{before}{OPEN}\n{scorecard(results)}\n{CLOSE}{after}")


def rejudge(profiles: Sequence[str] = ()) -> list[str]:
    """Rewrite tables, claims and metrics from the records below results/.

    The deviations of a study stay as they are: they belong to the code that ran.

    Args:
        profiles: Profiles to rejudge; all that have results if empty.

    Returns:
        One line for every verdict that changed.

    Raises:
        InputError: If a profile has no results.
    """
    with_results = results.profiles_with_results()
    for profile in set(profiles).difference(with_results):
        raise InputError(
            f"no results of {profile!r}",
            where=str(results.RESULTS),
            remedy=nearest(profile, with_results),
        )
    changes: list[str] = []
    for profile, paper in product(profiles or with_results, results.PAPERS):
        folder = results.paper_folder(profile, paper)
        rows = results.read_json(folder / results.CLAIMS)
        if not rows:
            continue
        before = {row["id"]: row["verdict"] for row in rows}
        judged = write_derived(folder, paper, profile)
        after = {row["id"]: row["verdict"] for row in judged}
        for claim in {**after, **before}:
            old = before.get(claim, "no claim")
            new = after.get(claim, "no claim")
            if old != new:
                changes.append(f"{profile}/{paper}, {claim}: {old} -> {new}")
    return changes

"""The scorecard of all claims in `results/`, and what follows from the records there,
judged anew.
"""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

from softmax_temperature.papers.shared import results
from softmax_temperature.papers.shared.claims import NOT_TESTED, texts
from softmax_temperature.papers.shared.records import write_derived
from softmax_temperature.papers.shared.results import RESULTS, best_evidence, tally
from softmax_temperature.runner.artifacts import write_text
from softmax_temperature.runner.errors import InputError, nearest

OPEN, CLOSE = "<!-- scorecard -->", "<!-- /scorecard -->"
_COLUMNS = ["verdict", "claim", "where", "printed", "ours", "must lie", "study", "also"]


def scorecard(results: Path = RESULTS) -> str:
    """A Markdown table for each paper: a row per claim with its best evidence; other
    studies' verdicts beside it.
    """
    parts = []
    for paper, claims in best_evidence(results).items():
        parts.append(
            f"### {paper.replace('_', ' ').capitalize()}: {tally(rows[0] for rows in claims) or 'no study'}"
        )
        lines = [_COLUMNS, ["---"] * len(_COLUMNS)] if claims else []
        for best, *others in claims:
            told = [
                texts(row) | {"study": row["profile"]}
                for row in others
                if row["verdict"] != NOT_TESTED
            ]
            also = "; ".join(
                f"{row['study']}: {row['verdict']}, {row['ours']}" for row in told
            )
            said = texts(best) | {"study": best["profile"], "also": also or "–"}
            said |= {
                "verdict": f"**{said['verdict']}**",
                "ours": said["note"] if best["n"] is None else said["ours"],
            }
            lines.append([said[name].replace("|", "/") for name in _COLUMNS])
        parts += (
            ["\n".join(f"| {' | '.join(line)} |" for line in lines)] if lines else []
        )
    return "\n\n".join(parts)


def write_scorecard(path: Path, results: Path = RESULTS) -> None:
    """Put the scorecard between the markers `<!-- scorecard -->` and `<!-- /scorecard
    -->` of a Markdown file.
    """
    before, found, rest = path.read_text(encoding="utf-8").partition(OPEN)
    _, closed, after = rest.partition(CLOSE)
    if not closed:
        remedy = f"Put {OPEN} and {CLOSE} around the place where it shall stand."
        raise InputError("no scorecard markers", where=str(path), remedy=remedy)
    write_text(path, f"{before}{found}\n{scorecard(results)}\n{closed}{after}")


def rejudge(profiles: Sequence[str] = ()) -> list[str]:
    """Write what follows from the records below results/ anew, of some profiles or of
    all; returns changed verdicts.

    The deviations of a study stay as they are: they are those of the code that ran.
    """
    known = results.profiles_with_results()
    for profile in set(profiles).difference(known):
        raise InputError(
            f"no results of {profile!r}",
            where=str(results.RESULTS),
            remedy=nearest(profile, known),
        )
    changes: list[str] = []
    for profile, paper in product(profiles or known, results.PAPERS):
        folder = results.paper_folder(profile, paper)
        if rows := results.read_json(folder / results.CLAIMS):
            before = {row["id"]: row["verdict"] for row in rows}
            after = {
                row["id"]: row["verdict"]
                for row in write_derived(folder, paper, profile)
            }
            for claim in {**after, **before}:
                old, new = before.get(claim, "no claim"), after.get(claim, "no claim")
                changes += (
                    [f"{profile}/{paper}, {claim}: {old} -> {new}"]
                    if old != new
                    else []
                )
    return changes

"""The scorecard: one row per claim, with its best evidence, and how good the criteria are; docs/scorecard.md."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.shared.claims import DIRECTIONS_ONLY, HOLDS, NOT_TESTED, VERDICTS, Criterion, texts
from softmax_temperature.papers.shared.results import CLAIMS, PAPERS, RESULTS, read_json
from softmax_temperature.papers.shared.statistics import LEVEL, OverTasks, Share, Task
from softmax_temperature.runner.artifacts import write_text
from softmax_temperature.runner.errors import InputError

_COLUMNS = ("verdict", "claim", "where", "printed", "ours", "must lie", "study", "also")
_DESIGNS = ["claim", "comparison", "values", "holds without an effect", "effect", "power"]
REPEATS = 2000
Part = Sequence[dict[str, Any]]


def profiles_with_results(results: Path = RESULTS) -> list[str]:
    """The profiles that have claims of at least one paper, sorted; an `InputError` if there is none."""
    found = sorted({path.parts[-3] for path in results.glob(f"*/*/{CLAIMS}")})
    if not found:
        remedy = "Run `dvc repro` first, in the project's root folder."
        raise InputError("no results of any paper", where=str(results), remedy=remedy)
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
    found: dict[str, dict[str, list[dict[str, Any]]]] = {paper: {} for paper in PAPERS}
    studies = (papers for profile, papers in all_claims(results).items() if profile not in DIRECTIONS_ONLY)
    for paper, rows in (item for papers in studies for item in papers.items()):
        for row in rows:
            found[paper].setdefault(row["id"], []).append(row)
    ordered = {paper: [sorted(rows, key=rank) for rows in claims.values()] for paper, claims in found.items()}
    return {paper: sorted(claims, key=lambda rows: rank(rows[0])) for paper, claims in ordered.items()}


def rank(row: dict[str, Any]) -> tuple[int, int]:
    """Sorts rows by their evidence: decided ones come first, then those of more values."""
    return max(0, VERDICTS.index(row["verdict"]) - 1), -(row["n"] or 0)


def tally(rows: Iterable[dict[str, Any]]) -> str:
    """How many rows have each verdict, as "5 hold, 2 inconclusive"."""
    found = Counter(row["verdict"] for row in rows)
    words = {verdict: verdict for verdict in VERDICTS} | {HOLDS: "hold"}
    return ", ".join(f"{found[verdict]} {word}" for verdict, word in words.items() if found[verdict])


def scorecard(results: Path = RESULTS) -> str:
    """A Markdown table for each paper: a row per claim with its best evidence; other studies' verdicts beside it."""
    parts = []
    for paper, claims in best_evidence(results).items():
        parts.append(f"### {paper.replace('_', ' ').capitalize()}: {tally(rows[0] for rows in claims) or 'no study'}")
        parts += [_table(_COLUMNS, map(_cells, claims))] if claims else []
    return "\n\n".join(parts)


def power(results: Path = RESULTS) -> str:
    """A Markdown table: how often each criterion says "holds" without an effect, and at the printed or measured one."""
    table = power_table([rows[0] for claims in best_evidence(results).values() for rows in claims])
    return _table(table.columns, table.itertuples(index=False))


def write_scorecard(path: Path, results: Path = RESULTS) -> None:
    """Replace what stands between the markers in a Markdown file: of the scorecard, and of the table of power."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read ({error})", where=str(path), remedy="Give a text in UTF-8.") from error
    if not all(marker in text for marker in ("<!-- scorecard -->", "<!-- /scorecard -->")):
        remedy = "Put <!-- scorecard --> and <!-- /scorecard --> around the place where it shall stand."
        raise InputError("no scorecard markers", where=str(path), remedy=remedy)
    write_text(path, replaced(replaced(text, "scorecard", lambda: scorecard(results)), "power", lambda: power(results)))


def replaced(text: str, name: str, make: Callable[[], str]) -> str:
    """A text with something else between the markers of a name, if it has them."""
    before, found, rest = text.partition(f"<!-- {name} -->")
    _, closed, after = rest.partition(f"<!-- /{name} -->")
    return f"{before}{found}\n{make()}\n{closed}{after}" if closed else text


def _cells(rows: list[dict[str, Any]]) -> list[str]:
    best, *others = rows
    also = [f"{row['profile']}: {texts(row)['verdict']}" for row in others if row["verdict"] != NOT_TESTED]
    said = texts(best) | {"study": best["profile"], "also": "; ".join(also) or "–"}
    said |= {"verdict": f"**{said['verdict']}**"} | ({"ours": best["note"]} if best["value"] is None else {})
    return [said[name].replace("|", "/") for name in _COLUMNS]


def _table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    heads = list(columns)
    lines = [heads, ["---"] * len(heads), *([str(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def power_table(rows: Sequence[dict[str, Any]], *, repeats: int = REPEATS) -> pd.DataFrame:
    """How often each criterion says "holds" where there is no effect, and where there is one.

    Each judged row of `claims.json` is simulated `repeats` times with its own design: as many tasks, seeds and parts,
    and as much spread over the seeds of each task, as were at hand. The effect is the printed one, or, where none is
    printed, the measured one, or 0 where the claim is that there is none; "–" where none of these lies in the region.
    Of several parts all have it, or each its own measured one. Without an effect means at the bound: in every part of
    a claim that needs one part, in one part of a claim that needs all, the others being sure.
    """
    lines = [_line(row, repeats, np.random.default_rng(0)) for row in rows if row["value"] is not None]
    return pd.DataFrame([line for line in lines if line], columns=_DESIGNS)


def chance_of_holding(
    criterion: Criterion,
    parts: Sequence[Part],
    centers: Sequence[float],
    repeats: int,
    generator: np.random.Generator,
    *,
    keep_spread: bool,
) -> float:
    """How often a claim holds in simulated studies, from the tasks of each part (n, sd, value) and its true mean.

    With `keep_spread` the tasks of a part differ as the measured ones do; else all have its mean.
    """
    level = 1 - (1 - LEVEL) / len(parts) if criterion.some else LEVEL
    offsets = [[keep_spread * (task["value"] - _middle(part)) for task in part] for part in parts]
    hits = 0
    for _ in range(repeats):
        inside = (
            criterion.contains(ends)
            for part, center, some in zip(parts, centers, offsets, strict=True)
            if (ends := _simulated(part, center, some, generator).estimate(level).ends)
        )
        hits += any(inside) if criterion.some else all(inside)
    return hits / repeats


def _simulated(part: Part, center: float, offsets: Sequence[float], generator: np.random.Generator) -> OverTasks:
    values = (
        generator.normal(center + offset, task["sd"] or 1e-9, (task["n"],))
        for task, offset in zip(part, offsets, strict=True)
    )
    return OverTasks(tuple(Task("", tuple(some.tolist())) for some in values))


def _middle(part: Part) -> float:
    return float(np.mean([task["value"] for task in part]))


def _line(row: dict[str, Any], repeats: int, generator: np.random.Generator) -> tuple[str, ...] | None:
    criterion, (bound, *other) = Criterion.of(row), row["bounds"]
    known = (row["published"], 0.0 if other and row["published"] is None else None, row["value"])
    effect = next((value for value in known if value is not None and criterion.margin(value) > 0), None)
    if row["kind"] == "proportion":
        effect, sizes = 1.0, str(row["n"])
        null, power = (_share_above(bound, row["n"], share, repeats, generator) for share in (bound, effect))
    else:
        tasks = [task for task in row["tasks"] if task["pooled"] and task["n"] > 1]
        parts = [[task for task in tasks if task["part"] == name] for name in dict.fromkeys(t["part"] for t in tasks)]
        if not parts:
            return None
        fewest = parts if criterion.some else [min(parts, key=lambda part: sum(task["n"] for task in part))]
        null = chance_of_holding(criterion, fewest, [bound] * len(fewest), repeats, generator, keep_spread=False)
        if effect is not None:
            centers = [_middle(part) if effect == row["value"] else effect for part in parts]
            power = chance_of_holding(criterion, parts, centers, repeats, generator, keep_spread=True)
        sizes = " + ".join(str(task["n"]) for task in parts[0])
        sizes = f"{len(parts)} × ({sizes})" if len(parts) > 1 else sizes
    at, found = ("–", "–") if effect is None else (f"{effect:.3g}", f"{power:.2f}")
    return row["id"], row["kind"], f"{sizes} {row['each']}", f"{null:.3f}", at, found


def _share_above(bound: float, n: int, share: float, repeats: int, generator: np.random.Generator) -> float:
    """How often the interval of n trials with this chance of a hit lies above the bound."""
    lows = [Share(hits, n).estimate().low or 0.0 for hits in range(n + 1)]
    return float(np.mean([lows[int(hits)] > bound for hits in generator.binomial(n, share, repeats)]))

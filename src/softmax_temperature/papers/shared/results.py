"""The folder `results/`: by profile and paper what a run leaves there, and the scorecard of all claims in it."""

import json
from collections import Counter
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

from softmax_temperature.papers.shared.claims import DIRECTIONS_ONLY, HOLDS, NOT_TESTED, VERDICTS, task_count, texts
from softmax_temperature.papers.shared.sources import RECORDS
from softmax_temperature.runner.artifacts import digest_of_file, find_artifacts, open_artifact, write_json, write_text
from softmax_temperature.runner.errors import InputError

PAPERS = ("classifier_temperature", "focal", "cooling", "temperature_check")
RESULTS = Path("results")
PARAMETERS, CLAIMS, ENVIRONMENT = "params.yaml", "claims.json", "environment.json"
SHOWN = "shown"  # Beside the papers' folders: of each the contents, which the report is made of.
OPEN, CLOSE = "<!-- scorecard -->", "<!-- /scorecard -->"
_COLUMNS = ["verdict", "claim", "where", "printed", "ours", "must lie", "study", "also"]


def paper_folder(profile: str, paper: str) -> Path:
    """The folder of one paper's results in one profile."""
    return RESULTS / profile / paper


def read_json(path: Path) -> Any:
    """What a JSON file below results/ holds; None where there is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    except ValueError as error:
        remedy = "Take the file from Git, or run `dvc repro`."
        raise InputError(f"is not JSON ({error})", where=str(path), remedy=remedy) from error


def write_contents(folder: Path, path: Path) -> None:
    """Write what a folder holds: one line per file, its sha256 and its path.

    DVC cannot say "the results of all papers that this profile runs", so the report depends on the folder of these.
    """
    files = sorted(each for each in folder.rglob("*") if each.is_file())
    write_text(path, "".join(f"{digest_of_file(each)}  {each.as_posix()}\n" for each in files))


def record_run(profile: str, paper: str, params: Path, outputs: Iterable[Path]) -> None:
    """Write the parameters in force and the paper's part of `environment.json` beside the papers' folders.

    `outputs` are the stage outputs that the paper's results rest on. Times and machines differ between runs that give
    equal results. So they stay as they were as long as `records.json` does: such a rerun changes no file.
    """
    folder = RESULTS / profile
    write_text(folder / PARAMETERS, params.read_text(encoding="utf-8"))
    papers, records = read_json(folder / ENVIRONMENT) or {}, folder / paper / RECORDS
    digest = digest_of_file(records)
    if papers.get(paper, {}).get("records") != digest:
        write_json(folder / ENVIRONMENT, papers | {paper: {"records": digest, **_environment(outputs)}})


def _environment(outputs: Iterable[Path]) -> dict[str, Any]:
    """Machines and versions that the cells ran on, and minutes by stage; None where a cell's timing is missing."""
    from softmax_temperature.runner.cells import read_timing, work_folder  # Imports torch, which notebooks need not.

    machines: list[Any] = []
    minutes: dict[str, float | None] = {}
    for output in outputs:
        cells = [open_artifact(folder).about for folder in find_artifacts(output)]
        timings = [read_timing(work_folder(cell["stage"], cell["cell"], cell["fingerprint"])) for cell in cells]
        known = [timing for timing in timings if timing]
        seconds = sum(timing["seconds"] for timing in known)
        minutes[output.name] = round(seconds / 60, 2) if len(known) == len(timings) else None
        for timing in known:
            place = {name: timing[name] for name in ("machine", "versions")}
            machines += [place] if place not in machines else []
    return {"machines": machines, "cell_minutes": minutes}


def profiles_with_results(results: Path = RESULTS) -> list[str]:
    """The profiles that have claims of at least one paper, sorted; an `InputError` if there is none."""
    found = sorted({path.parts[-3] for path in results.glob(f"*/*/{CLAIMS}")})
    if not found:
        raise InputError("no results of any paper", where=str(results), remedy="Run `dvc repro` in the root folder.")
    return found


def best_evidence(results: Path = RESULTS) -> dict[str, list[list[dict[str, Any]]]]:
    """By paper, of each claim its rows in all studies, the best evidence first; then the claims, decided ones first.

    A decided row is better than an inconclusive one, and that better than none; of equal ones, that of more values a
    task. Claims that are equally decided keep their order. Profiles that show directions only are no studies.
    """
    studies = [profile for profile in profiles_with_results(results) if profile not in DIRECTIONS_ONLY]
    found: dict[str, list[list[dict[str, Any]]]] = {}
    for paper in PAPERS:
        claims: dict[str, list[dict[str, Any]]] = {}
        for row in chain.from_iterable(read_json(results / study / paper / CLAIMS) or [] for study in studies):
            claims.setdefault(row["id"], []).append(row)
        found[paper] = sorted((sorted(rows, key=rank) for rows in claims.values()), key=lambda rows: rank(rows[0])[0])
    return found


def rank(row: dict[str, Any]) -> tuple[int, float]:
    """Sorts rows by their evidence: decided ones come first, then those of more values a task."""
    return max(0, VERDICTS.index(row["verdict"]) - 1), -(row["n"] or 0) / max(1, task_count(row))


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
            told = [texts(row) | {"study": row["profile"]} for row in others if row["verdict"] != NOT_TESTED]
            also = "; ".join(f"{row['study']}: {row['verdict']}, {row['ours']}" for row in told)
            said = texts(best) | {"study": best["profile"], "also": also or "–"}
            said |= {"verdict": f"**{said['verdict']}**", "ours": said["note"] if best["n"] is None else said["ours"]}
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

"""The folder `results/<profile>/`: one folder per paper, beside them the parameters and the machines that made them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from softmax_temperature.papers.shared.sources import RECORDS
from softmax_temperature.runner.artifacts import digest_of_file, find_artifacts, open_artifact, write_json, write_text
from softmax_temperature.runner.cells import read_timing, timing_file
from softmax_temperature.runner.errors import InputError

PAPERS = ("classifier_temperature", "focal", "cooling", "temperature_check")
RESULTS = Path("results")
PARAMETERS, CLAIMS, ENVIRONMENT = "params.yaml", "claims.json", "environment.json"
SHOWN = Path("data/shown")
"""One file per paper, named after it, that lists the contents of its folder below results/."""


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
    digest = digest_of_file(records) if records.is_file() else None
    if digest is None or papers.get(paper, {}).get("records") != digest:
        write_json(folder / ENVIRONMENT, papers | {paper: {"records": digest, **_environment(outputs)}})


def _environment(outputs: Iterable[Path]) -> dict[str, Any]:
    """Machines and versions that the cells ran on, and minutes by stage; None where a cell's timing is missing."""
    machines: list[Any] = []
    minutes: dict[str, float | None] = {}
    for output in outputs:
        cells = [open_artifact(folder).about for folder in find_artifacts(output)]
        timings = [read_timing(timing_file(cell["stage"], cell["cell"], cell["fingerprint"])) for cell in cells]
        known = [timing for timing in timings if timing]
        seconds = sum(timing["seconds"] for timing in known)
        minutes[output.name] = round(seconds / 60, 2) if len(known) == len(timings) else None
        for timing in known:
            place = {name: timing[name] for name in ("machine", "versions")}
            machines += [place] if place not in machines else []
    return {"machines": machines, "cell_minutes": minutes}

"""The folder `results/<profile>/`: one folder a paper, beside them the parameters and the machines that made them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from softmax_temperature.artifacts import digest_of_file, find_artifacts, open_artifact, write_json, write_text
from softmax_temperature.cells import timing_file

PAPERS = ("classifier_temperature", "focal", "cooling", "temperature_check")
RESULTS = Path("results")


def paper_folder(profile: str, paper: str) -> Path:
    """Where one paper's results of one profile stand."""
    return RESULTS / profile / paper


def write_contents(folder: Path, path: Path) -> None:
    """Write what a folder holds: a line a file, its sha256 and its place.

    DVC cannot say "the results of all papers that this profile runs": this file stands for a paper's in the folder that
    the report depends on.

    Args:
        folder: a paper's results.
        path: the file to write.
    """
    files = sorted(each for each in folder.rglob("*") if each.is_file())
    write_text(path, "".join(f"{digest_of_file(each)}  {each.as_posix()}\n" for each in files))


def record_run(profile: str, paper: str, params: Path, outputs: Iterable[Path]) -> None:
    """Write `params.yaml` and the paper's part of `environment.json` beside the papers' folders.

    They are no outputs of the pipeline: times and machines differ between runs that give equal results.

    Args:
        profile: whose results.
        paper: whose part is (re)written; those of other papers stay.
        params: the parameter file in force.
        outputs: the stage outputs that the paper's results rest on.
    """
    folder = RESULTS / profile
    write_text(folder / "params.yaml", params.read_text(encoding="utf-8"))
    path = folder / "environment.json"
    papers = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    write_json(path, papers | {paper: _environment(outputs)})


def _environment(outputs: Iterable[Path]) -> dict[str, Any]:
    """Machines and versions that the cells ran on, and minutes by stage; None where a cell's timing is not at hand."""
    machines: list[Any] = []
    minutes: dict[str, float | None] = {}
    for output in outputs:
        timings = [_timing(folder) for folder in find_artifacts(output)]
        known = [timing for timing in timings if timing]
        complete = len(known) == len(timings)
        minutes[output.name] = round(sum(timing["seconds"] for timing in known) / 60, 2) if complete else None
        places = [{"machine": timing["machine"], "versions": timing["versions"]} for timing in known]
        machines += [place for number, place in enumerate(places) if place not in machines + places[:number]]
    return {"machines": machines, "cell_minutes": minutes}


def _timing(folder: Path) -> dict[str, Any] | None:
    """How the cell of a published artifact ran; None when it was made elsewhere, for instance pulled from a cache."""
    about = open_artifact(folder).about
    path = timing_file(about["stage"], about["cell"], about["fingerprint"])
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None

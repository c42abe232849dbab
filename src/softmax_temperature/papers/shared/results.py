"""The folder `results/<profile>/`: one folder a paper, beside them the parameters and the machines that made them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from softmax_temperature.papers.shared.result_files import ENVIRONMENT, read_environments
from softmax_temperature.runner.artifacts import (
    canonical_json,
    digest_of_file,
    find_artifacts,
    open_artifact,
    sealed,
    write_json,
    write_text,
)
from softmax_temperature.runner.cells import read_timing, timing_file
from softmax_temperature.runner.errors import InputError

PAPERS = ("classifier_temperature", "focal", "cooling", "temperature_check")
RESULTS = Path("results")
PARAMETERS = "params.yaml"
SHOWN = Path("data/shown")
"""A file for each paper, named after it, with the contents of its folder below results/."""


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


def read_contents(path: Path) -> dict[str, str]:
    """What `write_contents` wrote: place to sha256; empty where there is no such file."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    return {place: digest for digest, _, place in (line.partition("  ") for line in lines)}


def record_run(profile: str, paper: str, params: Path, outputs: Iterable[Path]) -> None:
    """Write `params.yaml` and the paper's part of `environment.json` beside the papers' folders.

    They are no outputs of the pipeline: times and machines differ between runs that give equal results. Each part
    carries its own sha256, and that of the parameters.

    Args:
        profile: whose results.
        paper: whose part is (re)written; those of other papers stay.
        params: the parameter file in force.
        outputs: the stage outputs that the paper's results rest on.

    Raises:
        InputError: the part of another paper is damaged.
    """
    folder = RESULTS / profile
    papers = _parts(folder)
    write_text(folder / PARAMETERS, params.read_text(encoding="utf-8"))
    part = {"paper": paper, "parameters": digest_of_file(folder / PARAMETERS), **_environment(outputs)}
    write_json(folder / ENVIRONMENT, papers | {paper: sealed(part)})


def record_problems(folder: Path) -> list[str]:
    """One line for each file of `record_run` that is damaged or missing.

    Args:
        folder: `results/<profile>`. Parts of a time when they carried no sha256 are passed over.
    """
    try:
        parts = _parts(folder)
    except InputError as error:
        return [str(error)]
    known = {part["parameters"] for part in parts.values() if "parameters" in part}
    path = folder / PARAMETERS
    if not known or (path.is_file() and digest_of_file(path) in known):
        return []
    return [f"{path}: {'not as ' + ENVIRONMENT + ' records it' if path.is_file() else 'missing'}. {_RESTORE}"]


def _parts(folder: Path) -> dict[str, Any]:
    """The papers' parts, each as it was written."""
    path, parts = folder / ENVIRONMENT, read_environments(folder)
    if not path.is_file():
        return parts
    whole = path.read_bytes() == canonical_json(parts).encode()
    if not (whole and all(_is_whole(paper, part) for paper, part in parts.items())):
        raise InputError("damaged", where=str(path), remedy=_RESTORE)
    return parts


def _is_whole(paper: str, part: dict[str, Any]) -> bool:
    if not {"sha256", "parameters", "paper"} & set(part):
        return True
    body = {key: value for key, value in part.items() if key != "sha256"}
    return part == sealed(body) and part["paper"] == paper


_RESTORE = "Restore it from Git, or remove it and run `dvc repro --force --single-item collect-PAPER`."


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
    """How the cell of a published artifact ran; None where that is not known."""
    about = open_artifact(folder).about
    return read_timing(timing_file(about["stage"], about["cell"], about["fingerprint"]))

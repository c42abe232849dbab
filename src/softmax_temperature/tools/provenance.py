"""Origin of results: `records.json` lists cells, `environment.json` their machines."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from softmax_temperature.data.seeds import seed_of
from softmax_temperature.papers.shared.results import (
    ENVIRONMENT,
    PARAMETERS,
    RESULTS,
    read_json,
)
from softmax_temperature.papers.shared.sources import RECORDS
from softmax_temperature.runner.artifacts import (
    ArtifactError,
    digest_of,
    digest_of_file,
    find_artifacts,
    open_artifact,
    read_sealed,
    write_json,
    write_text,
)
from softmax_temperature.runner.cells import TIMING, work_folder
from softmax_temperature.stages import PREPARED, label


def provenance(outputs: Sequence[Path]) -> dict[str, Any]:
    """The content of `records.json`: the origin of artifacts, but no times or machines.

    Each cell has its inputs (name to digest of another cell's result) and the digests
    of its parameters and code. Parameters and code follow once per digest, because
    cells share them. Prepared data sets that no cell reads are left out, because papers
    share their folder.

    Args:
        outputs: Outputs of the stages on which a paper's results rest.
    """
    artifacts = [
        open_artifact(folder) for output in outputs for folder in find_artifacts(output)
    ]
    used_digests: set[str] = set()
    for artifact in artifacts:
        used_digests.update(artifact.about["inputs"].values())
    cells = []
    shared: dict[str, dict[str, Any]] = {"parameters": {}, "code": {}}
    for artifact in artifacts:
        is_data_set = artifact.folder.is_relative_to(PREPARED)
        if is_data_set and artifact.digest not in used_digests:
            continue
        about = artifact.about
        cell = {
            "stage": about["stage"],
            "cell": about["cell"],
            "inputs": about["inputs"],
            "fingerprint": about["fingerprint"],
            "project_seed": about["seed"],
            "seed": seed_of(about["seed"], about["stage"], about["cell"]),
            "result": artifact.digest,
        }
        for name, values in shared.items():
            digest = digest_of(about[name])
            cell[name] = digest
            values[digest] = about[name]
        cells.append(cell)
    return {"cells": cells, **shared}


def record_run(profile: str, paper: str, params: Path, outputs: Iterable[Path]) -> None:
    """Write the parameters in force, and the paper's part of `environment.json`.

    Times and machines differ between runs with equal results. So the paper's part stays
    as it is while `records.json` stays the same, and such a rerun changes no file.

    Args:
        profile: The profile of the parameters.
        paper: Slug of the paper.
        params: File with the parameters in force.
        outputs: Outputs of the stages on which the paper's results rest.
    """
    folder = RESULTS / profile
    write_text(folder / PARAMETERS, params.read_text(encoding="utf-8"))
    papers = read_json(folder / ENVIRONMENT) or {}
    digest = digest_of_file(folder / paper / RECORDS)
    if papers.get(paper, {}).get("records") != digest:
        papers = papers | {paper: {"records": digest, **_environment(outputs)}}
        write_json(folder / ENVIRONMENT, papers)


def recorded_minutes(path: Path) -> dict[str, float | None]:
    """Minutes of all cells of each stage, by its label, from an `environment.json`."""
    minutes: dict[str, float | None] = {}
    for paper in (read_json(path) or {}).values():
        minutes |= paper["cell_minutes"]
    return minutes


def _environment(outputs: Iterable[Path]) -> dict[str, Any]:
    """Machines and versions on which the cells ran, and minutes by stage.

    Minutes are None if the timing of a cell is missing.
    """
    machines: list[Any] = []
    minutes: dict[str, float | None] = {}
    for output in outputs:
        timings = [_timing_of(folder) for folder in find_artifacts(output)]
        recorded = [timing for timing in timings if timing]
        seconds = sum(timing["seconds"] for timing in recorded)
        complete = len(recorded) == len(timings)
        minutes[label(output)] = round(seconds / 60, 2) if complete else None
        for timing in recorded:
            machine = {"machine": timing["machine"], "versions": timing["versions"]}
            if machine not in machines:
                machines.append(machine)
    return {"machines": machines, "cell_minutes": minutes}


def _timing_of(artifact: Path) -> dict[str, Any] | None:
    about = open_artifact(artifact).about
    work = work_folder(about["stage"], about["cell"], about["fingerprint"])
    return read_timing(work)


def read_timing(work: Path) -> dict[str, Any] | None:
    """Seconds, machine and versions of the run in a work folder.

    None if it ran on another machine, or the file is damaged.
    """
    with suppress(ArtifactError, FileNotFoundError):
        return read_sealed(work / TIMING)
    return None

"""What results rest on: the records of all cells in `records.json`, machines and
minutes in `environment.json`.
"""

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
    """The content of `records.json`: what the artifacts of some stages were made from,
    without times and machines.

    Of each cell its inputs (name to digest of another cell's result), and the digests
    of its parameters and code, whose values follow, because cells share them. Papers
    share the folder of data sets: unused ones are left out.
    """
    artifacts = [
        open_artifact(folder) for output in outputs for folder in find_artifacts(output)
    ]
    used = {
        digest for artifact in artifacts for digest in artifact.about["inputs"].values()
    }
    found: dict[str, Any] = {"cells": [], "parameters": {}, "code": {}}
    for artifact in artifacts:
        if artifact.folder.is_relative_to(PREPARED) and artifact.digest not in used:
            continue
        row = {
            name: artifact.about[name]
            for name in ("stage", "cell", "inputs", "fingerprint")
        }
        seed = artifact.about["seed"]
        row |= {
            "project_seed": seed,
            "seed": seed_of(seed, row["stage"], row["cell"]),
            "result": artifact.digest,
        }
        for name in ("parameters", "code"):
            value = artifact.about[name]
            row[name] = digest_of(value)
            found[name][row[name]] = value
        found["cells"].append(row)
    return found


def record_run(profile: str, paper: str, params: Path, outputs: Iterable[Path]) -> None:
    """Write the parameters in force and the paper's part of `environment.json` beside
    the papers' folders.

    `outputs` are the stage outputs that the paper's results rest on. Times and machines
    differ between runs that give equal results. So they stay as they were as long as
    `records.json` does: such a rerun changes no file.
    """
    folder = RESULTS / profile
    write_text(folder / PARAMETERS, params.read_text(encoding="utf-8"))
    papers, records = read_json(folder / ENVIRONMENT) or {}, folder / paper / RECORDS
    digest = digest_of_file(records)
    if papers.get(paper, {}).get("records") != digest:
        write_json(
            folder / ENVIRONMENT,
            papers | {paper: {"records": digest, **_environment(outputs)}},
        )


def recorded_minutes(path: Path) -> dict[str, float | None]:
    """Minutes of all cells of each stage, by its label, as the last run of the profile
    recorded them.
    """
    papers = (read_json(path) or {}).values()
    return {
        stage: minutes
        for paper in papers
        for stage, minutes in paper["cell_minutes"].items()
    }


def _environment(outputs: Iterable[Path]) -> dict[str, Any]:
    """Machines and versions that the cells ran on, and minutes by stage; None where a
    cell's timing is missing.
    """
    machines: list[Any] = []
    minutes: dict[str, float | None] = {}
    for output in outputs:
        cells = [open_artifact(folder).about for folder in find_artifacts(output)]
        timings = [
            read_timing(work_folder(cell["stage"], cell["cell"], cell["fingerprint"]))
            for cell in cells
        ]
        known = [timing for timing in timings if timing]
        seconds = sum(timing["seconds"] for timing in known)
        minutes[label(output)] = (
            round(seconds / 60, 2) if len(known) == len(timings) else None
        )
        for timing in known:
            place = {name: timing[name] for name in ("machine", "versions")}
            machines += [place] if place not in machines else []
    return {"machines": machines, "cell_minutes": minutes}


def read_timing(work: Path) -> dict[str, Any] | None:
    """Seconds, machine and versions of the run in a work folder; None if it ran
    elsewhere or the file is damaged.
    """
    with suppress(ArtifactError, FileNotFoundError):
        return read_sealed(work / TIMING)
    return None

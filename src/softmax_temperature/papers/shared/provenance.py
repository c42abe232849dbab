"""The provenance of a paper's results.

`records.json` has the parameters, inputs and code of every cell behind the results.
`environment.json` has the machines that computed the cells, and the minutes that the
cells of each stage took.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple

from softmax_temperature.data.seeds import seed_of
from softmax_temperature.papers.shared.results import (
    ENVIRONMENT,
    PARAMETERS,
    RESULTS,
    read_json,
)
from softmax_temperature.papers.shared.sources import RECORDS
from softmax_temperature.runner.artifacts import (
    digest_of,
    digest_of_file,
    find_artifacts,
    open_artifact,
    write_json,
    write_text,
)
from softmax_temperature.runner.timing import timing_of
from softmax_temperature.stages import PREPARED, label


def provenance(
    outputs: Sequence[Path],
    *,
    recorded: Mapping[str, Any] | None = None,
    cells: Collection[str] = (),
) -> dict[str, Any]:
    """The content of `records.json`: the parameters, inputs and code of every cell.

    The row of a cell names the cell's inputs, with the digests of their results, and
    has digests of the cell's parameters and code. The parameters and code behind these
    digests are stored only once, because several cells share them. Times and machines
    are left out, and so are data sets that no cell of the paper reads.

    Args:
        outputs: The output folders of the paper's stages.
        recorded: The previous content of `records.json`.
        cells: The cells that the paper's runs come from. Cells that are not on this
            machine keep the rows that another machine recorded.
    """
    artifacts = [
        open_artifact(folder) for output in outputs for folder in find_artifacts(output)
    ]
    used = {
        digest for artifact in artifacts for digest in artifact.about["inputs"].values()
    }
    content: dict[str, Any] = {"cells": [], "parameters": {}, "code": {}}
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
            content[name][row[name]] = value
        content["cells"].append(row)
    if recorded is not None:
        _keep_recorded(content, recorded, cells)
    return content


def _keep_recorded(
    content: dict[str, Any], recorded: Mapping[str, Any], cells: Collection[str]
) -> None:
    """Add the recorded rows of cells that this machine lacks, and of their inputs."""
    here = {_name(row) for row in content["cells"]}
    elsewhere = [
        row
        for row in recorded["cells"]
        if _name(row) in cells and _name(row) not in here
    ]
    read = {digest for row in elsewhere for digest in row["inputs"].values()}
    inputs = [
        row
        for row in recorded["cells"]
        if row["result"] in read and _name(row) not in here and row not in elsewhere
    ]
    for row in [*elsewhere, *inputs]:
        content["cells"].append(row)
        for name in ("parameters", "code"):
            content[name][row[name]] = recorded[name][row[name]]
    order = {_name(row): place for place, row in enumerate(recorded["cells"])}
    content["cells"].sort(key=lambda row: order.get(_name(row), len(order)))


def _name(row: Mapping[str, Any]) -> str:
    return f"{row['stage']}/{row['cell']}"


def record_run(
    profile: str,
    paper: str,
    params: Path,
    outputs: Iterable[Path],
    *,
    recorded: Mapping[str, Any] | None = None,
) -> None:
    """Copy the parameter file, and write the paper's part of `environment.json`.

    Both files are next to the papers' folders. Times and machines may differ although
    the results are equal, so they are written only if `records.json` has changed: a
    rerun with equal results does not change `environment.json`. If `records.json` still
    has another machine's cells, that machine and its minutes are kept.

    Args:
        profile: The name of the profile.
        paper: The slug of the paper.
        params: The parameter file.
        outputs: The stage outputs behind the paper's results.
        recorded: The previous content of `records.json`.
    """
    folder = RESULTS / profile
    write_text(folder / PARAMETERS, params.read_text(encoding="utf-8"))
    papers = read_json(folder / ENVIRONMENT) or {}
    records = folder / paper / RECORDS
    digest = digest_of_file(records)
    before = papers.get(paper, {})
    if before.get("records") == digest:
        return
    outputs = list(outputs)
    environment = _environment(outputs)
    if recorded is not None and _has_cells_of_others(read_json(records), outputs):
        recorded_cells = {(_name(row), row["result"]) for row in recorded["cells"]}
        environment = _with_earlier(_environment(outputs, recorded_cells), before)
    about = {"records": digest, **environment}
    write_json(folder / ENVIRONMENT, papers | {paper: about})


def _has_cells_of_others(records: Mapping[str, Any], outputs: Iterable[Path]) -> bool:
    """Whether `records.json` has cells that are not on this machine."""
    here = {
        _name(open_artifact(folder).about)
        for output in outputs
        for folder in find_artifacts(output)
    }
    return any(_name(row) not in here for row in records["cells"])


def _with_earlier(
    environment: dict[str, Any], before: Mapping[str, Any]
) -> dict[str, Any]:
    """Merge two environments: list the machines of both, and sum the minutes by stage.

    A stage's minutes are None if they are unknown in one of the environments.
    """
    machines = list(before.get("machines", []))
    for machine in environment["machines"]:
        if machine not in machines:
            machines.append(machine)
    minutes = dict(before.get("cell_minutes", {}))
    for stage, more in environment["cell_minutes"].items():
        earlier = minutes.get(stage, 0.0)
        is_known = earlier is not None and more is not None
        minutes[stage] = round(earlier + more, 2) if is_known else None
    return {"machines": machines, "cell_minutes": minutes}


class RecordedStage(NamedTuple):
    """The cells that a stage had when a profile last ran, and the minutes they took.

    Attributes:
        cells: Names of the cells that the stage had.
        minutes: The minutes that all these cells took together.
    """

    cells: frozenset[str]
    minutes: float

    @property
    def minutes_per_cell(self) -> float:
        """The mean number of minutes over the stage's cells."""
        return self.minutes / len(self.cells)


def recorded_stages(folder: Path) -> dict[str, RecordedStage]:
    """The stages with recorded minutes in the folder of a profile, keyed by label."""
    stages = {}
    for paper, environment in (read_json(folder / ENVIRONMENT) or {}).items():
        names: dict[str, set[str]] = {}
        records = read_json(folder / paper / RECORDS) or {"cells": []}
        for cell in records["cells"]:
            names.setdefault(cell["stage"], set()).add(cell["cell"])
        for stage, minutes in environment["cell_minutes"].items():
            if minutes is not None and stage in names:
                stages[stage] = RecordedStage(frozenset(names[stage]), minutes)
    return stages


def _environment(
    outputs: Iterable[Path], left_out: Set[tuple[str, str]] = frozenset()
) -> dict[str, Any]:
    """Describe how the cells in `outputs` were computed: machines and minutes.

    A machine is listed with the versions of its software, and the minutes are summed by
    stage. Cells whose name and result are in `left_out` are left out. A stage's minutes
    are None if the timing of one of its cells is missing.
    """
    machines: list[Any] = []
    minutes: dict[str, float | None] = {}
    for output in outputs:
        artifacts = [open_artifact(folder) for folder in find_artifacts(output)]
        cells = [
            artifact.about
            for artifact in artifacts
            if (_name(artifact.about), artifact.digest) not in left_out
        ]
        timings = [timing_of(cell) for cell in cells]
        measured = [timing for timing in timings if timing]
        seconds = sum(timing["seconds"] for timing in measured)
        is_complete = len(measured) == len(timings)
        minutes[label(output)] = round(seconds / 60, 2) if is_complete else None
        for timing in measured:
            place = {name: timing[name] for name in ("machine", "versions")}
            if place not in machines:
                machines.append(place)
    return {"machines": machines, "cell_minutes": minutes}

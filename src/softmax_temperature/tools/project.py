"""State of the project's folder: cells that `dvc repro` would run, damaged files."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from softmax_temperature.params import Params, read_yaml
from softmax_temperature.runner.artifacts import (
    MANIFEST,
    ArtifactError,
    find_artifacts,
    open_artifact,
    set_aside,
)
from softmax_temperature.runner.cells import (
    CHECKPOINT,
    DATA,
    RESULT,
    WORK,
    Cell,
    fingerprint,
    published_result,
    work_folder,
)
from softmax_temperature.runner.checkpoints import Checkpointer
from softmax_temperature.runner.errors import InputError
from softmax_temperature.stages import label, stages_of
from softmax_temperature.tools.provenance import recorded_minutes

# Cells to run that a plan lists by name.
NAMES_SHOWN = 5
# Width of the column of stage names.
NAME_WIDTH = 28


@dataclass(frozen=True)
class StagePlan:
    """The plan of one stage of a program, or of a stage in dvc.yaml without cells.

    Attributes:
        stage: Name of the stage.
        cells: Number of its cells; None if it has none, or they cannot be listed.
        to_run: Names of the cells that would run.
        minutes: Minutes of all its cells, one after the other, when the profile last
            ran; None if they are not recorded.
        note: The reason why the cells cannot be listed.
    """

    stage: str
    cells: int | None
    to_run: tuple[str, ...] = ()
    minutes: float | None = None
    note: str = ""

    @property
    def minutes_to_run(self) -> float:
        """The recorded minutes, times the share of cells that would run."""
        return (self.minutes or 0) * len(self.to_run) / (self.cells or 1)


def plan(params: Params) -> list[StagePlan]:
    """Plan a run of the project in the current folder, without running anything."""
    minutes = recorded_minutes(Path("results") / params.profile / "environment.json")
    offline_data = params.data.model_copy(update={"download": False})
    offline = params.model_copy(update={"data": offline_data})
    # From the folder in which a cell is published to the folder of its result, or None
    # if it has to run.
    results: dict[Path, Path | None] = {}
    plans = []
    for name, content in read_yaml(Path("dvc.yaml"))["stages"].items():
        program = Path(content["cmd"].split()[1]).stem
        stages = stages_of(program)
        if not stages:
            plans.append(StagePlan(name, None))
        for stage in stages:
            try:
                cells = stage.cells(offline)
            except InputError as error:
                plans.append(StagePlan(stage.name, None, note=str(error)))
                continue
            output = label(stage.output)
            results_of_stage = {
                cell.name: _result(cell, output, params.seed, results) for cell in cells
            }
            for cell_name, result in results_of_stage.items():
                results[stage.output / cell_name] = result
            to_run = [cell for cell, result in results_of_stage.items() if not result]
            plans.append(
                StagePlan(stage.name, len(cells), tuple(to_run), minutes.get(output))
            )
    return plans


def _result(
    cell: Cell, stage: str, seed: int, results: dict[Path, Path | None]
) -> Path | None:
    """The folder of a cell's result if it is up to date, otherwise None."""
    inputs = {}
    for name, path in cell.inputs.items():
        # An input that no stage makes is a file.
        result_of_input = results.get(path, path)
        if result_of_input is None:
            return None
        inputs[name] = result_of_input
    try:
        digest = fingerprint(replace(cell, inputs=inputs), seed)
    except ArtifactError:
        return None
    result = work_folder(stage, cell.name, digest) / RESULT
    if (result / MANIFEST).is_file():
        return result
    return published_result(stage, cell.name, digest)


def summary(plans: list[StagePlan], params: Params) -> str:
    """The plan as text: one line per stage with cells, then the sum."""
    lines = []
    for stage in plans:
        minutes = stage.minutes_to_run
        timing = f", {minutes:.1f} min on the recorded machine" if minutes else ""
        lines.append(f"{stage.stage:{NAME_WIDTH}} {_state(stage)}{timing}")
        count = len(stage.to_run)
        if 0 < count < (stage.cells or 0):
            shown = list(stage.to_run[:NAMES_SHOWN])
            if count > NAMES_SHOWN:
                shown.append("...")
            lines.append(f"{'':{NAME_WIDTH}} {', '.join(shown)}")
    return "\n".join([*lines, _total(plans, params)])


def _state(stage: StagePlan) -> str:
    if stage.cells is None:
        return stage.note or "runs when its inputs have changed"
    if stage.to_run:
        return f"{len(stage.to_run)} of {stage.cells} cells to run"
    return f"{stage.cells} cells up to date"


def _total(plans: list[StagePlan], params: Params) -> str:
    to_run = sum(len(stage.to_run) for stage in plans)
    cells = sum(stage.cells or 0 for stage in plans)
    total = f"{to_run} of {cells} cells to run"
    workers = 1 if params.compute.engine == "serial" else params.compute.workers
    minutes = sum(stage.minutes_to_run for stage in plans) / workers
    if not minutes:
        return total
    rounded = max(1, round(minutes))
    unit = "minute" if rounded == 1 else "minutes"
    return (
        f"{total}, about {rounded} {unit} with {workers} at a time, as recorded for "
        "this profile"
    )


class Verified(NamedTuple):
    """Result of `verify`.

    Attributes:
        artifacts: Number of folders with a manifest.
        checkpoints: Number of checkpoints.
        problems: One line per file that is not as it was written.
    """

    artifacts: int
    checkpoints: int
    problems: list[str]


def verify() -> Verified:
    """Compare every artifact with its manifest, and every checkpoint with its digest.

    A damaged artifact of a cell is set aside as `*.damaged`, so that nothing reads it
    and `dvc repro` makes it again. Results are in Git, and DVC looks after its cache
    and lock: see `git status`, `dvc status` and `dvc checkout`.
    """
    folders = find_artifacts(DATA)
    problems = []
    for folder in folders:
        try:
            differences = open_artifact(folder).problems()
        except ArtifactError as error:
            differences = [f"{error.where}: {error.what}"]
        if differences and WORK in folder.parents:
            # Without its manifest the cell is run again.
            set_aside(folder / MANIFEST)
        problems += differences
    checkpoints = sorted(WORK.rglob(CHECKPOINT))
    for path in checkpoints:
        if Checkpointer(path, 0).load() is None:
            problems.append(f"{path}: damaged (its own sha256 differs)")
    return Verified(len(folders), len(checkpoints), problems)

"""What lies in the project's folder: which cells `dvc repro` would run, and whether
every file is as it was written.
"""

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
    work_folder,
)
from softmax_temperature.runner.checkpoints import Checkpointer
from softmax_temperature.runner.errors import InputError
from softmax_temperature.stages import label, stages_of
from softmax_temperature.tools.provenance import recorded_minutes

NAMES_SHOWN = 5


@dataclass(frozen=True)
class StagePlan:
    """What one stage would do: one of a program's, or one of dvc.yaml without cells."""

    stage: str
    cells: (
        int | None
    )  # None for a stage without cells, and where they cannot be listed.
    to_run: tuple[str, ...] = ()
    minutes: float | None = (
        # Of all its cells, one by one, when the profile last ran; None: not recorded.
        None
    )
    note: str = ""  # Why the cells cannot be listed.

    @property
    def minutes_to_run(self) -> float:
        """The share of the recorded minutes that belongs to the cells to run."""
        return (self.minutes or 0) * len(self.to_run) / (self.cells or 1)


def plan(params: Params) -> list[StagePlan]:
    """Plan a run of the project in the current folder; nothing is run or written."""
    minutes = recorded_minutes(Path("results") / params.profile / "environment.json")
    offline = params.model_copy(
        update={"data": params.data.model_copy(update={"download": False})}
    )
    results: dict[
        Path, Path | None
    ] = {}  # Where cells are published -> where the result lies; None if it has to run.
    plans = []
    for name, content in read_yaml(Path("dvc.yaml"))["stages"].items():
        stages = stages_of(Path(content["cmd"].split()[1]).stem)
        plans += [] if stages else [StagePlan(name, None)]
        for stage in stages:
            try:
                cells = stage.cells(offline)
            except InputError as error:
                plans.append(StagePlan(stage.name, None, note=str(error)))
                continue
            output = label(stage.output)
            found = {
                cell.name: _result(cell, output, params.seed, results) for cell in cells
            }
            results |= {stage.output / cell: result for cell, result in found.items()}
            to_run = tuple(cell for cell, result in found.items() if result is None)
            plans.append(StagePlan(stage.name, len(cells), to_run, minutes.get(output)))
    return plans


def _result(
    cell: Cell, stage: str, seed: int, results: dict[Path, Path | None]
) -> Path | None:
    """The folder of a cell's result, if it is up to date."""
    inputs = {
        name: result
        for name, path in cell.inputs.items()
        if (result := results.get(path, path)) is not None
    }
    if len(inputs) < len(cell.inputs):
        return None
    try:
        digest = fingerprint(replace(cell, inputs=inputs), seed)
    except ArtifactError:
        return None
    result = work_folder(stage, cell.name, digest) / RESULT
    return result if (result / MANIFEST).is_file() else None


def summary(plans: list[StagePlan], params: Params) -> str:
    """The plan as text: one line per stage with cells, then the sum."""
    lines = []
    for stage in plans:
        run, minutes = len(stage.to_run), stage.minutes_to_run
        said = stage.note or "runs when what it reads has changed"
        if stage.cells is not None:
            said = (
                f"{run} of {stage.cells} cells to run"
                if run
                else f"{stage.cells} cells up to date"
            )
        lines.append(
            f"{stage.stage:28} {said}{f', {minutes:.1f} min on the recorded machine' if minutes else ''}"
        )
        if 0 < run < (stage.cells or 0):
            lines.append(
                f"{'':28} {', '.join([*stage.to_run[:NAMES_SHOWN], *['...'] * (run > NAMES_SHOWN)])}"
            )
    workers = 1 if params.compute.engine == "serial" else params.compute.workers
    total = f"{sum(len(stage.to_run) for stage in plans)} of {sum(stage.cells or 0 for stage in plans)} cells to run"
    if minutes := sum(stage.minutes_to_run for stage in plans) / workers:
        whole = max(1, round(minutes))
        total += f", about {whole} minute{'s' * (whole > 1)} with {workers} at a time, as recorded for this profile"
    return "\n".join([*lines, total])


class Verified(NamedTuple):
    """What was compared: folders with a manifest, checkpoints, and one line for each
    file that is not as written.
    """

    artifacts: int
    checkpoints: int
    problems: list[str]


def verify() -> Verified:
    """Compare every artifact with its manifest, and every checkpoint with its digest.

    What is damaged below data/ is set aside as `*.damaged`, so that nothing reads it
    and `dvc repro` makes it again. Results are in Git, and DVC's cache and lock are
    DVC's business: `git status`, `dvc status`, `dvc checkout`.
    """
    folders, checkpoints, problems = (
        find_artifacts(DATA),
        sorted(WORK.rglob(CHECKPOINT)),
        [],
    )
    for folder in folders:
        try:
            lines = open_artifact(folder).problems()
        except ArtifactError as error:
            lines = [f"{error.where}: {error.what}"]
        if (
            lines and WORK in folder.parents
        ):  # Of no stage: without its manifest the cell is run again.
            set_aside(folder / MANIFEST)
        problems += lines
    damaged = [path for path in checkpoints if Checkpointer(path, 0).load() is None]
    problems += [f"{path}: damaged (its own sha256 differs)" for path in damaged]
    return Verified(len(folders), len(checkpoints), problems)

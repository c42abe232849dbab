"""What `dvc repro` would do: the stages, their cells, and how many are up to date. Nothing is run or written."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from softmax_temperature.params import Params, read_yaml
from softmax_temperature.runner.artifacts import MANIFEST, ArtifactError
from softmax_temperature.runner.cells import DATA, RESULT, Cell, fingerprint, timing_file
from softmax_temperature.runner.errors import InputError
from softmax_temperature.stages import Stage
from softmax_temperature.stages.programs import find_stage

NAMES_SHOWN = 5


@dataclass(frozen=True)
class StagePlan:
    """What one stage of the graph would do."""

    stage: str  # Its name in dvc.yaml.
    cells: int | None  # None for a stage without cells, and where they cannot be listed.
    to_run: tuple[str, ...] = ()
    minutes: float | None = (
        None  # Of all its cells, one after the other, when the profile last ran; None: not recorded.
    )
    note: str = ""  # Why the cells cannot be listed.

    @property
    def minutes_to_run(self) -> float | None:
        """The share of the recorded minutes that belongs to the cells to run."""
        return self.minutes and self.cells and self.minutes * len(self.to_run) / self.cells


def plan(params: Params) -> list[StagePlan]:
    """Plan a run of the project in the current folder.

    A cell is up to date if there is a result for its parameters, its code and the results that it reads. A cell that
    reads one that has to run has to run too.
    """
    minutes = _recorded_minutes(Path("results") / params.profile / "environment.json")
    offline = params.model_copy(update={"data": params.data.model_copy(update={"download": False})})
    results: dict[Path, Path | None] = {}  # Where cells are published -> where the result lies; None if it has to run.
    plans = []
    for stage, content in read_yaml(Path("dvc.yaml"))["stages"].items():
        declared = find_stage(Path(content["cmd"].split()[1]).stem)
        plans.append(_planned(stage, declared, offline, results, minutes) if declared else StagePlan(stage, None))
    return plans


def _planned(
    name: str, stage: Stage, params: Params, results: dict[Path, Path | None], minutes: Mapping[str, float]
) -> StagePlan:
    output = stage.output.relative_to(DATA).as_posix()
    try:
        cells = stage.cells(params)
    except InputError as error:
        return StagePlan(name, None, note=str(error))
    found = {cell.name: _result(cell, output, params.seed, results) for cell in cells}
    results |= {stage.output / cell: result for cell, result in found.items()}
    to_run = tuple(cell for cell, result in found.items() if result is None)
    return StagePlan(name, len(cells), to_run, minutes.get(output))


def _result(cell: Cell, stage: str, seed: int, results: Mapping[Path, Path | None]) -> Path | None:
    """The folder of a cell's result, if it is up to date."""
    inputs = {name: result for name, path in cell.inputs.items() if (result := results.get(path, path)) is not None}
    if len(inputs) < len(cell.inputs):
        return None
    try:
        digest = fingerprint(replace(cell, inputs=inputs), seed)
    except ArtifactError:
        return None
    result = timing_file(stage, cell.name, digest).with_name(RESULT)
    return result if (result / MANIFEST).is_file() else None


def _recorded_minutes(path: Path) -> dict[str, float]:
    """Minutes of all cells of each output below data/, as the last run of the profile recorded them."""
    found = {}
    for paper, record in json.loads(path.read_text(encoding="utf-8")).items() if path.is_file() else ():
        for output, minutes in record["cell_minutes"].items():
            found[output] = found[f"{paper}/{output}"] = minutes
    return {output: minutes for output, minutes in found.items() if minutes is not None}


def summary(plans: list[StagePlan], params: Params) -> str:
    """The plan as text: one line per stage with cells, then the sum."""
    lines = []
    for stage in plans:
        run, minutes = len(stage.to_run), stage.minutes_to_run
        said = stage.note or "runs when what it reads has changed"
        if stage.cells is not None:
            said = f"{run} of {stage.cells} cells to run" if run else f"{stage.cells} cells up to date"
        if run and minutes is not None:
            said += f", {minutes:.1f} min on the recorded machine"
        lines.append(f"{stage.stage:28} {said}")
        if 0 < run < (stage.cells or 0):
            lines.append(f"{'':28} {', '.join([*stage.to_run[:NAMES_SHOWN], *['...'] * (run > NAMES_SHOWN)])}")
    known = [stage.minutes_to_run for stage in plans if stage.minutes_to_run]
    workers = 1 if params.compute.engine == "serial" else params.compute.workers
    total = f"{sum(len(stage.to_run) for stage in plans)} of {sum(stage.cells or 0 for stage in plans)} cells to run"
    if known:
        total += f", about {sum(known) / workers:.0f} minutes with {workers} at a time, as recorded for this profile"
    return "\n".join([*lines, total])

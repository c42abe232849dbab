"""What `dvc repro` would do: the stages, their cells, how many of them stand already, and what the others cost.

Minutes are those that a run of the profile recorded; where there is no record, and for memory and disk, they are
foretold from shapes (`cost`), and scaled by what the cells of the stage took that stand already.

Nothing is run, fetched or written. A cell stands if there is a result for its parameters, its code and the results that
it reads; one that reads a cell that has to run has to run too, unless that one turns out as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softmax_temperature.cost.forecast import forecast
from softmax_temperature.papers.shared.results import PAPERS, RESULTS, read_environments
from softmax_temperature.runner.artifacts import MANIFEST, ArtifactError
from softmax_temperature.runner.cells import DATA, fingerprint, timing_file
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.progress import counting
from softmax_temperature.runner.stage_code import imported
from softmax_temperature.runner.yaml_files import read_yaml
from softmax_temperature.stages import fetch

if TYPE_CHECKING:
    from softmax_temperature.params import Params
    from softmax_temperature.runner.jobs import Cell

STAGES = "softmax_temperature.stages."


@dataclass(frozen=True)
class StagePlan:
    """What one stage of the graph would do.

    Attributes:
        stage: its name, with the paper it is for.
        cells: how many it has; None for a stage without cells, and where they cannot be listed.
        to_run: those that do not stand.
        minutes: of these cells, one after the other; None where nothing is recorded or foretold.
        megabytes: that they would write; None where none of the stage stands to go by and shapes do not tell.
        note: why something is not known, or what the stage waits for.
        foretold: minutes from shapes, on so many GPUs (or cores); None where shapes do not tell.
        foretold_cells: the cells that these are of, which may be fewer than have to run.
        gpu_gigabytes: the most that one of these cells needs at a time; None likewise.
    """

    stage: str
    cells: int | None
    to_run: tuple[str, ...] = ()
    minutes: float | None = 0.0
    megabytes: float | None = 0.0
    note: str = ""
    foretold: Mapping[int, float] | None = None
    foretold_cells: int = 0
    gpu_gigabytes: float | None = None


@dataclass
class _Results:
    """Where the results stand that later cells read, by the place where they will be published."""

    standing: dict[Path, Path] = field(default_factory=dict)
    pending: set[Path] = field(default_factory=set)


def plan(params: Params, *, root: Path = Path()) -> list[StagePlan]:
    """Plan a run of the pipeline.

    Args:
        params: the parameters.
        root: of the project; must be the current folder, to which the stages' paths are relative.
    """
    graph: Mapping[str, Any] = read_yaml(root / "dvc.yaml")["stages"]
    instances = [(stage, item) for stage, content in graph.items() for item in _items(params, content)]
    minutes, results, plans = _recorded_minutes(root / RESULTS / params.profile), _Results(), []
    with counting("stages", len(instances)) as advance:
        for stage, item in instances:
            program = root / graph[stage]["cmd"].split()[1]
            modules = [name for name in imported(program.read_text(encoding="utf-8")) if name.startswith(STAGES)]
            name = f"{stage}@{item}" if item else stage
            if modules:
                plans.append(_stage_plan(name, import_module(modules[0]), params, results, minutes))
            else:
                plans.append(StagePlan(name, None, note="runs when what it reads has changed"))
            advance(1)
    return plans


def _items(params: Params, content: Mapping[str, Any]) -> list[str]:
    """The values of a stage's matrix, which is a section of the parameters; one empty text for a stage without."""
    if "matrix" not in content:
        return [""]
    (reference,) = content["matrix"].values()
    value: Any = params
    for part in str(reference).removeprefix("${").removesuffix("}").split("."):
        value = getattr(value, part)
    return list(value)


def _stage_plan(
    name: str, stage: Any, params: Params, results: _Results, recorded: Mapping[str, float | None]
) -> StagePlan:
    output: Path = stage.OUTPUT
    try:
        # The stage of data sets leaves these where they are; the others must not fetch their weights now.
        cells: list[Cell] = fetch.all_cells(params) if stage is fetch else stage.cells(_offline(params))
    except InputError as error:
        return StagePlan(name, None, minutes=None, megabytes=None, note=str(error))
    label = output.relative_to(DATA).as_posix()
    found = {cell.name: _standing(cell, label, params.seed, results) for cell in cells}
    for cell_name, result in found.items():
        if result is None:
            results.pending.add(output / cell_name)
        else:
            results.standing[output / cell_name] = result
    to_run = tuple(cell_name for cell_name, result in found.items() if result is None)
    known = recorded.get(_minutes_key(stage.OUTPUT))
    share = len(to_run) / len(cells) if cells else 0.0
    standing = {cell_name: result for cell_name, result in found.items() if result is not None}
    taking: float | None
    will = forecast(stage.__name__.rpartition(".")[2], cells, standing, params)
    if known is not None or not to_run:
        taking, note = round((known or 0.0) * share, 2), ""
    else:
        taking = will.minutes[1] if will.minutes else None
        source = f"foretold from shapes, of {will.timed} cells" if will.minutes else "not recorded"
        note = f"minutes of profile {params.profile}: {source}"
    if standing:
        megabytes: float | None = round(_megabytes(list(standing.values())) / len(standing) * len(to_run), 4)
    else:
        megabytes = will.megabytes if to_run else 0.0
    return StagePlan(name, len(cells), to_run, taking, megabytes, note, will.minutes, will.timed, will.gpu_gigabytes)


def _offline(params: Params) -> Params:
    return params.model_copy(update={"data": params.data.model_copy(update={"download": False})})


def _standing(cell: Cell, stage: str, seed: int, results: _Results) -> Path | None:
    """The folder of a cell's result, if it stands."""
    if any(path in results.pending for path in cell.inputs.values()):
        return None
    # What is published may be of other parameters; a result of these parameters counts.
    inputs = {name: results.standing.get(path, path) for name, path in cell.inputs.items()}
    try:
        digest = fingerprint(replace(cell, inputs=inputs), seed)
    except ArtifactError:
        return None
    result = timing_file(stage, cell.name, digest).with_name("result")
    return result if (result / MANIFEST).is_file() else None


def _recorded_minutes(folder: Path) -> dict[str, float | None]:
    """Minutes of all cells of each stage when the profile was run; see `_minutes_key`."""
    found: dict[str, float | None] = {}
    for paper, environment in read_environments(folder).items():
        for output, minutes in environment["cell_minutes"].items():
            found[output] = found[f"{paper}/{output}"] = minutes
    return found


def _minutes_key(output: Path) -> str:
    """How a record names a stage's output: by its folder, below the paper's where it is one paper's."""
    return f"{output.parent.name}/{output.name}" if output.parent.name in PAPERS else output.name


def _megabytes(folders: list[Path]) -> float:
    sizes: Iterator[int] = (path.stat().st_size for folder in folders for path in folder.rglob("*") if path.is_file())
    return sum(sizes) / 1e6

"""The state of the project's folder: the cells that would run, and damaged files."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from softmax_temperature.papers.shared.provenance import recorded_stages
from softmax_temperature.params import Params, read_params, read_yaml
from softmax_temperature.runner.artifacts import (
    MANIFEST,
    ArtifactError,
    find_artifacts,
    find_files,
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
from softmax_temperature.runner.checkpoints import Checkpointer, UnusableCheckpoint
from softmax_temperature.runner.errors import InputError, NotDownloadedError
from softmax_temperature.runner.fingerprint import PACKAGE
from softmax_temperature.runner.loading import uncollected
from softmax_temperature.stages import label, stages_of
from softmax_temperature.stages.inputs import missing_lines, without_missing
from softmax_temperature.tools.programs import require_dependencies

LOCK = Path("dvc.lock")
# Maximum number of cells to run that a plan lists by name.
NAMES_SHOWN = 5
# Width of the column of stage names.
NAME_WIDTH = 28


@dataclass(frozen=True)
class StagePlan:
    """The plan for one stage, which may be a stage in dvc.yaml without cells.

    Attributes:
        stage: Name of the stage.
        cells: Number of the stage's cells; None if the stage has no cells or they
            cannot be listed.
        to_run: Names of the cells that would run.
        minutes_per_cell: Mean minutes per cell when the profile last ran; None if no
            run is recorded.
        unknown: Number of cells that would run and for which no run is recorded.
        note: The reason why the cells cannot be listed, or why the stage would refuse
            to run them.
        gpu_hours: Estimate for all cells of the stage, from the parameters; None if
            there is no estimate, no cell would run, or minutes are recorded.
    """

    stage: str
    cells: int | None
    to_run: tuple[str, ...] = ()
    minutes_per_cell: float | None = None
    unknown: int = 0
    note: str = ""
    gpu_hours: float | None = None

    @property
    def minutes_to_run(self) -> float:
        """Total minutes of the cells that would run and have been timed before."""
        return (self.minutes_per_cell or 0) * (len(self.to_run) - self.unknown)


def plan(params: Params) -> list[StagePlan]:
    """Plan a run of the project in the current folder, without running anything.

    Raises InputError if the imported package is not the package in this folder.
    """
    _require_package_of_this_folder()
    recorded = recorded_stages(Path("results") / params.profile)
    params = without_missing(params, to_come=True)
    # Maps the folder in which a cell is published to the folder of its result, or to
    # None if the cell must run.
    results: dict[Path, Path | None] = {}
    plans = []
    # Import all stages first. Declaring cells can load a library that complains at exit
    # about objects that a later import has hidden from the garbage collector.
    with uncollected():
        programs = {
            name: Path(content["cmd"].split()[1]).stem
            for name, content in read_yaml(Path("dvc.yaml"))["stages"].items()
        }
        stages = {name: stages_of(program) for name, program in programs.items()}
    for name, stages_of_name in stages.items():
        if not stages_of_name:
            plans.append(StagePlan(name, None))
        for stage in stages_of_name:
            try:
                cells = stage.cells(params)
                require_dependencies(programs[name], cells)
            except InputError as error:
                note = _note(error, params)
                hours = params.compute.gpu_hours.get(stage.name)
                plans.append(StagePlan(stage.name, None, note=note, gpu_hours=hours))
                continue
            output = label(stage.output)
            results_of_stage = {
                cell.name: _result(cell, output, params.seed, results) for cell in cells
            }
            for cell_name, result in results_of_stage.items():
                results[stage.output / cell_name] = result
            to_run = [cell for cell, result in results_of_stage.items() if not result]
            before = recorded.get(output)
            hours = None
            if to_run and before is None:
                hours = params.compute.gpu_hours.get(stage.name)
            cells_before = before.cells if before else frozenset()
            stage_plan = StagePlan(
                stage.name,
                len(cells),
                tuple(to_run),
                minutes_per_cell=before.minutes_per_cell if before else None,
                unknown=len(set(to_run) - cells_before),
                gpu_hours=hours,
            )
            plans.append(stage_plan)
    return plans


def not_run(study: str, file: Path = Path("params.yaml")) -> str:
    """Explain why the study's results count as not computed in this folder.

    The parameter file may belong to another profile, or may have changed since the last
    run that dvc.lock records, or cells may still have to run.

    Returns:
        A sentence with the remedy, or an empty text if the results were computed here.
    """
    params = read_params(file)
    if params.profile != study:
        return (
            f"{file} is of profile {params.profile}, so nothing says that {study} ran "
            f"here. Run: softmax-temperature profile {study}, then dvc repro"
        )
    changed = _changed_since_the_run(file, params.papers)
    if changed:
        return (
            "Nothing has been run with these parameters: since the last run, "
            f"{', '.join(changed)} changed. Run: dvc repro"
        )
    plans = plan(params)
    cells = sum(stage.cells or 0 for stage in plans)
    to_run = sum(len(stage.to_run) for stage in plans)
    if to_run:
        return f"{to_run} of {cells} cells must still run. Run: dvc repro"
    for stage in plans:
        if stage.note:
            return f"The cells of {stage.stage} cannot be planned: {stage.note}"
    return ""


def _changed_since_the_run(file: Path, papers: Collection[str]) -> list[str]:
    """The keys of the parameters that differ from those in dvc.lock, for `papers`."""
    if not LOCK.is_file():
        return []
    current = read_yaml(file)
    changed = []
    for name, stage in read_yaml(LOCK)["stages"].items():
        _, _, paper = name.partition("@")
        if paper and paper not in papers:
            continue
        for key, value in stage.get("params", {}).get(file.name, {}).items():
            now = current
            for part in key.split("."):
                now = now.get(part) if isinstance(now, dict) else None
            if now != value:
                changed.append(key)
    return sorted(set(changed))


def _note(error: InputError, params: Params) -> str:
    """Say why the cells cannot be listed, and what to do about it."""
    if isinstance(error, NotDownloadedError) and params.data.download:
        return f"{error.where}: {error.what}; the run downloads them"
    return str(error)


def _require_package_of_this_folder() -> None:
    """Refuse to plan with another checkout's code: fingerprints depend on the code."""
    here = Path("src", PACKAGE)
    imported = Path(__file__).parents[1]
    if here.is_dir() and not here.samefile(imported):
        raise InputError(
            f"is not the imported package, which is {imported}",
            where=str(here),
            remedy="Run the command again with PYTHONPATH=src.",
        )


def _result(
    cell: Cell, stage: str, seed: int, results: dict[Path, Path | None]
) -> Path | None:
    """The folder of the result of `cell` if the cell need not run, otherwise None."""
    inputs = {}
    for name, path in cell.inputs.items():
        # If no planned cell makes the input, the input is read at its own path.
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
    """The `plans` as text: the missing items, then the stages, then the total."""
    missing = missing_lines(params, to_come=True)
    lines = [f"not run: data missing: {line}" for line in missing]
    for stage in plans:
        minutes = stage.minutes_to_run
        timing = f", {minutes:.1f} min on the recorded machine" if minutes else ""
        if stage.gpu_hours:
            timing = f", about {stage.gpu_hours:g} GPU-hours for all (estimated)"
        elif stage.unknown:
            timing += f", minutes unknown for {_count(stage.unknown)}"
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
    if not stage.cells:
        return "no cells for these parameters"
    if stage.to_run:
        return f"{len(stage.to_run)} of {stage.cells} cells to run"
    return f"{stage.cells} cells up to date"


def _total(plans: list[StagePlan], params: Params) -> str:
    to_run = sum(len(stage.to_run) for stage in plans)
    cells = sum(stage.cells or 0 for stage in plans)
    total = f"{to_run} of {cells} cells to run"
    unplanned = sum(bool(stage.note) for stage in plans)
    if unplanned:
        stages = "1 stage" if unplanned == 1 else f"{unplanned} stages"
        total += f", and those of {stages} that cannot be planned yet"
    workers = 1 if params.compute.engine == "serial" else params.compute.workers
    minutes = sum(stage.minutes_to_run for stage in plans) / workers
    hours = sum(stage.gpu_hours or 0 for stage in plans)
    if hours:
        total += f", about {hours:g} GPU-hours estimated (docs/costs.md)"
    unknown = sum(stage.unknown for stage in plans if not stage.gpu_hours)
    if unknown:
        total += f", minutes unknown for {_count(unknown)}"
    if not minutes:
        return total
    rounded = max(1, round(minutes))
    unit = "minute" if rounded == 1 else "minutes"
    of_others = "for the others " if unknown else ""
    return (
        f"{total}, about {rounded} {unit} {of_others}with {workers} at a time, on "
        "the machine of the recorded run"
    )


def _count(cells: int) -> str:
    return "1 cell" if cells == 1 else f"{cells} cells"


class Verified(NamedTuple):
    """The result of `verify`.

    Attributes:
        artifacts: Number of folders with a manifest.
        checkpoints: Number of checkpoints.
        problems: One line per file that is damaged, missing or not in a manifest.
    """

    artifacts: int
    checkpoints: int
    problems: list[str]


def verify() -> Verified:
    """Compare every artifact with its manifest, and every checkpoint with its digest.

    If a cell's artifact is damaged, its manifest is renamed to `*.damaged`, so that
    nothing reads the artifact and `dvc repro` computes it again. Results are in Git,
    and DVC manages its cache and lock: see `git status`, `dvc status` and
    `dvc checkout`.
    """
    folders = find_artifacts(DATA)
    problems = []
    for folder in folders:
        try:
            differences = open_artifact(folder).problems()
        except ArtifactError as error:
            differences = [f"{error.where}: {error.what}"]
        if differences and WORK in folder.parents:
            # Set the manifest aside, so that the cell runs again.
            set_aside(folder / MANIFEST)
        problems += differences
    checkpoints = sorted(find_files(WORK, CHECKPOINT))
    for path in checkpoints:
        try:
            is_whole = Checkpointer(path, 0).load() is not None
        except UnusableCheckpoint as error:
            problems.append(f"{error.where}: {error.what}")
        else:
            if not is_whole:
                problems.append(
                    f"{path}: damaged (its sha256 is not the one it records)"
                )
    return Verified(len(folders), len(checkpoints), problems)

"""Running cells: the small, named, resumable units of work of a stage.

A cell's result is an artifact in `data/cells/<stage>/<cell>/<fingerprint>/result`. As
long as the result is intact, the cell does not run again. When every cell of a stage is
done, the stage's output folder is replaced with links to, or copies of, exactly these
results. A result that `dvc pull` has fetched counts as done, too.
"""

import math
import os
import shutil
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from pydantic_core import to_jsonable_python
from threadpoolctl import threadpool_limits

from softmax_temperature.data.seeds import seed_of
from softmax_temperature.runner import distributed
from softmax_temperature.runner.artifacts import (
    UNFINISHED,
    Artifact,
    ArtifactError,
    atomic_folder,
    digest_of,
    new_artifact,
    open_artifact,
    write_sealed,
)
from softmax_temperature.runner.checkpoints import Checkpointer, UnusableCheckpoint
from softmax_temperature.runner.engines import run_tasks
from softmax_temperature.runner.errors import (
    CellsFailed,
    InputError,
    disk_faults,
    is_out_of_memory,
)
from softmax_temperature.runner.fingerprint import code_digest
from softmax_temperature.runner.implementations import implementations, module_of
from softmax_temperature.runner.machine import (
    machine,
    prepare_torch,
    resolve_device,
    versions,
)
from softmax_temperature.runner.progress import CellProgress, Progress, say
from softmax_temperature.runner.section import Compute

DATA = Path("data")
WORK = DATA / "cells"
TIMING = "timing.json"
RESULT = "result"
CHECKPOINT = "checkpoint.pt"


@dataclass(frozen=True)
class Job:
    """The context of a running cell.

    The cell reads `inputs`, writes into `output`, and keeps its checkpoint in `work`.
    Its `seed` is derived from the project's seed, the stage and the cell's name, so
    that adding a cell does not change another cell's seed.
    """

    seed: int
    inputs: Mapping[str, Artifact]
    output: Path
    work: Path
    device: str  # "cpu" or "cuda".
    checkpoint_seconds: float  # Minimum time between checkpoints.
    cuda_graphs: bool = False  # Whether to capture training steps as CUDA graphs.
    lines: Progress = field(default_factory=Progress)

    def checkpointer(self) -> Checkpointer:
        """Make a checkpointer, whose file is removed when the cell is done."""
        return Checkpointer(self.work / CHECKPOINT, self.checkpoint_seconds)

    def progress(self, done: int, total: int) -> None:
        """Print that `done` of `total` steps are done, if a line is due."""
        if not distributed.is_follower():
            self.lines(f"{self.work.parent}: {done}/{total}")


@dataclass(frozen=True)
class Cell:
    """One unit of work: a module-level function, `run(job, **plan, **places)`.

    The result depends on the project's seed, `plan`, the code, and `inputs`, a mapping
    from names used in the function to artifact folders.

    `places` holds the locations of the user's files, and settings for getting them. The
    result depends on the content of these files, so their digests are in `plan` or
    `inputs`. The locations and settings themselves do not count, so data may move to
    another disk.
    """

    # Unique within the stage. A cell called "." is the only one of its stage, and its
    # result fills the output folder itself.
    name: str
    run: Callable[..., None]
    plan: Mapping[str, Any]
    inputs: Mapping[str, Path] = field(default_factory=dict)
    # The part of a GPU that the cell fills, or None if unknown. Without Ray, cells that
    # run at the same time fill at most one GPU.
    gpu_share: float | None = None
    places: Mapping[str, Any] = field(default_factory=dict)

    @property
    def parameters(self) -> dict[str, Any]:
        """The plan as JSON values."""
        return dict(to_jsonable_python(self.plan))

    def reads(self) -> dict[str, Any]:
        """Return the parameters and the digests of inputs and code for the fingerprint.

        Raises ArtifactError if an input is missing.
        """
        digests = {}
        for name, path in self.inputs.items():
            digests[name] = open_artifact(path).digest
        return {
            "parameters": self.parameters,
            "inputs": digests,
            "code": self.code(),
        }

    def code(self) -> dict[str, str]:
        """Return digests of the code of the function and of the plan's classes."""
        module = self.run.__module__
        code = {module: code_digest(module)}
        for reference in self.implementations():
            code[reference] = code_digest(module_of(reference))
        return code

    def implementations(self) -> list[str]:
        """The classes that the plan names, as "module:Class"."""
        return [
            reference
            for value in self.plan.values()
            for reference in implementations(value)
        ]


@dataclass(frozen=True)
class _Task:
    """A cell with everything that a worker process needs to run it."""

    stage: str
    cell: Cell
    fingerprint: str
    seed: int
    compute: Compute

    @property
    def work(self) -> Path:
        return work_folder(self.stage, self.cell.name, self.fingerprint)

    def is_done(self) -> bool:
        with suppress(ArtifactError):
            return not open_artifact(self.work / RESULT).problems()
        return False

    def call(self, output: Path, work: Path, checkpoint_seconds: float) -> str:
        """Call the cell's function, and return the device on which it ran."""
        cell = self.cell
        compute = self.compute
        device = prepare_torch(
            compute.threads_per_cell,
            compute.device,
            deterministic=compute.deterministic,
        )
        inputs = {name: open_artifact(path) for name, path in cell.inputs.items()}
        job = Job(
            seed=seed_of(self.seed, self.stage, cell.name),
            inputs=inputs,
            output=output,
            work=work,
            device=device,
            checkpoint_seconds=checkpoint_seconds,
            cuda_graphs=compute.cuda_graphs,
        )
        # Fix the number of threads in linear algebra, because the last bits of a sum
        # depend on it.
        with threadpool_limits(limits=compute.threads_per_cell):
            try:
                cell.run(job, **cell.plan, **cell.places)
            except UnusableCheckpoint as error:
                # The checkpoint has been set aside. Part of the state may have been
                # restored, so start again.
                say(str(error))
                cell.run(job, **cell.plan, **cell.places)
        return device


def fingerprint(cell: Cell, seed: int) -> str:
    """Compute the digest of everything that the result of `cell` depends on.

    Raises ArtifactError if an input is missing.
    """
    return digest_of({**cell.reads(), "seed": seed, "function": cell.run.__qualname__})


def work_folder(stage: str, cell: str, fingerprint: str) -> Path:
    """The folder that holds a cell's checkpoint, result and timing."""
    return WORK / stage / cell / fingerprint[:16]


def published_result(stage: str, cell: str, fingerprint: str) -> Path | None:
    """Find the folder below `data/<stage>` with the cell's published result.

    Returns None if the result is missing or damaged, or has a different fingerprint.
    """
    folder = DATA / stage / cell
    with suppress(ArtifactError):
        artifact = open_artifact(folder, kind=stage)
        is_same = artifact.about.get("fingerprint") == fingerprint
        if is_same and not artifact.problems():
            return folder
    return None


def run_cells(
    cells: Sequence[Cell], *, output: Path, compute: Compute, seed: int
) -> None:
    """Run a stage's unfinished cells, and publish the results of all its cells.

    Under `torchrun` only process 0 does this; the other processes only help to train.

    Afterwards `output` holds one artifact per cell and nothing else. The path of
    `output` below `data/` names the stage, for seeds and for the work folder; `seed` is
    the project's seed. If cells fail, CellsFailed is raised and nothing is published.
    """
    names = [cell.name for cell in cells]
    if len(set(names)) < len(names):
        raise ValueError(f"cells: names are not unique: {sorted(names)}")
    stage = output.relative_to(DATA).as_posix()
    if distributed.PROCESSES > 1 and compute.engine != "serial":
        problem = f"cannot be {compute.engine!r} under torchrun"
        remedy = (
            "Set it to serial: under torchrun all processes train one cell at a time."
        )
        raise InputError(problem, where="compute.engine", remedy=remedy)
    if distributed.is_follower():
        _follow(stage, cells, compute, seed)
        return
    with alone(WORK / stage):
        tasks = [
            _Task(stage, cell, fingerprint(cell, seed), seed, compute) for cell in cells
        ]
        failures = _run_pending(stage, tasks, compute)
        if failures:
            raise CellsFailed(stage, failures, len(cells))
        _publish(tasks, output)
    # Tell the other processes that there are no more cells. After an error, `torchrun`
    # ends them instead.
    distributed.agreed(None)


def _follow(stage: str, cells: Sequence[Cell], compute: Compute, seed: int) -> None:
    """Help process 0 to train each cell that it runs, and save nothing."""
    tasks = {cell.name: _Task(stage, cell, "", seed, compute) for cell in cells}

    def run(name: str, folder: Path) -> None:
        tasks[name].call(folder, folder, math.inf)

    distributed.follow(run)


def _publish(tasks: Sequence[_Task], output: Path) -> None:
    """Replace the folder `output` with hard links to the tasks' results (or copies)."""
    with atomic_folder(output) as new:
        for task in tasks:
            result = task.work / RESULT
            # The result is missing if a cluster's node worked in a folder that it does
            # not share with this machine.
            open_artifact(result)
            target = new / task.cell.name
            shutil.copytree(result, target, copy_function=_link, dirs_exist_ok=True)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold the lock of `folder`; if another process holds it, say so and wait.

    The operating system frees the lock if the process that holds it dies.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / "lock")
    try:
        held = lock.acquire(timeout=1)
    except Timeout:
        say(f"{folder}: another process is using this folder; waiting for it to finish")
        held = lock.acquire()
    with held:
        yield


def _run_pending(
    stage: str, tasks: Sequence[_Task], compute: Compute
) -> dict[str, str]:
    """Run the tasks that have no intact result in `work` or among published results.

    Returns the reason for each failure, keyed by cell name, in the order of the cells.
    """
    unfinished = [task for task in tasks if not task.is_done()]
    pending = [task for task in unfinished if not _take_published(task)]
    say(f"{stage}: {len(pending)} of {len(tasks)} cells to run")
    on_gpu = resolve_device(compute.device) != "cpu"
    shares = [task.cell.gpu_share if on_gpu else None for task in pending]
    failures: dict[int, str] = {}
    progress = CellProgress(stage, len(tasks), len(pending))
    results = run_tasks(_attempt, pending, compute, shares)
    for done, (number, failure) in enumerate(results, 1):
        if failure:
            failures[number] = failure
            if distributed.PROCESSES > 1:
                # The other processes may wait forever in the cell that failed;
                # `torchrun` ends them when this process exits.
                break
        progress(done)
    return {pending[number].cell.name: failures[number] for number in sorted(failures)}


def _take_published(task: _Task) -> bool:
    """Link a task's published result into its work folder.

    Returns whether there is one.
    """
    folder = published_result(task.stage, task.cell.name, task.fingerprint)
    if folder is None:
        return False
    with atomic_folder(task.work / RESULT) as new:
        shutil.copytree(folder, new, copy_function=_link, dirs_exist_ok=True)
    return True


def _attempt(task: _Task) -> str | None:
    """Run the cell of `task`; return None, or one line that reports its error."""
    try:
        with disk_faults(task.work), alone(task.work):
            _run(task)
    except InputError as error:
        return str(error)
    # A failed cell must not stop the other cells; the stage still exits non-zero.
    except Exception as error:  # noqa: BLE001
        trace = task.work / "error.txt"
        with suppress(OSError):
            trace.write_text(
                traceback.format_exc(), encoding="utf-8", errors="backslashreplace"
            )
        message = " ".join(str(error).split())
        reason = f"{type(error).__name__}: {message} (trace: {trace})"
        if is_out_of_memory(error):
            reason += ". Lower compute.workers or the batch size, then run again"
        return reason
    return None


def _run(task: _Task) -> None:
    cell = task.cell
    work = task.work
    started = time.monotonic()
    if fingerprint(cell, task.seed) != task.fingerprint:
        problem = (
            "its code, a library's version or an input changed since the stage began, "
            "or differs on this machine"
        )
        raise InputError(problem, where=cell.name, remedy="Run the stage again.")
    # A writer that was killed leaves an unfinished folder. Unfinished folders can be
    # removed, because no other process writes here now.
    for unfinished in work.glob(f".*{UNFINISHED}"):
        shutil.rmtree(unfinished)
    about = cell.reads() | {
        "stage": task.stage,
        "cell": cell.name,
        "fingerprint": task.fingerprint,
        "seed": task.seed,
    }
    with new_artifact(work / RESULT, kind=task.stage, about=about) as output:
        distributed.agreed(cell.name)  # The other processes now train this cell, too.
        device = task.call(output, work, task.compute.checkpoint_seconds)
    (work / CHECKPOINT).unlink(missing_ok=True)
    seconds = round(time.monotonic() - started, 3)
    # Time and device are not in the artifact, because they differ between runs with
    # equal results.
    write_sealed(
        work / TIMING,
        {
            "seconds": seconds,
            "device": device,
            "machine": machine(),
            "versions": versions(),
        },
    )


def _link(source: str, target: str) -> None:
    if Path(source).is_symlink():  # A link into DVC's cache, which users may clear.
        shutil.copy2(source, target)
        return
    try:
        os.link(source, target)
    except OSError:  # The file system does not support hard links.
        shutil.copy2(source, target)

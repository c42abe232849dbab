"""Running cells: the small, named, resumable pieces of work that a stage consists of.

A cell's result is an artifact in `data/cells/<stage>/<cell>/<fingerprint>/result`;
while that is intact, the cell is not run again. When every cell of a stage is done, the
stage's output folder becomes links to exactly these results.
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
from softmax_temperature.runner.checkpoints import Checkpointer
from softmax_temperature.runner.engines import run_tasks
from softmax_temperature.runner.errors import CellsFailed, InputError, disk_faults
from softmax_temperature.runner.fingerprint import code_digest
from softmax_temperature.runner.implementations import implementations, module_of
from softmax_temperature.runner.machine import (
    machine,
    prepare_torch,
    resolve_device,
    versions,
)
from softmax_temperature.runner.progress import Progress, say
from softmax_temperature.runner.section import Compute

DATA = Path("data")
WORK = DATA / "cells"
TIMING, RESULT, CHECKPOINT = "timing.json", "result", "checkpoint.pt"
_OUT_OF_MEMORY = (
    "out of memory",
    "DefaultCPUAllocator",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
)


@dataclass(frozen=True)
class Job:
    """What a running cell is given: it reads `inputs`, writes into `output`, and keeps
    its checkpoint in `work`.

    Its `seed` is derived from the project's, the stage and the cell's name: adding a
    cell changes no other.
    """

    seed: int
    inputs: Mapping[str, Artifact]
    output: Path
    work: Path
    device: str  # "cpu" or "cuda".
    checkpoint_seconds: float  # At least so many between two checkpoints.
    cuda_graphs: bool = False  # Capture training steps.
    lines: Progress = field(default_factory=Progress)

    def checkpointer(self) -> Checkpointer:
        """Where the cell keeps its unfinished state; removed when the cell is done."""
        return Checkpointer(self.work / CHECKPOINT, self.checkpoint_seconds)

    def progress(self, done: int, total: int) -> None:
        """Say how far the cell is, now and then."""
        if not distributed.is_follower():
            self.lines(f"{self.work.parent}: {done}/{total}")


@dataclass(frozen=True)
class Cell:
    """One piece of work: the module-level function `run`, called as `run(job, **plan)`.

    The result depends on `plan`, on code, and on `inputs`, artifacts by the names that
    the function uses for them.
    """

    # Unique within the stage; the only cell of a stage is called "." and fills the
    # output folder itself.
    name: str
    run: Callable[..., None]
    plan: Mapping[str, Any]
    inputs: Mapping[str, Path] = field(default_factory=dict)
    gpu_share: float | None = (
        # The part of a GPU that it fills, if known: cells side by side fill at most
        # one.
        None
    )

    @property
    def parameters(self) -> dict[str, Any]:
        """The plan as JSON values."""
        return dict(to_jsonable_python(self.plan))

    def reads(self) -> dict[str, Any]:
        """The digests of inputs and code; an `ArtifactError` if an input is missing."""
        inputs = {
            name: open_artifact(path).digest for name, path in self.inputs.items()
        }
        return {
            "parameters": self.parameters,
            "inputs": inputs,
            "code": self.code(),
        }

    def code(self) -> dict[str, str]:
        """The digests of the code: of the function's module, and of each class that the
        plan names, under "module:Class".
        """
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
    """A cell with all that a worker process needs to run it."""

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
        """Call the cell's function; returns the device that it used."""
        cell, compute = self.cell, self.compute
        device = prepare_torch(
            compute.threads_per_cell,
            compute.device,
            deterministic=compute.deterministic,
        )
        inputs = {name: open_artifact(path) for name, path in cell.inputs.items()}
        seed = seed_of(self.seed, self.stage, cell.name)
        job = Job(
            seed, inputs, output, work, device, checkpoint_seconds, compute.cuda_graphs
        )
        # The last bits of a sum depend on the threads of the linear-algebra libraries.
        with threadpool_limits(limits=compute.threads_per_cell):
            cell.run(job, **cell.plan)
        return device


def fingerprint(cell: Cell, seed: int) -> str:
    """The digest of everything that the cell's result depends on; an `ArtifactError` if
    an input is missing.
    """
    return digest_of({**cell.reads(), "seed": seed, "function": cell.run.__qualname__})


def work_folder(stage: str, cell: str, fingerprint: str) -> Path:
    """Where a cell keeps its checkpoint, and leaves its result and timing."""
    return WORK / stage / cell / fingerprint[:16]


def run_cells(
    cells: Sequence[Cell], *, output: Path, compute: Compute, seed: int
) -> None:
    """Run the cells of a stage that are not done yet, then publish one artifact per
    cell in `output`, and nothing else.

    The path of `output` below `data/` names the stage, for seeds and for the work
    folder; `seed` is the project's. If some cells fail, CellsFailed is raised and
    nothing is published.
    """
    names = [cell.name for cell in cells]
    if len(set(names)) < len(names):
        raise ValueError(f"cells: names are not unique: {sorted(names)}")
    stage = output.relative_to(DATA).as_posix()
    if distributed.PROCESSES > 1 and compute.engine != "serial":
        remedy = (
            "Set it to serial: under torchrun all processes train one cell at a time."
        )
        raise InputError(
            f"is {compute.engine!r} under torchrun",
            where="compute.engine",
            remedy=remedy,
        )
    if distributed.is_follower():
        tasks_by_name = {
            cell.name: _Task(stage, cell, "", seed, compute) for cell in cells
        }
        distributed.follow(
            lambda name, folder: tasks_by_name[name].call(folder, folder, math.inf)
        )
        return
    with alone(WORK / stage):
        tasks = [
            _Task(stage, cell, fingerprint(cell, seed), seed, compute) for cell in cells
        ]
        if failures := _run_pending(stage, tasks, compute):
            raise CellsFailed(stage, failures, len(cells))
        with atomic_folder(output) as new:
            for task in tasks:
                open_artifact(
                    task.work / RESULT
                )  # Not there if a node of a cluster worked in a folder of its own.
                shutil.copytree(
                    task.work / RESULT,
                    new / task.cell.name,
                    copy_function=_link,
                    dirs_exist_ok=True,
                )
    distributed.agreed(
        None
    )  # Dismisses those that follow; after an error `torchrun` ends them.


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a folder's lock, or wait for it and say so; the system frees it when the
    holder dies.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / "lock")
    try:
        held = lock.acquire(timeout=1)
    except Timeout:
        say(f"{folder}: another process is at work here; waiting for it")
        held = lock.acquire()
    with held:
        yield


def _run_pending(
    stage: str, tasks: Sequence[_Task], compute: Compute
) -> dict[str, str]:
    """Run the tasks that have no intact result; returns the failed ones with the
    reasons.
    """
    pending = [task for task in tasks if not task.is_done()]
    say(f"{stage}: {len(pending)} of {len(tasks)} cells to run")
    failures: dict[int, str] = {}
    on_gpu, progress = resolve_device(compute.device) != "cpu", Progress()
    shares = [task.cell.gpu_share if on_gpu else None for task in pending]
    for done, (number, failure) in enumerate(
        run_tasks(_attempt, pending, compute, shares), 1
    ):
        if failure:
            failures[number] = failure
            if distributed.PROCESSES > 1:
                # The others may wait within that cell for ever: `torchrun` ends them
                # when this one exits.
                break
        progress(f"{stage}: {done}/{len(pending)} cells")
    return {
        pending[number].cell.name: failures[number] for number in sorted(failures)
    }  # In the order of the cells.


def _attempt(task: _Task) -> str | None:
    """Run one cell; an error becomes a line of the stage's report."""
    try:
        with disk_faults(task.work), alone(task.work):
            _run(task)
    except InputError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001  # A cell must not end its neighbours; the stage still exits non-zero.
        trace = task.work / "error.txt"
        with suppress(OSError):
            trace.write_text(
                traceback.format_exc(), encoding="utf-8", errors="backslashreplace"
            )
        reason = (
            f"{type(error).__name__}: {' '.join(str(error).split())} (trace: {trace})"
        )
        # By the words, because failed allocations in cuBLAS and cuDNN are plain
        # RuntimeErrors.
        if isinstance(error, MemoryError) or any(
            text in str(error) for text in _OUT_OF_MEMORY
        ):
            reason += (
                ". Lower compute.workers or the size of the batches; then run again"
            )
        return reason
    return None


def _run(task: _Task) -> None:
    cell, work, started = task.cell, task.work, time.monotonic()
    if fingerprint(cell, task.seed) != task.fingerprint:
        what = "its code, a library's version or an input changed since the stage began, or differs on this machine"
        raise InputError(what, where=cell.name, remedy="Run the stage again.")
    for left in work.glob(
        f".*{UNFINISHED}"
    ):  # By killed writers; nobody writes here now.
        shutil.rmtree(left)
    about = cell.reads() | {
        "stage": task.stage,
        "cell": cell.name,
        "fingerprint": task.fingerprint,
        "seed": task.seed,
    }
    with new_artifact(work / RESULT, kind=task.stage, about=about) as output:
        distributed.agreed(cell.name)  # Those that follow run it too.
        device = task.call(output, work, task.compute.checkpoint_seconds)
    (work / CHECKPOINT).unlink(missing_ok=True)
    seconds = round(time.monotonic() - started, 3)
    # Beside the artifact, because these differ between runs that give equal results.
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
    try:
        os.link(source, target)
    except OSError:  # No links are possible there.
        shutil.copy2(source, target)

"""Running cells: the small, named, resumable pieces of work that a stage consists of.

A cell's fingerprint is the digest of its parameters, of the artifacts it reads, of the project's seed and of the code
that its function runs. Its result is an artifact in `data/work/<stage>/<cell>/<fingerprint>/result`; while that
verifies, the cell is not run again. When every cell of a stage is done, the stage's output folder is made of links to
exactly those results, so a left-over can never be read.

    run_cells(cells, output=Path("data/embeddings"), compute=params.compute, seed=params.seed)
"""

from __future__ import annotations

import math
import os
import shutil
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_limits

from softmax_temperature.runner.artifacts import (
    ArtifactError,
    canonical_json,
    digest_of_text,
    new_artifact,
    open_artifact,
    read_sealed,
    replace_folder,
    write_sealed,
)
from softmax_temperature.runner.code_digest import code_digest, fresh_code_digest
from softmax_temperature.runner.disk_faults import disk_faults
from softmax_temperature.runner.engines import run_all
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.heap import keep_freed_memory
from softmax_temperature.runner.jobs import CHECKPOINT, Cell, seed_of
from softmax_temperature.runner.locks import alone
from softmax_temperature.runner.machine import machine, versions
from softmax_temperature.runner.progress import say
from softmax_temperature.runner.stopping import PATIENCE, Stop, put_off
from softmax_temperature.runner.torchrun import follow, follows, leading, together
from softmax_temperature.runner.unfinished import unfinished_folder

if TYPE_CHECKING:
    from softmax_temperature.params import Compute

DATA = Path("data")
WORK = DATA / "work"
TIMING = "timing.json"


class CellsFailed(Exception):
    """Some cells of a stage failed; the others finished and are kept."""

    def __init__(self, stage: str, failures: Mapping[str, str], total: int) -> None:
        lines = [f"{stage}: {len(failures)} of {total} cells failed; the others are kept and will not run again."]
        # A wrong file stops every cell that reads it: said once.
        names: dict[str, list[str]] = {}
        for name, reason in failures.items():
            names.setdefault(reason, []).append(name)
        for reason, (first, *more) in names.items():
            lines.append(f"  {first}{f' and {len(more)} more' if more else ''}: {reason}")
        super().__init__("\n".join(lines))
        self.failures = dict(failures)


def fingerprint(cell: Cell, seed: int) -> str:
    """The digest of everything that the cell's result depends on.

    Raises:
        ArtifactError: an input is not there.
    """
    return digest_of_text(
        canonical_json(
            {
                "seed": seed,
                "parameters": dict(cell.parameters),
                "inputs": {name: open_artifact(path).digest for name, path in cell.inputs.items()},
                "code": [code_digest(module) for module in _modules(cell)],
                "function": cell.run.__qualname__,
            }
        )
    )


def run_cells(cells: Sequence[Cell], *, output: Path, compute: Compute, seed: int, data: Path = DATA) -> None:
    """Run the cells that are not done yet, then publish all results in the stage's output folder.

    Args:
        cells: all cells of the stage.
        output: the folder that the stage declares, below `data`; its place there names the stage, for seeds, for the
            work folder and for whoever watches. It holds one artifact per cell afterwards, and nothing else.
        compute: engine, workers, threads, device.
        seed: the project's seed.
        data: the project's folder of data, or another folder for work that is no part of the pipeline.

    Raises:
        CellsFailed: some failed; nothing is published, and the next call runs only these.
        ArtifactError: an input is not there.
    """
    names = [cell.name for cell in cells]
    if len(set(names)) < len(names):
        raise ValueError(f"cells: names are not unique: {sorted(names)}")
    stage, work = output.relative_to(data).as_posix(), data / WORK.name
    if follows():
        follow(cells, lambda cell, folder: _train_along(cell, folder, stage, seed, compute))
        return
    with alone(work / stage), leading(compute):
        tasks = [_Task(stage, cell, fingerprint(cell, seed), seed, compute, work) for cell in cells]
        failures = _run_pending(stage, tasks)
        if failures:
            raise CellsFailed(stage, failures, len(cells))
        _publish({task.cell.name: task.result for task in tasks}, output)


def timing_file(stage: str, cell: str, fingerprint: str, work: Path = WORK) -> Path:
    """Where the run of a cell left its seconds, machine and versions."""
    return work / stage / cell / fingerprint[:16] / TIMING


def read_timing(path: Path) -> dict[str, Any] | None:
    """What a cell's run left there; None where it ran elsewhere, as for a pulled result, or where that is damaged."""
    with suppress(ArtifactError):
        return read_sealed(path) if path.is_file() else None
    return None


def _run_pending(stage: str, tasks: Sequence[_Task]) -> dict[str, str]:
    """Run the tasks whose results do not stand; returns why, for those that failed."""
    pending = [task for task in tasks if not _stands(task.result)]
    if not pending:
        say(f"{stage}: all {len(tasks)} cells are up to date")
        return {}
    labels = [(task.cell.name, task.result.parent) for task in pending]
    reasons = run_all(_attempt, pending, labels, title=stage, compute=pending[0].compute)
    return {task.cell.name: reason for task, reason in zip(pending, reasons, strict=True) if reason}


@dataclass(frozen=True)
class _Task:
    """A cell on its way to a worker."""

    stage: str
    cell: Cell
    fingerprint: str
    seed: int
    compute: Compute
    work: Path

    @property
    def timing(self) -> Path:
        return timing_file(self.stage, self.cell.name, self.fingerprint, self.work)

    @property
    def result(self) -> Path:
        return self.timing.parent / "result"

    @property
    def inputs(self) -> Mapping[str, Path]:
        return self.cell.inputs

    @property
    def root(self) -> Path | None:
        """The folder of the user's own files, for a cell that may read them."""
        root = self.cell.parameters.get("root")
        return None if root is None else Path(root)


def _modules(cell: Cell) -> tuple[str, ...]:
    return (cell.run.__module__, *cell.code)


def _stands(result: Path) -> bool:
    try:
        return not open_artifact(result).problems()
    except ArtifactError:
        return False


def _attempt(task: _Task) -> str | None:
    """Run one cell; a fault becomes a line of the stage's report, and the others go on.

    Returns:
        Why the cell failed, or None.
    """
    work = task.result.parent
    try:
        with disk_faults(work), alone(work):
            if not _stands(task.result):  # A worker that outlived its stage may have done it meanwhile.
                with put_off(PATIENCE) as stop:
                    _run(task, work, stop)
    except InputError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001  # A cell must not end its neighbours; the stage still exits non-zero.
        return f"{type(error).__name__}: {' '.join(str(error).split())}{_trace_kept(work)}{_remedy(error)}"
    return None


def _trace_kept(work: Path) -> str:
    """Where the trace of the error at hand can be read."""
    path = work / "error.txt"
    with suppress(OSError):  # A full disk, for instance: the cell fails for the error, not for want of its trace.
        path.write_text(traceback.format_exc(), encoding="utf-8", errors="backslashreplace")
        return f" (trace: {path})"
    return ""


def _remedy(error: Exception) -> str:
    """What to do about an error that says nothing of it: memory that ran out, where the system said no in time."""
    # By name, as this module does not import torch; torch has a class for the GPU's memory alone.
    out_of_memory = type(error).__name__ in {"MemoryError", "OutOfMemoryError"} or "DefaultCPUAllocator" in str(error)
    return ". Lower compute.workers or the size of the batches; then run again" if out_of_memory else ""


def _run(task: _Task, work: Path, stop: Stop) -> None:
    from softmax_temperature.runner.stoppable import StoppableJob  # Imports torch, which `--help` must not.

    cell, started = task.cell, time.monotonic()
    _refuse_another_plan(task)
    inputs = {name: open_artifact(path) for name, path in cell.inputs.items()}
    about = {
        "stage": task.stage,
        "cell": cell.name,
        "parameters": dict(cell.parameters),
        "inputs": {name: artifact.digest for name, artifact in inputs.items()},
        "code": {module: code_digest(module) for module in _modules(cell)},
        "fingerprint": task.fingerprint,
        "seed": task.seed,
    }
    kind = cell.run.__module__.rpartition(".")[2]
    device = _prepare_torch(task.compute)
    with new_artifact(task.result, kind=kind, about=about) as output, _threads(task.compute), together(cell.name):
        seed = seed_of(task.seed, task.stage, cell.name)
        job = StoppableJob(seed, inputs, output, work, device, task.compute.checkpoint_seconds, stop)
        cell.run(job, **cell.parameters)
        _refuse_changed_code(cell)
    (work / CHECKPOINT).unlink(missing_ok=True)
    seconds = round(time.monotonic() - started, 3)
    # Beside the artifact, not in it: these differ between runs that give equal results.
    write_sealed(task.timing, {"seconds": seconds, "device": device, "machine": machine(), "versions": versions()})


def _train_along(cell: Cell, folder: Path, stage: str, seed: int, compute: Compute) -> None:
    """What `_run` does in another process under torchrun: no artifact, no checkpoint."""
    from softmax_temperature.runner.stoppable import StoppableJob

    inputs = {name: open_artifact(path) for name, path in cell.inputs.items()}
    device = _prepare_torch(compute)
    with _threads(compute), put_off(PATIENCE) as stop:
        job = StoppableJob(seed_of(seed, stage, cell.name), inputs, folder, folder, device, math.inf, stop)
        cell.run(job, **cell.parameters)


def _prepare_torch(compute: Compute) -> str:
    """Make torch deterministic, let it keep its memory, and choose the device."""
    import torch

    keep_freed_memory()
    torch.set_num_threads(compute.threads_per_cell)
    torch.set_deterministic_debug_mode("warn")  # use_deterministic_algorithms imports a compiler: 1.6 seconds.
    if compute.device != "auto":
        return compute.device
    return "cuda" if torch.cuda.is_available() else "cpu"


def _threads(compute: Compute) -> threadpool_limits:
    """Fix the threads of every linear-algebra library, on which the last bits of a sum depend."""
    return threadpool_limits(limits=compute.threads_per_cell)


def _refuse_another_plan(task: _Task) -> None:
    """A worker, perhaps on another machine, must find the code, the libraries and the inputs that were planned with."""
    if fingerprint(task.cell, task.seed) != task.fingerprint:
        what = "its code, a library's version or an input is not the one that was planned with"
        raise InputError(what, where=task.cell.name, remedy="Make them equal on every machine, and run it again.")


def _refuse_changed_code(cell: Cell) -> None:
    """A worker imports late: what was edited meanwhile must not be stored under the fingerprint of what was planned."""
    for module in _modules(cell):
        if fresh_code_digest(module) != code_digest(module):
            raise InputError("the code changed while a cell ran it", where=module, remedy="Run it again.")


def _publish(results: Mapping[str, Path], output: Path) -> None:
    """Replace the output folder by links to the results; a copy where links are not possible."""
    with unfinished_folder(output) as new, disk_faults(output):
        for name, result in results.items():
            shutil.copytree(result, new / name, copy_function=_link, dirs_exist_ok=True)
        replace_folder(new, output)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)

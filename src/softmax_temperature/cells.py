"""Cells: the small, named, resumable pieces of work that a stage consists of.

A cell is a function with its parameters and the artifacts it reads. Its fingerprint is the digest of all three and of
the code that the function runs. Its result is an artifact in `data/work/<stage>/<cell>/<fingerprint>/result`; while
that verifies, the cell is not run again. When every cell of a stage is done, the stage's output folder is made of
links to exactly those results, so a left-over can never be read.

    run_cells("search", cells, output=Path("data/search/mnist"), params=params)
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from softmax_temperature.artifacts import (
    Artifact,
    ArtifactError,
    canonical_json,
    digest_of_text,
    new_artifact,
    open_artifact,
    replace_folder,
    write_json,
)
from softmax_temperature.code_digest import code_digest
from softmax_temperature.engines import run_all, say
from softmax_temperature.errors import InputError

if TYPE_CHECKING:
    from softmax_temperature.checkpoints import Checkpointer
    from softmax_temperature.params import Compute

WORK = Path("data/work")
CHECKPOINT = "checkpoint.pt"


@dataclass(frozen=True)
class Cell:
    """One piece of work.

    Attributes:
        name: unique within its stage's output folder, for instance "resnet18" or "sgd-rescaled/seed-3"; the only cell
            of a stage is called "." and fills the output folder itself.
        run: a module-level function, called as `run(job, **parameters)`; writes its files into `job.output`.
        parameters: JSON values, all that the result depends on besides inputs and code.
        inputs: artifacts that it reads, by the name it knows them by.
    """

    name: str
    run: Callable[..., None]
    parameters: Mapping[str, Any]
    inputs: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True)
class Job:
    """What a running cell is given.

    Attributes:
        seed: its own, derived from the project's seed, the stage and its name: adding a cell changes no other.
        inputs: the artifacts it reads, opened.
        output: the folder to write its files into.
        work: a folder that survives a crash, for its checkpoint.
        device: "cpu" or "cuda".
        checkpoint_seconds: the least time between two checkpoints.
    """

    seed: int
    inputs: Mapping[str, Artifact]
    output: Path
    work: Path
    device: str
    checkpoint_seconds: float

    def checkpointer(self) -> Checkpointer:
        """Where the cell keeps its unfinished state; removed when the cell is done."""
        from softmax_temperature.checkpoints import Checkpointer  # Imports torch, which `--help` must not.

        return Checkpointer(self.work / CHECKPOINT, self.checkpoint_seconds)

    def progress(self, done: int, total: int) -> None:
        """Say how far the cell is; the stage shows it. Not durable, so no fsync."""
        (self.work / "progress").write_text(f"{done}/{total}")


class CellsFailed(Exception):
    """Some cells of a stage failed; the others finished and are kept."""

    def __init__(self, stage: str, failures: Mapping[str, str], total: int) -> None:
        lines = [f"{stage}: {len(failures)} of {total} cells failed; the others are kept and will not run again."]
        super().__init__("\n".join(lines + [f"  {name}: {reason}" for name, reason in failures.items()]))
        self.failures = dict(failures)


def seed_of(seed: int, *names: str) -> int:
    """A 63-bit seed for a named purpose, independent of every other name's."""
    digest = hashlib.sha256("/".join([str(seed), *names]).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


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
                "code": code_digest(cell.run.__module__),
                "function": cell.run.__qualname__,
            }
        )
    )


def run_cells(stage: str, cells: Sequence[Cell], *, output: Path, compute: Compute, seed: int) -> None:
    """Run the cells that are not done yet, then publish all results in the stage's output folder.

    Args:
        stage: the stage with its matrix item, for instance "search/mnist"; names the work folder.
        cells: all cells of the stage.
        output: the folder that the stage declares; holds one artifact per cell afterwards, and nothing else.
        compute: engine, workers, threads, device.
        seed: the project's seed.

    Raises:
        CellsFailed: some failed; nothing is published, and the next call runs only these.
        ArtifactError: an input is not there.
    """
    names = [cell.name for cell in cells]
    if len(set(names)) < len(names):
        raise ValueError(f"cells: names are not unique: {sorted(names)}")
    with _alone(WORK / stage):
        tasks = [_Task(stage, cell, fingerprint(cell, seed), seed, compute) for cell in cells]
        failures = _run_pending(stage, tasks)
        if failures:
            raise CellsFailed(stage, failures, len(cells))
        _publish({task.cell.name: task.result for task in tasks}, output)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a folder's lock; a second holder waits. The kernel frees it when its holder dies."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / "lock")
    try:
        lock.acquire(timeout=1)
    except Timeout:
        say(f"{folder}: another process is at work here; waiting for it")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _run_pending(stage: str, tasks: Sequence[_Task]) -> dict[str, str]:
    """Run the tasks whose results do not stand; returns why, for those that failed."""
    pending = [task for task in tasks if not _stands(task.result)]
    if not pending:
        say(f"{stage}: all {len(tasks)} cells are up to date")
        return {}
    labels = [(task.cell.name, task.place) for task in pending]
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

    @property
    def place(self) -> Path:
        """The folder of this cell with exactly these parameters, inputs and code."""
        return WORK / self.stage / self.cell.name / self.fingerprint[:16]

    @property
    def result(self) -> Path:
        return self.place / "result"


def _stands(result: Path) -> bool:
    try:
        return not open_artifact(result).problems()
    except ArtifactError:
        return False


def _remove_unfinished(place: Path) -> None:
    """Remove what a killed process had begun to build beside a place."""
    for folder in place.parent.glob(f".{place.name}.*"):
        shutil.rmtree(folder, ignore_errors=True)


def _attempt(task: _Task) -> str | None:
    """Run one cell; a fault becomes a line of the stage's report, and the others go on.

    Returns:
        Why the cell failed, or None.
    """
    try:
        with _alone(task.place):
            if not _stands(task.result):  # A worker that outlived its stage may have done it meanwhile.
                _remove_unfinished(task.result)
                _run(task)
    except InputError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001  # A cell must not end its neighbours; the stage still exits non-zero.
        (task.place / "error.txt").write_text(traceback.format_exc())
        return f"{type(error).__name__}: {error} (trace: {task.place / 'error.txt'})"
    return None


def _run(task: _Task) -> None:
    cell, started = task.cell, time.monotonic()
    inputs = {name: open_artifact(path) for name, path in cell.inputs.items()}
    device = prepare_torch(task.compute)
    about = {
        "stage": task.stage,
        "cell": cell.name,
        "parameters": dict(cell.parameters),
        "inputs": {name: artifact.digest for name, artifact in inputs.items()},
        "fingerprint": task.fingerprint,
        "seed": task.seed,
    }
    with new_artifact(task.result, kind=task.stage.split("/")[0], about=about) as output:
        seed = seed_of(task.seed, task.stage, cell.name)
        cell.run(Job(seed, inputs, output, task.place, device, task.compute.checkpoint_seconds), **cell.parameters)
    (task.place / CHECKPOINT).unlink(missing_ok=True)
    # Beside the artifact, not in it: times differ from run to run.
    write_json(task.place / "timing.json", {"seconds": round(time.monotonic() - started, 3), "device": device})


def prepare_torch(compute: Compute) -> str:
    """Fix the number of threads, on which the last bits of a result depend, and choose the device."""
    import torch

    torch.set_num_threads(compute.threads_per_cell)
    torch.use_deterministic_algorithms(True, warn_only=True)
    if compute.device != "auto":
        return compute.device
    return "cuda" if torch.cuda.is_available() else "cpu"


def _publish(results: Mapping[str, Path], output: Path) -> None:
    """Replace the output folder by links to the results; a copy where links are not possible."""
    output.parent.mkdir(parents=True, exist_ok=True)
    _remove_unfinished(output)
    new = Path(tempfile.mkdtemp(dir=output.parent, prefix=f".{output.name}."))
    try:
        for name, result in results.items():
            shutil.copytree(result, new / name, copy_function=_link, dirs_exist_ok=True)
        replace_folder(new, output)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)

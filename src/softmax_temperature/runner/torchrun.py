"""Cells under `torchrun`: process 0 runs a stage as ever, and the others train along and keep nothing.

    torchrun --nproc-per-node=4 pipeline/train_focal.py

A cell is then trained by all processes together (see `training.processes`), one cell after the other.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.lifeline import end_with_parent

if TYPE_CHECKING:
    from softmax_temperature.params import Compute
    from softmax_temperature.runner.jobs import Cell


def end_with_torchrun() -> None:
    """Have this process stop in order when the `torchrun` that started it ends, even by SIGKILL."""
    # One that ended before this call kept the store by which the processes find each other: they end without it.
    if "TORCHELASTIC_RUN_ID" in os.environ:
        end_with_parent(signal.SIGTERM, parent=os.getppid())


def follows() -> bool:
    """Whether this is one of the other processes."""
    return int(os.environ.get("RANK", "0")) > 0


def follow(cells: Sequence[Cell], run: Callable[[Cell, Path], None]) -> None:
    """Run the cells that process 0 names, until it names no more.

    Args:
        cells: all of the stage.
        run: called with a cell, and a folder for whatever it writes, which is removed afterwards.
    """
    named = {cell.name: cell for cell in cells}
    while (name := agreed(None)) is not None:
        with TemporaryDirectory() as folder:
            run(named[name], Path(folder))


@contextmanager
def leading(compute: Compute) -> Iterator[None]:
    """Dismiss the other processes at the end of the block.

    Raises:
        InputError: there are others, and cells are asked to run in yet other processes.
    """
    if _alone():
        yield
        return
    if compute.engine != "serial":
        remedy = "Say serial: under torchrun all processes train one cell at a time."
        raise InputError(f"is {compute.engine!r} under torchrun", where="compute.engine", remedy=remedy)
    if compute.cell_minutes is not None:
        remedy = "Say null: a cell is ended with its process, and then the other processes would wait for it."
        raise InputError("limits time under torchrun", where="compute.cell_minutes", remedy=remedy)
    try:
        yield
    except Exception:
        agreed(None)  # A cell that could not begin; see `together` for one that did.
        raise
    agreed(None)


@contextmanager
def together(cell: str) -> Iterator[None]:
    """Have the other processes run a cell too.

    Raises:
        SystemExit: the cell failed; the others would wait for it for ever, and `torchrun` ends them.
    """
    if _alone():
        yield
        return
    agreed(cell)
    try:
        yield
    except Exception as error:
        raise SystemExit(f"error: {cell}: {error}") from error


def agreed(value: Any) -> Any:
    """What process 0 holds, in all processes, which have to call this together; alone, the value itself."""
    if _alone():
        return value
    from softmax_temperature.training.processes import processes  # Imports torch, which `--help` must not.

    return processes().agreed(value)


def _alone() -> bool:
    return int(os.environ.get("WORLD_SIZE", "1")) == 1

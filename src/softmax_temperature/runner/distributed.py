"""Cells under `torchrun`: process 0 runs a stage as usual, the others train along with it and keep nothing.

    torchrun --nproc-per-node=4 pipeline/train_focal.py --only train_focal

All processes train one cell together (see `training.processes`), one cell after the other.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import Any, TypeVar

import torch
from torch import distributed

Value = TypeVar("Value")
PROCESSES = int(os.environ.get("WORLD_SIZE", "1"))
"""How many processes `torchrun` started together; 1 without it."""
_STEP = timedelta(minutes=10)  # How long processes wait for one another within a cell: one that hangs ends the run.
_BETWEEN_CELLS = timedelta(days=30)  # How long for the next cell: process 0 may be waiting for another run's lock.


def is_follower() -> bool:
    """Whether this is one of the processes that train along with process 0."""
    return int(os.environ.get("RANK", "0")) > 0


@cache
def join_group() -> Any:
    """Join the process group, once; "cuda" then means this process's own GPU. Returns the group that waits long."""
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    distributed.init_process_group("cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo", timeout=_STEP)
    return distributed.new_group(backend="gloo", timeout=_BETWEEN_CELLS)


def agreed(value: Value, *, patient: bool = False) -> Value:
    """The value of process 0, in all processes, which have to call this together."""
    if PROCESSES == 1:
        return value
    between_cells, box = join_group(), [value]
    distributed.broadcast_object_list(box, group=between_cells if patient else None)
    return box[0]


def follow(run: Callable[[str], object]) -> None:
    """Call `run` with the name of each cell that process 0 begins, until it is done."""
    while (name := agreed(None, patient=True)) is not None:
        with _ending_all(name):
            run(name)


@contextmanager
def leading() -> Iterator[None]:
    """Dismiss the other processes at the end of the block; after an interruption `torchrun` ends them."""
    try:
        yield
    except Exception:
        agreed(None, patient=True)  # No cell is running; see `together` for failures within one.
        raise
    agreed(None, patient=True)


@contextmanager
def together(cell: str) -> Iterator[None]:
    """Have the other processes run a cell too."""
    agreed(cell, patient=True)
    with _ending_all(cell):
        yield


@contextmanager
def _ending_all(cell: str) -> Iterator[None]:
    """If a cell fails in one of several processes, end them all, because the others would wait forever."""
    try:
        yield
    except Exception as error:
        if PROCESSES > 1:
            raise SystemExit(f"error: {cell}: {error}") from error
        raise

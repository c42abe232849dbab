"""Cells under `torchrun`: process 0 runs a stage as usual, the others train along with
it and keep nothing.

    torchrun --nproc-per-node=4 pipeline/train_focal.py --only train_focal

All processes train one cell together (see `training.processes`), one cell after the
other.
"""

import os
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import torch
from torch import distributed

Value = TypeVar("Value")
PROCESSES = int(os.environ.get("WORLD_SIZE", "1"))  # That `torchrun` started together.
_PATIENCE = timedelta(
    hours=1
)  # One that hangs ends the run, but process 0 may wait for another run.


def is_follower() -> bool:
    """Whether this is one of the processes that train along with process 0."""
    return int(os.environ.get("RANK", "0")) > 0


@cache
def join_group() -> None:
    """Join the process group, once; "cuda" then means this process's own GPU."""
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    distributed.init_process_group(
        "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo", timeout=_PATIENCE
    )


def follow(run: Callable[[str, Path], object]) -> None:
    """In another process than 0: run each cell that process 0 names, in a folder that
    is then thrown away.
    """
    while (cell := agreed(None)) is not None:  # None: there is none left.
        with TemporaryDirectory() as kept_by_none:
            run(cell, Path(kept_by_none))


def agreed(value: Value) -> Value:
    """The value of process 0, in all processes, which have to call this together."""
    if PROCESSES == 1:
        return value
    join_group()
    box = [value]
    distributed.broadcast_object_list(box)
    return box[0]

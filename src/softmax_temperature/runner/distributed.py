"""Cells under `torchrun`: process 0 runs the stage, and the others help to train.

    torchrun --nproc-per-node=4 pipeline/train_focal.py --only train_focal

All processes train one cell together (see `training.processes`), one cell at a time.
Only process 0 saves results.
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
# The number of processes that `torchrun` started together.
PROCESSES = int(os.environ.get("WORLD_SIZE", "1"))
# Time limit for waiting for the other processes. The limit ends a run in which a
# process hangs, but it leaves process 0 time to wait for another run that holds the
# lock of the stage's folder.
_PATIENCE = timedelta(hours=1)


def is_follower() -> bool:
    """Whether this process only helps process 0 to train."""
    # Check WORLD_SIZE as well, because some schedulers set RANK for unrelated jobs.
    return PROCESSES > 1 and int(os.environ.get("RANK", "0")) > 0


@cache
def join_group() -> None:
    """Join the process group at the first call; "cuda" is then this process's GPU."""
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    distributed.init_process_group(
        "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo", timeout=_PATIENCE
    )


def follow(run: Callable[[str, Path], object]) -> None:
    """Call `run` with each cell that process 0 announces and a temporary folder."""
    while True:
        cell = agreed(None)
        if cell is None:  # There are no more cells.
            return
        with TemporaryDirectory() as folder:
            run(cell, Path(folder))


def agreed(value: Value) -> Value:
    """Return process 0's `value`; all processes must call this at the same point."""
    if PROCESSES == 1:
        return value
    join_group()
    box = [value]
    distributed.broadcast_object_list(box)
    return box[0]

"""Measure the wall-clock seconds and the GPU memory of a function."""

import time
from collections.abc import Callable

import torch


def seconds(work: Callable[[], object]) -> float:
    """Wall-clock seconds of one call, including the work that it queues on a GPU."""
    synchronise()
    start = time.perf_counter()
    work()
    synchronise()
    return time.perf_counter() - start


def synchronise() -> None:
    """Synchronise the GPU, if there is one."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def gpu_gibibytes(work: Callable[[], object]) -> float:
    """Peak GPU memory of all tensors during a call, in GiB; 0 without a GPU."""
    if not torch.cuda.is_available():
        work()
        return 0.0
    torch.cuda.reset_peak_memory_stats()
    work()
    return torch.cuda.max_memory_allocated() / 2**30

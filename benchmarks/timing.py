"""Wall-clock seconds and GPU memory of a piece of work."""

import time
from collections.abc import Callable

import torch


def seconds(work: Callable[[], object]) -> float:
    """Wall-clock seconds of one call, with the work that it queues on a GPU."""
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
    """Peak memory of all tensors on the GPU during a call, GiB; 0 without a GPU."""
    if not torch.cuda.is_available():
        work()
        return 0.0
    torch.cuda.reset_peak_memory_stats()
    work()
    return torch.cuda.max_memory_allocated() / 2**30

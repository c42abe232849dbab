"""What a piece of work takes: seconds, and memory of a GPU."""

import time
from collections.abc import Callable

import torch


def seconds(work: Callable[[], object]) -> float:
    """Wall-clock seconds of one call, to the end of what it left to a GPU."""
    finish()
    start = time.perf_counter()
    work()
    finish()
    return time.perf_counter() - start


def finish() -> None:
    """Wait for what a GPU has been left with."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def gpu_gibibytes(work: Callable[[], object]) -> float:
    """The most that tensors on the GPU take during a call, those from before included;
    0 without a GPU.
    """
    on_gpu = torch.cuda.is_available()
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    work()
    return torch.cuda.max_memory_allocated() / 2**30 if on_gpu else 0.0

"""Blocks of problems: how many at a time, each worked on by one thread."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from math import ceil
from typing import TypeVar

import torch
from torch import Tensor

# Scores of one block: a quarter of it was 3 % slower in bfloat16 and an eighth 6 %; twice as much gained nothing.
_SCORE_BYTES_ON_CPU = 2**23
_SHARE_OF_FREE_CUDA_MEMORY = 0.5

Item = TypeVar("Item")
Result = TypeVar("Result")


def problem_blocks(
    weights: Tensor, batch: int, score_dtype: torch.dtype, *, at_once: int | None, workers: int
) -> list[slice]:
    """Slices of weights (problems, classes, dim), at least one per worker; their lengths differ by one at most."""
    problems = len(weights)
    blocks = ceil(problems / (at_once or _problems_that_fit(weights, batch, score_dtype)))
    # A multiple of the number of workers, so that none waits for the others at the end.
    blocks = min(problems, workers * ceil(blocks / workers))
    return [slice(problems * block // blocks, problems * (block + 1) // blocks) for block in range(blocks)]


def _problems_that_fit(weights: Tensor, batch: int, score_dtype: torch.dtype) -> int:
    _, classes, dim = weights.shape
    if not weights.is_cuda:
        return max(1, _SCORE_BYTES_ON_CPU // (classes * batch * score_dtype.itemsize))
    free, _ = torch.cuda.mem_get_info(weights.device)
    # Scores, probabilities and what a copy of them takes, and three scratch copies of the weights.
    bytes_per_problem = 3 * classes * (batch + dim) * weights.itemsize
    return max(1, int(free * _SHARE_OF_FREE_CUDA_MEMORY) // bytes_per_problem)


class Workers:
    """Calls a function for each block or batch: on a CPU on one thread each, as many at a time as torch may use.

    Threads inside each operation, torch's way, take ten times as long on a busy machine: they wait for the slowest.
    """

    def __init__(self, device: torch.device) -> None:
        self.count = torch.get_num_threads() if device.type == "cpu" else 1
        # The same threads for every epoch, so that their scratch memory is allocated once.
        self._pool = (
            ThreadPoolExecutor(self.count, initializer=torch.set_num_threads, initargs=(1,)) if self.count > 1 else None
        )

    def map(self, work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """The results in the order of the items."""
        return list(map(work, items) if self._pool is None else self._pool.map(work, items))

    @contextmanager
    def busy(self) -> Iterator[None]:
        """While torch keeps to one thread for each caller: its own, once woken, spin and take the workers' cores."""
        threads = torch.get_num_threads()
        torch.set_num_threads(1 if self._pool else threads)
        try:
            yield
        finally:
            torch.set_num_threads(threads)

"""Scratch memory, and how many problems at a time fit it."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, prod

import torch
from torch import Tensor

# Logits of one block: 8 MiB of float32, which stays in the last-level cache. Between 2**19 and 2**22 the speed was the
# same within 5 % (10 to 200 classes, dim 256 to 1024); one temperature at a time was up to 10 % slower.
_LOGITS_PER_BLOCK_ON_CPU = 2**21
_SHARE_OF_FREE_CUDA_MEMORY = 0.5


class Buffers:
    """Named scratch tensors of one device and dtype; fresh memory for every product would cost page faults."""

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        self._empty = torch.empty(0, dtype=dtype, device=device)
        self._flat: dict[str, Tensor] = {}

    def take(self, name: str, *shape: int) -> Tensor:
        """An uninitialised contiguous tensor in the memory of this name, which grows where it is too small."""
        size = prod(shape)
        flat = self._flat.get(name, self._empty)
        if flat.numel() < size:
            flat = self._flat[name] = self._empty.new_empty(size)
        return flat[:size].view(shape)


def problem_blocks(weights: Tensor, batch: int, at_once: int | None) -> Iterator[slice]:
    """Slices of nearly equal length of the problems.

    Args:
        weights: Of all problems, shape (problems, classes, dim).
        batch: The most samples of a step.
        at_once: The most problems of a slice; default: what fits the CPU's cache or half the free GPU memory.
    """
    problems = len(weights)
    blocks = ceil(problems / (at_once or _problems_that_fit(weights, batch)))
    length = ceil(problems / blocks)
    for start in range(0, problems, length):
        yield slice(start, min(start + length, problems))


def _problems_that_fit(weights: Tensor, batch: int) -> int:
    _, classes, dim = weights.shape
    if not weights.is_cuda:
        return max(1, _LOGITS_PER_BLOCK_ON_CPU // (classes * batch))
    free, _ = torch.cuda.mem_get_info(weights.device)
    # Logits, probabilities and residuals, and three scratch copies of the weights.
    bytes_per_problem = weights.element_size() * 3 * classes * (batch + dim)
    return max(1, int(free * _SHARE_OF_FREE_CUDA_MEMORY) // bytes_per_problem)

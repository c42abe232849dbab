"""Multiplication of many matrices by one prepared matrix, and workers for blocks."""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from math import ceil, prod
from typing import Any, TypeVar

import torch
from torch import Tensor

_DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float64": torch.float64,
}
# Bytes of the scores of one block. Training in bfloat16 was 3 % slower with a quarter
# of this size and 6 % slower with an eighth; with twice this size it was no faster.
_SCORE_BYTES_ON_CPU = 2**23
_SHARE_OF_FREE_CUDA_MEMORY = 0.5

Item = TypeVar("Item")
Result = TypeVar("Result")


def _onednn_operator(name: str) -> Callable[..., Any]:
    """Return an operator of oneDNN that torch.compile uses for frozen linear layers.

    torch has no public function that packs a matrix for products in float32 as well as
    in bfloat16.
    """
    operator: Callable[..., Any] = getattr(torch.ops.mkldnn, name)
    return operator


class Buffers(threading.local):
    """Named scratch tensors of one device and dtype, separate for each thread.

    Memory is reused, because the first use of new memory causes page faults.
    """

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        self.dtype = dtype
        self._empty = torch.empty(0, dtype=dtype, device=device)
        self._flat: dict[str, Tensor] = {}

    def take(self, name: str, *shape: int) -> Tensor:
        """Return an uninitialised contiguous tensor in the memory called `name`.

        The memory grows if it is too small.
        """
        size = prod(shape)
        flat = self._flat.get(name, self._empty)
        if flat.numel() < size:
            flat = self._empty.new_empty(size)
            self._flat[name] = flat
        return flat[:size].view(shape)


class Products:
    """Multiplies many matrices by one prepared matrix, with torch.mm.

    Each sum of products is rounded once, when it is complete.
    """

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        self.dtype = dtype
        self._buffers = Buffers(dtype, device)

    def prepare(self, right: Tensor) -> Tensor:
        """Prepare `right` (inner, columns), in the dtype `dtype`, for `multiply`."""
        return right

    def multiply(self, left: Tensor, right: Tensor, name: str) -> Tensor:
        """Multiply `left` (rows, inner) by `right`, a prepared matrix.

        The next product in the same thread with the same `name` overwrites the result.
        """
        out = self._buffers.take(name, len(left), right.shape[1])
        return torch.mm(self._rounded(left, name), right, out=out)

    def _rounded(self, left: Tensor, name: str) -> Tensor:
        if left.dtype == self.dtype:
            return left
        return self._buffers.take(f"left of {name}", *left.shape).copy_(left)


class PackedProducts(Products):
    """Products with oneDNN in float32 or bfloat16 on a CPU.

    The right-hand matrix is reordered once for oneDNN's kernels. For float32, torch.mm
    calls MKL, which uses only AVX2 on AMD processors; oneDNN uses AVX-512 and is twice
    as fast.
    """

    def prepare(self, right: Tensor) -> Tensor:
        """Pack a copy of the transpose of `right`, as oneDNN's operator requires."""
        reorder = _onednn_operator("_reorder_linear_weight")
        packed: Tensor = reorder(right.T.contiguous())
        return packed

    def multiply(self, left: Tensor, right: Tensor, name: str) -> Tensor:
        """Multiply `left` by a prepared matrix, into memory that oneDNN allocates."""
        linear = _onednn_operator("_linear_pointwise")
        product: Tensor = linear(self._rounded(left, name), right, None, "none", [], "")
        return product


class RoundedProducts(Products):
    """Products in bfloat16 on a CPU without bfloat16 instructions.

    The factors are rounded to bfloat16, and their float32 product is rounded once.

    torch.mm would emulate bfloat16, which is slower.
    """

    def __init__(self, device: torch.device) -> None:
        super().__init__(torch.bfloat16, device)
        self._wide = PackedProducts(torch.float32, device)

    def prepare(self, right: Tensor) -> Tensor:
        """Pack a float32 copy of `right`."""
        return self._wide.prepare(right.float())

    def multiply(self, left: Tensor, right: Tensor, name: str) -> Tensor:
        """Multiply `left`, rounded, by a prepared matrix, and round only the sums."""
        product = self._wide.multiply(self._rounded(left, name), right, name)
        return self._buffers.take(name, *product.shape).copy_(product)


def choose_products(precision: str, device: torch.device) -> Products:
    """The fastest `Products` for `device` in "float32", "bfloat16" or "float64"."""
    if device.type == "cpu" and torch.backends.mkldnn.is_available():
        if precision == "float32":
            return PackedProducts(torch.float32, device)
        if precision == "bfloat16":
            if _onednn_operator("_is_mkldnn_bf16_supported")():
                return PackedProducts(torch.bfloat16, device)
            return RoundedProducts(device)
    return Products(_DTYPES[precision], device)


class Workers:
    """Calls a function for each block or batch.

    On a CPU each call uses one thread, and as many calls run in parallel as torch may
    use threads. torch's default, threads inside each operation, takes ten times as long
    on a busy machine because each operation waits for the slowest thread.
    """

    def __init__(self, device: torch.device) -> None:
        self.count = torch.get_num_threads() if device.type == "cpu" else 1
        self._pool = None
        if self.count > 1:
            # All epochs use the same threads, so that scratch memory is allocated once.
            self._pool = ThreadPoolExecutor(
                self.count, initializer=torch.set_num_threads, initargs=(1,)
            )

    def blocks(
        self,
        weights: Tensor,
        batch: int,
        scores: torch.dtype,
        problems_per_block: int | None,
    ) -> list[slice]:
        """Divide the problems into slices, at least one per worker if there are enough.

        The slices' lengths differ by at most one.

        Args:
            weights: Shape (problems, classes, dim).
            batch: Samples per batch.
            scores: Dtype of the scores.
            problems_per_block: The largest length of a slice. If None, it is derived
                from the available memory.
        """
        problems = len(weights)
        if problems_per_block is None:
            problems_per_block = _problems_in_memory(weights, batch, scores)
        needed = ceil(problems / max(1, problems_per_block))
        # Make the number of blocks a multiple of the number of workers, so that no
        # worker idles at the end.
        blocks = min(problems, self.count * ceil(needed / self.count))
        bounds = [problems * block // blocks for block in range(blocks + 1)]
        return [slice(first, last) for first, last in pairwise(bounds)]

    def map(
        self, work: Callable[[Item], Result], items: Iterable[Item]
    ) -> list[Result]:
        """Call `work` on each item; the results are in the order of the items."""
        if self._pool is None:
            return [work(item) for item in items]
        return list(self._pool.map(work, items))

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Limit torch to one thread per caller inside `with`, if there is a pool.

        torch's own threads, once woken, would spin and occupy the workers' cores.
        """
        threads = torch.get_num_threads()
        if self._pool is not None:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


def _problems_in_memory(weights: Tensor, batch: int, scores: torch.dtype) -> int:
    """Return the number of problems per block that fit in memory.

    On a GPU a block may take half of the free memory. On a CPU its scores may take
    `_SCORE_BYTES_ON_CPU` bytes.
    """
    _, classes, dim = weights.shape
    if weights.is_cuda:
        free, _ = torch.cuda.mem_get_info(weights.device)
        # A block needs memory for scores, probabilities and a copy of the
        # probabilities, and for three scratch copies of the weights.
        bytes_per_problem = 3 * classes * (batch + dim) * weights.itemsize
        return int(free * _SHARE_OF_FREE_CUDA_MEMORY) // bytes_per_problem
    return _SCORE_BYTES_ON_CPU // (classes * batch * scores.itemsize)

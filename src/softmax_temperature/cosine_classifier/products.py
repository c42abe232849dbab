"""Products of many matrices with one on the right, by the fastest route of a precision
on a device, block by block.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from math import ceil, prod
from typing import Any, TypeVar

import torch
from torch import Tensor

# Operators that torch.compile freezes linear layers into; nothing public packs a matrix
# for both dtypes.
_onednn: Callable[[str], Callable[..., Any]] = partial(getattr, torch.ops.mkldnn)
_DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float64": torch.float64,
}
# Scores of one block: a quarter of it was 3 % slower in bfloat16 and an eighth 6 %;
# twice as much gained nothing.
_SCORE_BYTES_ON_CPU = 2**23
_SHARE_OF_FREE_CUDA_MEMORY = 0.5

Item = TypeVar("Item")
Result = TypeVar("Result")


class Buffers(threading.local):
    """Named scratch tensors of one device and dtype for each thread: fresh memory would
    cost page faults.
    """

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        self.dtype = dtype
        self._empty = torch.empty(0, dtype=dtype, device=device)
        self._flat: dict[str, Tensor] = {}

    def take(self, name: str, *shape: int) -> Tensor:
        """An uninitialised contiguous tensor in the memory of this name, which grows
        where it is too small.
        """
        size = prod(shape)
        flat = self._flat.get(name, self._empty)
        if flat.numel() < size:
            flat = self._flat[name] = self._empty.new_empty(size)
        return flat[:size].view(shape)


class Products:
    """Prepares a right-hand matrix once and multiplies it often: torch.mm, sums rounded
    once, at the end.
    """

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        self.dtype = dtype
        self._buffers = Buffers(dtype, device)

    def prepare(self, right: Tensor) -> Tensor:
        """A matrix (inner, columns) of this dtype in the form that `multiply` takes."""
        return right

    def multiply(self, left: Tensor, right: Tensor, name: str) -> Tensor:
        """`left` (rows, inner) times a prepared matrix; overwritten by the thread's
        next product of this name.
        """
        return torch.mm(
            self._rounded(left, name),
            right,
            out=self._buffers.take(name, len(left), right.shape[1]),
        )

    def _rounded(self, left: Tensor, name: str) -> Tensor:
        if left.dtype == self.dtype:
            return left
        return self._buffers.take(f"left of {name}", *left.shape).copy_(left)


class PackedProducts(Products):
    """float32 or bfloat16 on a CPU, the right-hand matrix put once into the order that
    oneDNN's kernels read.

    torch.mm calls MKL for float32, which keeps to AVX2 on AMD processors: half of
        oneDNN's speed with AVX-512.
    """

    def prepare(self, right: Tensor) -> Tensor:
        """A packed copy; the operator multiplies by the transpose of its second
        argument.
        """
        packed: Tensor = _onednn("_reorder_linear_weight")(right.T.contiguous())
        return packed

    def multiply(self, left: Tensor, right: Tensor, name: str) -> Tensor:
        """One product, in memory of oneDNN's own."""
        product: Tensor = _onednn("_linear_pointwise")(
            self._rounded(left, name), right, None, "none", [], ""
        )
        return product


class RoundedProducts(Products):
    """bfloat16 on a CPU without instructions for it, where torch.mm emulates: products
    in float32, rounded once.
    """

    def __init__(self, device: torch.device) -> None:
        super().__init__(torch.bfloat16, device)
        self._wide = PackedProducts(torch.float32, device)

    def prepare(self, right: Tensor) -> Tensor:
        """A wider copy, packed."""
        return self._wide.prepare(right.float())

    def multiply(self, left: Tensor, right: Tensor, name: str) -> Tensor:
        """One product, its sums rounded once, at the end."""
        product = self._wide.multiply(self._rounded(left, name), right, name)
        return self._buffers.take(name, *product.shape).copy_(product)


def choose_products(precision: str, device: torch.device) -> Products:
    """The products of a precision: "float32", "bfloat16" or "float64"."""
    if device.type == "cpu" and torch.backends.mkldnn.is_available():
        if precision == "float32":
            return PackedProducts(torch.float32, device)
        if precision == "bfloat16":
            fast = _onednn("_is_mkldnn_bf16_supported")()
            return (
                PackedProducts(torch.bfloat16, device)
                if fast
                else RoundedProducts(device)
            )
    return Products(_DTYPES[precision], device)


class Workers:
    """Calls a function for each block or batch: on a CPU on one thread each, as many at
    a time as torch may use.

    Threads inside each operation, torch's way, take ten times as long on a busy
    machine: they wait for the slowest.
    """

    def __init__(self, device: torch.device) -> None:
        self.count = torch.get_num_threads() if device.type == "cpu" else 1
        # The same threads for every epoch, so that their scratch memory is allocated
        # once.
        one_each: Any = {"initializer": torch.set_num_threads, "initargs": (1,)}
        self._pool = (
            ThreadPoolExecutor(self.count, **one_each) if self.count > 1 else None
        )

    def blocks(
        self, weights: Tensor, batch: int, scores: torch.dtype, at_once: int | None
    ) -> list[slice]:
        """Slices of weights (problems, classes, dim), at least one per worker; their
        lengths differ by one at most.
        """
        problems, classes, dim = weights.shape
        if at_once is None and weights.is_cuda:
            free, _ = torch.cuda.mem_get_info(weights.device)
            # Scores, probabilities and what a copy of them takes, and three scratch
            # copies of the weights.
            bytes_per_problem = 3 * classes * (batch + dim) * weights.itemsize
            at_once = int(free * _SHARE_OF_FREE_CUDA_MEMORY) // bytes_per_problem
        elif at_once is None:
            at_once = _SCORE_BYTES_ON_CPU // (classes * batch * scores.itemsize)
        # A multiple of the number of workers, so that none waits for the others at the
        # end.
        blocks = min(
            problems, self.count * ceil(ceil(problems / max(1, at_once)) / self.count)
        )
        return [
            slice(problems * block // blocks, problems * (block + 1) // blocks)
            for block in range(blocks)
        ]

    def map(
        self, work: Callable[[Item], Result], items: Iterable[Item]
    ) -> list[Result]:
        """The results in the order of the items."""
        return list(
            map(work, items) if self._pool is None else self._pool.map(work, items)
        )

    @contextmanager
    def busy(self) -> Iterator[None]:
        """While torch keeps to one thread for each caller: its own, once woken, spin
        and take the workers' cores.
        """
        threads = torch.get_num_threads()
        torch.set_num_threads(1 if self._pool else threads)
        try:
            yield
        finally:
            torch.set_num_threads(threads)

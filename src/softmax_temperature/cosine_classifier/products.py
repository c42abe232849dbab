"""Products of many matrices with one matrix on the right, by the fastest route that a precision has on a device."""

import threading
from collections.abc import Callable
from math import prod
from typing import Any

import torch
from torch import Tensor

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float64": torch.float64}


class Buffers(threading.local):
    """Named scratch tensors of one device and dtype for each thread: fresh memory would cost page faults."""

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        self.dtype = dtype
        self._empty = torch.empty(0, dtype=dtype, device=device)
        self._flat: dict[str, Tensor] = {}

    def take(self, name: str, *shape: int) -> Tensor:
        """An uninitialised contiguous tensor in the memory of this name, which grows where it is too small."""
        size = prod(shape)
        flat = self._flat.get(name, self._empty)
        if flat.numel() < size:
            flat = self._flat[name] = self._empty.new_empty(size)
        return flat[:size].view(shape)


class Products:
    """Prepares a right-hand matrix once and multiplies it often: torch.mm, sums rounded once, at the end."""

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        self.dtype = dtype
        self._buffers = Buffers(dtype, device)

    def prepare(self, right: Tensor) -> Tensor:
        """A matrix (inner, columns) of this dtype in the form that `multiply` takes."""
        return right

    def multiply(self, left: Tensor, right: Tensor, name: str) -> Tensor:
        """`left` (rows, inner) times a prepared matrix; overwritten by the thread's next product of this name."""
        return torch.mm(self._rounded(left, name), right, out=self._buffers.take(name, len(left), right.shape[1]))

    def _rounded(self, left: Tensor, name: str) -> Tensor:
        if left.dtype == self.dtype:
            return left
        return self._buffers.take(f"left of {name}", *left.shape).copy_(left)


class PackedProducts(Products):
    """float32 or bfloat16 on a CPU, the right-hand matrix put once into the order that oneDNN's kernels read.

    torch.mm calls MKL for float32, which keeps to AVX2 on AMD processors: half of oneDNN's speed with AVX-512.
    """

    def prepare(self, right: Tensor) -> Tensor:
        """A packed copy; the operator multiplies by the transpose of its second argument."""
        packed: Tensor = _onednn("_reorder_linear_weight")(right.T.contiguous())
        return packed

    def multiply(self, left: Tensor, right: Tensor, name: str) -> Tensor:
        """One product, in memory of oneDNN's own."""
        product: Tensor = _onednn("_linear_pointwise")(self._rounded(left, name), right, None, "none", [], "")
        return product


class RoundedProducts(Products):
    """bfloat16 on a CPU without instructions for it, where torch.mm emulates: products in float32, rounded once."""

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


def _onednn(operator: str) -> Callable[..., Any]:
    """An operator that torch.compile freezes linear layers into; nothing public packs a matrix for both dtypes."""
    found: Callable[..., Any] = getattr(torch.ops.mkldnn, operator)
    return found


def choose_products(precision: str, device: torch.device) -> Products:
    """The products of a precision: "float32", "bfloat16" or "float64"."""
    if device.type == "cpu" and torch.backends.mkldnn.is_available():
        if precision == "float32":
            return PackedProducts(torch.float32, device)
        if precision == "bfloat16":
            fast = _onednn("_is_mkldnn_bf16_supported")()
            return PackedProducts(torch.bfloat16, device) if fast else RoundedProducts(device)
    return Products(_DTYPES[precision], device)

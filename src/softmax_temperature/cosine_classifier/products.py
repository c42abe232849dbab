"""Products of many matrices with one matrix on the right, by the fastest route that a precision has on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from softmax_temperature.cosine_classifier.blocks import Buffers

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float64": torch.float64}


class Products(Protocol):
    """Prepares a right-hand matrix once and multiplies it often."""

    dtype: torch.dtype

    def prepare(self, right: Tensor) -> Tensor:
        """A matrix of this dtype, shape (inner, columns), in whatever form `multiply` takes."""

    def multiply(self, left: Tensor, right: Tensor, name: str) -> Tensor:
        """`left`, shape (rows, inner), of any dtype, times a prepared matrix: shape (rows, columns), of this dtype.

        The result is overwritten when the same thread next asks for a product of the same name.
        """


class DirectProducts:
    """torch.mm; sums of bfloat16 products run in float32 and are rounded once, at the end."""

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        self.dtype = dtype
        self._buffers = Buffers(dtype, device)

    def prepare(self, right: Tensor) -> Tensor:
        """The matrix as it is."""
        return right

    def multiply(self, left: Tensor, right: Tensor, name: str) -> Tensor:
        """One product, after a copy of a left-hand matrix that is wider."""
        if left.dtype != self.dtype:
            left = self._buffers.take(f"left of {name}", *left.shape).copy_(left)
        return torch.mm(left, right, out=self._buffers.take(name, len(left), right.shape[1]))


class PackedProducts:
    """float32 or bfloat16 on a CPU, the right-hand matrix put once into the order that oneDNN's kernels read.

    torch.mm calls MKL for float32, which keeps to AVX2 on AMD processors: 110 GFLOP/s on a Zen 5 core, where oneDNN
    reaches 210 with AVX-512. For bfloat16 it calls oneDNN, and packs at each call: 340 to 370 GFLOP/s there, where
    packed matrices reach 380 to 420.
    """

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        self.dtype = dtype
        self._buffers = Buffers(dtype, device)

    def prepare(self, right: Tensor) -> Tensor:
        """A packed copy; the operator multiplies by the transpose of its second argument."""
        packed: Tensor = _onednn("_reorder_linear_weight")(right.T.contiguous())
        return packed

    def multiply(self, left: Tensor, right: Tensor, name: str) -> Tensor:
        """One product, after a copy of a left-hand matrix of another dtype; in memory of oneDNN's own."""
        if left.dtype != self.dtype:
            left = self._buffers.take(f"left of {name}", *left.shape).copy_(left)
        product: Tensor = _onednn("_linear_pointwise")(left, right, None, "none", [], "")
        return product


class RoundedProducts:
    """bfloat16 on a CPU that has no instructions for it: rounded as there, what is between in float32.

    torch.mm emulates each product: 0.9 GFLOP/s on a Zen 3 core, which reaches 75 in float32.
    """

    dtype = torch.bfloat16

    def __init__(self, device: torch.device) -> None:
        self._wide, self._buffers = PackedProducts(torch.float32, device), Buffers(self.dtype, device)

    def prepare(self, right: Tensor) -> Tensor:
        """A wider copy, packed."""
        return self._wide.prepare(right.float())

    def multiply(self, left: Tensor, right: Tensor, name: str) -> Tensor:
        """One product; as with instructions for it, its sums are rounded once, at the end."""
        if left.dtype != self.dtype:
            left = self._buffers.take(f"left of {name}", *left.shape).copy_(left)
        product = self._wide.multiply(left, right, name)
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
    return DirectProducts(_DTYPES[precision], device)

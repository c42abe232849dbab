"""Matrix products with one batch of embeddings, by the fastest route that a precision has on a device."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from softmax_temperature.cosine_classifier.memory import Buffers


class Operands(NamedTuple):
    """One batch X, shape (batch, dim), prepared once for many products with it."""

    transposed: Tensor  # for weights (rows, dim) times X', giving (rows, batch)
    plain: Tensor  # for residuals (rows, batch) times X, giving (rows, dim)


class Products(Protocol):
    """Products of wide (float32 or float64) matrices with prepared ones, giving wide matrices."""

    dtype: torch.dtype

    def prepare(self, embeddings: Tensor) -> Operands:
        """Both operands of a batch, shape (batch, dim), of this `dtype`."""

    def multiply(self, left: Tensor, right: Tensor, out: Tensor) -> Tensor:
        """`left @ right`, written to `out`, which may be `left`'s memory where shapes allow."""


class DirectProducts:
    """torch.mm in the embeddings' own precision."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype

    def prepare(self, embeddings: Tensor) -> Operands:
        """Two views."""
        return Operands(embeddings.T, embeddings)

    def multiply(self, left: Tensor, right: Tensor, out: Tensor) -> Tensor:
        """One call."""
        return torch.mm(left, right, out=out)


class OneDnnProducts:
    """float32 on a CPU, through oneDNN.

    torch.mm calls MKL, which keeps to AVX2 on AMD processors: 220 GFLOP/s on two Zen 5 cores, where oneDNN reaches 440
    with AVX-512, the copies into and out of its tensors included.
    """

    dtype = torch.float32

    def prepare(self, embeddings: Tensor) -> Operands:
        """Two copies; functional.linear multiplies by the transpose of its second argument, hence the exchange."""
        return Operands(embeddings.to_mkldnn(), embeddings.T.contiguous().to_mkldnn())

    def multiply(self, left: Tensor, right: Tensor, out: Tensor) -> Tensor:
        """The backend brings its own memory for the product."""
        return out.copy_(functional.linear(left.to_mkldnn(), right).to_dense())


class BrainFloatProducts:
    """bfloat16 operands, accumulated in float32 inside the product."""

    dtype = torch.bfloat16

    def __init__(self, device: torch.device) -> None:
        self._narrow = Buffers(torch.bfloat16, device)

    def prepare(self, embeddings: Tensor) -> Operands:
        """Two views."""
        return Operands(embeddings.T, embeddings)

    def multiply(self, left: Tensor, right: Tensor, out: Tensor) -> Tensor:
        """On a CPU the product comes out in bfloat16, the only output it has there; on a GPU in float32."""
        narrow = self._narrow.take("left", *left.shape).copy_(left)
        if out.is_cuda:
            return torch.mm(narrow, right, out_dtype=torch.float32, out=out)
        return out.copy_(torch.mm(narrow, right, out=self._narrow.take("out", *out.shape)))


def choose_products(precision: str, device: torch.device) -> Products:
    """The products of a precision: "float32", "bfloat16" or "float64"."""
    if precision == "bfloat16":
        return BrainFloatProducts(device)
    if precision == "float32" and device.type == "cpu" and torch.backends.mkldnn.is_available():
        return OneDnnProducts()
    return DirectProducts(torch.float64 if precision == "float64" else torch.float32)

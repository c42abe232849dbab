"""Matrix products with one batch of embeddings, by the fastest route that a precision has on a device."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from softmax_temperature.cosine_classifier.blocks import Buffers


class Operands(NamedTuple):
    """One batch X, shape (batch, dim), prepared once for many products with it."""

    transposed: Tensor  # for weights (rows, dim) times X', giving scores (rows, batch)
    plain: Tensor  # for residuals (rows, batch) times X, giving gradients (rows, dim)


class Products(Protocol):
    """The two products of a training step."""

    dtype: torch.dtype

    def prepare(self, embeddings: Tensor) -> Operands:
        """Both operands of a batch, shape (batch, dim), of this dtype."""

    def scores(self, weights: Tensor, operands: Operands) -> Tensor:
        """Weights, shape (rows, dim), of any dtype, times samples: shape (rows, batch), of this dtype."""

    def gradient(self, residual: Tensor, operands: Operands) -> Tensor:
        """A residual, shape (rows, batch), of this dtype, times samples: shape (rows, dim), of this dtype."""


class DirectProducts:
    """torch.mm in one dtype; results are overwritten by the next call of the same thread.

    In bfloat16 the sums run in float32 and are rounded once, at the end.
    """

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        self.dtype = dtype
        self._buffers = Buffers(dtype, device)

    def prepare(self, embeddings: Tensor) -> Operands:
        """Two views."""
        return Operands(embeddings.T, embeddings)

    def scores(self, weights: Tensor, operands: Operands) -> Tensor:
        """One product, after a copy of weights that are wider."""
        if weights.dtype != self.dtype:
            weights = self._buffers.take("weights", *weights.shape).copy_(weights)
        out = self._buffers.take("scores", len(weights), operands.transposed.shape[1])
        return torch.mm(weights, operands.transposed, out=out)

    def gradient(self, residual: Tensor, operands: Operands) -> Tensor:
        """One product."""
        out = self._buffers.take("gradient", len(residual), operands.plain.shape[1])
        return torch.mm(residual, operands.plain, out=out)


class OneDnnProducts:
    """float32 on a CPU, through oneDNN.

    torch.mm calls MKL, which keeps to AVX2 on AMD processors: 220 GFLOP/s on two Zen 5 cores, where oneDNN reaches 440
    with AVX-512, the copies into and out of its tensors included.
    """

    dtype = torch.float32

    def prepare(self, embeddings: Tensor) -> Operands:
        """Two copies; functional.linear multiplies by the transpose of its second argument, hence the exchange."""
        return Operands(embeddings.to_mkldnn(), embeddings.T.contiguous().to_mkldnn())

    def scores(self, weights: Tensor, operands: Operands) -> Tensor:
        """One product."""
        return functional.linear(weights.to_mkldnn(), operands.transposed).to_dense()

    def gradient(self, residual: Tensor, operands: Operands) -> Tensor:
        """One product."""
        return functional.linear(residual.to_mkldnn(), operands.plain).to_dense()


def choose_products(precision: str, device: torch.device) -> Products:
    """The products of a precision: "float32", "bfloat16" or "float64"."""
    if precision == "float32" and device.type == "cpu" and torch.backends.mkldnn.is_available():
        return OneDnnProducts()
    dtypes = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float64": torch.float64}
    return DirectProducts(dtypes[precision], device)

"""Checks and L2 normalisation of embeddings and labels."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def normalise(embeddings: Tensor, *, name: str = "embeddings") -> Tensor:
    """Embeddings of Euclidean length 1, shape (n, dim).

    Args:
        embeddings: floating point, shape (n, dim).
        name: what to call them in messages.

    Raises:
        ValueError: they are empty, of another shape or dtype, or a row is not finite or all zeros.
    """
    # The largest entry, taken out first, keeps the squares of very small and very large embeddings in range.
    return functional.normalize(embeddings / largest_entries(embeddings, name), dim=1)


def largest_entries(embeddings: Tensor, name: str) -> Tensor:
    """The largest absolute entry of each embedding, shape (n, 1), once it is clear that each has a direction.

    Raises:
        ValueError: as `normalise`.
    """
    shape = tuple(embeddings.shape)
    if embeddings.ndim != 2 or 0 in shape or not embeddings.is_floating_point():
        found = f"{embeddings.dtype} of shape {shape}"
        raise ValueError(f"{name} must be non-empty, floating point, of shape (n, dim), got {found}")
    largest = embeddings.abs().amax(dim=1, keepdim=True)
    wrong = ~(torch.isfinite(largest) & (largest > 0)).flatten()
    if bool(wrong.any()):
        row = int(wrong.int().argmax())
        fault = "is all zeros" if largest[row] == 0 else "holds NaN or infinity"
        raise ValueError(f"{name} must each have a direction, row {row} {fault}")
    return largest


def check_class_labels(labels: Tensor, rows: int, name: str) -> int:
    """The highest label.

    Raises:
        ValueError: the labels are not integers from 0, one for each of the rows.
    """
    if labels.shape != (rows,):
        raise ValueError(f"{name} must have shape ({rows},) like the embeddings, got {tuple(labels.shape)}")
    if labels.dtype != torch.int64:
        raise ValueError(f"{name} must be int64, got {labels.dtype}")
    low, high = (int(bound) for bound in torch.aminmax(labels))
    if low < 0:
        raise ValueError(f"{name} must not be negative, got {low}")
    return high

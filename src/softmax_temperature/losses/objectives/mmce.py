"""Cross-entropy plus weighted MMCE (focal paper, section 5, baselines; Kumar et al. 2018)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch.nn.functional as F

from softmax_temperature.losses.mmce import weighted_mmce

if TYPE_CHECKING:
    from torch import Tensor

    from softmax_temperature.training.trainer import Objective


def make(*, weight: float = 2.0, as_released: bool = False) -> Objective:
    """Cross-entropy + weight × weighted MMCE of the batch.

    Args:
        weight: lambda of the paper (appendix E), at least 0.
        as_released: whether the penalty is divided a second time by the numbers of pairs, as in the released code.

    Raises:
        ValueError: `weight` is negative.
    """
    if not 0 <= weight < math.inf:
        raise ValueError(f"weight: {weight}, must be at least 0 and finite")
    if not isinstance(as_released, bool):
        raise TypeError(f"as_released: {as_released!r}, must be true or false")

    def loss(logits: Tensor, labels: Tensor, position: float) -> Tensor:  # noqa: ARG001  # It never changes.
        return F.cross_entropy(logits, labels) + weight * weighted_mmce(logits, labels, as_released=as_released)

    return loss

"""Cross-entropy of a softmax with an inverse temperature (temperature_check paper, abstract)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch.nn.functional as F

if TYPE_CHECKING:
    from torch import Tensor

    from softmax_temperature.training.trainer import Objective


def make(*, inverse_temperature: float) -> Objective:
    """Mean of -log p, nats, where p is the softmax of the inverse temperature times the logits.

    Args:
        inverse_temperature: the paper's beta; multiplies the logits.

    Raises:
        ValueError: it is not finite and above 0.
    """
    if not (math.isfinite(inverse_temperature) and inverse_temperature > 0):
        raise ValueError(f"inverse_temperature: {inverse_temperature}, must be finite and above 0")

    def loss(logits: Tensor, labels: Tensor, position: float) -> Tensor:  # noqa: ARG001  # It never changes.
        return F.cross_entropy(inverse_temperature * logits, labels)

    return loss

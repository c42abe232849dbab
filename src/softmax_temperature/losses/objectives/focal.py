"""Focal loss with one gamma (focal paper, section 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softmax_temperature.losses.focal import focal_loss
from softmax_temperature.metrics.checks import check_gamma

if TYPE_CHECKING:
    from torch import Tensor

    from softmax_temperature.training.trainer import Objective


def make(*, gamma: float) -> Objective:
    """Mean of -(1 - p)^gamma log p over the batch.

    Args:
        gamma: at least 0.

    Raises:
        ValueError: it is negative.
    """
    check_gamma(gamma)

    def loss(logits: Tensor, labels: Tensor, position: float) -> Tensor:  # noqa: ARG001  # It never changes.
        return focal_loss(logits, labels, gamma)

    return loss

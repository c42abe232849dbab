"""Brier loss (focal paper, section 5, baselines)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softmax_temperature.losses.baselines import brier_loss

if TYPE_CHECKING:
    from torch import Tensor

    from softmax_temperature.training.trainer import Objective


def make() -> Objective:
    """Squared distance of the probabilities to the one-hot label, summed over classes, mean over the batch."""

    def loss(logits: Tensor, labels: Tensor, position: float) -> Tensor:  # noqa: ARG001  # It never changes.
        return brier_loss(logits, labels)

    return loss

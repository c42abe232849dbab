"""Cross-entropy with smoothed labels (focal paper, section 5, baselines)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softmax_temperature.losses.baselines import label_smoothing_loss

if TYPE_CHECKING:
    from torch import Tensor

    from softmax_temperature.training.trainer import Objective


def make(*, smoothing: float = 0.05) -> Objective:
    """Cross-entropy with 1 - smoothing on the true class, the rest spread over the others.

    Args:
        smoothing: in [0, 1).

    Raises:
        ValueError: it is outside.
    """
    if not 0 <= smoothing < 1:
        raise ValueError(f"smoothing: {smoothing}, must be in [0, 1)")

    def loss(logits: Tensor, labels: Tensor, position: float) -> Tensor:  # noqa: ARG001  # It never changes.
        return label_smoothing_loss(logits, labels, smoothing=smoothing)

    return loss

"""Focal loss whose gamma changes with the epoch (focal paper, appendix F: FLSc)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softmax_temperature.losses.focal import focal_loss, scheduled_gamma
from softmax_temperature.metrics.checks import check_gamma

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from softmax_temperature.training.trainer import Objective


def make(*, gammas: Sequence[float], milestones: Sequence[int]) -> Objective:
    """Focal loss with the first gamma until the first milestone, then the next.

    Args:
        gammas: one more than there are milestones, each at least 0.
        milestones: epochs of the written recipe (`planned_epochs`), ascending.

    Raises:
        ValueError: a gamma is negative, the lengths do not fit, or the milestones do not ascend.
    """
    for gamma in gammas:
        check_gamma(gamma)
    scheduled_gamma(0, gammas=gammas, milestones=milestones)  # It knows which milestones it takes.

    def loss(logits: Tensor, labels: Tensor, position: float) -> Tensor:
        return focal_loss(logits, labels, scheduled_gamma(int(position), gammas=gammas, milestones=milestones))

    return loss

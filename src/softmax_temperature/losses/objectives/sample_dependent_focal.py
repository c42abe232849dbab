"""Focal loss whose gamma depends on the sample (focal paper, section 4 and appendix F: FLSD)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from softmax_temperature.losses.focal import focal_loss, sample_dependent_gamma, true_class_probs

if TYPE_CHECKING:
    from torch import Tensor

    from softmax_temperature.training.trainer import Objective


def make(*, policy: str = "53") -> Objective:
    """Focal loss with the gamma that a policy gives to each sample's probability of its true class.

    Args:
        policy: "53" or "532".

    Raises:
        ValueError: it is neither.
    """
    sample_dependent_gamma(torch.empty(0), policy=policy)  # It knows which values it takes.

    def loss(logits: Tensor, labels: Tensor, position: float) -> Tensor:  # noqa: ARG001  # It depends on p alone.
        return focal_loss(logits, labels, sample_dependent_gamma(true_class_probs(logits, labels), policy=policy))

    return loss

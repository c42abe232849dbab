"""The Brier loss (focal paper, section 5, baseline b)."""

import torch
from torch import Tensor

from softmax_temperature.losses.base import (
    SampleLoss,
    check_batch,
    one_hot_targets,
    reduced,
    widened,
)
from softmax_temperature.losses.probabilities import log_probs_and_complements


def brier_loss(logits: Tensor, labels: Tensor, *, reduction: str = "mean") -> Tensor:
    """Squared distance from the probabilities to the label, in [0, 2] (baseline b).

    Args:
        logits: Shape (n, classes); -inf for masked classes.
        labels: Class indices (n,), or probabilities (n, classes).
        reduction: "mean", "sum" or "none", which returns (n,).

    Raises:
        ValueError: If a shape, a value or `reduction` is wrong.
    """
    check_batch(logits, labels)
    wide = widened(logits)
    losses = squared_distances(wide, one_hot_targets(wide, labels))
    return reduced(losses, reduction).to(logits.dtype)


def squared_distances(logits: Tensor, targets: Tensor) -> Tensor:
    """Squared distance from each sample's probabilities to its targets, (n,)."""
    log_probs, log_complements = log_probs_and_complements(logits)
    # For a target above 0.5, subtract the complements, because near 1 the difference
    # between complements is more precise.
    differences = torch.where(
        targets > 0.5,
        (1 - targets) - log_complements.exp(),
        log_probs.exp() - targets,
    )
    return differences.square().sum(dim=1)


class BrierLoss(SampleLoss):
    """Squared distance from the probabilities to the label, in [0, 2].

    Labels are probabilities, or class indices, which are treated as one-hot vectors.
    The shapes, and the arguments other than `gamma`, are those of `FocalLoss`.

    Examples:
        >>> BrierLoss()(torch.zeros(1, 2), torch.tensor([1]))  # 0.5 ** 2 + 0.5 ** 2
        tensor(0.5000)
    """

    def losses(
        self,
        logits: Tensor,
        labels: Tensor,
        epoch: float | None,  # noqa: ARG002
    ) -> Tensor:
        """The squared distance for each sample, (n,)."""
        return squared_distances(logits, one_hot_targets(logits, labels))

    def soft_losses(
        self,
        logits: Tensor,
        targets: Tensor,
        epoch: float | None,  # noqa: ARG002
    ) -> Tensor:
        """The class-weighted squared distance of each sample, (n,).

        The weight of a sample is the mean of the class weights under its soft label.
        """
        losses = squared_distances(logits, targets)
        weight = self.class_weights(logits.shape[1], logits.dtype)
        if weight is None:
            return losses
        return losses * (targets @ weight)

"""Focal loss (focal paper, section 4)."""

from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from softmax_temperature.losses.base import (
    SampleLoss,
    check_batch,
    is_soft,
    reduced,
    widened,
)
from softmax_temperature.losses.probabilities import (
    log_prob_and_complement,
    log_probs_and_complements,
)
from softmax_temperature.metrics.checks import check_at_least_zero, check_gamma


def focal_loss(
    logits: Tensor, labels: Tensor, gamma: float | Tensor, *, reduction: str = "mean"
) -> Tensor:
    """Focal loss, -(1 - p)^gamma log p, with p the probability of the true class (focal
    paper, section 4), nats.

    Value and gradient are right to rounding for every p. For soft labels q it is
    -sum_c q_c (1 - p_c)^gamma log p_c.

    Args:
        logits: Shape (n, classes); -inf for masked classes.
        labels: Class indices (n,), or probabilities (n, classes).
        gamma: At least 0, a number or one per sample, (n,); 0 gives the cross-entropy.
        reduction: "mean", "sum" or "none", which returns (n,).

    Raises:
        ValueError: If a shape, a value or `reduction` is wrong.
    """
    # Deviation: the released code sums over the batch by default, which multiplies the
    # step by the batch size; the paper's loss is that of a sample, and its mean is the
    # default here. "sum" gives the released objective.
    check_batch(logits, labels)
    check_gamma(gamma)
    wide = widened(logits)
    if isinstance(gamma, Tensor):
        if gamma.ndim > 0 and gamma.shape != (len(logits),):
            raise ValueError(
                f"gamma must be a number or have shape ({len(logits)},), "
                f"got {tuple(gamma.shape)}"
            )
        gamma = gamma.to(wide.dtype)  # So that it does not promote the loss.
    if is_soft(logits, labels):
        losses = soft_focal_terms(wide, labels.to(wide), gamma).sum(dim=1)
    else:
        losses = focal_losses(wide, labels, gamma)
    return reduced(losses, reduction).to(logits.dtype)


def focal_losses(logits: Tensor, labels: Tensor, gamma: float | Tensor) -> Tensor:
    """Focal loss of each sample, (n,), for class indices."""
    log_true, log_others = log_prob_and_complement(logits, labels)
    return -log_true * torch.exp(gamma * log_others)


def soft_focal_terms(logits: Tensor, targets: Tensor, gamma: float | Tensor) -> Tensor:
    """The focal loss's terms of each class, (n, classes), for targets (n, classes)."""
    if isinstance(gamma, Tensor) and gamma.ndim > 0:
        gamma = gamma[:, None]
    log_probs, log_complements = log_probs_and_complements(logits)
    # A masked class has no target; 0 times its infinite logarithm would be NaN.
    log_probs = log_probs.masked_fill(torch.isneginf(logits), 0)
    return -targets * log_probs * torch.exp(gamma * log_complements)


class FocalLoss(SampleLoss):
    """Focal loss, -(1 - p)^gamma log p, nats (focal paper, section 4); see
    `losses.focal_loss`.

    Called with logits (n, classes) and labels (n,), or (n, classes, ...) and (n, ...);
    labels may be probabilities, of the shape of the logits. `weight` is of each class,
    (classes,), and a mean is over the weights, as in `torch.nn.CrossEntropyLoss`.
    Labels of `ignore_index` do not count; None skips the check, which would force a GPU
    sync. `reduction` is "mean", "sum", or "none".

    >>> FocalLoss(gamma=3.0)(torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0]))
    tensor(0.2567)
    """

    arguments: ClassVar[tuple[str, ...]] = ("gamma",)

    def __init__(
        self,
        gamma: float = 3.0,
        weight: Tensor | None = None,
        *,
        ignore_index: int | None = -100,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, ignore_index=ignore_index, reduction=reduction)
        # A tensor of several would be spread over the samples of a batch.
        check_at_least_zero(gamma, "gamma")
        self.gamma = gamma

    @classmethod
    def from_options(cls, **options: Any) -> Self:
        """The loss with the option `gamma`, which an arm has to state."""
        if "gamma" not in options:
            raise TypeError("gamma is missing")
        return super().from_options(**options)

    def losses(self, logits: Tensor, labels: Tensor, epoch: float | None) -> Tensor:
        """Focal loss of each sample, (n,)."""
        return focal_losses(logits, labels, self.gamma_at(epoch))

    def soft_losses(
        self, logits: Tensor, targets: Tensor, epoch: float | None
    ) -> Tensor:
        """Focal loss of each sample, weighted by class, (n,)."""
        terms = soft_focal_terms(logits, targets, self.gamma_at(epoch))
        weight = self.class_weights(logits.shape[1], logits.dtype)
        return (terms if weight is None else terms * weight).sum(dim=1)

    def gamma_at(self, epoch: float | None) -> float:  # noqa: ARG002
        """Gamma at a position in the recipe."""
        return self.gamma

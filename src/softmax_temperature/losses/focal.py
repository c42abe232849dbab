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
from softmax_temperature.metrics.checks import (
    ArgumentError,
    check_at_least_zero,
    check_gamma,
)


def focal_loss(
    logits: Tensor, labels: Tensor, gamma: float | Tensor, *, reduction: str = "mean"
) -> Tensor:
    """Focal loss, -(1 - p)^gamma log p, in nats (focal paper, section 4).

    p is the probability of the true class. Value and gradient are accurate to rounding
    error for every p. For soft labels q the loss is -sum_c q_c (1 - p_c)^gamma log p_c.

    Args:
        logits: Shape (n, classes); -inf for masked classes.
        labels: Class indices (n,), or probabilities (n, classes).
        gamma: Focusing parameter, at least 0: either one number, or a tensor (n,) with
            one number per sample. With 0 the loss is the cross-entropy.
        reduction: "mean", "sum" or "none", which returns (n,).

    Raises:
        ValueError: If a shape, a value or `reduction` is wrong.
    """
    # Deviation: by default we take the mean over samples; the paper defines the loss of
    # one sample. The released code sums over the batch by default, which multiplies the
    # gradient by the batch size; our reduction "sum" does the same.
    check_batch(logits, labels)
    check_gamma(gamma)
    wide = widened(logits)
    if isinstance(gamma, Tensor):
        if gamma.ndim > 0 and gamma.shape != (len(logits),):
            raise ArgumentError(
                f"gamma must be a number or have shape ({len(logits)},), "
                f"got {tuple(gamma.shape)}",
                "Give one gamma, or one for each row.",
            )
        # Convert gamma, because a gamma with a wider dtype would promote the loss.
        gamma = gamma.to(wide.dtype)
    if is_soft(logits, labels):
        losses = soft_focal_terms(wide, labels.to(wide), gamma).sum(dim=1)
    else:
        losses = focal_losses(wide, labels, gamma)
    return reduced(losses, reduction).to(logits.dtype)


def focal_losses(logits: Tensor, labels: Tensor, gamma: float | Tensor) -> Tensor:
    """The focal loss of each sample, (n,), for labels that are class indices."""
    log_true, log_others = log_prob_and_complement(logits, labels)
    return -log_true * torch.exp(gamma * log_others)


def soft_focal_terms(logits: Tensor, targets: Tensor, gamma: float | Tensor) -> Tensor:
    """Return the focal loss's term for each class, (n, classes), for soft `targets`."""
    if isinstance(gamma, Tensor) and gamma.ndim > 0:
        gamma = gamma[:, None]
    log_probs, log_complements = log_probs_and_complements(logits)
    # Replace the logarithm of a masked class: its target is 0, and 0 times an infinite
    # logarithm would be NaN.
    log_probs = log_probs.masked_fill(torch.isneginf(logits), 0)
    return -targets * log_probs * torch.exp(gamma * log_complements)


class FocalLoss(SampleLoss):
    """Focal loss, -(1 - p)^gamma log p, in nats (focal paper, section 4).

    The loss is called with logits (n, classes) and labels (n,), or with logits (n,
    classes, ...) and labels (n, ...). Labels may also be probabilities with the shape
    of the logits.

    Args:
        gamma: Focusing parameter, at least 0; 0 gives the cross-entropy.
        weight: One weight per class, shape (classes,). As in
            `torch.nn.CrossEntropyLoss`, the mean over class indices divides by the sum
            of the samples' weights.
        ignore_index: Label of samples to ignore. With None, no sample is ignored, and
            the loss skips a search that would make the host wait for a GPU.
        reduction: "mean", "sum", or "none".

    Raises:
        ValueError: If an argument is out of range or, when the loss is called, a shape
            or value of the batch is wrong. Values are checked on the CPU only.

    Examples:
        >>> logits = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
        >>> FocalLoss(gamma=3.0)(logits, torch.tensor([0, 0]))
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
        # This check also refuses a tensor of several numbers, which would broadcast
        # over the samples.
        check_at_least_zero(gamma, "gamma")
        self.gamma = gamma

    @classmethod
    def from_options(cls, **options: Any) -> Self:
        """Make the loss with the option `gamma`, which params.yaml must set."""
        if "gamma" not in options:
            raise TypeError("the option gamma is required")
        return super().from_options(**options)

    def losses(self, logits: Tensor, labels: Tensor, epoch: float | None) -> Tensor:
        """The focal loss of each sample, (n,)."""
        return focal_losses(logits, labels, self.gamma_at(epoch))

    def soft_losses(
        self, logits: Tensor, targets: Tensor, epoch: float | None
    ) -> Tensor:
        """The class-weighted focal loss of each sample, (n,)."""
        terms = soft_focal_terms(logits, targets, self.gamma_at(epoch))
        weight = self.class_weights(logits.shape[1], logits.dtype)
        if weight is not None:
            terms = terms * weight
        return terms.sum(dim=1)

    def gamma_at(self, epoch: float | None) -> float:  # noqa: ARG002
        """Return gamma, which is the same at every epoch."""
        return self.gamma

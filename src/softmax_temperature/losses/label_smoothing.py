"""Cross-entropy with smoothed labels (focal paper, section 5, baseline c)."""

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.losses.base import (
    SampleLoss,
    is_soft,
    one_hot_targets,
    split_rows,
    widened,
)
from softmax_temperature.losses.cross_entropy import soft_cross_entropy_terms
from softmax_temperature.metrics.checks import (
    ArgumentError,
    check_argument_order,
    check_logits,
    check_tensor,
    is_number_between,
    may_be_read,
)


def label_smoothing_loss(
    logits: Tensor, labels: Tensor, *, smoothing: float = 0.05
) -> Tensor:
    """Cross-entropy against smoothed labels, in nats (baseline c).

    The target is 1 - smoothing for the true class and smoothing / (classes - 1) for
    every other class. Masked classes have target 0 and are not counted in `classes`.
    Soft labels q become (1 - smoothing) q + smoothing (1 - q) / (classes - 1).

    Args:
        logits: Shape (n, classes); -inf for masked classes.
        labels: Class indices (n,), or probabilities (n, classes).
        smoothing: Number in [0, (classes - 1) / classes]; the upper end gives a uniform
            target.

    Returns:
        The mean over the batch.

    Raises:
        ValueError: If a shape or a value is wrong.
    """
    check_argument_order(logits, labels)
    check_logits(logits, values=False)
    loss: Tensor = LabelSmoothingLoss(smoothing, ignore_index=None)(logits, labels)
    return loss


def smoothed_terms(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """Return each class's term of the loss, (n, classes), from unsmoothed `targets`."""
    unmasked = ~torch.isneginf(logits)
    # Clamp at 1 for rows with a single unmasked class. The log p of that class is 0, so
    # the target does not matter.
    others = (unmasked.sum(dim=1, keepdim=True) - 1).clamp(min=1)
    smoothed = (1 - smoothing) * targets + smoothing * (1 - targets) / others
    return soft_cross_entropy_terms(logits, smoothed)


class LabelSmoothingLoss(SampleLoss):
    """Cross-entropy against smoothed labels, in nats; see `label_smoothing_loss`.

    In float32, a -log p below about 6e-8 becomes 0, as in torch: with smoothing 0,
    logits [[20, 0]] and label 0 give 0, whereas `FocalLoss(0)` returns 2.06e-9. The
    other arguments and the shapes are those of `FocalLoss`; labels may be
    probabilities. With `weight`, each class's term is multiplied by the weight of the
    class. For class indices, the mean then divides by the sum of the labels' weights,
    as in `torch.nn.CrossEntropyLoss`; for soft labels it divides by the number of
    samples.
    """

    arguments: ClassVar[tuple[str, ...]] = ("smoothing",)

    def __init__(
        self,
        smoothing: float = 0.05,
        weight: Tensor | None = None,
        *,
        ignore_index: int | None = -100,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, ignore_index=ignore_index, reduction=reduction)
        if not is_number_between(smoothing, 0, 1):
            raise ArgumentError(
                f"smoothing must be in [0, 1), got {smoothing!r}",
                "Give a fraction, such as 0.05.",
            )
        self.smoothing = smoothing

    def forward(
        self, logits: Tensor, labels: Tensor, epoch: float | None = None
    ) -> Tensor:
        """Return the reduced loss of a batch, in the dtype of the logits."""
        check_tensor(logits, "logits")
        classes = logits.shape[1] if logits.ndim > 1 else 0
        uniform = (classes - 1) / max(classes, 1)
        if classes > 1 and self.smoothing > uniform:
            raise ArgumentError(
                f"smoothing must be in [0, {uniform:.6g}] for {classes} classes, "
                f"got {self.smoothing}",
                "Give less; at the upper end, all classes are equally probable.",
            )
        rows, targets = split_rows(logits, labels)
        if self.weight is not None and not is_soft(rows, targets):
            return self._weighted(logits, labels)
        plain = self.weight is None and self.reduction == "mean"
        if not plain or is_soft(rows, targets) or _may_be_masked(rows, targets):
            return super().forward(logits, labels, epoch)
        rows, targets, _ = self.counted_rows(rows, targets)
        if len(rows):
            self.check_rows(rows, targets)
        # Convert the smoothing, because torch spreads it over all classes, including
        # the true class.
        spread = min(self.smoothing / uniform, 1.0)
        loss = F.cross_entropy(widened(rows), targets.long(), label_smoothing=spread)
        return loss.to(logits.dtype)

    def _weighted(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The reduced loss with class weights for class indices, as torch defines it.

        Each class's term is multiplied by the weight of the class, and the mean divides
        by the sum of the labels' weights.
        """
        rows, targets, counted = self.counted_rows(*split_rows(logits, labels))
        if len(rows):
            self.check_rows(rows, targets)
        wide = widened(rows)
        losses = self.soft_losses(wide, one_hot_targets(wide, targets), None)
        weight = self.class_weights(rows.shape[1], losses.dtype)
        weights = None if weight is None else weight[targets.long()]
        return self.reduced_rows(losses, weights, counted, logits, labels)

    def losses(
        self,
        logits: Tensor,
        labels: Tensor,
        epoch: float | None,  # noqa: ARG002
    ) -> Tensor:
        """Return the loss of each sample, (n,)."""
        targets = one_hot_targets(logits, labels)
        return smoothed_terms(logits, targets, self.smoothing).sum(dim=1)

    def soft_losses(
        self,
        logits: Tensor,
        targets: Tensor,
        epoch: float | None,  # noqa: ARG002
    ) -> Tensor:
        """The class-weighted loss of each sample, (n,)."""
        terms = smoothed_terms(logits, targets, self.smoothing)
        weight = self.class_weights(logits.shape[1], logits.dtype)
        if weight is not None:
            terms = terms * weight
        return terms.sum(dim=1)


def _may_be_masked(logits: Tensor, labels: Tensor) -> bool:
    """Whether a logit may be -inf; also True if the values cannot be read cheaply."""
    return not may_be_read(logits, labels) or bool(torch.isneginf(logits).any())

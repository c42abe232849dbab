"""Cross-entropy, as torch computes it."""

import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.losses.base import (
    SampleLoss,
    is_soft,
    split_rows,
    widened,
)


def soft_cross_entropy_terms(logits: Tensor, targets: Tensor) -> Tensor:
    """Return -q log p for each class, (n, classes), for targets q (n, classes)."""
    # Replace the logarithm of a masked class: its target is 0, and 0 times an infinite
    # logarithm would be NaN.
    log_probs = F.log_softmax(logits, dim=1).masked_fill(torch.isneginf(logits), 0)
    return -targets * log_probs


class CrossEntropyLoss(SampleLoss):
    """Cross-entropy, -log p, in nats.

    For class indices, and logits of at least float32, it equals
    `torch.nn.functional.cross_entropy` bit for bit. In float32, the loss of a sample
    therefore becomes 0 if it is below about 6e-8: for logits [[20, 0]] and label 0 it
    is 0, whereas `FocalLoss(0)` returns 2.06e-9. The shapes, and the arguments other
    than `gamma`, are those of `FocalLoss`.
    """

    def forward(
        self, logits: Tensor, labels: Tensor, epoch: float | None = None
    ) -> Tensor:
        """Return the reduced loss of a batch, in the dtype of the logits."""
        rows, targets = split_rows(logits, labels)
        if is_soft(rows, targets):
            return super().forward(logits, labels, epoch)
        counted, counted_labels, _ = self.counted_rows(rows, targets)
        if len(counted):
            self.check_rows(counted, counted_labels)
        wide = self.tempered(widened(rows))
        loss = F.cross_entropy(
            wide,
            targets.long(),
            self.class_weights(rows.shape[1], wide.dtype),
            ignore_index=-100 if self.ignore_index is None else self.ignore_index,
            reduction=self.reduction,
        )
        shape = labels.shape if self.reduction == "none" else ()
        return loss.to(logits.dtype).view(shape)

    def soft_losses(
        self,
        logits: Tensor,
        targets: Tensor,
        epoch: float | None,  # noqa: ARG002
    ) -> Tensor:
        """The class-weighted cross-entropy of each sample, (n,)."""
        terms = soft_cross_entropy_terms(self.tempered(logits), targets)
        weight = self.class_weights(logits.shape[1], logits.dtype)
        if weight is not None:
            terms = terms * weight
        return terms.sum(dim=1)

"""Maximum mean calibration error as a penalty (focal paper, section 5, appendix E)."""

from typing import Any, ClassVar, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.losses.base import (
    CLASS_INDICES,
    SampleLoss,
    check_batch,
    is_soft,
    split_rows,
    widened,
)
from softmax_temperature.losses.probabilities import log_prob_and_complement
from softmax_temperature.metrics.checks import (
    ArgumentError,
    check_at_least_zero,
    check_flag,
    check_positive,
    is_transformed,
)

# Largest number of samples in a batch. The matrix of all their pairs takes 1 GiB in
# float32.
MOST_ROWS = 16_384
# The label of rows that torch's cross-entropy must leave out.
NOT_COUNTED = -100
# Width of the Laplacian kernel on confidences.
KERNEL_WIDTH = 0.4


def mmce(
    logits: Tensor,
    labels: Tensor,
    *,
    kernel_width: float = KERNEL_WIDTH,
    as_released: bool = False,
) -> Tensor:
    """Maximum mean calibration error of a batch (Kumar, Sarawagi and Jain, ICML 2018).

    The value is the square root of sum_ij (c_i - r_i)(c_j - r_j) k(r_i, r_j) / n^2,
    where r is the confidence, c is 1 for a correct prediction and 0 otherwise, and k(r,
    s) = exp(-|r - s| / kernel_width). If the value is zero, its gradient is zero too.

    Args:
        logits: Shape (n, classes), n at most 16,384; -inf for masked classes.
        labels: Class indices (n,).
        kernel_width: Width of the Laplacian kernel on confidences.
        as_released: Whether to return the square, as the released code does.

    Raises:
        ValueError: If a shape or value is wrong, the batch is too large, or
            `kernel_width` is not finite and positive.
    """
    check_flag(as_released, "as_released")
    _check(logits, labels, kernel_width)
    confidences, complements, correct = _top_label(logits, labels)
    residuals = torch.where(correct, complements, -confidences) / len(confidences)
    square = residuals @ _kernel(confidences, kernel_width) @ residuals
    # Deviation: by default we take the square root, as in the definition that the
    # released code cites. The released code returns the square.
    if as_released:
        return square.to(logits.dtype)
    return _safe_root(square).to(logits.dtype)


def weighted_mmce(
    logits: Tensor,
    labels: Tensor,
    *,
    kernel_width: float = KERNEL_WIDTH,
    as_released: bool = False,
) -> Tensor:
    """Weighted maximum mean calibration error of a batch.

    The focal paper trains on cross-entropy plus twice this penalty. The penalty is the
    distance between the mean of (1 - r) k(r, .) over correct predictions and the mean
    of r k(r, .) over wrong predictions; a mean over no predictions is zero. The
    square of this distance is a sum of three means over pairs of predictions. With
    `as_released`, each of these means is divided by its number of pairs once more, and
    a batch whose predictions are all correct or all wrong gives 0. The other arguments
    and the errors are those of `mmce`.
    """
    check_flag(as_released, "as_released")
    _check(logits, labels, kernel_width)
    return _weighted_penalty(logits, labels, kernel_width, as_released=as_released)


def _weighted_penalty(
    logits: Tensor,
    labels: Tensor,
    kernel_width: float,
    *,
    as_released: bool,
    counted: Tensor | None = None,
) -> Tensor:
    """The `weighted_mmce` of a batch that has been checked.

    `counted` is the mask of the rows that count, or None if all of them count.
    """
    confidences, complements, correct = _top_label(logits, labels)
    is_right = correct.to(confidences.dtype)
    is_wrong = 1 - is_right
    if counted is not None:
        is_right = is_right * counted
        is_wrong = is_wrong * counted
    right = is_right.sum()
    wrong = is_wrong.sum()
    right_mean = is_right * complements / right.clamp(min=1)
    wrong_mean = is_wrong * confidences / wrong.clamp(min=1)
    kernel = _kernel(confidences, kernel_width)
    if not as_released:
        residuals = right_mean - wrong_mean
        return _safe_root(residuals @ kernel @ residuals).to(logits.dtype)
    # Deviation: we clamp the sum of the terms at zero, because it can fall below
    # -1e-10, for which the released code returns NaN. The second division by the number
    # of pairs, 1e-5 and 1e-10 come from the released code.
    to_right = kernel @ right_mean
    to_wrong = kernel @ wrong_mean
    square = right_mean @ to_right / (right * right + 1e-5)
    square = square + wrong_mean @ to_wrong / (wrong * wrong + 1e-5)
    square = square - 2 * (right_mean @ to_wrong) / (right * wrong + 1e-5)
    mixed = ((right > 0) & (wrong > 0)).to(square.dtype)
    return (mixed * torch.sqrt(square.clamp(min=0) + 1e-10)).to(logits.dtype)


def _check(logits: Tensor, labels: Tensor, kernel_width: float) -> None:
    check_positive(kernel_width, "kernel_width")
    check_batch(logits, labels)
    _check_pairs(logits, labels)


def _check_pairs(logits: Tensor, labels: Tensor) -> None:
    """Refuse soft labels, and a batch of more than `MOST_ROWS` rows."""
    if is_soft(logits, labels):
        raise ArgumentError(
            "labels must be class indices (n,), because with soft labels no prediction "
            f"is right or wrong, got {labels.dtype} of shape {tuple(labels.shape)}",
            CLASS_INDICES,
        )
    if len(logits) > MOST_ROWS:
        gibibytes = len(logits) ** 2 * widened(logits[:0]).element_size() / 2**30
        raise ArgumentError(
            f"logits must have at most {MOST_ROWS:,} rows, because MMCE compares all "
            f"pairs, got {len(logits):,} (its pairs would take {gibibytes:,.0f} GiB)",
            "Draw a subset of the samples or pixels.",
        )


def _top_label(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Confidence, its complement, and correctness of the predictions, each (n,)."""
    predicted = logits.argmax(dim=1)
    log_top, log_others = log_prob_and_complement(widened(logits), predicted)
    return log_top.exp(), log_others.exp(), predicted == labels.long()


def _kernel(confidences: Tensor, width: float) -> Tensor:
    return torch.exp(-(confidences[:, None] - confidences[None, :]).abs() / width)


def _safe_root(square: Tensor) -> Tensor:
    """The root of `square`, with value and gradient 0 if `square` is not positive."""
    # Take the root of 1 where `square` is not positive; otherwise the backward pass
    # would multiply 0 by the infinite slope of the root, which gives NaN.
    positive = square > 0
    return torch.where(positive, torch.sqrt(torch.where(positive, square, 1)), 0)


class MMCELoss(SampleLoss):
    """Cross-entropy plus a multiple of `weighted_mmce`, in nats (appendix E).

    The penalty compares every pair of samples or pixels that count, so a batch with
    more than 16,384 of them raises ValueError. The loss is always a mean over the
    batch. In float32, the cross-entropy of a sample becomes 0 if it is below about
    6e-8, as in torch: for logits [[20, 0]] and label 0 it is 0, whereas `FocalLoss(0)`
    returns 2.06e-9. Shapes and other errors are those of `FocalLoss`, except that soft
    labels raise ValueError.

    Args:
        penalty: Weight of the MMCE term, lambda in the focal paper; at least 0.
        weight: One weight per class in the cross-entropy, shape (classes,).
        ignore_index: Label of samples to ignore; with None, no sample is ignored.
        as_released: Whether to use the penalty of the released code; see
            `weighted_mmce`.

    Examples:
        >>> logits = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
        >>> MMCELoss()(logits, torch.tensor([0, 0]))
        tensor(2.0297)
    """

    arguments: ClassVar[tuple[str, ...]] = ("penalty", "as_released")

    def __init__(
        self,
        penalty: float = 2.0,
        weight: Tensor | None = None,
        *,
        ignore_index: int | None = -100,
        as_released: bool = False,
    ) -> None:
        super().__init__(weight, ignore_index=ignore_index)
        check_at_least_zero(penalty, "penalty")
        check_flag(as_released, "as_released")
        self.penalty = penalty
        self.as_released = as_released

    @classmethod
    def from_options(cls, **options: Any) -> Self:
        """Make the loss from its options; the option `weight` is the paper's lambda."""
        penalty = {"penalty": options.pop("weight")} if "weight" in options else {}
        return super().from_options(**penalty, **options)

    def forward(
        self,
        logits: Tensor,
        labels: Tensor,
        epoch: float | None = None,  # noqa: ARG002
    ) -> Tensor:
        """The mean over all samples that are not ignored; NaN if there are none."""
        rows, targets = split_rows(logits, labels)
        if is_soft(rows, targets):
            self.soft_losses(rows, targets, None)
        rows, targets, counted = self.counted_rows(rows, targets)
        wide = widened(rows)
        if not len(rows):
            return wide.sum(dim=1).mean().to(logits.dtype)
        self.check_rows(rows, targets)
        _check_pairs(rows, targets)
        classes = targets.long()
        if counted is not None and is_transformed(logits, labels):
            # The rows that do not count have not been removed, so cross-entropy must
            # skip them.
            classes = torch.where(counted, classes, NOT_COUNTED)
        else:
            counted = None
        penalty = _weighted_penalty(
            wide,
            classes,
            KERNEL_WIDTH,
            as_released=self.as_released,
            counted=counted,
        )
        weight = self.class_weights(rows.shape[1], wide.dtype)
        cross_entropy = F.cross_entropy(wide, classes, weight, ignore_index=NOT_COUNTED)
        return (cross_entropy + self.penalty * penalty).to(logits.dtype)

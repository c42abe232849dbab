"""The rescaled cross-entropy (classifier_temperature), and the baselines of the focal
paper (section 5).
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.losses.focal import reduced
from softmax_temperature.metrics.checks import check_batch, check_positive


def rescaled_cross_entropy(
    logits: Tensor, labels: Tensor, inverse_temperature: float
) -> Tensor:
    """Cross-entropy of the scaled logits over the scale, CE(alpha z) / alpha
    (classifier_temperature, section 3.1).

    One learning rate then serves every alpha. Raises ValueError for a wrong shape or an
    alpha that is not positive.
    """
    check_positive(inverse_temperature, "inverse_temperature")
    check_batch(logits, labels)
    return (
        F.cross_entropy(inverse_temperature * logits, labels.long())
        / inverse_temperature
    )


def brier_loss(logits: Tensor, labels: Tensor, *, reduction: str = "mean") -> Tensor:
    """Squared distance of the probabilities to the one-hot label, in [0, 2] (baseline
    b); the rest as `focal_loss`.
    """
    check_batch(logits, labels)
    probs = torch.softmax(logits, dim=1)
    targets = F.one_hot(labels.long(), logits.shape[1]).to(logits.dtype)
    return reduced((probs - targets).square().sum(dim=1), reduction)


def label_smoothing_loss(
    logits: Tensor, labels: Tensor, *, smoothing: float = 0.05
) -> Tensor:
    """Cross-entropy against smoothed labels, nats (baseline c).

    The target is 1 - smoothing on the true class and smoothing / (classes - 1) on each
    other one. Raises ValueError if a shape disagrees, or `smoothing` exceeds (classes -
    1) / classes, a uniform target.
    """
    check_batch(logits, labels)
    classes = logits.shape[1]
    uniform = (classes - 1) / classes
    if not 0 <= smoothing <= uniform:
        raise ValueError(
            f"smoothing must be in [0, {uniform:.6g}] for {classes} classes, got {smoothing}"
        )
    # torch spreads its mass over all classes, the true one too.
    return F.cross_entropy(
        logits, labels.long(), label_smoothing=min(smoothing / uniform, 1.0)
    )


def mmce(
    logits: Tensor,
    labels: Tensor,
    *,
    kernel_width: float = 0.4,
    as_released: bool = False,
) -> Tensor:
    """Maximum mean calibration error of a batch (Kumar, Sarawagi and Jain, ICML 2018),
    a penalty.

    The square root of sum_ij (c_i - r_i)(c_j - r_j) k(r_i, r_j) / n^2, with r the
    confidence, c whether the prediction is right, and k(r, s) = exp(-|r - s| /
    kernel_width). `as_released` leaves the root out. The gradient is zero where the
    value is. Raises ValueError if a shape disagrees or `kernel_width` is not finite and
    positive.
    """
    confidences, correct = _top_label(logits, labels, kernel_width)
    residuals = (correct - confidences) / len(confidences)
    square = residuals @ _kernel(confidences, kernel_width) @ residuals
    # Deviation: the released code returns the square; the definition that it cites
    # takes the root, the default here.
    return square if as_released else _safe_root(square)


def weighted_mmce(
    logits: Tensor,
    labels: Tensor,
    *,
    kernel_width: float = 0.4,
    as_released: bool = False,
) -> Tensor:
    """Weighted maximum mean calibration error of a batch: the focal paper trains on
    cross-entropy plus twice this.

    The distance between the mean over right predictions of (1 - r) k(r, .) and that
    over wrong ones of r k(r, .), zero where a batch has none. `as_released` divides
    each double mean by the number of its pairs once more, and gives 0 for a batch that
    is all right or all wrong. The rest is as for `mmce`.
    """
    confidences, correct = _top_label(logits, labels, kernel_width)
    right, wrong = correct.sum(), (1 - correct).sum()
    right_mean = correct * (1 - confidences) / right.clamp(min=1)
    wrong_mean = (1 - correct) * confidences / wrong.clamp(min=1)
    kernel = _kernel(confidences, kernel_width)
    if not as_released:
        residuals = right_mean - wrong_mean
        return _safe_root(residuals @ kernel @ residuals)
    # Deviation: the second division by the number of pairs is the released code's, as
    # are its 1e-5 and 1e-10. Its terms can sum to less than -1e-10, where it returns
    # NaN; here they stop at zero.
    to_right, to_wrong = kernel @ right_mean, kernel @ wrong_mean
    square = right_mean @ to_right / (right * right + 1e-5)
    square = square + wrong_mean @ to_wrong / (wrong * wrong + 1e-5)
    square = square - 2 * (right_mean @ to_wrong) / (right * wrong + 1e-5)
    mixed = ((right > 0) & (wrong > 0)).to(square.dtype)
    return mixed * torch.sqrt(square.clamp(min=0) + 1e-10)


def _top_label(
    logits: Tensor, labels: Tensor, kernel_width: float
) -> tuple[Tensor, Tensor]:
    """Confidence, with gradient, and whether the prediction is right (0 or 1), each of
    shape (n,).
    """
    check_positive(kernel_width, "kernel_width")
    check_batch(logits, labels)
    confidences, predicted = torch.softmax(logits, dim=1).max(dim=1)
    return confidences, (predicted == labels).to(logits.dtype)


def _kernel(confidences: Tensor, width: float) -> Tensor:
    return torch.exp(-(confidences[:, None] - confidences[None, :]).abs() / width)


def _safe_root(square: Tensor) -> Tensor:
    """The square root, with value and gradient zero where rounding leaves nothing or
    less under it.
    """
    # The inner `where` keeps the infinite slope of the root out of the backward pass,
    # not only out of the value.
    positive = square > 0
    return torch.where(positive, torch.sqrt(torch.where(positive, square, 1)), 0)

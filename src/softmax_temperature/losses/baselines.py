"""The cross-entropy at an inverse temperature, and the baselines of the focal paper but MMCE (section 5)."""

import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.losses.focal import reduced
from softmax_temperature.metrics.checks import check_batch, check_positive


def rescaled_cross_entropy(logits: Tensor, labels: Tensor, inverse_temperature: float) -> Tensor:
    """Cross-entropy of the scaled logits over the scale, CE(alpha z) / alpha (classifier_temperature, section 3.1).

    The division keeps the gradient of order one at every alpha, so that one learning rate serves them all. Raises
    ValueError if a shape disagrees or `inverse_temperature` is not finite and positive.
    """
    check_positive(inverse_temperature, "inverse_temperature")
    check_batch(logits, labels)
    return F.cross_entropy(inverse_temperature * logits, labels.long()) / inverse_temperature


def brier_loss(logits: Tensor, labels: Tensor, *, reduction: str = "mean") -> Tensor:
    """Squared distance of the probabilities to the one-hot label, summed over classes, in [0, 2] (baseline b).

    `reduction` is as in `focal_loss`. Raises ValueError if a shape disagrees, or it is unknown.
    """
    check_batch(logits, labels)
    probs = torch.softmax(logits, dim=1)
    targets = F.one_hot(labels.long(), logits.shape[1]).to(logits.dtype)
    return reduced((probs - targets).square().sum(dim=1), reduction)


def label_smoothing_loss(logits: Tensor, labels: Tensor, *, smoothing: float = 0.05) -> Tensor:
    """Cross-entropy against smoothed labels, nats (baseline c).

    The target is 1 - smoothing on the true class and smoothing / (classes - 1) on each other one. Raises ValueError if
    a shape disagrees, or `smoothing` exceeds (classes - 1) / classes, a uniform target.
    """
    check_batch(logits, labels)
    classes = logits.shape[1]
    uniform = (classes - 1) / classes
    if not 0 <= smoothing <= uniform:
        raise ValueError(f"smoothing must be in [0, {uniform:.6g}] for {classes} classes, got {smoothing}")
    # torch spreads its mass over all classes, the true one too.
    return F.cross_entropy(logits, labels.long(), label_smoothing=min(smoothing / uniform, 1.0))

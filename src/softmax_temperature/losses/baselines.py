"""The losses that focal loss is compared with, and the cross-entropy at a temperature with its gradient rescaled."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.metrics.checks import check_batch, check_positive


def brier_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Squared distance of the probabilities to the one-hot label (focal paper, section 5, baseline b).

    Summed over classes, as Brier defined it and the paper's code does (so at most 2), averaged over samples.

    Args:
        logits: Shape (n, classes).
        labels: True classes, shape (n,), integers.

    Returns:
        A scalar in [0, 2], dtype and device of `logits`.

    Raises:
        ValueError: If a shape disagrees.
    """
    check_batch(logits, labels)
    probs = torch.softmax(logits, dim=1)
    targets = F.one_hot(labels.long(), logits.shape[1]).to(logits.dtype)
    return (probs - targets).square().sum(dim=1).mean()


def label_smoothing_loss(logits: Tensor, labels: Tensor, *, smoothing: float = 0.05) -> Tensor:
    """Cross-entropy against smoothed labels (focal paper, section 5, baseline c).

    The target is 1 - smoothing on the true class and smoothing / (classes - 1) on each other one. torch's
    `label_smoothing` spreads its mass over all classes, the true one too: to get the same target its argument must be
    larger by the factor classes / (classes - 1), and that is how this is computed.

    Args:
        logits: Shape (n, classes).
        labels: True classes, shape (n,), integers.
        smoothing: Mass moved off the true class, a fraction in [0, (classes - 1) / classes]; at the upper end the
            target is uniform, beyond it the true class would be the least likely one.

    Returns:
        A scalar in nats, dtype and device of `logits`.

    Raises:
        ValueError: If a shape disagrees or `smoothing` is out of range.
    """
    check_batch(logits, labels)
    classes = logits.shape[1]
    uniform = (classes - 1) / classes
    if not 0 <= smoothing <= uniform:
        raise ValueError(f"smoothing must be in [0, {uniform:.6g}] for {classes} classes, got {smoothing}")
    return F.cross_entropy(logits, labels.long(), label_smoothing=min(smoothing / uniform, 1.0))


def rescaled_cross_entropy(logits: Tensor, labels: Tensor, inverse_temperature: float) -> Tensor:
    """Cross-entropy of the scaled logits over the scale, CE(alpha z) / alpha (classifier_temperature, section 3.1).

    The division keeps the gradient with respect to the logits of order one at every inverse temperature, so that one
    learning rate serves them all.

    Args:
        logits: Shape (n, classes), before the scaling.
        labels: True classes, shape (n,), integers.
        inverse_temperature: alpha, multiplies the logits; finite and positive.

    Returns:
        A scalar in nats per unit of inverse temperature, dtype and device of `logits`.

    Raises:
        ValueError: If a shape disagrees or `inverse_temperature` is not finite and positive.
    """
    check_positive(inverse_temperature, "inverse_temperature")
    check_batch(logits, labels)
    return F.cross_entropy(inverse_temperature * logits, labels.long()) / inverse_temperature

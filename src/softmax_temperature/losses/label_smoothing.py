"""Cross-entropy against smoothed labels (focal paper, section 5, baseline c)."""

from __future__ import annotations

from functools import partial

import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.losses.objective import Objective, at_every_epoch
from softmax_temperature.metrics.checks import check_batch


def label_smoothing_loss(logits: Tensor, labels: Tensor, *, smoothing: float = 0.05) -> Tensor:
    """Cross-entropy against smoothed labels (focal paper, section 5, baseline c), nats.

    The target is 1 - smoothing on the true class and smoothing / (classes - 1) on each other one. torch's
    `label_smoothing` spreads its mass over all classes, the true one too: to get the same target its argument must be
    larger by the factor classes / (classes - 1), and that is how this is computed. Logits (n, classes), labels (n,)
    integers. Raises ValueError if a shape disagrees, or `smoothing` exceeds (classes - 1) / classes, a uniform target.
    """
    check_batch(logits, labels)
    classes = logits.shape[1]
    uniform = (classes - 1) / classes
    if not 0 <= smoothing <= uniform:
        raise ValueError(f"smoothing must be in [0, {uniform:.6g}] for {classes} classes, got {smoothing}")
    return F.cross_entropy(logits, labels.long(), label_smoothing=min(smoothing / uniform, 1.0))


def make(*, smoothing: float = 0.05) -> Objective:
    """The objective "label_smoothing"; the smoothing is in [0, 1)."""
    if not 0 <= smoothing < 1:
        raise ValueError(f"smoothing must be in [0, 1), got {smoothing}")
    return at_every_epoch(partial(label_smoothing_loss, smoothing=smoothing))

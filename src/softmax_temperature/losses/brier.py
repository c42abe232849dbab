"""Brier loss (focal paper, section 5, baseline b)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.losses.objective import Objective, at_every_epoch
from softmax_temperature.metrics.checks import check_batch


def brier_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Squared distance of the probabilities to the one-hot label (focal paper, section 5, baseline b), in [0, 2].

    Summed over classes, as Brier defined it and the paper's code does, and averaged over samples. Logits (n, classes),
    labels (n,) integers. Raises ValueError if a shape disagrees.
    """
    check_batch(logits, labels)
    probs = torch.softmax(logits, dim=1)
    targets = F.one_hot(labels.long(), logits.shape[1]).to(logits.dtype)
    return (probs - targets).square().sum(dim=1).mean()


def make() -> Objective:
    """The objective "brier"."""
    return at_every_epoch(brier_loss)

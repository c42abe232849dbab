"""What gradient flow descends: the cross-entropy of the tempered logits, and the squared error as a control."""

from __future__ import annotations

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.metrics.checks import check_labels, check_logits

ALL = slice(None)


class Loss(Protocol):
    """A sum over samples of a function of their tempered logits."""

    def residual(self, logits: Tensor, rows: slice = ALL) -> Tensor:
        """Minus the gradient of the sum, (b, classes), at the tempered logits (b, classes) of some samples."""

    def mean(self, logits: Tensor) -> float:
        """The mean over all samples, of tempered logits (n, classes)."""


class SoftmaxCrossEntropy:
    """Cross-entropy of the softmax, nats; its residual is Y - softmax(Z).

    Args:
        labels: (n,) int64.
        classes: at least 2.

    Raises:
        ValueError: the labels are no classes.
    """

    def __init__(self, labels: Tensor, classes: int) -> None:
        like = torch.zeros(len(labels), classes, dtype=torch.float64, device=labels.device)
        check_logits(like)
        check_labels(labels, like)
        self._labels, self._targets = labels, F.one_hot(labels.long(), classes).double()

    def residual(self, logits: Tensor, rows: slice = ALL) -> Tensor:
        """Y - softmax(Z), (b, classes)."""
        return self._targets[rows] - torch.softmax(logits, dim=1)

    def mean(self, logits: Tensor) -> float:
        """Mean over samples, nats."""
        return F.cross_entropy(logits, self._labels).item()


class SquaredError:
    """Half the squared distance to the targets: with a fixed kernel, Z - Y decays as exp(-Θ s).

    Args:
        targets: (n, classes) float64.
    """

    def __init__(self, targets: Tensor) -> None:
        self._targets = targets

    def residual(self, logits: Tensor, rows: slice = ALL) -> Tensor:
        """Y - Z, (b, classes)."""
        return self._targets[rows] - logits

    def mean(self, logits: Tensor) -> float:
        """Mean over samples."""
        return (logits - self._targets).square().sum(dim=1).mean().item() / 2

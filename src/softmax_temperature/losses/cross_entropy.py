"""Cross-entropy, plain and at an inverse temperature."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.losses.objective import Objective, at_every_epoch
from softmax_temperature.metrics.checks import check_batch, check_positive


def rescaled_cross_entropy(logits: Tensor, labels: Tensor, inverse_temperature: float) -> Tensor:
    """Cross-entropy of the scaled logits over the scale, CE(alpha z) / alpha (classifier_temperature, section 3.1).

    The division keeps the gradient with respect to the logits of order one at every inverse temperature alpha, so that
    one learning rate serves them all; the unit is nats per unit of alpha. Logits (n, classes) before the scaling,
    labels (n,) integers. Raises ValueError if a shape disagrees or `inverse_temperature` is not finite and positive.
    """
    check_positive(inverse_temperature, "inverse_temperature")
    check_batch(logits, labels)
    return F.cross_entropy(inverse_temperature * logits, labels.long()) / inverse_temperature


def make() -> Objective:
    """The objective "cross_entropy": mean of -log p, nats."""
    return at_every_epoch(F.cross_entropy)


def make_tempered(*, inverse_temperature: float) -> Objective:
    """The objective "tempered_cross_entropy": cross-entropy of beta times the logits (temperature_check, abstract)."""
    check_positive(inverse_temperature, "inverse_temperature")
    return at_every_epoch(lambda logits, labels: F.cross_entropy(inverse_temperature * logits, labels))

"""The correlation of a pair that starts with logits of a wanted size."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING

import torch
from scipy.optimize import brentq

from softmax_temperature.early_learning.pair import frozen_parameters
from softmax_temperature.metrics.checks import check_positive

if TYPE_CHECKING:
    from torch import Tensor, nn

TOLERANCE = 1e-6
"""Relative, of the norm."""


def correlation_for_norm(
    network: nn.Module, other: nn.Module, inputs: Tensor, logit_norm: float, *, inverse_temperature: float
) -> float:
    """The correlation at which a pair starts with tempered logits of a given norm.

    The norm of the logits rises from 0 at correlation 1, in proportion to the angle whose cosine the correlation is, so
    the angle is what is solved for. Where the norm does not rise all the way, one of the solutions is found.

    Args:
        network: at its start, in the mode that the logits are wanted in; nothing of it changes.
        other: an independent draw of the same architecture.
        inputs: (n, ...), the samples over which the norm is taken.
        logit_norm: the wanted ||Z||, the Frobenius norm over samples and classes; at least 0.
        inverse_temperature: multiplies the logits of the pair.

    Returns:
        A number in [0, 1].

    Raises:
        ValueError: `logit_norm` is negative or larger than what correlation 0 has; the message names the range. Or the
            networks do not fit, or `inverse_temperature` is not positive.
    """
    check_positive(inverse_temperature, "inverse_temperature")
    own = copy.deepcopy(network)  # Running estimates of batch normalisation move with every look in training mode.

    def norm(correlation: float) -> float:
        values = frozen_parameters(network, other, correlation)
        return inverse_temperature * _difference(own, values, inputs)

    largest = norm(0.0)
    if not 0 <= logit_norm <= largest:
        reach = f"[0, {largest:g}] for correlations from 1 to 0"
        raise ValueError(
            f"logit_norm must be in {reach} at inverse temperature {inverse_temperature:g}, got {logit_norm}"
        )
    if logit_norm == 0:
        return 1.0
    if logit_norm == largest:
        return 0.0
    # At angle 0 the norm is exactly 0 and below what is wanted, at a right angle it is above.
    right = math.pi / 2
    angle = brentq(
        lambda some: norm(math.cos(some) if some < right else 0.0) - logit_norm,
        0.0,
        right,
        xtol=TOLERANCE * min(1.0, logit_norm / largest),
        rtol=TOLERANCE,
    )
    return math.cos(angle)


@torch.no_grad()
def _difference(network: nn.Module, values: dict[str, Tensor], inputs: Tensor) -> float:
    """Norm of what a network's logits change by when its parameters are replaced."""
    replaced: Tensor = torch.func.functional_call(network, values, (inputs,))
    norm: float = (network(inputs) - replaced).double().norm().item()
    return norm

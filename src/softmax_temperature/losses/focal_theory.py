"""The two propositions of the focal paper: how the focal gradient compares with that of the cross-entropy."""

import math

import numpy as np
import torch
from scipy.special import lambertw
from torch import Tensor

from softmax_temperature.metrics.checks import check_fractions, check_gamma


def gradient_ratio(true_probs: Tensor, gamma: float | Tensor) -> Tensor:
    """The factor g(p, gamma) between the gradients of focal loss and cross-entropy (focal paper, Proposition 1).

    g = (1 - p)^gamma - gamma p (1 - p)^(gamma - 1) log p, in the equal form (1 - p)^gamma (1 + gamma r(p)) with r = -p
    log p / (1 - p), which needs no epsilon. `true_probs` has any shape, and `gamma` is a number or broadcasts. Raises
    ValueError if a probability is outside [0, 1] or `gamma` is negative or not finite.
    """
    check_fractions(true_probs, "true_probs")
    check_gamma(gamma)
    if isinstance(gamma, Tensor):
        gamma = gamma.to(true_probs.dtype)
    complement = 1 - true_probs
    # At p = 1 the limit of r is 1, but anything finite will do: gamma = 0 or a power of zero makes it vanish.
    ratio = -torch.xlogy(true_probs, true_probs) / torch.where(complement == 0, 1, complement)
    return complement.pow(gamma) * (1 + gamma * ratio)


def gamma_star(p0: float | Tensor) -> Tensor:
    """The smallest gamma for which g(p, gamma) <= 1 at every p >= p0 (focal paper, Proposition 2), float64.

    gamma* = a/b + W_-1(-(a^(1 - a/b) / b) log a) / log a, with a = 1 - p0, b = p0 log p0 and W_-1 the lower branch of
    Lambert's function; g(p0, gamma*) = 1. `p0`, of any shape, is in (0, 0.5), otherwise ValueError: at 0.5 gamma* is 0.
    """
    # Deviation: the released code adds 1e-12 inside W and takes the real part; the argument is kept at or above -1/e
    # instead, which only rounding next to p0 = 0.5 can cross.
    chance = torch.as_tensor(p0, dtype=torch.float64)
    if not ((chance > 0) & (chance < 0.5)).all():
        raise ValueError(f"p0 must be in (0, 0.5), got {p0}")
    p = chance.cpu().numpy()
    log_a, b = np.log1p(-p), p * np.log(p)
    ratio = (1 - p) / b
    argument = -np.exp((1 - ratio) * log_a) / b * log_a
    root = lambertw(np.maximum(argument, -1 / math.e), k=-1).real
    return torch.as_tensor(ratio + root / log_a, dtype=torch.float64, device=chance.device)

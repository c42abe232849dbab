"""The factor g(p, gamma) and gamma* of the focal paper's Propositions 1 and 2."""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import lambertw
from torch import Tensor

from softmax_temperature.losses.base import widened
from softmax_temperature.metrics.checks import (
    ArgumentError,
    check_fractions,
    check_gamma,
)

NEAR_HALF = 0.45
NEWTON_STEPS = 8
# Taylor coefficients of x - log(1 + x), highest power first. For p0 >= NEAR_HALF, x is
# at most 0.2, and the first omitted term is below rounding error.
_SERIES = [*((-1) ** k / k for k in range(24, 1, -1)), 0.0, 0.0]


def gradient_ratio(true_probs: Tensor, gamma: float | Tensor) -> Tensor:
    """Ratio g(p, gamma) of the gradient of focal loss to that of cross-entropy.

    Proposition 1 of the focal paper: g = (1 - p)^gamma - gamma p (1 - p)^(gamma - 1)
    log p. g is computed as (1 - p)^gamma (1 + gamma r), with r = -p log p / (1 - p),
    which needs no epsilon.

    Args:
        true_probs: Probabilities of the true class, of any shape, floating point.
        gamma: A number of at least 0, or a tensor of such numbers that broadcasts to
            the shape of `true_probs`.

    Returns:
        g, in the dtype of `true_probs`.

    Raises:
        ValueError: If a probability or `gamma` is out of range.
    """
    check_fractions(true_probs, "true_probs")
    check_gamma(gamma)
    if isinstance(gamma, Tensor):
        gamma = gamma.to(widened(true_probs).dtype)
    probs = widened(true_probs)
    complement = 1 - probs
    # At p = 1 the limit of r is 1, but any finite value gives the same g, because r is
    # multiplied by gamma = 0 or by a power of zero.
    ratio = -torch.xlogy(probs, probs) / torch.where(complement == 0, 1, complement)
    return (complement.pow(gamma) * (1 + gamma * ratio)).to(true_probs.dtype)


def gamma_star(p0: float | Tensor) -> Tensor:
    """The smallest positive gamma for which `g(p, gamma) <= 1` at every `p >= p0`.

    Proposition 2 of the focal paper:
    `gamma* = a/b + W_-1(-(a^(1 - a/b) / b) log a) / log a`, with `a = 1 - p0`,
    `b = p0 log p0`, and `W_-1` the lower branch of Lambert's function. Then
    `g(p0, gamma*) = 1`.

    Args:
        p0: Probabilities in (0, 0.5), of any shape. At 0.5, which is refused, gamma*
            would be 0.

    Returns:
        gamma*, a float64 tensor in the shape of `p0`.

    Raises:
        ValueError: If an entry of `p0` is outside (0, 0.5).
    """
    probs = torch.as_tensor(p0, dtype=torch.float64)
    if not ((probs > 0) & (probs < 0.5)).all():
        raise ArgumentError(
            f"p0 must be in (0, 0.5), got {p0}", "Give probabilities in this range."
        )
    p = probs.cpu().numpy()
    far = _by_lambert(np.minimum(p, NEAR_HALF))
    near = _by_series(np.maximum(p, NEAR_HALF))
    star = np.where(p < NEAR_HALF, far, near)
    return torch.as_tensor(star, dtype=torch.float64, device=probs.device)


def _by_lambert(p: NDArray[np.float64]) -> NDArray[np.float64]:
    # Deviation: we add nothing to the argument of W. For p below `NEAR_HALF` the
    # argument is above the branch point, -1/e, so W is real. The released code adds
    # 1e-12 and takes the real part.
    log_a = np.log1p(-p)
    b = p * np.log(p)
    ratio = (1 - p) / b
    argument = -np.exp((1 - ratio) * log_a) / b * log_a
    root = lambertw(argument, k=-1).real
    return np.asarray(ratio + root / log_a)


def _by_series(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """The root gamma of g(p, gamma) = 1 for p just below 0.5.

    So close to the branch point, rounding leaves no significant digit in the argument
    of W. Let r = -p log p / (1 - p), s = r + log(1 - p) and x = gamma r. Then

        log g = gamma log(1 - p) + log(1 + gamma r),

    and g = 1 becomes x - log(1 + x) = s gamma.
    """
    gap = 1 - 2 * p
    # (1 - p) log(1 - p) - p log p in terms of the gap, without cancellation.
    numerator = (1 + gap) * np.log1p(gap) - (1 - gap) * np.log1p(-gap)
    slope = (numerator / 2 - gap * math.log(2)) / (1 - p)
    r = -p * np.log(p) / (1 - p)
    gamma = 2 * slope / r**2
    for _ in range(NEWTON_STEPS):
        x = gamma * r
        error = np.polyval(_SERIES, x) - slope * gamma
        gamma = gamma - error / (r * x / (1 + x) - slope)
    return np.asarray(gamma)

"""Values that follow from the focal paper's theory, and checks of its propositions."""

import math
from typing import NamedTuple

import pandas as pd
import torch
import torch.nn.functional as F
from scipy.optimize import brentq
from torch import Tensor

from softmax_temperature.losses.focal import focal_loss
from softmax_temperature.losses.sample_dependent_focal import true_class_probs
from softmax_temperature.losses.theory import gamma_star, gradient_ratio

SAMPLES = 1000
FEATURES = 8
CLASSES = 10
# Standard deviation of the random logits. With this value, the probabilities of the
# true classes range from 1e-11 to almost 1.
SCALE = 4.0
# The entropy bound is proved for gamma >= 1.
GAMMAS = (1.0, 2.0, 3.0)
P0 = tuple(step / 100 for step in range(5, 50, 5))
# Points per axis of the grid on which Proposition 2 is checked.
GRID_POINTS = 501
LARGEST_GAMMA_FACTOR = 6
ROOT_TOLERANCE = 1e-14


class TheoryCheck(NamedTuple):
    """One row of `theory_checks`."""

    what: str
    predicted: float
    measured: float
    largest_difference: float


def threshold(gamma: float) -> float:
    """The probability p0 at which g(p, gamma) falls below 1 (section 4, Figure 3(a)).

    Args:
        gamma: Focusing parameter of the focal loss, in [1e-6, 1e6].
    """

    def excess(p: float) -> float:
        return _g(p, gamma) - 1

    # The root lies between these ends. At the lower end g exceeds 1, whether gamma is
    # below or above 1. At p = 0.5, g is (1 + gamma log 2) / 2^gamma < 1.
    lower = 0.25 / max(gamma, 1)
    return float(brentq(excess, lower, 0.5, xtol=ROOT_TOLERANCE))


def optimal_probability(q: float, gamma: float) -> float:
    """The predicted probability that minimises the focal loss of two classes.

    Appendix B, Figure B.1: the minimiser is less confident than the label distribution.

    Args:
        q: Probability of the class under the label distribution, in [0, 1].
        gamma: Focusing parameter of the focal loss, at least 0.
    """

    def slope(p: float) -> float:
        """Derivative of the loss with respect to the logit of p."""
        return (1 - q) * p * _g(1 - p, gamma) - q * (1 - p) * _g(p, gamma)

    return float(brentq(slope, 0, 1, xtol=ROOT_TOLERANCE))


def theory_checks() -> pd.DataFrame:
    """Check Propositions 1 and 2 and the entropy bound numerically.

    Proposition 2 is checked for probabilities and gammas on a grid, the other two
    statements on random logits.

    Returns:
        One row per statement and gamma: `what`, `predicted`, `measured`,
        `largest_difference`. The largest difference is over all samples or points of
        the grid. For an equality it is the error (in Proposition 1 relative to the
        gradient of the cross-entropy); for an inequality it is the amount of the
        violation.
    """
    generator = torch.Generator().manual_seed(0)
    features = _normal(SAMPLES, FEATURES, generator)
    weights = _normal(FEATURES, CLASSES, generator) * SCALE / math.sqrt(FEATURES)
    labels = torch.randint(CLASSES, (SAMPLES,), generator=generator)
    soft_labels = torch.softmax(SCALE * _normal(SAMPLES, CLASSES, generator), dim=1)
    logits = features @ weights
    one_hot = F.one_hot(labels, CLASSES).double()
    checks = [
        *(_proposition_1(features, weights, labels, gamma) for gamma in GAMMAS),
        _proposition_2_equality(),
        _proposition_2_inequality(),
        *(_entropy_bound(logits, one_hot, gamma, "one-hot") for gamma in GAMMAS),
        _entropy_bound(logits, soft_labels, GAMMAS[-1], "soft"),
    ]
    return pd.DataFrame(checks)


def _normal(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    return torch.randn(rows, columns, generator=generator, dtype=torch.float64)


def _g(p: float, gamma: float) -> float:
    return gradient_ratio(torch.tensor(p, dtype=torch.float64), gamma).item()


def _proposition_1(
    features: Tensor, weights: Tensor, labels: Tensor, gamma: float
) -> TheoryCheck:
    """Compare the gradients of focal loss and cross-entropy for each sample."""
    focal = _last_layer_gradients(features, weights, labels, gamma)
    cross_entropy = _last_layer_gradients(features, weights, labels, 0.0)
    norms = cross_entropy.norm(dim=1)
    predicted = gradient_ratio(true_class_probs(features @ weights, labels), gamma)
    measured = focal.norm(dim=1) / norms
    errors = (focal - predicted[:, None] * cross_entropy).norm(dim=1) / norms
    return TheoryCheck(
        what=(
            f"Proposition 1, γ = {gamma:g}: gradient norm of focal loss over that of "
            "cross-entropy, mean"
        ),
        predicted=predicted.mean().item(),
        measured=measured.mean().item(),
        largest_difference=errors.max().item(),
    )


def _last_layer_gradients(
    features: Tensor, weights: Tensor, labels: Tensor, gamma: float
) -> Tensor:
    """The last-layer gradient of each sample's focal loss, (n, parameters)."""
    # Copy the weights for every sample, so that one backward pass gives each sample's
    # gradient.
    copies = weights.expand(len(features), -1, -1).clone().requires_grad_()
    logits = torch.einsum("nf,nfc->nc", features, copies)
    loss = focal_loss(logits, labels, gamma, reduction="sum")
    (gradients,) = torch.autograd.grad(loss, copies)
    return gradients.flatten(1)


def _proposition_2_equality() -> TheoryCheck:
    """Check that g(p0, gamma*) is 1."""
    p0 = torch.tensor(P0, dtype=torch.float64)
    values = gradient_ratio(p0, gamma_star(p0))
    return TheoryCheck(
        what=f"Proposition 2: g(p0, γ*) for p0 = {P0[0]:g} to {P0[-1]:g}, mean",
        predicted=1.0,
        measured=values.mean().item(),
        largest_difference=(values - 1).abs().max().item(),
    )


def _proposition_2_inequality() -> TheoryCheck:
    """Check that g is at most 1 on a grid of p >= p0 and gamma >= gamma*."""
    factors = torch.linspace(1, LARGEST_GAMMA_FACTOR, GRID_POINTS, dtype=torch.float64)
    largest = -math.inf
    for p0 in P0:
        probs = torch.linspace(p0, 1, GRID_POINTS, dtype=torch.float64)[:, None]
        ratios = gradient_ratio(probs, gamma_star(p0) * factors)
        # Skip the first entry, which is (p0, gamma*) itself: g is 1 there, up to
        # rounding.
        largest = max(largest, ratios.flatten()[1:].max().item())
    return TheoryCheck(
        what="Proposition 2: g(p, γ) where p > p0 or γ > γ*, at most",
        predicted=1.0,
        measured=largest,
        largest_difference=max(0.0, largest - 1),
    )


def _entropy_bound(
    logits: Tensor, targets: Tensor, gamma: float, kind: str
) -> TheoryCheck:
    """Check L >= KL(q || p) + H(q) - gamma H(p); KL + H(q) is the cross-entropy."""
    log_probs = F.log_softmax(logits, dim=1)
    probs = log_probs.exp()
    loss = -((1 - probs) ** gamma * targets * log_probs).sum(dim=1)
    cross_entropy = -(targets * log_probs).sum(dim=1)
    entropy = -(probs * log_probs).sum(dim=1)
    least = (loss - cross_entropy + gamma * entropy).min().item()
    return TheoryCheck(
        what=f"Bound, {kind} targets, γ = {gamma:g}: L - KL - H(q) + γ H(p), at least",
        predicted=0.0,
        measured=least,
        largest_difference=max(0.0, -least),
    )

"""The focal paper's theory in numbers: thresholds of g, minimisers of the loss, its
propositions against autograd.
"""

import math
from typing import Any

import pandas as pd
import torch
import torch.nn.functional as F
from scipy.optimize import brentq
from torch import Tensor

from softmax_temperature.losses.focal import focal_loss
from softmax_temperature.losses.sample_dependent_focal import true_class_probs
from softmax_temperature.losses.theory import gamma_star, gradient_ratio

SAMPLES, FEATURES, CLASSES = 1000, 8, 10
# Standard deviation of the random logits: true classes get probabilities from 1e-9 to
# almost 1.
SCALE = 4.0
GAMMAS = (1.0, 2.0, 3.0)  # The bound is proved for gamma >= 1.
P0 = tuple(step / 100 for step in range(5, 50, 5))


def threshold(gamma: float) -> float:
    """The probability p0 where g(p, gamma) falls through 1 (section 4, Figure 3(a)),
    for gamma in [1e-6, 1e6].
    """
    # Above 1 at p = 0.25 for gamma up to 1 and at p = 0.25 / gamma beyond; (1 + gamma
    # log 2) / 2^gamma < 1 at p = 0.5.
    return float(
        brentq(lambda p: _g(p, gamma) - 1, 0.25 / max(gamma, 1), 0.5, xtol=1e-14)
    )


def optimal_probability(q: float, gamma: float) -> float:
    """The predicted probability that minimises focal loss when the class has
    probability q (appendix B, Figure B.1).
    """
    return float(
        brentq(
            lambda p: (1 - q) * p * _g(1 - p, gamma) - q * (1 - p) * _g(p, gamma),
            0,
            1,
            xtol=1e-14,
        )
    )


def theory_checks() -> pd.DataFrame:
    """The propositions and the entropy bound on random logits: what, predicted,
    measured, largest_difference.

    The difference is over all samples: of an equality its error (in Proposition 1
    relative to the cross-entropy's gradient), of an inequality the amount by which it
    is violated.
    """
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(SAMPLES, FEATURES, generator=generator, dtype=torch.float64)
    weights = (
        torch.randn(FEATURES, CLASSES, generator=generator, dtype=torch.float64)
        * SCALE
        / math.sqrt(FEATURES)
    )
    labels = torch.randint(CLASSES, (SAMPLES,), generator=generator)
    soft = torch.softmax(
        SCALE * torch.randn(SAMPLES, CLASSES, generator=generator, dtype=torch.float64),
        dim=1,
    )
    logits, one_hot = features @ weights, F.one_hot(labels, CLASSES).double()
    rows = [
        *(_proposition_1(features, weights, labels, gamma) for gamma in GAMMAS),
        *_proposition_2(),
    ]
    rows += [_entropy_bound(logits, one_hot, gamma, "one-hot") for gamma in GAMMAS]
    rows += [_entropy_bound(logits, soft, GAMMAS[-1], "soft")]
    return pd.DataFrame(
        rows, columns=["what", "predicted", "measured", "largest_difference"]
    )


def _g(p: float, gamma: float) -> float:
    return gradient_ratio(torch.tensor(p, dtype=torch.float64), gamma).item()


def _proposition_1(
    features: Tensor, weights: Tensor, labels: Tensor, gamma: float
) -> tuple[Any, ...]:
    """Of each sample's gradient in the last layer's weights, by autograd."""
    gradients = []
    for one in (gamma, 0.0):
        of_each = weights.expand(len(features), -1, -1).clone().requires_grad_()
        loss = focal_loss(
            torch.einsum("nf,nfc->nc", features, of_each), labels, one, reduction="sum"
        )
        gradients.append(torch.autograd.grad(loss, of_each)[0].flatten(1))
    focal, plain = gradients
    norms, expected = (
        plain.norm(dim=1),
        gradient_ratio(true_class_probs(features @ weights, labels), gamma),
    )
    ratios, errors = (
        focal.norm(dim=1) / norms,
        (focal - expected[:, None] * plain).norm(dim=1) / norms,
    )
    what = f"Proposition 1, γ = {gamma:g}: gradient norm of focal loss over that of cross-entropy, mean"
    return what, expected.mean().item(), ratios.mean().item(), errors.max().item()


def _proposition_2() -> list[tuple[Any, ...]]:
    """G at gamma*, which is 1; and the largest g over a grid of p >= p0 and gamma >=
    gamma*, without that corner.
    """
    chances = torch.tensor(P0, dtype=torch.float64)
    values = gradient_ratio(chances, gamma_star(chances))
    grids = (
        (torch.linspace(p0, 1, 501, dtype=torch.float64)[:, None], gamma_star(p0))
        for p0 in P0
    )
    factors = torch.linspace(1, 6, 501, dtype=torch.float64)
    largest = max(
        gradient_ratio(probs, least * factors).flatten()[1:].max().item()
        for probs, least in grids
    )
    what = f"Proposition 2: g(p0, γ*) for p0 = {P0[0]:g} to {P0[-1]:g}, mean"
    equality = what, 1.0, values.mean().item(), (values - 1).abs().max().item()
    return [
        equality,
        (
            "Proposition 2: g(p, γ) where p > p0 or γ > γ*, at most",
            1.0,
            largest,
            max(0.0, largest - 1),
        ),
    ]


def _entropy_bound(
    logits: Tensor, targets: Tensor, gamma: float, kind: str
) -> tuple[Any, ...]:
    """Appendix B: L >= KL(q || p) + H(q) - gamma H(p); KL + H(q) is the cross-entropy."""
    log_probs = F.log_softmax(logits, dim=1)
    probs = log_probs.exp()
    loss = -((1 - probs) ** gamma * targets * log_probs).sum(dim=1)
    cross_entropy, entropy = (
        -(targets * log_probs).sum(dim=1),
        -(probs * log_probs).sum(dim=1),
    )
    least = (loss - cross_entropy + gamma * entropy).min().item()
    return (
        f"Bound, {kind} targets, γ = {gamma:g}: L - KL - H(q) + γ H(p), at least",
        0.0,
        least,
        max(0.0, -least),
    )

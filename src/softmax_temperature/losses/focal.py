"""Focal loss, policies for its gamma (scheduled by epoch, chosen per sample), and g and
gamma* of Propositions 1, 2.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from scipy.special import lambertw
from torch import Tensor

from softmax_temperature.metrics.checks import (
    check_batch,
    check_count,
    check_fractions,
    check_gamma,
)

# Thresholds on the true class's probability, and the gamma below each; above the last,
# the last gamma. Section 4 names 5 and 3 with the threshold 0.2, appendix F the "5, 3,
# 2" policy with 0.2 and 0.5.
# Deviation: the released text-model code has the threshold 0.19 instead of 0.2; the
# paper's is kept.
POLICIES = {"53": ((0.2,), (5.0, 3.0)), "532": ((0.2, 0.5), (5.0, 3.0, 2.0))}
REDUCTIONS = ("mean", "sum", "none")


def focal_loss(
    logits: Tensor, labels: Tensor, gamma: float | Tensor, *, reduction: str = "mean"
) -> Tensor:
    """Focal loss, -(1 - p)^gamma log p, with p the probability of the true class (focal
    paper, section 4), nats.

    Logits (n, classes), integer labels (n,); `gamma`, at least 0, is a number or one
    per sample, (n,), and 0 gives the cross-entropy; `reduction` is "mean", "sum" or
    "none", (n,). Computed from log(1 - p), so value and gradient are right to rounding
    for every p. Raises ValueError if a shape, `gamma` or `reduction` is wrong.
    """
    # Deviation: the released code sums over the batch by default, which multiplies the
    # step by the batch size; the paper's loss is that of a sample, and its mean is the
    # default here. "sum" gives the released objective.
    check_batch(logits, labels)
    check_gamma(gamma)
    index = labels.long()[:, None]
    log_probs = F.log_softmax(logits, dim=1)
    log_true = log_probs.gather(1, index).squeeze(1)
    log_others = log_probs.scatter(1, index, -math.inf).logsumexp(
        dim=1
    )  # Of 1 - p, what all the others sum to.
    if isinstance(gamma, Tensor):
        if gamma.ndim > 0 and gamma.shape != log_true.shape:
            raise ValueError(
                f"gamma must be a number or have shape ({len(logits)},), got {tuple(gamma.shape)}"
            )
        gamma = gamma.to(logits.dtype)  # So that it does not promote the loss.
    return reduced(-log_true * torch.exp(gamma * log_others), reduction)


def true_class_probs(logits: Tensor, labels: Tensor) -> Tensor:
    """Probability of the true class, shape (n,), without gradient, from logits (n,
    classes) and labels (n,).
    """
    check_batch(logits, labels)
    return (
        torch.softmax(logits.detach(), dim=1)
        .gather(1, labels.long()[:, None])
        .squeeze(1)
    )


def sample_dependent_gamma(true_probs: Tensor, *, policy: str = "53") -> Tensor:
    """Gamma of each sample, in any shape, from the probability of its true class (focal
    paper, section 4, appendix F).

    Policy "53" (FLSD-53) gives 5 for p in [0, 0.2) and 3 above; "532" gives 5, 3 for p
    in [0.2, 0.5), and 2 above; a constant for the gradient. Raises ValueError if
    `policy` is unknown or a probability is outside [0, 1].
    """
    if policy not in POLICIES:
        raise ValueError(
            f"policy must be one of {', '.join(map(repr, POLICIES))}, got {policy!r}"
        )
    check_fractions(true_probs, "true_probs")
    thresholds, gammas = POLICIES[policy]
    gamma = torch.full_like(true_probs, gammas[-1], requires_grad=False)
    for threshold, below in reversed(list(zip(thresholds, gammas, strict=False))):
        gamma = torch.where(true_probs < threshold, below, gamma)
    return gamma


def scheduled_gamma(
    epoch: int,
    *,
    gammas: Sequence[float] = (5.0, 3.0, 1.0),
    milestones: Sequence[int] = (100, 250),
) -> float:
    """Gamma of an epoch, from 0: the first until the first milestone, then the next
    (focal paper, appendix F).

    The defaults are FLSc-531 over 350 epochs. Raises ValueError for a negative epoch or
    milestones that do not fit.
    """
    check_count(epoch, "epoch", least=0)
    if len(gammas) != len(milestones) + 1:
        raise ValueError(
            f"gammas must hold one value more than {milestones!r}, got {gammas!r}"
        )
    if list(milestones) != sorted(set(milestones)):
        raise ValueError(f"milestones must ascend, got {milestones!r}")
    return float(gammas[sum(epoch >= milestone for milestone in milestones)])


def check_reduction(reduction: str) -> None:
    """Refuse an unknown reduction."""
    if reduction not in REDUCTIONS:
        raise ValueError(
            f"reduction must be one of {', '.join(map(repr, REDUCTIONS))}, "
            f"got {reduction!r}"
        )


def reduced(losses: Tensor, reduction: str) -> Tensor:
    """The losses of samples, shape (n,), as one number or as they are."""
    check_reduction(reduction)
    return (
        losses
        if reduction == "none"
        else losses.mean()
        if reduction == "mean"
        else losses.sum()
    )


def gradient_ratio(true_probs: Tensor, gamma: float | Tensor) -> Tensor:
    """The factor g(p, gamma) between the gradients of focal loss and cross-entropy
    (focal paper, Proposition 1).

    g = (1 - p)^gamma - gamma p (1 - p)^(gamma - 1) log p, as (1 - p)^gamma (1 + gamma
    r), r = -p log p / (1 - p), which needs no epsilon. `gamma` broadcasts. Raises
    ValueError if a probability or `gamma` is out of range.
    """
    check_fractions(true_probs, "true_probs")
    check_gamma(gamma)
    if isinstance(gamma, Tensor):
        gamma = gamma.to(true_probs.dtype)
    complement = 1 - true_probs
    # At p = 1 the limit of r is 1, but anything finite will do: gamma = 0 or a power of
    # zero makes it vanish.
    ratio = -torch.xlogy(true_probs, true_probs) / torch.where(
        complement == 0, 1, complement
    )
    return complement.pow(gamma) * (1 + gamma * ratio)


def gamma_star(p0: float | Tensor) -> Tensor:
    """The smallest gamma for which g(p, gamma) <= 1 at every p >= p0 (focal paper,
    Proposition 2), float64.

    gamma* = a/b + W_-1(-(a^(1 - a/b) / b) log a) / log a, with a = 1 - p0, b = p0 log
    p0 and W_-1 the lower branch of Lambert's function; g(p0, gamma*) = 1. `p0`, of any
    shape, is in (0, 0.5), otherwise ValueError: at 0.5 gamma* is 0.
    """
    # Deviation: the released code adds 1e-12 inside W and takes the real part; the
    # argument is kept at or above -1/e instead, which only rounding next to p0 = 0.5
    # can cross.
    chance = torch.as_tensor(p0, dtype=torch.float64)
    if not ((chance > 0) & (chance < 0.5)).all():
        raise ValueError(f"p0 must be in (0, 0.5), got {p0}")
    p = chance.cpu().numpy()
    log_a, b = np.log1p(-p), p * np.log(p)
    ratio = (1 - p) / b
    argument = -np.exp((1 - ratio) * log_a) / b * log_a
    root = lambertw(np.maximum(argument, -1 / math.e), k=-1).real
    return torch.as_tensor(
        ratio + root / log_a, dtype=torch.float64, device=chance.device
    )

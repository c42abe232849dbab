"""Focal loss and the papers' policies for its gamma: fixed, scheduled by epoch, chosen per sample."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.metrics.checks import check_batch, check_count, check_fractions, check_gamma

# Thresholds on the true class's probability, and the gamma below each; above the last, the last gamma. Section 4 names
# 5 and 3 with the threshold 0.2, appendix F the "5, 3, 2" policy with 0.2 and 0.5.
# Deviation: the released text-model code has the threshold 0.19 instead of 0.2; the paper's is kept.
POLICIES = {"53": ((0.2,), (5.0, 3.0)), "532": ((0.2, 0.5), (5.0, 3.0, 2.0))}
REDUCTIONS = ("mean", "sum", "none")


def focal_loss(logits: Tensor, labels: Tensor, gamma: float | Tensor, *, reduction: str = "mean") -> Tensor:
    """Focal loss, -(1 - p)^gamma log p, with p the probability of the true class (focal paper, section 4), nats.

    Computed from log(1 - p), so value and gradient are right to rounding for every p, both ends included.

    Args:
        logits: Shape (n, classes).
        labels: True classes, shape (n,), integers.
        gamma: A number, or one per sample, shape (n,); at least 0. With 0 this is the cross-entropy.
        reduction: "mean", "sum" or "none" (shape (n,)).

    Raises:
        ValueError: If a shape disagrees, `gamma` is negative or not finite, or `reduction` is unknown.
    """
    # Deviation: the released code sums over the batch by default, which multiplies the step by the batch size; the
    # paper's loss is that of a sample, and its mean is the default here. "sum" gives the released objective.
    check_batch(logits, labels)
    log_true, log_others = _split_log_probs(logits, labels)
    losses = -log_true * torch.exp(_one_per_sample(gamma, logits) * log_others)
    return reduced(losses, reduction)


def true_class_probs(logits: Tensor, labels: Tensor) -> Tensor:
    """Probability of the true class, shape (n,), without gradient, from logits (n, classes) and labels (n,)."""
    check_batch(logits, labels)
    return torch.softmax(logits.detach(), dim=1).gather(1, labels.long()[:, None]).squeeze(1)


def sample_dependent_gamma(true_probs: Tensor, *, policy: str = "53") -> Tensor:
    """Gamma of each sample, in any shape, from the probability of its true class (focal paper, section 4, appendix F).

    Policy "53" (FLSD-53) gives 5 for p in [0, 0.2) and 3 above; "532" gives 5, 3 for p in [0.2, 0.5), and 2 above; a
    constant for the gradient. Raises ValueError if `policy` is unknown or a probability is outside [0, 1].
    """
    if policy not in POLICIES:
        raise ValueError(f"policy must be one of {', '.join(map(repr, POLICIES))}, got {policy!r}")
    check_fractions(true_probs, "true_probs")
    thresholds, gammas = POLICIES[policy]
    gamma = torch.full_like(true_probs, gammas[-1], requires_grad=False)
    for threshold, below in reversed(list(zip(thresholds, gammas, strict=False))):
        gamma = torch.where(true_probs < threshold, below, gamma)
    return gamma


def scheduled_gamma(
    epoch: int, *, gammas: Sequence[float] = (5.0, 3.0, 1.0), milestones: Sequence[int] = (100, 250)
) -> float:
    """Gamma of an epoch, from 0: the first until the first milestone, then the next (focal paper, appendix F).

    The defaults are FLSc-531 over 350 epochs. Raises ValueError if `epoch` is negative, there is not one gamma more
    than milestones, or the milestones do not ascend.
    """
    check_count(epoch, "epoch", least=0)
    if len(gammas) != len(milestones) + 1:
        raise ValueError(f"gammas must hold one value more than {milestones!r}, got {gammas!r}")
    if list(milestones) != sorted(set(milestones)):
        raise ValueError(f"milestones must ascend, got {milestones!r}")
    return float(gammas[sum(epoch >= milestone for milestone in milestones)])


def reduced(losses: Tensor, reduction: str) -> Tensor:
    """The losses of samples, shape (n,), as one number or as they are."""
    if reduction not in REDUCTIONS:
        raise ValueError(f"reduction must be one of {', '.join(map(repr, REDUCTIONS))}, got {reduction!r}")
    return losses if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()


def _one_per_sample(gamma: float | Tensor, logits: Tensor) -> float | Tensor:
    """Gamma, checked; a tensor in the dtype of the logits, so that it does not promote the loss."""
    check_gamma(gamma)
    if not isinstance(gamma, Tensor):
        return gamma
    if gamma.ndim > 0 and gamma.shape != logits.shape[:1]:
        raise ValueError(f"gamma must be a number or have shape ({len(logits)},), got {tuple(gamma.shape)}")
    return gamma.to(logits.dtype)


def _split_log_probs(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The logarithms of p of the true class and of 1 - p, what all the others sum to; each of shape (n,)."""
    index = labels.long()[:, None]
    log_probs = F.log_softmax(logits, dim=1)
    others = log_probs.scatter(1, index, -math.inf)
    return log_probs.gather(1, index).squeeze(1), torch.logsumexp(others, dim=1)

"""Out-of-distribution detection from the softmax (focal paper, section 5, Table 3)."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.metrics.checks import (
    ArgumentError,
    check_bootstrap,
    check_count,
    check_logits,
)
from softmax_temperature.metrics.probability_check import check_not_probs
from softmax_temperature.metrics.report import INTERVAL, resample_weights


def out_of_distribution_auroc(
    logits_in: Tensor, logits_out: Tensor, *, score: str = "entropy"
) -> Tensor:
    """Area under the ROC curve for detecting out-of-distribution samples.

    Out-of-distribution samples are the positive class.

    Args:
        logits_in: Logits of in-distribution samples, shape (n, classes); -inf for
            masked classes.
        logits_out: Logits of out-of-distribution samples, shape (m, classes); -inf for
            masked classes.
        score: "entropy" of the softmax, as in the paper, or "confidence", where a low
            probability of the predicted class indicates an out-of-distribution sample.

    Returns:
        A float64 scalar in [0, 1].

    Raises:
        ValueError: If a shape, a logit or `score` is wrong.
    """
    # scikit-learn takes a second to import, and every process of the pipeline imports
    # this module.
    from sklearn.metrics import roc_auc_score

    is_out, scores = _labelled_scores(logits_in, logits_out, score)
    area = roc_auc_score(is_out.numpy(), scores.numpy())
    return torch.tensor(area, dtype=torch.float64, device=logits_in.device)


def out_of_distribution_interval(
    logits_in: Tensor,
    logits_out: Tensor,
    *,
    score: str = "entropy",
    bootstrap: int = 1000,
    seed: int = 0,
) -> tuple[float, float]:
    """Return the 90 % interval of `out_of_distribution_auroc` (source: ours).

    Both sets are resampled. The ends of the interval are the 5th and the 95th
    percentile of the areas on the resamples.

    Args:
        logits_in: Logits of in-distribution samples, shape (n, classes).
        logits_out: Logits of out-of-distribution samples, shape (m, classes).
        score: See `out_of_distribution_auroc`.
        bootstrap: Number of resamples, at least 19.
        seed: Seed of the resamples.

    Raises:
        ValueError: If an argument is malformed.
    """
    bootstrap = check_bootstrap(bootstrap, optional=False)
    inside, outside = _scores(logits_in, logits_out, score)
    ordered, order = inside.sort()
    # The area is the share of pairs in which the in-distribution score is lower; a pair
    # of equal scores counts as half a pair.
    first_tie = torch.searchsorted(ordered, outside, right=False)
    after_ties = torch.searchsorted(ordered, outside, right=True)
    pairs = len(inside) * len(outside)
    weights_in = resample_weights(len(inside), bootstrap, seed, rows=50)
    weights_out = resample_weights(len(outside), bootstrap, seed + 1, rows=50)
    areas = []
    for inside_counts, outside_counts in zip(weights_in, weights_out, strict=True):
        below = F.pad(inside_counts[:, order].cumsum(1), (1, 0))
        lower = (below[:, first_tie] + below[:, after_ties]) / 2
        areas.append((lower * outside_counts).sum(1) / pairs)
    ends = torch.tensor(INTERVAL, dtype=torch.float64)
    low, high = torch.quantile(torch.cat(areas), ends).tolist()
    return low, high


def out_of_distribution_curve(
    logits_in: Tensor, logits_out: Tensor, *, score: str = "entropy", points: int = 100
) -> Tensor:
    """Compute the ROC curve at equidistant false positive rates, for a figure.

    Args:
        logits_in: Logits of in-distribution samples, shape (n, classes).
        logits_out: Logits of out-of-distribution samples, shape (m, classes).
        score: See `out_of_distribution_auroc`.
        points: Number of equal intervals into which the false positive rates divide [0,
            1], at least 1.

    Returns:
        Shape (points + 1, 2): false and true positive rates, rounded to six decimals.

    Raises:
        ValueError: If an argument is malformed.
    """
    # Imported here because scikit-learn takes a second to import.
    from sklearn.metrics import roc_curve

    points = check_count(points, "points", least=1)
    is_out, scores = _labelled_scores(logits_in, logits_out, score)
    false_positive, true_positive, _ = roc_curve(is_out.numpy(), scores.numpy())
    rates = np.linspace(0, 1, points + 1)
    true_rates = np.interp(rates, false_positive, true_positive)
    return torch.from_numpy(np.stack([rates, true_rates], axis=1).round(6))


def _labelled_scores(
    logits_in: Tensor, logits_out: Tensor, score: str
) -> tuple[Tensor, Tensor]:
    """Return the labels (1 if out of distribution) and scores of all n + m samples."""
    inside, outside = _scores(logits_in, logits_out, score)
    is_out = torch.cat([torch.zeros_like(inside), torch.ones_like(outside)])
    return is_out, torch.cat([inside, outside])


def _scores(logits_in: Tensor, logits_out: Tensor, score: str) -> list[Tensor]:
    """Score both sets in float64 on the CPU; higher scores mean less certainty."""
    for name, logits in (("logits_in", logits_in), ("logits_out", logits_out)):
        check_logits(logits, name=name, masked=True)
        check_not_probs(logits, name=name)
    classes = logits_in.shape[1]
    if logits_out.shape[1] != classes:
        raise ArgumentError(
            f"logits_out must have {classes} classes, got {logits_out.shape[1]}",
            "Give the logits of the same network for both sets.",
        )
    if score not in ("entropy", "confidence"):
        raise ArgumentError(
            f"score must be 'entropy' or 'confidence', got {score!r}",
            "Use one of the two.",
        )
    scores = []
    for logits in (logits_in, logits_out):
        log_probs = F.log_softmax(logits.detach().double(), dim=1)
        if score == "entropy":
            terms = log_probs.exp() * log_probs
            # A masked class must not contribute: 0 times infinity is NaN.
            terms.masked_fill_(log_probs.isneginf(), 0.0)
            scores.append(-terms.sum(dim=1).cpu())
        else:
            # Compute -log p of the prediction from the log-sum of the other classes, so
            # that samples whose p rounds to 1 are still ordered.
            top, predicted = log_probs.max(dim=1, keepdim=True)
            others = log_probs.scatter(1, predicted, -math.inf).logsumexp(dim=1)
            scores.append(F.softplus(others - top.squeeze(1)).cpu())
    return scores

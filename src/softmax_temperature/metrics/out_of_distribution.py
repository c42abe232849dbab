"""Telling in-distribution from out-of-distribution data by the softmax (focal paper,
section 5 and Table 3).
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.metrics.checks import check_count, check_logits
from softmax_temperature.metrics.report import INTERVAL, resample_weights


def out_of_distribution_auroc(
    logits_in: Tensor, logits_out: Tensor, *, score: str = "entropy"
) -> Tensor:
    """Area under the ROC curve for detecting out-of-distribution samples, which are the
    positive class; float64.

    Logits have shapes (n, classes) and (m, classes); `score` is "entropy" of the
    softmax, as in the paper, or "confidence", low probability of the predicted class.
    ValueError if a shape, logit or `score` is not so.
    """
    # scikit-learn takes a second to import, and every process of the pipeline imports
    # this package.
    from sklearn.metrics import roc_auc_score

    scores = _scores(logits_in, logits_out, score)
    is_out = torch.cat(
        [torch.full_like(part, side) for side, part in enumerate(scores)]
    )
    area = roc_auc_score(is_out.numpy(), torch.cat(scores).numpy())
    return torch.tensor(area, dtype=torch.float64, device=logits_in.device)


def out_of_distribution_interval(
    logits_in: Tensor,
    logits_out: Tensor,
    *,
    score: str = "entropy",
    bootstrap: int = 1000,
    seed: int = 0,
) -> tuple[float, float]:
    """5th and 95th percentile of the area over `bootstrap` resamples of both sets
    (source: ours).
    """
    check_count(bootstrap, "bootstrap", least=1)
    inside, outside = _scores(logits_in, logits_out, score)
    ordered, order = inside.sort()
    # For each sample from outside: how many from inside lie below it, those that tie
    # counting half.
    first, last = (
        torch.searchsorted(ordered, outside, right=right) for right in (False, True)
    )
    streams = (
        resample_weights(len(side), bootstrap, seed + n, rows=50)
        for n, side in enumerate((inside, outside))
    )
    areas = []
    for here, there in zip(*streams, strict=True):
        below = F.pad(here[:, order].cumsum(1), (1, 0))
        areas.append(
            ((below[:, first] + below[:, last]) / 2 * there).sum(1)
            / (len(inside) * len(outside))
        )
    low, high = torch.quantile(
        torch.cat(areas), torch.tensor(INTERVAL, dtype=torch.float64)
    ).tolist()
    return low, high


def out_of_distribution_curve(
    logits_in: Tensor, logits_out: Tensor, *, score: str = "entropy", points: int = 100
) -> Tensor:
    """The ROC curve, for drawing: (points + 1, 2), false positive rates from 0 to 1 and
    true ones, six decimals.
    """
    from sklearn.metrics import roc_curve  # As above.

    scores = _scores(logits_in, logits_out, score)
    is_out = torch.cat(
        [torch.full_like(part, side) for side, part in enumerate(scores)]
    )
    false_positive, true_positive, _ = roc_curve(
        is_out.numpy(), torch.cat(scores).numpy()
    )
    rates = np.linspace(0, 1, points + 1)
    return torch.from_numpy(
        np.stack(
            [rates, np.interp(rates, false_positive, true_positive)], axis=1
        ).round(6)
    )


def _scores(logits_in: Tensor, logits_out: Tensor, score: str) -> list[Tensor]:
    """The scores of both sets, on the CPU, float64; larger where the softmax is less
    sure.
    """
    check_logits(logits_in, name="logits_in")
    check_logits(logits_out, name="logits_out")
    if logits_in.shape[1] != logits_out.shape[1]:
        raise ValueError(
            f"logits_out must have {logits_in.shape[1]} classes, got {logits_out.shape[1]}"
        )
    if score not in {"entropy", "confidence"}:
        raise ValueError(f"score must be 'entropy' or 'confidence', got {score!r}")
    scores = []
    for logits in (logits_in, logits_out):
        log_probs = F.log_softmax(logits.detach().double(), dim=1)
        if score == "entropy":
            scores.append(-(log_probs.exp() * log_probs).sum(dim=1).cpu())
        else:
            # -log p of the prediction, from what all others sum to: where p rounds to 1
            # the order of samples is kept.
            top, predicted = log_probs.max(dim=1, keepdim=True)
            others = log_probs.scatter(1, predicted, -math.inf).logsumexp(dim=1)
            scores.append(F.softplus(others - top.squeeze(1)).cpu())
    return scores

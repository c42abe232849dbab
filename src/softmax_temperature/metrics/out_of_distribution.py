"""Telling in-distribution from out-of-distribution data by the softmax (focal paper, section 5 and Table 3)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.checks import check_logits


def out_of_distribution_auroc(logits_in: Tensor, logits_out: Tensor, *, score: str = "entropy") -> Tensor:
    """Area under the ROC curve for detecting out-of-distribution samples, which are the positive class.

    Args:
        logits_in: Of in-distribution samples, shape (n, classes).
        logits_out: Of out-of-distribution samples, shape (m, classes).
        score: What calls a sample out-of-distribution: "entropy", the entropy of the softmax, as in the paper; or
            "confidence", low probability of the predicted class.

    Returns:
        A scalar in [0, 1], float64, on the device of `logits_in`; 0.5 where the score tells nothing.

    Raises:
        ValueError: If a shape is wrong, the numbers of classes differ, a logit is not finite or `score` is unknown.
    """
    # Only this function needs scikit-learn, which takes half a second to import.
    from sklearn.metrics import roc_auc_score

    check_logits(logits_in, name="logits_in")
    check_logits(logits_out, name="logits_out")
    if logits_in.shape[1] != logits_out.shape[1]:
        raise ValueError(f"logits_out must have {logits_in.shape[1]} classes, got {logits_out.shape[1]}")
    scores = [_uncertainty(logits, score).cpu() for logits in (logits_in, logits_out)]
    is_out = torch.cat([torch.full_like(part, side) for side, part in enumerate(scores)])
    area = roc_auc_score(is_out.numpy(), torch.cat(scores).numpy())
    return torch.tensor(area, dtype=torch.float64, device=logits_in.device)


def _uncertainty(logits: Tensor, score: str) -> Tensor:
    """The score, shape (n,), float64; larger where the softmax is less sure."""
    log_probs = F.log_softmax(logits.detach().double(), dim=1)
    if score == "entropy":
        return -(log_probs.exp() * log_probs).sum(dim=1)
    if score == "confidence":
        # -log p of the prediction, from what all others sum to: where p rounds to 1 the order of samples is kept.
        top, predicted = log_probs.max(dim=1, keepdim=True)
        others = log_probs.scatter(1, predicted, -math.inf).logsumexp(dim=1)
        return F.softplus(others - top.squeeze(1))
    raise ValueError(f"score must be 'entropy' or 'confidence', got {score!r}")

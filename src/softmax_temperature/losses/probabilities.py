"""Logarithms of p and 1 - p that are accurate to rounding error for every p.

A softmax in float32 rounds 1 - 2e-9 to 1, so that log p, 1 - p and their gradients
become 0. The log-odds against a class, log((1 - p) / p), lose no digits. Logits may be
-inf for masked classes; their gradient is 0.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def log_odds_against(logits: Tensor, classes: Tensor) -> Tensor:
    """Log-odds log((1 - p) / p) against one class per row, (n,).

    Args:
        logits: Shape (n, classes).
        classes: Class indices (n,).

    Returns:
        Shape (n,); the lowest finite number where all other classes are masked.
    """
    index = classes.long()[:, None]
    gaps = logits - logits.gather(1, index)
    others = gaps.scatter(1, index, -torch.inf)
    alone = torch.isneginf(others).all(dim=1)
    # Replace rows in which all other classes are masked, because the gradient of the
    # logarithm of an empty sum would be NaN.
    log_odds = others.masked_fill(alone[:, None], 0).logsumexp(dim=1)
    return log_odds.masked_fill(alone, torch.finfo(logits.dtype).min)


def log_prob_and_complement(logits: Tensor, classes: Tensor) -> tuple[Tensor, Tensor]:
    """The logarithms of p and 1 - p, each (n,), for the class of each row."""
    against = log_odds_against(logits, classes)
    return F.logsigmoid(-against), F.logsigmoid(against)


def log_probs_and_complements(logits: Tensor) -> tuple[Tensor, Tensor]:
    """The logarithms of p and 1 - p for every class, each (n, classes).

    Only the largest p of a row can be near 1, so only this p needs the log-odds.
    """
    top = logits.argmax(dim=1)
    log_top, log_complement_of_top = log_prob_and_complement(logits, top)
    index = top[:, None]
    log_probs = F.log_softmax(logits, dim=1)
    probs_below_top = log_probs.exp().scatter(1, index, 0)
    log_complements = torch.log1p(-probs_below_top).scatter(
        1, index, log_complement_of_top[:, None]
    )
    return log_probs.scatter(1, index, log_top[:, None]), log_complements

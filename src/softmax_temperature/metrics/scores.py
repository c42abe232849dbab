"""Accuracy and the two proper scores."""

import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.metrics.checks import check_count, check_labels, check_logits, check_probs


def accuracy(logits: Tensor, labels: Tensor) -> Tensor:
    """Share of samples whose largest logit is that of the label: `top_accuracy` with `top` 1."""
    return top_accuracy(logits, labels, top=1)


def top_accuracy(logits: Tensor, labels: Tensor, *, top: int = 5) -> Tensor:
    """Share of samples whose label is among the `top` largest logits (focal paper, Table F.7), float64.

    Of equal logits the one of the lower class ranks first. Raises ValueError as `negative_log_likelihood`, and if `top`
    is below 1.
    """
    check_logits(logits)
    check_labels(labels, logits)
    check_count(top, "top", least=1)
    return (label_ranks(logits, labels.long()) < top).double().mean()


def negative_log_likelihood(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean of -log p of the true class (focal paper, section 3), nats, float64.

    Raises ValueError if the shapes disagree, a logit is not finite or a label is out of range.
    """
    check_logits(logits)
    check_labels(labels, logits)
    return F.cross_entropy(logits.detach().double(), labels.long())


def brier_score(probs: Tensor, labels: Tensor) -> Tensor:
    """Squared distance of the probabilities to the one-hot label, summed over classes, float64, in [0, 2].

    Raises ValueError if the shapes disagree, a row does not sum to one or a label is out of range.
    """
    check_probs(probs)
    check_labels(labels, probs)
    return squared_distances(probs.detach().double(), labels.long()).mean()


def squared_distances(probs: Tensor, labels: Tensor) -> Tensor:
    """Squared distance of each row to its one-hot label, shape (n,)."""
    true_probs = probs.gather(1, labels[:, None]).squeeze(1)
    # |p - e|^2 = |p|^2 - 2 p_y + 1, with p_y taken out of the sum: no cancellation when the row is nearly one-hot.
    others = probs.square().scatter(1, labels[:, None], 0).sum(dim=1)
    return others + (1 - true_probs).square()


def label_ranks(logits: Tensor, labels: Tensor) -> Tensor:
    """How many classes rank before the label, shape (n,); 0 where the label is the prediction."""
    index = labels[:, None]
    of_label = logits.gather(1, index)
    earlier = torch.arange(logits.shape[1], device=logits.device) < index
    return ((logits > of_label) | ((logits == of_label) & earlier)).sum(dim=1)

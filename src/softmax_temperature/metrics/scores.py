"""Accuracy, the two proper scores, and scores of images of which every pixel is
classified (cooling, section 4.4).
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.metrics.checks import (
    ArgumentError,
    check_count,
    check_labels,
    check_logits,
    check_probs,
)


def top_accuracy(logits: Tensor, labels: Tensor, *, top: int = 5) -> Tensor:
    """Share of labels (n,) among the `top` largest logits (n, classes); of equal ones
    the lower class is first.
    """
    check_logits(logits)
    check_labels(labels, logits)
    check_count(top, "top", least=1)
    return (label_ranks(logits, labels.long()) < top).double().mean()


def negative_log_likelihood(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean of -log p of labels (n,) under logits (n, classes) (focal, section 3), nats,
    float64, or ValueError.
    """
    check_logits(logits)
    check_labels(labels, logits)
    return F.cross_entropy(logits.detach().double(), labels.long())


def brier_score(probs: Tensor, labels: Tensor) -> Tensor:
    """Mean squared distance of probs (n, classes) to one-hot labels (n,), float64, in
    [0, 2]; or ValueError.
    """
    check_probs(probs)
    check_labels(labels, probs)
    return squared_distances(probs.detach().double(), labels.long()).mean()


def squared_distances(probs: Tensor, labels: Tensor) -> Tensor:
    """Squared distance of each row to its one-hot label, shape (n,)."""
    true_probs = probs.gather(1, labels[:, None]).squeeze(1)
    # |p - e|^2 = |p|^2 - 2 p_y + 1, with p_y taken out of the sum: no cancellation when
    # the row is nearly one-hot.
    others = probs.square().scatter(1, labels[:, None], 0).sum(dim=1)
    return others + (1 - true_probs).square()


def label_ranks(logits: Tensor, labels: Tensor) -> Tensor:
    """How many classes rank before the label, shape (n,); 0 where the label is the
    prediction.
    """
    index = labels[:, None]
    of_label = logits.gather(1, index)
    earlier = torch.arange(logits.shape[1], device=logits.device) < index
    return ((logits > of_label) | ((logits == of_label) & earlier)).sum(dim=1)


def confusion_matrix(
    predictions: Tensor, labels: Tensor, *, classes: int, void: int | None = None
) -> Tensor:
    """Pixels by true class (rows) and predicted class, (classes, classes) int64; of
    several batches they add up.

    Predictions and labels are integers of one shape in [0, classes), or ValueError;
    `void` pixels are left out.
    """
    classes = check_count(classes, "classes", least=1)
    for numbers, name in ((labels, "labels"), (predictions, "predictions")):
        if numbers.is_floating_point() or numbers.shape != labels.shape:
            raise ArgumentError(
                f"{name} must be integers of shape {tuple(labels.shape)}, "
                f"got {numbers.dtype} {tuple(numbers.shape)}",
                "Give one class for each pixel.",
            )
    rows = labels.long()  # Before it is compared: -1 equals 255 in uint8.
    columns = predictions.long()
    if void is not None:
        columns = columns[rows != void]
        rows = rows[rows != void]
    for numbers, name in ((rows, "labels"), (columns, "predictions")):
        wrong = numbers[(numbers < 0) | (numbers >= classes)]
        if len(wrong):
            raise ArgumentError(
                f"{name} must be in [0, {classes}), got {wrong[0].item()}",
                "Name the label of pixels without a class: void.",
            )
    return torch.bincount(rows * classes + columns, minlength=classes**2).view(
        classes, classes
    )


def mean_intersection_over_union(confusion: Tensor) -> Tensor:
    """Mean over the classes that labels or predictions have of the share of pixels in
    both among those in either.
    """
    counts = confusion.double()
    both = counts.diagonal()
    return (both / (counts.sum(0) + counts.sum(1) - both)).nanmean()


def pixel_accuracy(confusion: Tensor) -> Tensor:
    """Share of the pixels that were predicted right."""
    counts = confusion.double()
    return counts.trace() / counts.sum()

"""Accuracy, proper scores, and scores of segmentations (cooling, section 4.4)."""

import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.metrics.checks import (
    ArgumentError,
    check_argument_order,
    check_count,
    check_labels,
    check_logits,
)
from softmax_temperature.metrics.class_order import check_class_order
from softmax_temperature.metrics.probability_check import check_not_probs, check_probs


def top_accuracy(logits: Tensor, labels: Tensor, *, top: int = 5) -> Tensor:
    """Share of samples whose label is among the `top` largest logits.

    Args:
        logits: Logits or probabilities of shape (n, classes); only their order matters.
            Among equal logits, the lower class ranks first. A masked class has the
            logit -inf.
        labels: Integer true classes of shape (n,).
        top: Number of largest logits to consider, at least 1.

    Returns:
        A float64 scalar in [0, 1].

    Raises:
        ValueError: If an argument is malformed.
    """
    check_argument_order(logits, labels)
    check_logits(logits, masked=True)
    check_labels(labels, logits, masked=True)
    check_class_order(labels, logits)
    check_count(top, "top", least=1)
    return (label_ranks(logits, labels.long()) < top).double().mean()


def negative_log_likelihood(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean negative log-likelihood of the labels, in nats (focal paper, section 3).

    Args:
        logits: Logits (n, classes) of any float dtype; they are cast to float64. A
            masked class has the logit -inf.
        labels: Integer true classes of shape (n,).

    Returns:
        A float64 scalar.

    Raises:
        ValueError: If an argument is malformed, or the logits are probabilities.
    """
    check_argument_order(logits, labels)
    check_logits(logits, masked=True)
    check_labels(labels, logits, masked=True)
    check_class_order(labels, logits)
    check_not_probs(logits)
    return F.cross_entropy(logits.detach().double(), labels.long())


def brier_score(probs: Tensor, labels: Tensor) -> Tensor:
    """Mean squared distance from the probabilities to the one-hot labels, in [0, 2].

    Args:
        probs: Floating-point tensor of shape (n, classes) whose rows sum to one.
        labels: Integer true classes of shape (n,).

    Returns:
        A float64 scalar.

    Raises:
        ValueError: If an argument is malformed.
    """
    check_argument_order(probs, labels, name="probs")
    probs = check_probs(probs)
    check_labels(labels, probs)
    check_class_order(labels, probs)
    return squared_distances(probs.detach().double(), labels.long()).mean()


def squared_distances(probs: Tensor, labels: Tensor) -> Tensor:
    """Squared distance from each row to its one-hot label, shape (n,)."""
    true_probs = probs.gather(1, labels[:, None]).squeeze(1)
    # The shorter |p|^2 - 2 p_y + 1 loses digits by cancellation if the row is nearly
    # one-hot.
    wrong_classes = probs.square().scatter(1, labels[:, None], 0).sum(dim=1)
    return wrong_classes + (1 - true_probs).square()


def label_ranks(logits: Tensor, labels: Tensor) -> Tensor:
    """Number of classes that rank before the label, shape (n,)."""
    index = labels[:, None]
    label_logits = logits.gather(1, index)
    larger = logits > label_logits
    lower_class = torch.arange(logits.shape[1], device=logits.device) < index
    tied_before = (logits == label_logits) & lower_class
    return (larger | tied_before).sum(dim=1)


def confusion_matrix(
    predictions: Tensor, labels: Tensor, *, classes: int, void: int | None = None
) -> Tensor:
    """Count the pixels by true class (rows) and predicted class (columns).

    The matrices of several batches may be added.

    Args:
        predictions: Predicted classes: integers in [0, classes), in a tensor of any
            shape.
        labels: True classes: integers in [0, classes), in a tensor of the same shape.
        classes: Number of classes.
        void: Label of pixels to ignore.

    Returns:
        An int64 tensor of shape (classes, classes).

    Raises:
        ValueError: If an argument is malformed.
    """
    classes = check_count(classes, "classes", least=1)
    for numbers, name in ((labels, "labels"), (predictions, "predictions")):
        if numbers.is_floating_point() or numbers.shape != labels.shape:
            raise ArgumentError(
                f"{name} must be integers of shape {tuple(labels.shape)}, "
                f"got {numbers.dtype} {tuple(numbers.shape)}",
                "Give one class for each pixel.",
            )
    # Convert the labels before comparing them with `void`: in uint8, -1 equals 255.
    rows = labels.long()
    columns = predictions.long()
    if void is not None:
        counted = rows != void
        columns = columns[counted]
        rows = rows[counted]
    for numbers, name in ((rows, "labels"), (columns, "predictions")):
        wrong = numbers[(numbers < 0) | (numbers >= classes)]
        if len(wrong):
            raise ArgumentError(
                f"{name} must be in [0, {classes}), got {wrong[0].item()}",
                "Pass the label of pixels without a class as void=.",
            )
    cells = rows * classes + columns
    return torch.bincount(cells, minlength=classes**2).view(classes, classes)


def mean_intersection_over_union(confusion: Tensor) -> Tensor:
    """Mean intersection over union, over classes that occur in labels or predictions.

    Args:
        confusion: See `confusion_matrix`.

    Returns:
        A float64 scalar in [0, 1].
    """
    counts = confusion.double()
    intersection = counts.diagonal()
    union = counts.sum(0) + counts.sum(1) - intersection
    return (intersection / union).nanmean()


def pixel_accuracy(confusion: Tensor) -> Tensor:
    """Share of pixels whose prediction is correct, a float64 scalar."""
    counts = confusion.double()
    return counts.trace() / counts.sum()

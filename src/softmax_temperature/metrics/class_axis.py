"""Check that the axes of logits and labels are in the order in which they are read.

Logits of tokens may have the shape (batch, tokens, classes), and those of pixels
(images, classes, height, width). If these dimensions are equally long, the shape does
not show which of them is that of the classes. The labels do: along the dimension of the
classes, the labels' logits are higher than others; along any other dimension, they are
not.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from softmax_temperature.metrics.checks import (
    CLASSES_AT_END,
    CLEAR_DIFFERENCE,
    ArgumentError,
)

# Both readings of the axes are compared by the labels' mean rank, minus the mean rank
# that chance gives. In the other reading, this difference must be larger by this factor
# or more. For each label, both readings share one logit, so that even the wrong reading
# tells something about the labels: with two classes, up to half as much as the right
# one.
CLEAR_RATIO = 1.5
# The largest number of logits that are examined.
MOST_LOGITS = 4_000_000


class Ranks(NamedTuple):
    """The ranks of the labels' logits in two readings of the logits.

    Attributes:
        given: For each label, the share of the other classes whose logits are lower,
            minus one half. An equal logit counts as one half. The tensor is float64 and
            has shape (n,).
        other: The same in the other reading.
        samples: The sample of each label, shape (n,).
    """

    given: Tensor
    other: Tensor
    samples: Tensor


def check_axes(
    labels: Tensor, logits: Tensor, *, names: tuple[str, str] = ("labels", "logits")
) -> None:
    """Refuse logits and labels whose axes are evidently in a different order.

    Shapes do not show the order of axes that are equally long: the classes may be in
    the last dimension of the logits, and label maps may have their rows and columns
    swapped.

    Args:
        labels: Shape (n, ...). Labels outside [0, classes) are left out.
        logits: Shape (n, classes, ...).
        names: Names of the labels and of the logits in messages.
    """
    if labels.ndim < 2 or not labels.numel() or logits.shape[1] < 2:
        return
    table = logits.detach()
    numbers = labels.long()
    given = table.movedim(1, -1)
    if table.shape[:-1] == labels.shape and _is_other(_ranks(numbers, given, table)):
        raise ArgumentError(
            f"{names[0]} agree with {_right(numbers, given)} of {labels.numel()} "
            f"predictions of {names[1]} {tuple(logits.shape)}, but with "
            f"{_right(numbers, table)} if the classes are in the last dimension",
            CLASSES_AT_END,
        )
    if labels.ndim != 3 or labels.shape[1] != labels.shape[2]:
        return
    swapped = given.transpose(1, 2)
    ranks = _ranks(numbers, given, swapped)
    # Neighbouring pixels are alike, so only images count as independent.
    if ranks is not None and _is_other(_by_sample(ranks, len(labels))):
        raise ArgumentError(
            f"{names[0]} agree with {_right(numbers, given)} of {labels.numel()} "
            f"predictions, but with {_right(numbers, swapped)} if rows and columns of "
            "the label maps are swapped",
            "Swap them: labels.transpose(1, 2) for a tensor, labels.swapaxes(1, 2) for "
            "an array.",
        )


def check_not_transposed(labels: Tensor, scores: Tensor, name: str = "labels") -> None:
    """Refuse scores (n, n) that evidently have one row, not one column, per class.

    Args:
        labels: Shape (n,), in [0, classes).
        scores: Logits or probabilities, shape (n, classes).
        name: Name of the labels in messages.
    """
    rows, classes = scores.shape
    if rows != classes:
        return
    table = scores.detach()
    numbers = labels.long()
    given, other = _right(numbers, table), _right(numbers, table.T)
    if given < other and _is_other(_ranks(numbers, table, table.T)):
        raise ArgumentError(
            f"{name} agree with {given} of {rows} predictions, but with {other} if the "
            f"scores, {tuple(scores.shape)}, have a row for each class",
            "Transpose the scores: give one row per sample and one column per class.",
        )


def _right(labels: Tensor, logits: Tensor) -> int:
    """The number of labels that have the largest logit in the last dimension."""
    return int((logits.argmax(dim=-1) == labels).sum())


def _ranks(labels: Tensor, given: Tensor, other: Tensor) -> Ranks | None:
    """Return the ranks of the labels' logits in two readings.

    The result is None if no label is in range, or if a logit is NaN.

    Args:
        labels: An int64 tensor of shape (n, ...).
        given: Logits with the classes in the last dimension, shape (n, ..., classes).
        other: Another reading of the same logits, of the same shape.
    """
    classes = given.shape[-1]
    most = max(1, MOST_LOGITS // classes)
    stride = math.ceil(labels.numel() / most)
    flat = torch.arange(0, labels.numel(), stride, device=labels.device)
    places = torch.unravel_index(flat, labels.shape)
    numbers = labels[places]
    known = (numbers >= 0) & (numbers < classes)
    places = tuple(place[known] for place in places)
    numbers = numbers[known, None]
    ranks = []
    for logits in (given, other):
        part = logits[places]
        if not len(part) or bool(part.isnan().any()):
            return None  # A later check refuses NaN.
        of_labels = part.gather(1, numbers)
        lower = (part < of_labels).sum(dim=1).double()
        equal = (part == of_labels).sum(dim=1).double() - 1
        ranks.append((lower + equal / 2) / (classes - 1) - 0.5)
    return Ranks(ranks[0], ranks[1], places[0])


def _by_sample(ranks: Ranks, samples: int) -> Ranks:
    """Sum the ranks of each sample."""
    given, other = (
        each.new_zeros(samples).index_add(0, ranks.samples, each) for each in ranks[:2]
    )
    return Ranks(given, other, torch.arange(samples))


def _is_other(ranks: Ranks | None) -> bool:
    """Whether the other reading is evidently the right one."""
    if ranks is None:
        return False
    return (
        _deviations(ranks.other - ranks.given) > CLEAR_DIFFERENCE
        and _deviations(ranks.other) > CLEAR_DIFFERENCE
        and bool(ranks.other.sum() >= CLEAR_RATIO * ranks.given.sum())
    )


def _deviations(values: Tensor) -> float:
    """Return the sum of `values` in standard deviations, for values of mean 0."""
    return values.sum().item() / max(values.square().sum().sqrt().item(), 1e-12)

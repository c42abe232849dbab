"""The check that the classes of logits are in the dimension in which they are read.

Logits of tokens may have the shape (batch, tokens, classes), and those of pixels
(images, classes, height, width). If the dimensions are equally long, a shape does not
show which of them holds the classes. Labels do: the logits of the labels are high in
the dimension of the classes, and no higher than others in any other dimension.
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

# In the other dimension, the labels' mean rank must be this many times as far above
# that of chance. Where both dimensions cross, they have a logit in common, so that the
# wrong one also says something about the labels: with two classes, up to half as much
# as the right one.
CLEAR_RATIO = 1.5
# The largest number of labels that are judged.
MOST_LABELS = 100_000


class Ranks(NamedTuple):
    """How high the labels' logits rank in two dimensions.

    Attributes:
        given: Share of the other classes whose logits are lower, minus one half, for
            each label; equal logits count half. Shape (n,), float64.
        other: The same, if the classes are in another dimension.
    """

    given: Tensor
    other: Tensor


def check_class_axis(
    labels: Tensor, logits: Tensor, *, names: tuple[str, str] = ("labels", "logits")
) -> None:
    """Refuse logits that evidently have their classes in the last dimension.

    The shape shows the dimension of the classes, unless all dimensions but the first
    are equally long.

    Args:
        labels: Shape (n, ...). Labels outside [0, classes) are left out.
        logits: Shape (n, classes, ...).
        names: Names of both in messages.
    """
    if labels.ndim < 2 or not labels.numel() or labels.shape != logits.shape[:-1]:
        return
    if labels.shape != (logits.shape[0], *logits.shape[2:]) or logits.shape[1] < 2:
        return
    given = logits.detach().movedim(1, -1).flatten(0, -2)
    other = logits.detach().flatten(0, -2)
    numbers = labels.flatten()
    if not _is_other(_ranks(given, other, numbers)):
        return
    rights = [int((rows.argmax(dim=1) == numbers).sum()) for rows in (given, other)]
    raise ArgumentError(
        f"{names[0]} agree with {rights[0]} of {labels.numel()} predictions of "
        f"{names[1]} {tuple(logits.shape)}, but with {rights[1]} if the classes are in "
        "the last dimension",
        CLASSES_AT_END,
    )


def check_not_transposed(labels: Tensor, scores: Tensor, name: str = "labels") -> None:
    """Refuse scores (n, n) that evidently have a row per class, not a column.

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
    if not _is_other(_ranks(table, table.T, numbers)):
        return
    rights = [int((each.argmax(dim=1) == numbers).sum()) for each in (table, table.T)]
    raise ArgumentError(
        f"{name} agree with {rights[0]} of {rows} predictions, but with {rights[1]} if "
        f"the scores, {tuple(scores.shape)}, have a row for each class",
        "Transpose the scores: give one row per sample and one column per class.",
    )


def _ranks(given: Tensor, other: Tensor, labels: Tensor) -> Ranks | None:
    """The ranks of the labels' logits in two tables (n, classes); None if unknown."""
    rows, classes = given.shape
    stride = math.ceil(rows * classes / (MOST_LABELS * min(classes, 100)))
    chosen = torch.arange(0, rows, stride, device=labels.device)
    numbers = labels[chosen].long()
    known = (numbers >= 0) & (numbers < classes)
    chosen, numbers = chosen[known], numbers[known, None]
    ranks = []
    for table in (given, other):
        part = table[chosen]
        if not len(part) or bool(part.isnan().any()):
            return None  # A later check refuses NaN.
        of_labels = part.gather(1, numbers)
        lower = (part < of_labels).sum(dim=1).double()
        equal = (part == of_labels).sum(dim=1).double() - 1
        ranks.append((lower + equal / 2) / (classes - 1) - 0.5)
    return Ranks(*ranks)


def _is_other(ranks: Ranks | None) -> bool:
    """Whether the labels are evidently in the other dimension."""
    if ranks is None:
        return False
    return (
        _deviations(ranks.other - ranks.given) > CLEAR_DIFFERENCE
        and _deviations(ranks.other) > CLEAR_DIFFERENCE
        and bool(ranks.other.sum() >= CLEAR_RATIO * ranks.given.sum())
    )


def _deviations(values: Tensor) -> float:
    """The sum of `values` in units of its standard deviation if their mean is 0."""
    return values.sum().item() / max(values.square().sum().sqrt().item(), 1e-12)

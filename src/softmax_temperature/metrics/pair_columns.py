"""Check that the columns of scores belong to classes, not to pairs of classes.

`SVC(decision_function_shape="ovo")` returns one column for each pair of its k classes:
(0, 1), (0, 2), ..., (k - 2, k - 1). In these k (k - 1) / 2 columns, a score above 0 is
a vote for the first class of the pair; any other score is a vote for the second.
"""

import math

import torch
from torch import Tensor

from softmax_temperature.metrics.checks import (
    CLEAR_DIFFERENCE,
    SHIFTED_RATIO,
    ArgumentError,
)

# Tables with fewer rows than this are not judged.
FEWEST_ROWS = 20
# The largest number of scores from which votes are counted.
MOST_SCORES = 4_000_000


def pair_classes(columns: int) -> int | None:
    """The number of classes (at least 3) that form exactly `columns` pairs.

    The result is None if there is no such number.
    """
    classes = (1 + math.isqrt(1 + 8 * columns)) // 2
    return classes if classes > 2 and classes * (classes - 1) // 2 == columns else None


def check_not_pairs(labels: Tensor, scores: Tensor, name: str = "labels") -> None:
    """Refuse scores whose columns are evidently pairs of classes.

    The evidence is that the votes of the pairs agree much more often with the labels
    than the largest scores do. If there are as many pairs as classes, which is so for
    three classes, the votes must also agree with the labels more often than the largest
    scores do in any order of the columns.

    Args:
        labels: Shape (n,), in [0, columns).
        scores: Shape (n, columns).
        name: Name of the labels in messages.
    """
    rows, columns = scores.shape
    classes = pair_classes(columns)
    if classes is None or rows < FEWEST_ROWS or int(labels.long().max()) >= classes:
        return
    stride = math.ceil(rows * columns / MOST_SCORES)
    table = scores.detach()[::stride]
    numbers = labels[::stride].long()
    # Scores are not votes if no column changes its sign from row to row.
    if len(table) < FEWEST_ROWS or not bool(((table > 0) != (table[:1] > 0)).any()):
        return
    predicted = table.argmax(dim=1)
    given = predicted == numbers
    if given.double().mean().item() > 1 / SHIFTED_RATIO:
        return
    votes = max(
        (_votes(signed, classes) for signed in (table, -table)),
        key=lambda voted: int((voted == numbers).sum()),
    )
    by_votes = votes == numbers
    won, lost = int((by_votes & ~given).sum()), int((given & ~by_votes).sum())
    # Compare mean recalls, because constant votes may agree with a frequent class.
    recall, other_recall = (_mean_recall(numbers, each) for each in (given, by_votes))
    if (
        won - lost <= CLEAR_DIFFERENCE * math.sqrt(won + lost)
        or other_recall < SHIFTED_RATIO * max(recall, 1 / classes)
        or (classes == columns and by_votes.sum() <= _any_order(numbers, predicted))
    ):
        return
    raise ArgumentError(
        f"{name} agree with {int(given.sum())} of {len(numbers)} predictions, but with "
        f"{int(by_votes.sum())} if the {columns} columns are the pairs of {classes} "
        "classes, as those of SVC(decision_function_shape='ovo')",
        "Give one column per class, as SVC(decision_function_shape='ovr') does.",
    )


def _votes(scores: Tensor, classes: int) -> Tensor:
    """Return the class with the most votes in each row, shape (n,)."""
    first, second = torch.triu_indices(classes, classes, 1, device=scores.device)
    winners = torch.where(scores > 0, first, second)
    votes = scores.new_zeros(len(scores), classes, dtype=torch.int64)
    return votes.scatter_add(1, winners, torch.ones_like(winners)).argmax(dim=1)


def _mean_recall(labels: Tensor, right: Tensor) -> float:
    """The share of each class's rows that are right, averaged over the classes."""
    rows = torch.bincount(labels).double()
    hits = torch.bincount(labels, right.double())
    return (hits[rows > 0] / rows[rows > 0]).mean().item()


def _any_order(labels: Tensor, predicted: Tensor) -> int:
    """Upper bound on the number of rows that are right in any column order."""
    classes = int(torch.maximum(labels.max(), predicted.max())) + 1
    counts = torch.bincount(labels * classes + predicted, minlength=classes**2)
    return int(counts.view(classes, classes).amax(dim=0).sum())

"""Check that the scores of each row were not sorted without renumbering the labels.

`torch.topk` and `np.sort` return each row in the order of its scores, so that a column
no longer belongs to a class. Labels that give the position of the true class in the
sorted row fit such scores; labels that number the classes do not.
"""

import math

import torch
from torch import Tensor

from softmax_temperature.metrics.checks import ArgumentError

# Tables with fewer rows are not judged.
FEWEST_ROWS = 50
# With at least this many rows, scores that evidently do not predict the labels are
# refused, too.
ENOUGH_FOR_CHANCE = 200
# Sorting puts almost equal scores next to each other. Labels are refused only if, for
# at least this share of adjacent scores, the difference is below `NEAR` times the
# median difference between those two columns. A model whose biases happen to be sorted
# has hardly any such differences.
NEAR_TIES = 0.01
NEAR = 0.05
# The scores are better than equal probabilities if their likelihood is higher by this
# many standard deviations.
CLEAR_GAIN = 2
# For labels that are not the first column, the mean score of the label must exceed the
# mean over the columns by at least this share of the excess that is expected at the
# fitted temperature. A smaller excess leads to a refusal only if it is
# `CLEAR_SHORTFALL` standard deviations below the expected one.
LEAST_SHARE = 0.25
CLEAR_SHORTFALL = 4
# The largest number of scores that are examined.
MOST_SCORES = 4_000_000
# Number of times that the search for the temperature halves its interval.
STEPS = 60


def check_not_sorted(labels: Tensor, scores: Tensor, name: str = "labels") -> None:
    """Refuse labels that number the classes if all rows of scores are sorted.

    The rows count as sorted if the scores fall along every row, or rise along every
    row; adjacent scores may be equal. Labels are accepted if they are evidently
    positions in the sorted rows: at the best temperature, the probabilities explain the
    labels better than equal probabilities do, and they also explain those labels that
    are not the first column.

    Args:
        labels: Shape (n,), in [0, classes).
        scores: Logits or probabilities, shape (n, classes).
        name: Name of the labels in messages.
    """
    rows, classes = scores.shape
    if classes < 3 or rows < FEWEST_ROWS:
        return
    falls = _all_fall(scores)
    if not falls and not _all_fall(scores, rising=True):
        return
    stride = max(1, rows * classes // MOST_SCORES)
    table = scores.detach()[::stride].double()
    numbers = labels[::stride].long()
    if not falls:
        table = table.flip(1)
        numbers = classes - 1 - numbers
    if bool((table >= 0).all()) and bool(((table.sum(dim=1) - 1).abs() < 1e-3).all()):
        table = table.clamp(min=torch.finfo(torch.float32).tiny).log()
    if len(table) < FEWEST_ROWS or bool(table.isinf().any()):
        return
    margins = table - table[:, :1]
    if not _has_near_ties(margins) or _explain(margins, numbers):
        return
    order = "falling" if falls else "rising"
    raise ArgumentError(
        f"{name} do not fit scores whose rows are all sorted in {order} order, so that "
        "column c no longer belongs to class c",
        "Give the logits as the network returns them, or as labels the positions of "
        "the classes in the sorted rows.",
    )


def are_sorted(scores: Tensor) -> bool:
    """Whether the scores (n, classes) fall along every row, or rise along every row."""
    return _all_fall(scores) or _all_fall(scores, rising=True)


def _all_fall(scores: Tensor, *, rising: bool = False) -> bool:
    """Whether scores never rise along a row; if `rising`, whether they never fall."""
    # For almost all tables, the first row already gives the answer.
    for rows in (scores[:1], scores):
        left, right = rows[:, :-1], rows[:, 1:]
        sorted_pairs = left <= right if rising else left >= right
        if not bool(sorted_pairs.all()):
            return False
    return True


def _has_near_ties(margins: Tensor) -> bool:
    """Whether adjacent scores are often almost equal beyond the first column."""
    differences = margins[:, 1:-1] - margins[:, 2:]
    medians = differences.median(dim=0).values
    near = (differences < NEAR * medians).double().mean()
    return near.item() >= NEAR_TIES


def _explain(margins: Tensor, labels: Tensor) -> bool:
    """Whether scores that fall in each row explain the labels at some temperature."""
    scale = margins.abs().mean().item()
    if scale == 0:
        return True
    margins = margins / scale
    inverse = _inverse_temperature(margins, labels)
    log_probs = torch.log_softmax(margins * inverse, dim=1)
    gains = _of_labels(log_probs, labels) + math.log(margins.shape[1])
    if len(labels) >= ENOUGH_FOR_CHANCE and _deviations(gains) < CLEAR_GAIN:
        return False
    others = labels != 0
    if not bool(others.any()):
        return True
    rest = margins[others][:, 1:]
    expected = (torch.softmax(rest * inverse, dim=1) * rest).sum(dim=1)
    found = _of_labels(rest, labels[others] - 1)
    plain = rest.mean(dim=1)
    share = (found - plain).sum() >= LEAST_SHARE * (expected - plain).sum()
    return bool(share) or _deviations(found - expected) > -CLEAR_SHORTFALL


def _inverse_temperature(margins: Tensor, labels: Tensor) -> float:
    """The inverse temperature, at least 0, at which the labels are most likely."""
    target = _of_labels(margins, labels).mean().item()

    def rises(inverse: float) -> bool:
        probs = torch.softmax(margins * inverse, dim=1)
        return (probs * margins).sum(dim=1).mean().item() < target

    low, high = 0.0, 1.0
    while rises(high) and high < 1e12:
        high *= 4
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if rises(middle) else (low, middle)
    return high


def _of_labels(table: Tensor, labels: Tensor) -> Tensor:
    return table.gather(1, labels[:, None]).squeeze(1)


def _deviations(values: Tensor) -> float:
    """The mean of `values`, in units of its standard error."""
    if len(values) < 2:
        return 0.0
    spread = values.std().item() / math.sqrt(len(values))
    return values.mean().item() / max(spread, 1e-12)

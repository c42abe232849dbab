"""Refuse tables of scores and one-hot labels that were flattened to one column."""

import numpy as np
from numpy.typing import NDArray

from softmax_temperature.metrics.checks import ArgumentError
from softmax_temperature.metrics.probability_check import SUM_TOLERANCE

# The smallest number of classes, and of rows of the table. The chance that unrelated
# labels have exactly one 1 in each row is then below 1e-6.
FEWEST_CLASSES = 3
FEWEST_ROWS = 20
# The 1 must move between consecutive rows at least this often. Labels that repeat with
# a fixed period, or that have all 1 in one run, have one 1 in each row, too.
FEWEST_MOVES = 2
# Scores of a binary classifier that judges each candidate on its own, of which one is
# right, are genuine. Their mean probability differs from the share of the right ones by
# less than this share of it, but the probabilities of the candidates do not sum to 1.
NEAR_SHARE = 0.1


def check_not_one_column(
    values: NDArray[np.floating], labels: NDArray[np.generic], kind: str, name: str
) -> None:
    """Refuse scores of K classes, flattened with their one-hot labels.

    Args:
        values: Scores of two classes, shape (n, 1) or (n, 2).
        labels: The user's labels.
        kind: "logits" or "probs".
        name: Name of the scores in messages.
    """
    count = len(values)
    one_each = labels.shape in {(count,), (count, 1)}
    if values.shape[1] > 2 or not one_each or labels.dtype.kind not in "biuf":
        return
    ones = labels.reshape(-1) == 1
    positives = int(ones.sum())
    if positives < FEWEST_ROWS or count % positives:
        return
    classes = count // positives
    if classes < FEWEST_CLASSES or not (ones | (labels.reshape(-1) == 0)).all():
        return
    shape = (positives, classes)
    for order in ("by row", "by column"):
        columns = order == "by column"
        one_hot = _table(ones, shape, columns=columns)
        # Look at the first rows first: they rule out almost all other labels.
        if not all(
            bool((part.sum(axis=1) == 1).all())
            for part in (one_hot[:FEWEST_ROWS], one_hot)
        ):
            continue
        moves = np.count_nonzero(np.diff(one_hot.argmax(axis=1)))
        if moves < FEWEST_MOVES:
            continue
        if _may_be_one_table(values, kind, shape, columns=columns):
            raise ArgumentError(
                f"{name} and labels look like a table of {classes} classes, flattened "
                f"{order}: of {classes} labels each, exactly one is 1",
                f"Give the table, of shape {shape}, with one label per row.",
            )


def _table(
    column: NDArray[np.generic], shape: tuple[int, int], *, columns: bool
) -> NDArray[np.generic]:
    """The table that was flattened to `column`, by column or by row."""
    return column.reshape(shape, order="F" if columns else "C")


def _may_be_one_table(
    values: NDArray[np.floating], kind: str, shape: tuple[int, int], *, columns: bool
) -> bool:
    """Whether the scores may be those of a table whose classes exclude each other.

    The probabilities of such a table sum to 1 in every row. A softmax ignores what is
    added to a row of logits, so the sums of their sigmoids may be any others, but are
    hardly near 1 on average.
    """
    if kind == "probs":
        probs = values[:, -1].astype(np.float64)
    else:
        scores = values.astype(np.float64)
        difference = scores[:, -1] - (scores[:, 0] if scores.shape[1] == 2 else 0)
        with np.errstate(over="ignore", invalid="ignore"):
            probs = 1 / (1 + np.exp(-difference))
    sums = _table(probs, shape, columns=columns).sum(axis=1)
    if bool((np.abs(sums - 1) <= SUM_TOLERANCE).all()):
        return True
    if kind == "probs":
        return False
    return not abs(float(sums.mean()) - 1) <= NEAR_SHARE

"""Refuse logits of which only the largest were saved, with 0 in place of the others."""

import numpy as np
from numpy.typing import NDArray

from softmax_temperature.metrics.checks import ArgumentError

# Tables with fewer rows are not judged, nor are those with fewer zeros in each row, or
# with fewer distinct numbers besides 0, as predicted classes times a constant have.
FEWEST_ROWS = 20
FEWEST_ZEROS = 3
FEWEST_NUMBERS = 20
# The number of elements that are examined at once.
PIECE = 1 << 20


def check_not_refilled(values: NDArray[np.floating], name: str) -> None:
    """Refuse logits if the same number of them, at least half, is 0 in every row.

    Such a table arises if `topk` is saved and its logits are put back into a table of
    zeros. A softmax takes the zeros for logits. A ReLU's number of zeros varies from
    row to row.

    Args:
        values: Logits, shape (n, classes).
        name: Name of the logits in messages.
    """
    count, classes = values.shape
    if count < FEWEST_ROWS or classes <= FEWEST_ZEROS:
        return
    # Look at the first rows first: they rule out almost all other tables.
    first = (values[:FEWEST_ROWS] == 0).sum(axis=1)
    if first[0] < FEWEST_ZEROS or (first != first[0]).any():
        return
    empty = np.ones(classes, bool)
    fixed = np.ones(classes, bool)
    rows = max(1, PIECE // classes)
    for start in range(0, count, rows):
        zeros = values[start : start + rows] == 0
        if (zeros.sum(axis=1) != first[0]).any():
            return
        empty &= zeros.all(axis=0)
        fixed &= (zeros == zeros[0]).all(axis=0) & (zeros[0] == (values[0] == 0))
    # A column that is 0 in every row belongs to a class that was never learned.
    zeros_of_rest = int(first[0] - empty.sum())
    kept = int(classes - first[0])
    if zeros_of_rest < max(FEWEST_ZEROS, kept) or kept == 0 or fixed.all():
        return
    few = values[: FEWEST_NUMBERS * FEWEST_ROWS]
    if len(np.unique(few[few != 0])) < FEWEST_NUMBERS:
        return
    raise ArgumentError(
        f"{name} are 0 for {first[0]} of {classes} classes in every row, as if only "
        f"the {kept} largest had been saved",
        "Give each class its own logit.",
    )

"""Refuse arrays whose last rows were never filled."""

import numpy as np
from numpy.typing import NDArray

from softmax_temperature.metrics.checks import ArgumentError

# At least this many rows must be zeros. Fewer may be genuine, for instance if a network
# with a dead ReLU gives zeros.
FEWEST_ZEROS = 10


def check_filled(
    values: NDArray[np.floating], labels: NDArray[np.number], name: str
) -> None:
    """Refuse scores that end with rows of zeros, all with the label 0.

    Such rows remain if an array of zeros was allocated for more samples than were
    stored. They count as wrong or right predictions, and change every score.

    Args:
        values: Shape (n, columns).
        labels: Shape (n,).
        name: Name of the values in messages.
    """
    if labels.shape != (len(values),):
        return
    is_filled = (labels != 0) | values.any(axis=1)
    filled = np.flatnonzero(is_filled)
    if not len(filled) or not values[filled].any() or not labels.any():
        return
    count = int(filled[-1]) + 1
    empty = len(values) - count
    if empty < FEWEST_ZEROS:
        return
    raise ArgumentError(
        f"{name} of the last {empty} rows are all 0, and so are their labels: they "
        "look like the end of an array that was not filled",
        f"Leave these rows out: keep the first {count}.",
    )

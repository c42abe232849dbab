"""Refuse logits whose columns were standardised, or scaled to [0, 1]."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from softmax_temperature.metrics.checks import ArgumentError

# Tables with fewer rows are not judged.
FEWEST_ROWS = 50
# Largest distance of a column's mean from 0, and of its standard deviation from 1. In a
# large table of narrow numbers, the distances must also be below the share
# `SHARE_OF_ERROR` of the mean's standard error, which genuine columns rarely are.
EXACT = 1e-6
NARROW = 1e-4
SHARE_OF_ERROR = 0.01
Column = NDArray[np.floating]


def check_not_standardised(values: NDArray[np.floating], name: str) -> None:
    """Refuse logits that a scaler has shifted and scaled column by column.

    The shifts change the predictions, so that no temperature undoes the scaling.

    Args:
        values: Logits, shape (n, classes) or (n, 1), float32 or float64.
        name: Name of the logits in messages.
    """
    if len(values) < FEWEST_ROWS:
        return
    if _all_columns(values, _is_standardised):
        form = "mean 0 and standard deviation 1"
    elif _all_columns(values, _is_stretched):
        form = "minimum 0 and maximum 1"
    else:
        return
    raise ArgumentError(
        f"the columns of {name} were standardised: each has {form}",
        "Give the logits before the scaling.",
    )


def _all_columns(
    values: NDArray[np.floating], scaled: Callable[[Column], bool]
) -> bool:
    """Whether `scaled` holds for all columns, apart from those that are all 0."""
    found = False
    # Columns are read one by one: almost every table is ruled out by its first.
    for column in values.T:
        if column.any():
            if not scaled(column):
                return False
            found = True
    return found


def _is_standardised(column: Column) -> bool:
    count = len(column)
    tolerance = EXACT
    if column.dtype == np.float32:
        tolerance = min(NARROW, SHARE_OF_ERROR / count**0.5)
    with np.errstate(over="ignore"):
        mean = column.mean(dtype=np.float64)
    # The comparison is also false for NaN, the mean of a column with -inf.
    if not abs(mean) <= tolerance:
        return False
    deviation = column.std(dtype=np.float64)
    # Some libraries divide by n, others by n - 1.
    sample = deviation * (count / (count - 1)) ** 0.5
    if min(abs(deviation - 1), abs(sample - 1)) > tolerance:
        return False
    # Few whole numbers, such as as many 1 as -1, may have this form by themselves.
    return not bool((column == np.floor(column)).all())


def _is_stretched(column: Column) -> bool:
    low, high = column.min(), column.max()
    if max(abs(low), abs(high - 1)) > EXACT:
        return False
    # Saturated probabilities reach 0 or 1 in several rows.
    ends = (column - low <= EXACT) | (high - column <= EXACT)
    return int(ends.sum()) == 2

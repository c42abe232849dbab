"""Refuse columns that were made from the labels, such as one-hot labels."""

import numpy as np
from numpy.typing import NDArray

from softmax_temperature.metrics.calibration import CHUNK
from softmax_temperature.metrics.checks import ArgumentError
from softmax_temperature.metrics.probability_check import FEW_ROWS

# What to do if the logits separate the labels.
CHECK_TRUE_LABELS = (
    "Check that the labels are the true ones, not the network's predictions; a perfect "
    "classifier has no best temperature."
)
# A column is judged only if there are at least this many times as many rows as classes.
# Only classes with two rows or more count. In fewer rows, numbers may be equal by
# chance.
ROWS_PER_CLASS = 3
# In at least this many rows, the column must differ from its most frequent number. A
# column is not a label if it marks a word that all texts of a small class contain.
FEWEST_UNUSUAL = 20
# The number of rows that are compared first, spread over the table.
FIRST_ROWS = 2048
# Logits below this are masks.
MASK = -1e3
# Maximum number of columns that a remedy names.
MOST_NAMED = 3


def check_no_leak(
    values: NDArray[np.floating],
    labels: NDArray[np.number],
    name: str,
    *,
    classes: bool,
) -> None:
    """Refuse a column that has the same number in all rows of a class.

    Such a column may be one-hot labels, standardised labels or a target encoding. Only
    the classes with two rows or more are judged; in these, the column must have at
    least two different numbers. A table in which no column varies within a class is not
    refused, and neither is one that holds only 0 and 1.

    Args:
        values: Scores or embeddings, shape (n, columns).
        labels: Shape (n,).
        name: Name of the values in messages.
        classes: Whether the columns belong to classes. Their numbers may then be masked
            or saturated.
    """
    rows, columns = values.shape
    if rows < FEW_ROWS or columns < 2 or labels.shape != (rows,):
        return
    # A few rows show for almost every table that no column is made from the labels.
    spread = np.linspace(0, rows - 1, min(rows, FIRST_ROWS)).astype(np.int64)
    found = _made_from(values, labels, spread, np.arange(columns), classes=classes)
    if len(found) and len(spread) < rows:
        found = _made_from(values, labels, np.arange(rows), found, classes=classes)
    # In a table of bits, such as indicators of words, such a column may be genuine.
    if not len(found) or bool(((values == 0) | (values == 1)).all()):
        return
    shown = ", ".join(map(str, found[:MOST_NAMED]))
    these = f"column {shown}" if len(found) == 1 else f"columns {shown}"
    if len(found) > MOST_NAMED:
        these += f" and {len(found) - MOST_NAMED} more"
    raise ArgumentError(
        f"{name} hold the labels: column {found[0]} has the same value in all rows of "
        "a class, so it was made from the labels",
        f"Remove {these}.",
    )


def _made_from(
    values: NDArray[np.floating],
    labels: NDArray[np.number],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    *,
    classes: bool,
) -> NDArray[np.int64]:
    """The `columns` that the labels seem to determine in the `rows`."""
    none = columns[:0]
    different, first, numbers, counts = np.unique(
        labels[rows], return_index=True, return_inverse=True, return_counts=True
    )
    judged = counts > 1
    rows_of_judged = int(counts[judged].sum())
    if (
        judged.sum() < 2
        or rows_of_judged < FEW_ROWS
        or rows_of_judged < ROWS_PER_CLASS * judged.sum()
    ):
        return none
    constant = _constant_in_classes(values, rows, rows[first][numbers], columns)
    if len(constant) == values.shape[1]:
        return none
    firsts = rows[first[judged]]
    weights = counts[judged]
    found = []
    for column in constant[_varies(values, firsts, constant)]:
        numbers_of_classes = values[firsts, column]
        is_score = np.ones(len(firsts), dtype=np.bool_)
        if classes:
            is_score = numbers_of_classes > MASK
        kinds, kind_of_class = np.unique(
            numbers_of_classes[is_score], return_inverse=True
        )
        rows_of_kinds = np.bincount(kind_of_class, weights[is_score])
        if len(kinds) < 2 or rows_of_kinds.sum() - rows_of_kinds.max() < FEWEST_UNUSUAL:
            continue
        own = is_score & (different[judged] == column)
        if classes and _is_saturated(values, numbers_of_classes, own, is_score):
            continue
        found.append(column)
    return np.array(found, np.int64)


def _constant_in_classes(
    values: NDArray[np.floating],
    rows: NDArray[np.int64],
    firsts: NDArray[np.int64],
    columns: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The `columns` in which each of the `rows` equals the first row of its class."""
    others = rows != firsts
    rows, firsts = rows[others], firsts[others]
    start = 0
    while start < len(rows) and len(columns):
        # Few rows suffice to rule out most columns. A larger block would copy more.
        end = start + max(1, CHUNK // (8 * len(columns)))
        block = np.ix_(rows[start:end], columns)
        of_firsts = np.ix_(firsts[start:end], columns)
        columns = columns[(values[block] == values[of_firsts]).all(axis=0)]
        start = end
    return columns


def _varies(
    values: NDArray[np.floating],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """For each of the `columns`, whether its numbers differ between the `rows`."""
    varies = np.zeros(len(columns), dtype=np.bool_)
    for row in rows[1:]:
        varies |= values[row, columns] != values[rows[0], columns]
    return varies


def _is_saturated(
    values: NDArray[np.floating],
    column: NDArray[np.floating],
    own: NDArray[np.bool_],
    is_score: NDArray[np.bool_],
) -> bool:
    """Whether a column may be the clipped scores of a class that is always recognised.

    The column then has the table's largest number in the rows of its own class, and the
    table's smallest number in all other rows.

    Args:
        values: Shape (n, columns).
        column: The column's number in each class.
        own: Whether each class is the column's own.
        is_score: Whether each class has a score in the column, not a mask.
    """
    if not own.any():
        return False
    largest = values.max()
    smallest = values.min(initial=largest, where=values > MASK)
    others = column[is_score & ~own]
    return bool((column[own] == largest).all() and (others == smallest).all())

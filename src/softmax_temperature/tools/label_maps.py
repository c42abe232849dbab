"""Rows of users' logits and labels: one per sample or pixel that has a class."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmax_temperature.tools.arrays import as_numpy

IGNORE_INDEX = -100  # As in torch's cross-entropy.
Labelled = tuple[NDArray[Any], NDArray[Any]]


def labelled_rows(
    logits: Any, labels: Any, ignore_index: int, *, name: str = ""
) -> Labelled:
    """Logits (n, classes, ...) and labels (n, ...) as a table with one row per label,
    without the rows whose label is `ignore_index`.

    Tables stay tables, and their labels may be one-hot. Raises ValueError if no row has
    a class, or the labels of maps have another shape.
    """
    values = as_numpy(logits)
    classes = as_numpy(labels)
    if values.ndim > 2:
        expected = (values.shape[0], *values.shape[2:])
        if classes.shape != expected:
            raise ValueError(
                f"{name}labels must have shape {expected}, one class per pixel of "
                f"{name}logits {values.shape}, got {classes.shape}"
            )
        values = np.moveaxis(values, 1, -1).reshape(-1, values.shape[1])
        classes = classes.reshape(-1)
    one_each = classes.shape in {(len(values),), (len(values), 1)}
    if not one_each or classes.dtype.kind not in "iuf":
        return values, classes
    void = (classes == ignore_index).reshape(-1)
    if not void.any():
        return values, classes
    if void.all():
        raise ValueError(
            f"{name}labels are all {ignore_index}, which stands for no class: give "
            "rows that have one, or another ignore_index"
        )
    return values[~void], classes[~void]

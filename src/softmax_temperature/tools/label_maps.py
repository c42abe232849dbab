"""Tables of users' logits and labels: a row for each sample or pixel with a class."""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softmax_temperature.metrics.checks import ArgumentError, map_remedy
from softmax_temperature.metrics.class_axis import check_axes
from softmax_temperature.tools.arrays import as_numpy

# The label that torch's cross-entropy ignores by default.
IGNORE_INDEX = -100
Labelled = tuple[NDArray[Any], NDArray[Any]]


def labelled_rows(
    logits: Any, labels: Any, ignore_index: int, *, name: str = ""
) -> Labelled:
    """Turn logits and labels into tables, without the rows labelled `ignore_index`.

    Args:
        logits: Shape (n, classes, ...).
        labels: One label per sample or pixel, shape (n, ...); one-hot labels are
            allowed if the logits are a table.
        ignore_index: Label of rows without a class.
        name: Prefix of the arguments' names in messages.

    Returns:
        Logits (rows, classes) and labels (rows,). If the labels are one-hot, both are
        returned unchanged.

    Raises:
        ValueError: If no row has a class, or label maps have a wrong shape.
    """
    values = as_numpy(logits)
    classes = as_numpy(labels)
    if values.ndim > 2:
        check_map_labels(values, classes, name=name)
        values = np.moveaxis(values, 1, -1).reshape(-1, values.shape[1])
        classes = classes.reshape(-1)
    one_each = classes.shape in {(len(values),), (len(values), 1)}
    if not one_each or classes.dtype.kind not in "iuf":
        return values, classes
    void = (classes == ignore_index).reshape(-1)
    if not void.any():
        return values, classes
    if void.all():
        raise ArgumentError(
            f"{name}labels are all {ignore_index}, the ignored label",
            "Give rows that have a class, or another ignore_index.",
        )
    return values[~void], classes[~void]


def check_map_labels(
    logits: NDArray[Any], labels: NDArray[Any], *, name: str = ""
) -> None:
    """Raise unless `labels` has one class per pixel of logits (n, classes, ...)."""
    expected = (logits.shape[0], *logits.shape[2:])
    tables, rows = logits.shape[:2]
    if logits.ndim == 3 and labels.shape in ((rows,), (rows, tables)) != expected:
        only = "" if labels.ndim == 1 else " and labels[:, k]"
        raise ArgumentError(
            f"{name}logits hold {tables} tables of shape {logits.shape[1:]} for "
            f"{name}labels {labels.shape}, as those of a classifier with several "
            "outputs, or of several views of the same rows",
            f"Give one table with the labels of its output, such as logits[k]{only}.",
        )
    if labels.shape != expected:
        raise ArgumentError(
            f"{name}labels must have shape {expected}, one class per pixel of "
            f"{name}logits {logits.shape}, got {labels.shape}",
            _remedy(labels, logits.shape),
        )
    # Axes of equal length may be in a different order.
    lengths = labels.shape[1:]
    may_differ = labels.shape == logits.shape[:-1] or len(set(lengths)) < len(lengths)
    if may_differ and {logits.dtype.kind, labels.dtype.kind} <= set("fiu"):
        check_axes(
            _writable(labels),
            _writable(logits),
            names=(f"{name}labels", f"{name}logits"),
        )


def _writable(values: NDArray[Any]) -> Tensor:
    """Convert an array of numbers to a tensor; copy it only if torch requires that."""
    narrow = values.dtype in (np.float16, np.float32)
    dtype = values.dtype if narrow else np.float64
    if min(values.strides, default=0) < 0:
        values = np.ascontiguousarray(values)
    return torch.from_numpy(np.require(values, dtype, "W"))


def _remedy(labels: NDArray[Any], logits: tuple[int, ...]) -> str:
    """The remedy to give if `labels` are not one class per pixel."""
    samples, middle, last = (*logits[:2], math.prod(logits[2:]))
    shape = labels.shape
    if len(logits) == 3 and shape == (samples * middle,) != (samples * last,):
        return f"Join the batches: logits.reshape(-1, {last})."
    if shape == (samples,):
        return "Give logits of shape (n, classes), such as the mean of several views."
    return map_remedy(labels, logits, single=True)

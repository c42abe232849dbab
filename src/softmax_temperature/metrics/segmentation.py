"""How well every pixel of an image was classified (cooling paper, section 4.4)."""

from __future__ import annotations

import torch
from torch import Tensor

from softmax_temperature.metrics.checks import check_count


def confusion_matrix(predictions: Tensor, labels: Tensor, *, classes: int, void: int | None = None) -> Tensor:
    """Count the pixels of each class by their predicted class; matrices of several batches add up.

    Args:
        predictions: Classes, integers in [0, classes), any shape.
        labels: True classes, the same shape, integers in [0, classes) or `void`.
        classes: Number of classes, at least 2.
        void: Label of pixels that are left out, whatever was predicted there; None for no such label.

    Returns:
        Shape (classes, classes), int64: rows are true classes, columns predictions.

    Raises:
        ValueError: If a shape or dtype disagrees, or a class is out of range.
    """
    check_count(classes, "classes", least=2)
    if void is not None and 0 <= void < classes:
        raise ValueError(f"void must not be one of the {classes} classes, got {void}")
    for values, name in ((predictions, "predictions"), (labels, "labels")):
        if values.is_floating_point() or values.is_complex() or values.dtype == torch.bool:
            raise ValueError(f"{name} must be integers, got {values.dtype}")
    if predictions.shape != labels.shape:
        shapes = f"{tuple(labels.shape)}, got {tuple(predictions.shape)}"
        raise ValueError(f"predictions must have the shape of labels, {shapes}")
    kept = torch.ones_like(labels, dtype=torch.bool) if void is None else labels != void
    rows, columns = labels[kept].long(), predictions[kept].long()
    for found, name in ((rows, "labels"), (columns, "predictions")):
        wrong = found[(found < 0) | (found >= classes)]
        if len(wrong):
            raise ValueError(f"{name} must be in [0, {classes}), got {wrong[0].item()}")
    return torch.bincount(rows * classes + columns, minlength=classes**2).view(classes, classes)


def intersection_over_union(confusion: Tensor) -> Tensor:
    """Of each class, the pixels that are of it and were predicted as it, over those that are either.

    Shape (classes,), float64; NaN for a class that neither labels nor predictions have. Raises ValueError if the
    confusion matrix is not square or counts nothing.
    """
    counts = _counts(confusion)
    both = counts.diagonal()
    return both / (counts.sum(0) + counts.sum(1) - both)


def mean_intersection_over_union(confusion: Tensor) -> Tensor:
    """Mean of `intersection_over_union` over the classes that labels or predictions have (section 4.4, mIoU)."""
    return intersection_over_union(confusion).nanmean()


def pixel_accuracy(confusion: Tensor) -> Tensor:
    """Share of the pixels that were predicted right, a fraction; arguments and errors as above."""
    counts = _counts(confusion)
    return counts.trace() / counts.sum()


def _counts(confusion: Tensor) -> Tensor:
    if confusion.ndim != 2 or confusion.shape[0] != confusion.shape[1]:
        raise ValueError(f"confusion must have shape (classes, classes), got {tuple(confusion.shape)}")
    if not confusion.sum() > 0:
        raise ValueError("confusion must count at least one pixel, got none")
    return confusion.double()

"""How well every pixel of an image was classified (cooling paper, section 4.4)."""

import torch
from torch import Tensor

from softmax_temperature.metrics.checks import check_count


def confusion_matrix(predictions: Tensor, labels: Tensor, *, classes: int, void: int | None = None) -> Tensor:
    """Count the pixels of each class by their predicted class: shape (classes, classes), int64, rows true classes.

    Predictions and labels are integers of one shape in [0, classes); labels may also be `void`, which leaves the pixel
    out. Matrices of several batches add up. Raises ValueError if an argument is not so.
    """
    check_count(classes, "classes", least=2)
    if predictions.shape != labels.shape or predictions.is_floating_point():
        given = f"{predictions.dtype} {tuple(predictions.shape)}"
        raise ValueError(f"predictions must be integers of shape {tuple(labels.shape)}, got {given}")
    kept = torch.ones_like(labels, dtype=torch.bool) if void is None else labels != void
    rows, columns = labels[kept].long(), predictions[kept].long()
    for found, name in ((rows, "labels"), (columns, "predictions")):
        wrong = found[(found < 0) | (found >= classes)]
        if len(wrong):
            raise ValueError(f"{name} must be in [0, {classes}), got {wrong[0].item()}")
    return torch.bincount(rows * classes + columns, minlength=classes**2).view(classes, classes)


def mean_intersection_over_union(confusion: Tensor) -> Tensor:
    """Mean over the classes that labels or predictions have of the share of pixels in both among those in either."""
    counts = confusion.double()
    both = counts.diagonal()
    return (both / (counts.sum(0) + counts.sum(1) - both)).nanmean()


def pixel_accuracy(confusion: Tensor) -> Tensor:
    """Share of the pixels that were predicted right."""
    counts = confusion.double()
    return counts.trace() / counts.sum()

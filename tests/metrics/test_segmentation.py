"""Scores of pixels: scikit-learn's, without the pixels that have no class."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics
from torch import Tensor

from softmax_temperature.metrics.segmentation import confusion_matrix, mean_intersection_over_union, pixel_accuracy

VOID = 255


def maps(seed: int, classes: int, void_share: float = 0.2, shape: tuple[int, ...] = (2, 5, 4)) -> tuple[Tensor, Tensor]:
    """Predictions and labels; the last class occurs in neither."""
    generator = torch.Generator().manual_seed(seed)
    predictions, labels = torch.randint(max(1, classes - 1), (2, *shape), generator=generator)
    labels[torch.rand(shape, generator=generator) < void_share] = VOID
    return predictions, labels.to(torch.uint8)


@given(st.integers(0, 10_000), st.integers(2, 7), st.floats(0, 0.9))
def test_all_scores_are_scikit_learns(seed: int, classes: int, void_share: float) -> None:
    predictions, labels = maps(seed, classes, void_share)
    kept = labels != VOID
    if not kept.any():
        return
    truth, predicted = labels[kept].numpy(), predictions[kept].numpy()
    confusion = confusion_matrix(predictions, labels, classes=classes, void=VOID)
    assert np.array_equal(confusion, sklearn_metrics.confusion_matrix(truth, predicted, labels=range(classes)))
    mean = sklearn_metrics.jaccard_score(truth, predicted, labels=np.union1d(truth, predicted), average="macro")
    assert mean_intersection_over_union(confusion).item() == pytest.approx(mean, rel=1e-14)
    accuracy = sklearn_metrics.accuracy_score(truth, predicted)
    assert pixel_accuracy(confusion).item() == pytest.approx(accuracy, rel=1e-14)


def test_scores_by_hand() -> None:
    labels = torch.tensor([[0, 0, 1], [1, VOID, VOID]], dtype=torch.uint8)
    predictions = torch.tensor([[0, 1, 1], [1, 2, 0]])
    confusion = confusion_matrix(predictions, labels, classes=4, void=VOID)
    assert confusion.tolist() == [[1, 1, 0, 0], [0, 2, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    # Class 2 was predicted where nothing counts, class 3 nowhere.
    assert mean_intersection_over_union(confusion).item() == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert pixel_accuracy(confusion).item() == 3 / 4


def test_bad_input_is_refused_by_name() -> None:
    predictions, labels = maps(0, 3)
    for some, classes, message in (
        (predictions, 2, r"labels must be in \[0, 2\)"),
        (predictions, 1, "classes must be an integer of at"),
        (predictions + 3, 3, r"predictions must be in \[0, 3\)"),
        (predictions[:1], 3, r"predictions must be integers of shape \(2, 5, 4\), got"),
        (predictions.float(), 3, "predictions must be integers of shape"),
    ):
        with pytest.raises(ValueError, match=message):
            confusion_matrix(some, labels.clamp(max=2) if classes == 2 else labels, classes=classes, void=VOID)

"""Scores of predictions and pixels match scikit-learn and hand-worked values."""

import math
import warnings
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import brier_score_loss, log_loss, top_k_accuracy_score
from torch import Tensor, nn

from softmax_temperature import Cooling, TemperatureScaler, calibrate, metrics
from softmax_temperature.metrics.scores import (
    confusion_matrix,
    mean_intersection_over_union,
    pixel_accuracy,
)
from softmax_temperature.scaling import fit_temperature, temperature_interval


def drawn(samples: int = 700, classes: int = 8) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    logits = 2 * torch.randn(samples, classes, generator=generator, dtype=torch.float64)
    return logits, torch.multinomial(
        torch.softmax(logits, dim=1), 1, generator=generator
    ).squeeze(1)


def test_scores_equal_those_of_scikit_learn() -> None:
    logits, labels = drawn()
    probs = torch.softmax(logits, dim=1)
    everything = np.arange(8)
    assert metrics.negative_log_likelihood(logits, labels).item() == pytest.approx(
        log_loss(labels, probs)
    )
    assert metrics.brier_score(probs, labels).item() == pytest.approx(
        brier_score_loss(labels, probs, labels=everything, scale_by_half=False)
    )
    for top in (1, 2, 5):
        theirs = top_k_accuracy_score(labels, logits, k=top, labels=everything)
        assert metrics.top_accuracy(logits, labels, top=top).item() == pytest.approx(
            theirs
        )
    assert (
        metrics.top_accuracy(logits, labels, top=1).item()
        == (logits.argmax(1) == labels).double().mean().item()
    )


def test_scores_by_hand() -> None:
    logits, labels = (
        torch.tensor([[math.log(3), 0.0], [0.0, 0.0]]),
        torch.tensor([0, 1]),
    )
    # The labels have probabilities 3/4 and 1/2.
    assert metrics.negative_log_likelihood(logits, labels).item() == pytest.approx(
        -math.log(0.375) / 2, abs=1e-7
    )
    # The squared distances are 2 * (1/4)^2 and 2 * (1/2)^2.
    probs = torch.tensor([[0.75, 0.25], [0.5, 0.5]])
    assert metrics.brier_score(probs, labels).item() == (0.125 + 0.5) / 2


def test_the_first_of_equal_logits_is_the_prediction() -> None:
    logits, labels = torch.zeros(4, 4), torch.arange(4)
    assert metrics.top_accuracy(logits, labels, top=1).item() == 0.25
    assert [
        metrics.top_accuracy(logits, labels, top=top).item() for top in (2, 3, 4, 9)
    ] == [0.5, 0.75, 1, 1]


def test_rows_far_apart_and_large_logits_stay_finite() -> None:
    # If the softmax subtracted the largest logit of the whole table instead of the
    # row's, it would underflow.
    logits = torch.tensor([[1000.0, 1001.0], [0.0, 1.0], [-1e4, 1e4]])
    value = metrics.negative_log_likelihood(logits, torch.tensor([1, 1, 0])).item()
    assert value == pytest.approx((2 * math.log1p(math.exp(-1)) + 2e4) / 3)


VOID = 255


def maps(
    seed: int, classes: int, void_share: float = 0.2, shape: tuple[int, ...] = (2, 5, 4)
) -> tuple[Tensor, Tensor]:
    """Predictions and labels; neither contains the last class."""
    generator = torch.Generator().manual_seed(seed)
    predictions, labels = torch.randint(
        max(1, classes - 1), (2, *shape), generator=generator
    )
    labels[torch.rand(shape, generator=generator) < void_share] = VOID
    return predictions, labels.to(torch.uint8)


@given(st.integers(0, 10_000), st.integers(2, 7), st.floats(0, 0.9))
def test_scores_of_pixels_are_scikit_learns(
    seed: int, classes: int, void_share: float
) -> None:
    predictions, labels = maps(seed, classes, void_share)
    kept = labels != VOID
    if not kept.any():
        return
    truth, predicted = labels[kept].numpy(), predictions[kept].numpy()
    confusion = confusion_matrix(predictions, labels, classes=classes, void=VOID)
    assert np.array_equal(
        confusion,
        sklearn_metrics.confusion_matrix(truth, predicted, labels=range(classes)),
    )
    mean = sklearn_metrics.jaccard_score(
        truth, predicted, labels=np.union1d(truth, predicted), average="macro"
    )
    assert mean_intersection_over_union(confusion).item() == pytest.approx(
        mean, rel=1e-14
    )
    accuracy = sklearn_metrics.accuracy_score(truth, predicted)
    assert pixel_accuracy(confusion).item() == pytest.approx(accuracy, rel=1e-14)


def test_scores_of_pixels_by_hand() -> None:
    labels = torch.tensor([[0, 0, 1], [1, VOID, VOID]], dtype=torch.uint8)
    predictions = torch.tensor([[0, 1, 1], [1, 2, 0]])
    confusion = confusion_matrix(predictions, labels, classes=4, void=VOID)
    assert confusion.tolist() == [
        [1, 1, 0, 0],
        [0, 2, 0, 0],
        [0, 0, 0, 0],
        [0, 0, 0, 0],
    ]
    # Class 2 was predicted only on ignored pixels, and class 3 never.
    assert mean_intersection_over_union(confusion).item() == pytest.approx(
        (1 / 2 + 2 / 3) / 2
    )
    assert pixel_accuracy(confusion).item() == 3 / 4


def test_bad_input_is_refused_by_name() -> None:
    logits, labels = drawn(6, 3)[0], torch.arange(6) % 3
    for call, message in (
        (
            lambda: metrics.negative_log_likelihood(logits - math.inf, labels),
            "be finite, got -inf",
        ),
        (lambda: metrics.top_accuracy(logits, labels + 3), "labels must be in"),
        (
            lambda: metrics.brier_score(torch.softmax(logits, 1) * 0.99, labels),
            "rows that sum to one",
        ),
        (
            lambda: metrics.top_accuracy(logits, labels, top=0),
            "top must be an integer of at least 1, got 0",
        ),
        (
            lambda: confusion_matrix(labels, labels, classes=2),
            r"labels must be in \[0, 2\)",
        ),
        (
            lambda: confusion_matrix(labels + 3, labels, classes=3),
            r"predictions must be in \[0, 3\)",
        ),
        (
            lambda: confusion_matrix(labels[:1], labels, classes=3),
            r"predictions must be integers of shape \(6,\), got",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize(("void", "wraps_to"), [(-1, 255), (-100, 156), (256, 0)])
def test_a_narrow_label_is_not_the_void_that_it_wraps_to(
    void: int, wraps_to: int
) -> None:
    labels = torch.tensor([wraps_to, 1, 1], dtype=torch.uint8)
    confusion = confusion_matrix(labels, labels, classes=256, void=void)
    assert confusion.sum() == 3
    assert confusion[wraps_to, wraps_to] == 1


def masked(samples: int = 300) -> tuple[Tensor, Tensor]:
    """Logits with up to seven masked classes per sample, and labels on the others."""
    logits, labels = drawn(samples)
    mask = torch.rand(logits.shape, generator=torch.Generator().manual_seed(3)) < 0.5
    mask[:2] = True  # Only the label's class is not masked.
    mask.scatter_(1, labels[:, None], False)
    return logits.masked_fill(mask, -math.inf), labels


def test_masked_classes_score_as_absent_ones() -> None:
    logits, labels = masked()
    losses = []
    ranks = []
    for row, label in zip(logits, labels.tolist(), strict=True):
        left = row.isfinite()
        place = int(left[:label].sum())
        losses.append(-row[left].log_softmax(dim=0)[place].item())
        ranks.append(int((row[left] > row[label]).sum()))
    likelihood = metrics.negative_log_likelihood(logits, labels)
    assert likelihood.item() == pytest.approx(sum(losses) / len(losses), rel=1e-12)
    for top in (1, 2, 5):
        found = metrics.top_accuracy(logits, labels, top=top).item()
        assert found == sum(rank < top for rank in ranks) / len(ranks)
    report = metrics.calibration_report(logits, labels)
    assert report["negative_log_likelihood"] == pytest.approx(likelihood.item())
    assert report["accuracy"] == metrics.top_accuracy(logits, labels, top=1).item()


def test_scores_that_a_mask_leaves_undefined_are_refused_in_one_line() -> None:
    logits, labels = masked()
    on_mask = labels.clone()
    row = int(logits.isneginf().any(dim=1).int().argmax())
    on_mask[row] = int(logits[row].isneginf().int().argmax())
    nothing = logits.clone()
    nothing[5] = -math.inf
    for score in (metrics.negative_log_likelihood, metrics.top_accuracy):
        with pytest.raises(ValueError, match=f"masked class.*row {row}.*leave such"):
            score(logits, on_mask)
        with pytest.raises(ValueError, match=r"got -inf in row 5.*not all, classes"):
            score(nothing, labels)


@pytest.mark.parametrize(
    "score",
    [
        metrics.negative_log_likelihood,
        metrics.top_accuracy,
        metrics.calibration_report,
        metrics.confident_report,
        fit_temperature,
        lambda logits, labels: temperature_interval(logits, labels, 1.0),
        lambda logits, labels: Cooling(nn.Linear(2, 8)).cool(logits, labels),
        lambda logits, labels: calibrate(logits, labels, bootstrap=0),
        lambda logits, labels: TemperatureScaler().fit(logits.numpy(), labels.numpy()),
    ],
)
def test_labels_that_count_from_1_are_refused_without_their_last_class(
    score: Callable[[Tensor, Tensor], object],
) -> None:
    logits, labels = drawn()
    some = labels < 7
    with pytest.raises(ValueError, match=r"from 1 to 7 agree .*Subtract 1: column c"):
        score(logits[some], labels[some] + 1)
    # Class 0 may be missing from the labels, even if the model predicts hardly any
    # other class.
    later = labels > 0
    score(logits[later], labels[later])
    collapsed = logits[later] + torch.tensor([9.0] + 7 * [0.0])
    with warnings.catch_warnings():
        # The scaler warns that most predictions are of a class that no label has.
        warnings.simplefilter("ignore", ConvergenceWarning)
        score(collapsed, labels[later])


def scores_of(predicted: Tensor, classes: int) -> Tensor:
    """Logits that are largest for the predicted class."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.rand(len(predicted), classes, generator=generator)
    return noise.double() + 2 * torch.nn.functional.one_hot(predicted, classes)


@pytest.mark.parametrize("accuracy", [0.6, 0.8, 0.99])
@pytest.mark.parametrize(
    ("classes", "rows"), [(3, 300), (5, 400), (10, 500), (100, 700), (1000, 5000)]
)
def test_off_by_one_labels_of_a_decent_model_are_refused(
    classes: int, rows: int, accuracy: float
) -> None:
    generator = torch.Generator().manual_seed(classes)
    for _ in range(5):
        labels = torch.randint(classes - 1, (rows,), generator=generator)
        labels[0] = 0
        wrong = labels + torch.randint(1, classes, (rows,), generator=generator)
        right = torch.rand(rows, generator=generator) < accuracy
        predicted = torch.where(right, labels, wrong % classes)
        scores = scores_of(predicted, classes)
        metrics.top_accuracy(scores, labels)
        with pytest.raises(ValueError, match=r"if they count from 1\. Subtract 1"):
            metrics.top_accuracy(scores, labels + 1)


def lesions(recall: float) -> tuple[Tensor, Tensor]:
    """Predictions and labels of two classes; most missed pixels are predicted as 0."""
    generator = torch.Generator().manual_seed(round(100 * recall))
    labels = 1 + (torch.rand(3000, generator=generator) < 0.3).long()
    missed = torch.rand(3000, generator=generator) > recall
    other = (labels == 2) & (torch.rand(3000, generator=generator) < 0.4)
    return torch.where(missed, other.long(), labels), labels


def ordinal(low: int, high: int, shift: float, slope: float) -> tuple[Tensor, Tensor]:
    """Predictions (mostly too low) and labels (`low` to `high`) of ordered classes."""
    generator = torch.Generator().manual_seed(high)
    labels = torch.randint(low, high + 1, (600,), generator=generator)
    noise = 0.5 * torch.randn(600, generator=generator)
    estimates = (slope * labels + noise - shift).round().long()
    return estimates.clamp(0, high), labels


def confused(prior: float) -> tuple[Tensor, Tensor]:
    """Predictions and labels of two classes that the model often takes for class 0."""
    generator = torch.Generator().manual_seed(0)
    labels = 1 + (torch.rand(1000, generator=generator) < 0.1).long()
    others = torch.randint(3, (1000,), generator=generator)
    frequent = torch.rand(1000, generator=generator) < prior
    return torch.where(frequent, 0, others), labels


@pytest.mark.parametrize(
    ("predicted", "labels", "classes"),
    [
        *((*lesions(recall), 3) for recall in (0.1, 0.2, 0.3, 0.35, 0.4, 0.6)),
        (*ordinal(2, 9, 1.0, 1.0), 10),
        (*ordinal(1, 9, 0.5, 1.0), 10),
        (*ordinal(1, 3, 0.2, 0.6), 4),
        (*confused(0.8), 3),
        (*confused(1.0), 3),
    ],
)
def test_labels_of_a_poor_model_without_class_0_are_read_as_they_are(
    predicted: Tensor, labels: Tensor, classes: int
) -> None:
    scores = scores_of(predicted, classes)
    expected = (predicted == labels).double().mean().item()
    assert expected < 0.65
    accuracy = metrics.top_accuracy(scores, labels, top=1)
    assert float(accuracy) == pytest.approx(expected)
    fit_temperature(scores, labels)
    Cooling(nn.Linear(2, classes)).cool(scores, labels)
    calibrate(scores, labels, bootstrap=0, fit_on="all")

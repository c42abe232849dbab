"""Rows that a sampler with replacement drew are named; equal scores are accepted."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from softmax_temperature import TemperatureScaler, calibrate, metrics
from softmax_temperature.scaling import fit_temperature
from softmax_temperature.tools.oversampled_rows import oversampled

Drawn = tuple[NDArray[Any], NDArray[Any]]


def rare_class(rows: int = 2000, classes: int = 2) -> Drawn:
    """Logits of which class 1 is rare, and labels; the right temperature is 1.8."""
    generator = np.random.default_rng(0)
    logits = 1.5 * generator.normal(size=(rows, classes))
    logits[:, 1] -= 4
    labels = (logits + generator.gumbel(size=logits.shape)).argmax(1)
    return 1.8 * logits, labels


def balanced(labels: NDArray[Any]) -> NDArray[Any]:
    """Rows as WeightedRandomSampler draws them, each class equally often."""
    weights = 1 / np.bincount(labels)[labels]
    generator = np.random.default_rng(1)
    return generator.choice(len(labels), len(labels), p=weights / weights.sum())


def filled_up(labels: NDArray[Any]) -> NDArray[Any]:
    """All rows, and copies until the classes are equally frequent."""
    generator = np.random.default_rng(1)
    counts = np.bincount(labels)
    more = [
        generator.choice(np.flatnonzero(labels == number), counts.max() - count)
        for number, count in enumerate(counts)
    ]
    return np.concatenate([np.arange(len(labels)), *more])


def bootstrapped(labels: NDArray[Any]) -> NDArray[Any]:
    return np.random.default_rng(1).integers(0, len(labels), len(labels))


@pytest.mark.parametrize("draw", [balanced, filled_up, bootstrapped])
@pytest.mark.parametrize("classes", [2, 5])
def test_rows_drawn_with_replacement_are_named(draw: Any, classes: int) -> None:
    logits, labels = rare_class(classes=classes)
    chosen = draw(labels)
    rows = (logits[chosen], labels[chosen])
    repeats = len(chosen) - len(np.unique(chosen))
    said = f"{repeats} of the {len(chosen)} rows are exact copies"
    for fit_on in ("half", "all"):
        report = calibrate(*rows, fit_on=fit_on, bootstrap=0)
        assert report.data["verdict"].startswith(said)
        assert "no sampler with replacement" in report.data["verdict"]
        assert report.data["advice"] == "leave"
    with pytest.warns(ConvergenceWarning, match=said):
        TemperatureScaler().fit(*rows)
    with pytest.warns(ConvergenceWarning, match=said):
        TemperatureScaler(criterion="ece").fit(*map(torch.tensor, rows))


def test_validation_rows_drawn_with_replacement_are_named_as_such() -> None:
    logits, labels = rare_class(4000)
    chosen = balanced(labels[:2000])
    drawn = (logits[chosen], labels[chosen])
    rest = (logits[2000:], labels[2000:])
    verdict = calibrate(*rest, validation=drawn, bootstrap=0).data["verdict"]
    assert "validation rows are exact copies" in verdict
    verdict = calibrate(*drawn, validation=rest, bootstrap=0).data["verdict"]
    assert "of the 2000 rows are exact copies" in verdict


def test_metrics_accept_the_resamples_of_a_bootstrap() -> None:
    logits, labels = map(torch.tensor, rare_class())
    chosen = torch.tensor(bootstrapped(labels.numpy()))
    report = metrics.calibration_report(logits[chosen], labels[chosen])
    assert report["samples"] == 2000
    fit = fit_temperature(logits[chosen], labels[chosen])
    assert fit.temperature == pytest.approx(1.8, abs=0.4)


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(min_samples_leaf=5, random_state=0),
        RandomForestClassifier(20, random_state=0),
        KNeighborsClassifier(10),
        LogisticRegression(),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("levels", [3, 8])
@pytest.mark.parametrize("noise", [0, 1])
def test_samples_with_equal_scores_are_no_copies(
    model: Any, levels: int, noise: int
) -> None:
    generator = np.random.default_rng(0)
    features = np.round(generator.normal(size=(6000, 4)) * levels / 4)
    scores = features @ generator.normal(size=(4, 3)) * 4 / levels
    # Even without noise, the labels are not linear in the features.
    scores += features[:, :1] * features[:, 1:2] * generator.normal(size=3)
    scores += noise * generator.gumbel(size=scores.shape)
    labels = scores.argmax(1)
    probs = model.fit(features[:3000], labels[:3000]).predict_proba(features[3000:])
    logits = torch.tensor(np.log(probs.clip(1e-6)))
    assert len(np.unique(logits, axis=0)) < 0.75 * len(logits)
    assert oversampled([(logits, torch.tensor(labels[3000:]))]) == ""


def test_rounded_scores_and_frequent_messages_are_no_copies() -> None:
    logits, labels = map(torch.tensor, rare_class())
    assert oversampled([(logits.round(), labels)]) == ""
    # Some messages are far more frequent than others, and always have the same label.
    frequencies = 1 / np.arange(1, 2001)
    generator = np.random.default_rng(2)
    chosen = generator.choice(2000, 3000, p=frequencies / frequencies.sum())
    assert oversampled([(logits[chosen], labels[chosen])]) == ""


def test_a_few_samples_that_occur_twice_are_no_copies() -> None:
    logits, labels = map(torch.tensor, rare_class())
    chosen = torch.cat([torch.arange(2000), torch.arange(500)])
    assert oversampled([(logits[chosen], labels[chosen])]) == ""


def test_pixels_of_the_same_colour_are_no_copies() -> None:
    logits, labels = map(torch.tensor, rare_class(400, classes=3))
    chosen = torch.tensor(bootstrapped(labels.numpy()))
    maps = logits[chosen].reshape(4, 10, 10, 3).movedim(-1, 1)
    of_pixels = labels[chosen].reshape(4, 10, 10)
    verdict = calibrate(maps, of_pixels, bootstrap=0).data["verdict"]
    assert "copies" not in verdict
    TemperatureScaler().fit(maps, of_pixels)

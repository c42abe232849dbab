"""Rows whose scores were sorted are refused if their labels were not updated."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from softmax_temperature import TemperatureScaler, calibrate
from softmax_temperature.metrics.calibration import expected_calibration_error
from softmax_temperature.metrics.checks import ArgumentError
from softmax_temperature.metrics.class_order import check_class_order
from softmax_temperature.runner.errors import InputError
from softmax_temperature.scaling import fit_temperature, temperature_interval
from softmax_temperature.tools.calibrate import calibrate_files

Numbers = NDArray[Any]
Drawn = tuple[Numbers, Numbers]
SORTED = re.compile(
    r"^(validation )?labels do not fit scores whose rows are all sorted"
)


def balanced(classes: int, rows: int = 1500, scale: float = 3.0) -> Drawn:
    """Logits that are calibrated at the temperature 1.7, and labels."""
    generator = np.random.default_rng(classes)
    logits = scale * generator.normal(size=(rows, classes))
    noise = generator.gumbel(size=logits.shape)
    return logits, (logits / 1.7 + noise).argmax(axis=1)


def frequent(classes: int, share: float, rows: int = 3000) -> Drawn:
    """Logits and labels of a model; the first class has the frequency `share`."""
    generator = np.random.default_rng(classes)
    others = generator.integers(1, classes, rows)
    labels = np.where(generator.uniform(size=rows) < share, 0, others)
    seen = 2 * np.eye(classes)[labels] + generator.normal(size=(rows, classes))
    prior = np.r_[share, np.full(classes - 1, (1 - share) / (classes - 1))]
    return 1.8 * (2 * seen + np.log(prior)), labels


def digits() -> Drawn:
    """Logits of a logistic regression on digits in three classes, and labels.

    One of the classes has 80 % of the images.
    """
    images, of_images = load_digits(return_X_y=True)
    labels = np.where(of_images == 0, 2, np.where(of_images == 1, 1, 0))
    model = LogisticRegression(C=100, max_iter=3000).fit(images[:500], labels[:500])
    return model.decision_function(images[500:]), labels[500:]


CASES = {
    "3 classes": balanced(3, rows=500),
    "10 classes": balanced(10),
    "100 classes": balanced(100, rows=3000, scale=6),
    "frequent, of 3": frequent(3, 0.75),
    "frequent, of 5": frequent(5, 0.7),
    "frequent, of 20": frequent(20, 0.7),
    "digits": digits(),
}


def sorted_rows(logits: Numbers, labels: Numbers, *, rising: bool = False) -> Drawn:
    """The logits of each row in falling or rising order, and the labels' positions."""
    order = np.argsort(logits if rising else -logits, axis=1)
    positions = (order == labels[:, None]).argmax(axis=1)
    return np.take_along_axis(logits, order, axis=1), positions


@pytest.mark.parametrize("rising", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_sorted_rows_with_the_original_labels_are_refused_wherever_labels_meet_scores(
    case: str, rising: bool
) -> None:
    logits, labels = CASES[case]
    table, _ = sorted_rows(logits, labels, rising=rising)
    tensor, numbers = torch.from_numpy(table), torch.from_numpy(labels)

    with pytest.raises(ArgumentError, match=SORTED):
        calibrate(table, labels, bootstrap=0)
    with pytest.raises(ArgumentError, match=SORTED):
        TemperatureScaler().fit(table, labels)
    with pytest.raises(ArgumentError, match=SORTED):
        fit_temperature(tensor, numbers)
    with pytest.raises(ArgumentError, match=SORTED):
        temperature_interval(tensor, numbers, 2.0)
    with pytest.raises(ArgumentError, match=SORTED):
        expected_calibration_error(torch.softmax(tensor, 1), numbers)
    with pytest.raises(ArgumentError, match=SORTED):
        calibrate(logits, labels, validation=(table, labels), bootstrap=0)


@pytest.mark.parametrize("rising", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_positions_in_sorted_rows_give_the_same_temperature_as_the_original_rows(
    case: str, rising: bool
) -> None:
    logits, labels = CASES[case]
    table, positions = sorted_rows(logits, labels, rising=rising)
    expected = TemperatureScaler().fit(logits, labels).temperature_

    found = TemperatureScaler().fit(table, positions).temperature_

    assert found == pytest.approx(expected, rel=1e-5)


def test_positions_of_a_model_with_noisy_labels_are_accepted() -> None:
    logits, labels = balanced(10, rows=20_000, scale=4)
    generator = np.random.default_rng(0)
    noisy = generator.uniform(size=len(labels)) < 0.2
    labels = np.where(noisy, generator.integers(0, 10, len(labels)), labels)

    table, positions = sorted_rows(logits, labels)

    expected = fit_temperature(torch.from_numpy(logits), torch.from_numpy(labels))
    found = fit_temperature(torch.from_numpy(table), torch.from_numpy(positions))
    assert found.temperature == pytest.approx(expected.temperature, rel=1e-5)


@pytest.mark.parametrize("seed", range(20))
def test_positions_of_a_calibrated_model_are_accepted_at_any_confidence(
    seed: int,
) -> None:
    generator = np.random.default_rng(seed)
    classes = int(generator.integers(3, 30))
    scale = float(generator.choice([0.5, 1, 2, 5, 10]))
    logits = scale * generator.normal(size=(1000, classes))
    labels = (logits + generator.gumbel(size=logits.shape)).argmax(axis=1)
    table, positions = sorted_rows(logits, labels)

    check_class_order(torch.from_numpy(positions), torch.from_numpy(table))


@pytest.mark.parametrize("spread", [0, 0.1, 0.2])
def test_a_model_whose_biases_happen_to_be_sorted_is_not_refused(spread: float) -> None:
    generator = np.random.default_rng(0)
    logits = spread * generator.normal(size=(500, 3)) + [2.0, 1.0, 0.0]
    labels = generator.integers(0, 3, 500)
    assert (np.diff(logits) <= 0).all()

    check_class_order(torch.from_numpy(labels), torch.from_numpy(logits))


def test_a_model_of_equal_logits_is_not_refused() -> None:
    check_class_order(torch.arange(300) % 3, torch.zeros(300, 3))


def test_a_model_that_always_predicts_one_class_is_not_refused() -> None:
    generator = np.random.default_rng(0)
    logits = generator.normal(size=(500, 4)) + np.array([9, 0, 0, 0])
    labels = generator.integers(0, 4, 500)
    assert (logits.argmax(axis=1) == 0).all()

    check_class_order(torch.from_numpy(labels), torch.from_numpy(logits))


def test_few_sorted_rows_are_not_judged() -> None:
    logits, labels = balanced(10)
    table, _ = sorted_rows(logits, labels)

    check_class_order(torch.from_numpy(labels[:49]), torch.from_numpy(table[:49]))


def test_sorted_rows_in_files_are_refused_with_a_remedy(tmp_path: Path) -> None:
    logits, labels = CASES["digits"]
    table, _ = sorted_rows(logits, labels)
    np.savez(tmp_path / "sorted.npz", logits=table, labels=labels)

    with pytest.raises(InputError, match=r"in falling order.*network returns them"):
        calibrate_files(tmp_path / "sorted.npz", output=tmp_path / "report")

"""Cumulative scores of ordinal models are refused; honest sorted rows are not."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import expit as sigmoid
from scipy.special import softmax

from softmax_temperature import TemperatureScaler, calibrate
from softmax_temperature.tools.arrays import checked_logits
from softmax_temperature.tools.ordinal_scores import are_ordinal, check_not_ordinal

THRESHOLDS = np.array([-3.0, -1, 1, 3])


def coral(rows: int = 800, seed: int = 5) -> tuple[Any, Any]:
    """Logits of "the grade is above k", shape (rows, 4), and grades from 0 to 4."""
    generator = np.random.default_rng(seed)
    scores = 3 * generator.normal(size=(rows, 1))
    grades = (scores + generator.logistic(size=(rows, 1)) > THRESHOLDS).sum(axis=1)
    return scores - THRESHOLDS, grades


def class_logits(cumulative: Any) -> Any:
    return np.log(-np.diff(sigmoid(cumulative), axis=1, prepend=1, append=0))


@pytest.mark.parametrize("sign", [1, -1])
def test_logits_without_rows_of_the_highest_grade_are_refused(sign: int) -> None:
    logits, grades = coral()
    low = grades < 4
    verb = "fall" if sign == 1 else "rise"
    message = f"logits {verb} from column to column in every row, as those of an ordin"
    given = sign * logits[low], grades[low]
    with pytest.raises(ValueError, match=message):
        calibrate(*given)
    with pytest.raises(ValueError, match=message):
        TemperatureScaler().fit(*given)
    with pytest.raises(ValueError, match=message):
        TemperatureScaler().fit(*map(torch.tensor, given))
    with pytest.raises(ValueError, match=f"validation {message}"):
        calibrate(class_logits(logits)[:, :4], grades % 4, validation=given)


@pytest.mark.parametrize("sign", [1, -1])
def test_logits_that_lack_the_highest_grade_have_the_ordinal_remedy(sign: int) -> None:
    logits, grades = coral()
    for call in (
        lambda: calibrate(sign * logits, grades),
        lambda: TemperatureScaler().fit(sign * logits, grades),
        lambda: TemperatureScaler().fit(torch.tensor(sign * logits), grades),
    ):
        with pytest.raises(ValueError, match="ordinal model, without a column") as info:
            call()
        assert "ignore_index" not in str(info.value)
        steps = "(-np.diff" if sign == 1 else "(np.diff"
        assert f"Give one logit per class: np.log{steps}" in str(info.value)


def test_the_remedy_gives_a_calibrated_model() -> None:
    logits, grades = coral()
    assert TemperatureScaler().fit(
        class_logits(logits), grades
    ).temperature_ == pytest.approx(0.944, abs=1e-3)
    rising = np.log(np.diff(sigmoid(-logits), axis=1, prepend=0, append=1))
    np.testing.assert_allclose(rising, class_logits(logits), atol=1e-6)


def test_cumulative_probabilities_are_not_divided_by_their_sum() -> None:
    logits, grades = coral()
    at_most = np.c_[sigmoid(-logits), np.ones(len(logits))]
    above = sigmoid(logits)
    expected = {
        "These are cumulative. Give one probability per class: "
        "np.diff(probs, axis=1, prepend=0).": at_most,
        "These are cumulative. Give one probability per class: "
        "-np.diff(probs, axis=1, append=0).": 1 - np.c_[0 * grades, at_most[:, :4]],
        "If these are cumulative, as those of an ordinal model, give one probability "
        "per class: -np.diff(probs, axis=1, prepend=1, append=0).": above,
    }
    for remedy, probs in expected.items():
        with pytest.raises(ValueError, match="sum to one") as info:
            calibrate(probs, grades, kind="probs")
        assert remedy in str(info.value)
    found = calibrate(np.diff(at_most, prepend=0), grades, kind="probs", bootstrap=0)
    assert found.temperature == pytest.approx(0.984, abs=1e-3)


@pytest.mark.parametrize("call", [calibrate, TemperatureScaler().fit])
def test_cumulative_probabilities_are_not_logits(call: Any) -> None:
    logits, grades = coral()
    at_most = np.c_[sigmoid(-logits), np.ones(len(logits))]
    message = r"are cumulative .* rises to 1\. Give one logit per class: np\.log\(np\.d"
    with pytest.raises(ValueError, match=message):
        call(at_most, grades)
    with pytest.raises(
        ValueError, match=r"of an ordinal model.*np\.log\(-np\.diff\(pr"
    ):
        call(sigmoid(logits), grades)


def test_other_rows_of_probabilities_keep_their_remedy() -> None:
    generator = np.random.default_rng(0)
    probs = generator.dirichlet([30, 8, 1], size=200)
    probs = -np.sort(-probs, axis=1)
    labels = (probs.cumsum(axis=1) < generator.random((200, 1))).sum(axis=1)
    with pytest.raises(ValueError, match=r"row 0\. Divide each row by its sum\."):
        calibrate(50 * probs, labels, kind="probs")
    report = calibrate(probs, labels, kind="probs", bootstrap=0)
    assert report.data["metrics"]["before"]["accuracy"] > 0.5


def sorted_rows(generator: np.random.Generator, rows: int, classes: int) -> Any:
    """Logits that fall along each row, because the classes' frequencies do."""
    frequencies = np.sort(generator.dirichlet(np.ones(classes)))[::-1] + 1e-3
    noise = generator.normal(size=(rows, classes))
    logits = np.log(frequencies) + generator.choice([0.02, 0.1, 0.3]) * noise
    return logits[(np.diff(logits, axis=1) < 0).all(axis=1)]


@pytest.mark.parametrize("rows", [60, 300, 2000])
def test_classifiers_that_always_predict_the_most_frequent_class_pass(
    rows: int,
) -> None:
    judged = 0
    for seed in range(40):
        generator = np.random.default_rng(seed)
        logits = sorted_rows(generator, rows, int(generator.integers(3, 7)))
        if len(logits) < 20:
            continue
        levels = 3 * generator.normal(size=(len(logits), 1))
        labels = (softmax(logits, 1).cumsum(1) > generator.random((len(logits), 1))) * 1
        for right in (labels.argmax(1), generator.integers(3, size=len(logits))):
            for table in (logits, logits + levels, logits + 5, 2 * logits - 9):
                check_not_ordinal(torch.tensor(right), torch.tensor(table), "logits")
                judged += 1
    assert judged > 100


def test_labels_that_are_positions_in_sorted_rows_pass() -> None:
    for seed in range(5):
        generator = np.random.default_rng(seed)
        logits = 3 * generator.normal(size=(800, 6))
        probs = softmax(logits / 2, 1)
        labels = (probs.cumsum(1) > generator.random((800, 1))).argmax(1)
        order = np.argsort(-logits, axis=1)
        ordered = np.take_along_axis(logits, order, 1)
        table, numbers = checked_logits(ordered, (order == labels[:, None]).argmax(1))
        np.testing.assert_array_equal(table, ordered)
        assert len(numbers) == 800


def test_a_label_without_a_column_keeps_its_remedy_beside_sorted_rows() -> None:
    generator = np.random.default_rng(1)
    logits = np.array([4.0, 2, 0]) + 0.1 * generator.normal(size=(300, 3))
    labels = generator.integers(4, size=300)
    for call in (calibrate, TemperatureScaler().fit):
        with pytest.raises(ValueError, match=r"pass ignore_index=3\.$"):
            call(logits, labels)


def test_few_rows_and_rows_of_equal_scores_are_not_judged() -> None:
    logits, grades = coral(19)
    assert not are_ordinal(torch.tensor(grades), torch.tensor(logits))
    assert not are_ordinal(torch.arange(40) % 4, torch.zeros(40, 4))
    masked = torch.tensor([0.0, -1, -torch.inf]).repeat(40, 1)
    assert not are_ordinal(torch.arange(40) % 2, masked)

"""Scores with one column per pair of classes are refused.

Scores with one column per class are accepted.
"""

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.datasets import load_digits, make_classification
from sklearn.svm import SVC
from torch import nn

from softmax_temperature import Cooling, TemperatureScaler, calibrate, metrics
from softmax_temperature.metrics.pair_columns import check_not_pairs, pair_classes
from softmax_temperature.scaling import fit_temperature

Numbers = NDArray[Any]
PAIRS = r"the pairs of \d+ classes.*Give one column per class"


def decisions(classes: int, shape: str) -> tuple[Numbers, Numbers]:
    """Scores of a support vector machine for half of the digits, and their labels."""
    inputs, labels = load_digits(n_class=classes, return_X_y=True)
    half = len(labels) // 2
    machine = SVC(decision_function_shape=shape).fit(inputs[:half], labels[:half])
    return machine.decision_function(inputs[half:]), labels[half:]


def of_tensors(function: Callable[..., Any]) -> Callable[[Numbers, Numbers], Any]:
    return lambda scores, labels: function(torch.tensor(scores), torch.tensor(labels))


@pytest.mark.parametrize(
    "call",
    [
        lambda scores, labels: calibrate(scores, labels, bootstrap=0),
        lambda scores, labels: TemperatureScaler().fit(scores, labels),
        of_tensors(fit_temperature),
        of_tensors(metrics.negative_log_likelihood),
        of_tensors(
            lambda scores, labels: Cooling(nn.Linear(2, scores.shape[1])).cool(
                scores, labels
            )
        ),
    ],
)
@pytest.mark.parametrize("classes", [3, 4, 5, 10])
def test_votes_of_pairs_are_refused(
    classes: int, call: Callable[[Numbers, Numbers], Any]
) -> None:
    scores, labels = decisions(classes, "ovo")
    assert scores.shape[1] == classes * (classes - 1) // 2
    for sign in (1, -1):  # Libraries differ in which class a positive vote favours.
        with pytest.raises(ValueError, match=PAIRS):
            call(sign * scores, labels)
    call(*decisions(classes, "ovr"))


def test_votes_of_a_weak_machine_are_refused() -> None:
    for seed in range(3):
        inputs, labels = make_classification(
            900, 12, n_informative=8, n_classes=6, random_state=seed
        )
        machine = SVC(decision_function_shape="ovo").fit(inputs[:450], labels[:450])
        assert machine.score(inputs[450:], labels[450:]) < 0.75
        scores = machine.decision_function(inputs[450:])
        with pytest.raises(ValueError, match=PAIRS):
            TemperatureScaler().fit(scores, labels[450:])


def test_votes_of_pairs_are_refused_if_labels_are_names() -> None:
    scores, labels = decisions(4, "ovo")
    with pytest.raises(ValueError, match=r"4 different labels \(a, b, c, d\).*'ovr'"):
        TemperatureScaler().fit(scores, np.array(list("abcd"))[labels])


def test_numbers_of_pairs_give_the_number_of_classes() -> None:
    expected = {k * (k - 1) // 2: k for k in range(3, 50)}
    found = {columns: pair_classes(columns) for columns in range(2, 1200)}
    assert {columns: k for columns, k in found.items() if k} == expected


@pytest.mark.parametrize("columns", [3, 6, 10, 45])
def test_models_of_classes_are_not_refused(columns: int) -> None:
    classes = pair_classes(columns)
    assert classes is not None
    for seed in range(20):
        generator = np.random.default_rng(seed)
        logits = 3 * generator.normal(size=(300, columns))
        seen = logits[:, :classes] / generator.choice([0.5, 1, 3])
        right = (seen + generator.gumbel(size=seen.shape)).argmax(axis=1)
        later = logits.copy()
        later[:, classes:] += 6  # A network that has forgotten its first classes.
        biased = logits + 4 * generator.normal(size=columns)
        frequent = np.where(generator.random(300) < 0.8, 0, right)
        least = logits[:, :classes].argmin(axis=1)
        random = generator.integers(classes, size=300)
        for scores in (logits, later, biased, np.maximum(logits, 0)):
            for labels in (right, frequent, least, random):
                check_not_pairs(torch.tensor(labels), torch.tensor(scores))
                few = generator.integers(300, size=25)
                check_not_pairs(torch.tensor(labels[few]), torch.tensor(scores[few]))


def test_three_classes_in_another_order_are_not_taken_for_pairs() -> None:
    generator = np.random.default_rng(0)
    logits = 3 * generator.normal(size=(300, 3))
    labels = (logits + generator.gumbel(size=logits.shape)).argmax(axis=1)
    for order in permutations(range(3)):
        check_not_pairs(torch.tensor(labels), torch.tensor(logits[:, order]))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.uint16, torch.int32])
def test_the_type_of_the_labels_does_not_matter(dtype: torch.dtype) -> None:
    scores, labels = map(torch.tensor, decisions(4, "ovo"))
    with pytest.raises(ValueError, match=PAIRS):
        check_not_pairs(labels.to(dtype), scores)
    check_not_pairs(labels.to(dtype), scores[:, :4])

"""Each objective is the loss that it is named after."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from softmax_temperature.losses import make_objective, objective_names
from softmax_temperature.runner.errors import InputError

Rows = list[tuple[list[float], int]]


def batch(count: int = 40, classes: int = 5) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(count, classes, generator=generator, dtype=torch.float64)
    return logits, torch.randint(classes, (count,), generator=generator)


def cross_entropy(probs: list[float], label: int) -> float:
    return -math.log(probs[label])


def brier(probs: list[float], label: int) -> float:
    return sum((p - (number == label)) ** 2 for number, p in enumerate(probs))


def smoothed(mass: float) -> Callable[..., float]:
    def loss(probs: list[float], label: int) -> float:
        others = [math.log(p) for number, p in enumerate(probs) if number != label]
        return -(1 - mass) * math.log(probs[label]) - mass * sum(others) / len(others)

    return loss


def focal(gamma: Callable[[float], float]) -> Callable[..., float]:
    def loss(probs: list[float], label: int) -> float:
        p = probs[label]
        return -math.pow(1 - p, gamma(p)) * math.log(p)

    return loss


def mean(loss: Callable[..., float]) -> Callable[[Rows], float]:
    return lambda rows: sum(loss(probs, label) for probs, label in rows) / len(rows)


def tempered(inverse_temperature: float) -> Callable[..., float]:
    def loss(probs: list[float], label: int) -> float:
        powers = [p**inverse_temperature for p in probs]
        return -math.log(powers[label] / sum(powers))

    return loss


def with_mmce(weight: float) -> Callable[[Rows], float]:
    """Cross-entropy plus the distance of two kernel means, over all pairs."""

    def loss(rows: Rows) -> float:
        tops = [(max(probs), int(np.argmax(probs)) == label) for probs, label in rows]
        right = sum(is_right for _, is_right in tops)
        # What is missing to a right one's confidence pulls up, what a wrong one has pulls down.
        pulls = [(r, (1 - r) / right if is_right else -r / (len(rows) - right)) for r, is_right in tops]
        square = sum(a * b * math.exp(-abs(r - s) / 0.4) for r, a in pulls for s, b in pulls)
        return mean(cross_entropy)(rows) + weight * math.sqrt(square)

    return loss


def below(*steps: tuple[float, float], above: float) -> Callable[[float], float]:
    return lambda p: next((gamma for threshold, gamma in steps if p < threshold), above)


LOSSES: list[tuple[str, dict[str, Any], Callable[[Rows], float]]] = [
    ("cross_entropy", {}, mean(cross_entropy)),
    ("brier", {}, mean(brier)),
    ("label_smoothing", {}, mean(smoothed(0.05))),
    ("label_smoothing", {"smoothing": 0.2}, mean(smoothed(0.2))),
    ("label_smoothing", {"smoothing": 0.6}, mean(smoothed(0.6))),
    ("focal", {"gamma": 0.0}, mean(cross_entropy)),
    ("focal", {"gamma": 3.0}, mean(focal(lambda _: 3.0))),
    ("tempered_cross_entropy", {"inverse_temperature": 1.0}, mean(cross_entropy)),
    ("tempered_cross_entropy", {"inverse_temperature": 0.3}, mean(tempered(0.3))),
    ("mmce", {}, with_mmce(2.0)),
    ("mmce", {"weight": 0.0}, mean(cross_entropy)),
    ("mmce", {"weight": 5.0}, with_mmce(5.0)),
    ("sample_dependent_focal", {}, mean(focal(below((0.2, 5.0), above=3.0)))),
    ("sample_dependent_focal", {"policy": "532"}, mean(focal(below((0.2, 5.0), (0.5, 3.0), above=2.0)))),
    ("scheduled_focal", {"gammas": [4.0], "milestones": []}, mean(focal(lambda _: 4.0))),
]


@pytest.mark.parametrize(("name", "options", "expected"), LOSSES)
def test_each_is_the_loss_it_names(name: str, options: dict[str, Any], expected: Callable[[Rows], float]) -> None:
    logits, labels = batch()
    probs = torch.softmax(logits, dim=1).tolist()
    objective = make_objective(name, options)
    value = objective(logits, labels, 0.0)
    assert value.item() == pytest.approx(expected(list(zip(probs, labels.tolist(), strict=True))), rel=1e-9)
    assert all(torch.equal(objective(logits, labels, position), value) for position in (1.5, 349.9))


def test_every_loss_is_tested() -> None:
    assert {name for name, _, _ in LOSSES} == set(objective_names())


def test_scheduled_focal_loss_changes_at_its_milestones() -> None:
    logits, labels = batch()
    changing = make_objective("scheduled_focal", {"gammas": [5.0, 3.0, 1.0], "milestones": [100, 250]})
    for position, gamma in ((0, 5), (99.99, 5), (100, 3), (249.99, 3), (250, 1), (350, 1)):
        expected = make_objective("focal", {"gamma": float(gamma)})(logits, labels, 0.0)
        assert torch.equal(changing(logits, labels, position), expected)


def test_an_unknown_loss_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r"loss 'fokal': no such loss\. Did you mean 'focal'\?"):
        make_objective("fokal", {})


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("cross_entropy", {"gamma": 1.0}, "gamma"),
        ("focal", {}, "gamma"),
        ("focal", {"gamma": -1.0}, "gamma must be finite and at least 0, got -1.0"),
        ("focal", {"gamma": "3"}, "gamma"),
        ("mmce", {"as_released": "yes"}, "as_released must be true or false"),
        ("mmce", {"weight": -1.0}, "weight must be finite and at least 0, got -1.0"),
        ("label_smoothing", {"smoothing": 1.0}, "smoothing"),
        ("sample_dependent_focal", {"policy": "35"}, "'53', '532'"),
        ("scheduled_focal", {"gammas": [5.0, 3.0]}, "milestones"),
        ("scheduled_focal", {"gammas": [5.0, 3.0], "milestones": [1, 2]}, "gammas"),
        ("scheduled_focal", {"gammas": [5.0, 3.0, 1.0], "milestones": [250, 100]}, "milestones must ascend"),
        ("scheduled_focal", {"gammas": [5.0, -3.0], "milestones": [100]}, "gamma"),
    ],
)
def test_a_wrong_option_is_refused_before_any_training(name: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=rf"loss '{name}': does not take the options .*{says}.*Correct `options`"):
        make_objective(name, options)

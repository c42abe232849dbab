"""Learning rates, by hand and as torch's own schedulers give them."""

import math
from typing import Any

import pytest
import torch

from softmax_temperature.params.recipe import Schedule
from softmax_temperature.training import learning_rate_factor

NAMES = ("constant", "steps", "linear", "exponential", "cosine")


def schedule(name: str, **values: Any) -> Schedule:
    return Schedule.model_validate({"name": name, "milestones": [150.0, 250.0], "factor": 0.1, **values})


@pytest.mark.parametrize(
    ("name", "position", "expected"),
    [
        ("constant", 349.9, 1.0),
        ("steps", 0, 1.0),
        ("steps", 149.99, 1.0),
        ("steps", 150, 0.1),  # A milestone is the first epoch with the next rate.
        ("steps", 250, 0.01),
        ("steps", 349.9, 0.01),
        ("linear", 0, 1.0),
        ("linear", 87.5, 0.75),
        ("exponential", 0, 1.0),
        ("exponential", 175, 0.316228),  # The square root of 0.1.
        ("cosine", 0, 1.0),
        ("cosine", 175, 0.5),
        ("cosine", 350 / 3, 0.75),  # (1 + cos 60°) / 2.
    ],
)
def test_the_factor_by_hand(name: str, position: float, expected: float) -> None:
    assert learning_rate_factor(schedule(name), position, 350) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_a_warm_up_rises_from_zero_and_then_is_gone(name: str) -> None:
    cold, warm = schedule(name), schedule(name, warmup=20.0)
    assert learning_rate_factor(warm, 0, 350) == 0
    assert learning_rate_factor(warm, 5, 350) == pytest.approx(learning_rate_factor(cold, 5, 350) / 4)
    for position in (20, 151, 349):
        assert learning_rate_factor(warm, position, 350) == learning_rate_factor(cold, position, 350)


@pytest.mark.parametrize("warmup", [4.0, 0.68])
def test_the_inverse_square_root_is_that_of_vaswani_et_al(warmup: float) -> None:
    # Section 5.3: min(step^-0.5, step * warmup_steps^-1.5), here over its value where the warm-up ends.
    inverse = Schedule.model_validate({"name": "inverse_square_root", "warmup": warmup})
    for step in (1, 300, 3999, 4000, 4001, 16_000, 99_999):
        position = step * warmup / 4000
        expected = min(step**-0.5, step * 4000**-1.5) * 4000**0.5
        assert learning_rate_factor(inverse, position, 25 * warmup) == pytest.approx(expected)
    assert learning_rate_factor(inverse, 4 * warmup, 25 * warmup) == pytest.approx(0.5)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("position", [-1e-9, 10, 11, math.nan])
def test_a_position_outside_the_training_is_refused(name: str, position: float) -> None:
    with pytest.raises(ValueError, match="position"):
        learning_rate_factor(schedule(name), position, 10)


@pytest.mark.parametrize("name", ["steps", "linear", "exponential", "cosine"])
def test_whole_epochs_are_those_of_torch(name: str) -> None:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    rates: dict[str, Any] = {
        "steps": lambda: torch.optim.lr_scheduler.MultiStepLR(optimizer, [4, 9], gamma=0.3),
        "linear": lambda: torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=12),
        "exponential": lambda: torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.3 ** (1 / 12)),
        "cosine": lambda: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12),
    }
    theirs = rates[name]()
    for epoch in range(12):
        ours = learning_rate_factor(schedule(name, milestones=[4.0, 9.0], factor=0.3), epoch, 12)
        assert ours == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-9)
        optimizer.step()
        theirs.step()

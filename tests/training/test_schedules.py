"""Learning rates, by hand and as torch's own schedulers give them."""

from typing import Any

import pytest
import torch

from softmax_temperature.params.recipe import Schedule
from softmax_temperature.training import learning_rate_factor


def schedule(name: str, **values: Any) -> Schedule:
    return Schedule.model_validate({"name": name, "milestones": [4.0, 9.0], "factor": 0.3, **values})


@pytest.mark.parametrize("name", ["constant", "steps", "linear", "exponential", "cosine"])
def test_whole_epochs_are_those_of_torch_and_a_warm_up_rises_from_zero(name: str) -> None:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    rates: dict[str, Any] = {
        "constant": lambda: torch.optim.lr_scheduler.ConstantLR(optimizer, 1.0),
        "steps": lambda: torch.optim.lr_scheduler.MultiStepLR(optimizer, [4, 9], gamma=0.3),
        "linear": lambda: torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=12),
        "exponential": lambda: torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.3 ** (1 / 12)),
        "cosine": lambda: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12),
    }
    theirs = rates[name]()
    for epoch in range(12):
        ours, warm = (learning_rate_factor(schedule(name, warmup=warmup), epoch, 12) for warmup in (0.0, 5.0))
        assert ours == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-9)
        assert warm == pytest.approx(ours * min(1, epoch / 5))
        optimizer.step()
        theirs.step()


def test_between_epochs_by_hand() -> None:
    # A milestone is the first epoch with the next rate; the square root of 0.3; (1 + cos 60°) / 2.
    for name, position, expected in (
        ("steps", 3.99, 1.0),
        ("steps", 9.0, 0.09),
        ("linear", 4.5, 0.625),
        ("exponential", 6.0, 0.547723),
        ("cosine", 4.0, 0.75),
    ):
        assert learning_rate_factor(schedule(name), position, 12) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("warmup", [4.0, 0.68])
def test_the_inverse_square_root_is_that_of_vaswani_et_al(warmup: float) -> None:
    # Section 5.3: min(step^-0.5, step * warmup_steps^-1.5), here over its value where the warm-up ends.
    inverse = Schedule.model_validate({"name": "inverse_square_root", "warmup": warmup})
    for step in (1, 300, 3999, 4000, 4001, 16_000, 99_999):
        expected = min(step**-0.5, step * 4000**-1.5) * 4000**0.5
        assert learning_rate_factor(inverse, step * warmup / 4000, 25 * warmup) == pytest.approx(expected)

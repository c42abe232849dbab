"""The controls: a linear model, squared loss in closed form, and networks whose inverse temperature grows."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy.linalg import expm
from torch import Tensor, nn

from softmax_temperature.early_learning.flows import (
    FIT,
    LEARNED,
    TENTH,
    UNIT,
    WHOLE,
    Course,
    Flow,
    Loss,
    Settings,
    follow,
    gradient_flow,
    linearised_flow,
)
from softmax_temperature.early_learning.problem import Problem
from softmax_temperature.early_learning.tangent_kernel import FlatNetwork

MakeNetwork = Callable[..., nn.Module]
CLASSES = 4


class SquaredError:
    """Half the squared distance to the targets: with a fixed kernel, Z - Y decays as exp(-Θ s)."""

    def __init__(self, targets: Tensor) -> None:
        self.targets = targets

    def residual(self, logits: Tensor, rows: slice = slice(None)) -> Tensor:
        return self.targets[rows] - logits

    def mean(self, logits: Tensor) -> float:
        # Without an offset it would learn and end: only the times are of interest.
        return (logits - self.targets).square().sum(dim=1).mean().item() / 2 + 1e6


@pytest.fixture
def inputs() -> Tensor:
    return torch.randn(7, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


def linear(inputs: Tensor, start: Tensor) -> FlatNetwork:
    """A linear model whose logits start as given: its kernel never changes."""
    model = nn.Linear(5, CLASSES, bias=False).double()
    with torch.no_grad():
        model.weight.copy_((torch.linalg.pinv(inputs) @ start).T)
    return FlatNetwork(model, inputs)


def logits_at(flow: Flow, loss: Loss, times: list[float], unit_time: float, tolerance: float = 1e-10) -> list[Tensor]:
    settings = Settings(unit_time, times[-1], tolerance, 100_000)
    course = follow(flow, loss, settings, times=times, observe=lambda _, state: flow.logits(state))
    assert len(course.moments) == len(times)
    return [logits for _, logits in course.moments]


# ---- the integration


class Missing:
    """Of a single logit that approaches 2, the share that is missing."""

    def residual(self, logits: Tensor, rows: slice = slice(None)) -> Tensor:
        return logits[rows]

    def mean(self, logits: Tensor) -> float:
        return 1 - logits.item() / 2


def approached(unit: float = 1.0, *, stop: float = math.inf, **changes: Any) -> Course:
    """A logit from 0 towards 2, by hand: 2 - 2 exp(-s / unit)."""

    def rate(state: Any) -> Any:
        return np.where(state > stop, np.nan, (2 - state) / unit)

    flow = Flow(1, rate, lambda state: torch.tensor(state)[None], torch.tensor)
    values = {"unit_time": unit, "horizon": 20 * unit, "tolerance": 1e-9, "evaluations": 10_000} | changes
    times = [0.001 * unit, unit]
    return follow(flow, Missing(), Settings(**values), times=times, observe=lambda time, state: (time, state.item()))


@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e8])
def test_times_and_events_of_an_exponential_in_any_unit(unit: float) -> None:
    course = approached(unit)
    assert course.ending == "complete"
    assert [time for time, _ in course.moments] == [0.001 * unit, unit]
    for time, (seen, value) in course.moments:
        assert seen == time
        assert value == pytest.approx(2 - 2 * math.exp(-time / unit), abs=1e-7)
    # The change reaches 1, and the loss a half, after log 2; a start at 0 has no change by its own norm.
    expected = {UNIT: math.log(2), FIT: math.log(2), LEARNED: math.log(10)}
    assert {name: time / unit for name, (time, _) in course.crossings.items()} == pytest.approx(expected, rel=1e-7)
    assert course.evaluations < 400


def test_it_ends_at_its_limits() -> None:
    limited = approached(evaluations=30)
    assert limited.ending == "evaluations"
    assert 30 <= limited.evaluations < 50
    assert approached(horizon=1.0).ending == "horizon"
    assert approached(stop=0.5).ending == "failed"


# ---- the flows


@pytest.mark.parametrize("inverse_temperature", [0.01, 100.0])
def test_squared_loss_decays_as_the_kernel_says(inputs: Tensor, inverse_temperature: float) -> None:
    start = inputs @ torch.ones(5, CLASSES, dtype=torch.float64)
    targets = torch.randn(7, CLASSES, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    flat, loss = linear(inputs, start / inverse_temperature), SquaredError(targets)
    kernel, times = flat.kernel(flat.start), [0.01, 0.1, 1.0]
    linearised = linearised_flow(start, lambda weights: flat.kernel_product(flat.start, weights), loss)
    for flow in (gradient_flow(flat, loss, inverse_temperature), linearised):
        for time, found in zip(times, logits_at(flow, loss, times, 0.01), strict=True):
            decay = torch.from_numpy(expm(-kernel.numpy() * time))
            expected = targets.flatten() + decay @ (start - targets).flatten()
            torch.testing.assert_close(found.flatten(), expected, rtol=1e-8, atol=1e-8)


# Each kink of a network with ReLU takes steps of its own, the more the less they may err.
@pytest.mark.parametrize(("name", "tolerance"), [("mlp", 1e-8), ("wide-resnet", 1e-2)])
def test_networks_become_their_linearisation_as_the_inverse_temperature_grows(
    make_problem: Callable[..., Problem], name: str, tolerance: float
) -> None:
    problem = make_problem(name)
    start = problem.start(1.0, 1.0)
    unit = start.scales.unit_time
    times = [unit, 3 * unit]
    expected = logits_at(start.linearised_flow(), problem.loss, times, unit, tolerance)
    distances = []
    for inverse_temperature in (10.0, 1000.0, 100_000.0):
        flow = problem.start(1.0, inverse_temperature).gradient_flow()
        found = logits_at(flow, problem.loss, times, unit, tolerance)
        distances.append([(some - other).norm().item() for some, other in zip(found, expected, strict=True)])
    for column in zip(*distances, strict=True):
        assert list(column) == sorted(column, reverse=True)
        assert column[-1] < 1e-3
        # In proportion to 1 / β where both are small, if no kink is in the way.
        assert column[-1] / column[-2] == pytest.approx(0.01, rel=0.1) or name == "wide-resnet"


def test_events_are_where_the_logits_say(make_problem: Callable[..., Problem]) -> None:
    problem = make_problem()
    start = problem.start(problem.correlation(0.5, 3.0), 3.0)
    flow, settings = start.gradient_flow(), Settings(start.scales.unit_time, 300 * start.scales.unit_time, 1e-7, 20_000)
    course = follow(flow, problem.loss, settings, observe=lambda _, state: flow.logits(state))
    assert course.ending == "complete"
    changes = {name: (logits - start.logits).norm().item() for name, (_, logits) in course.crossings.items()}
    norm = start.logits.norm().item()
    assert [changes[name] for name in (TENTH, WHOLE, UNIT)] == pytest.approx([0.1 * norm, norm, 1.0], rel=1e-6)
    losses = [problem.loss.mean(course.crossings[name][1]) for name in (FIT, LEARNED)]
    first = problem.loss.mean(start.logits)
    assert losses == pytest.approx([first / 2, first / 10], rel=1e-6)
    times = [course.crossings[name][0] for name in (TENTH, WHOLE, UNIT, FIT, LEARNED)]
    assert times == sorted(times)

"""Gradient flows equal closed forms, and approach the linearised flow as β grows."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.linalg import expm
from torch import Tensor, nn

from softmax_temperature.early_learning import flows
from softmax_temperature.early_learning.courses import Start
from softmax_temperature.early_learning.flows import (
    FIT,
    LEARNED,
    UNIT,
    Course,
    Flow,
    Settings,
    integrate,
)
from softmax_temperature.early_learning.tangent_kernel import FlatNetwork

from .conftest import CLASSES, make_problem


class SquaredError:
    """Half the squared distance to the targets.

    With a fixed kernel Θ, the distance of the logits to the targets decays as exp(-Θ
    s).
    """

    def __init__(self, targets: Tensor) -> None:
        self.targets = targets

    def residual(self, logits: Tensor, rows: slice = slice(None)) -> Tensor:
        return self.targets[rows] - logits

    def mean(self, logits: Tensor) -> float:
        # The offset keeps the flow from ending at a small loss; the tests read logits
        # only at given times.
        return (logits - self.targets).square().sum(dim=1).mean().item() / 2 + 1e6


def logits_at(
    flow: Flow,
    loss: Any,
    times: list[float],
    unit_time: float,
    tolerance: float = 1e-10,
) -> list[Tensor]:
    settings = Settings(unit_time, times[-1], tolerance, 100_000)
    course = integrate(
        flow, loss, settings, times=times, observe=lambda _, state: flow.logits(state)
    )
    assert len(course.moments) == len(times)
    return [logits for _, logits in course.moments]


class Missing:
    """A loss for a logit that goes from 0 to 2: the fraction of the distance that is
    left.
    """

    def residual(self, logits: Tensor, rows: slice = slice(None)) -> Tensor:
        return logits[rows]

    def mean(self, logits: Tensor) -> float:
        return 1 - logits.item() / 2


def approached(unit: float = 1.0, *, stop: float = math.inf, **changes: Any) -> Course:
    """Integrate the flow of a logit that is 2 - 2 exp(-s / unit) at time s.

    Where the logit exceeds `stop`, its speed is NaN.
    """

    def rate(state: Any) -> Any:
        return np.where(state > stop, np.nan, (2 - state) / unit)

    flow = Flow(1, rate, lambda state: torch.tensor(state)[None], torch.tensor)
    loss = Missing()
    values = {
        "unit_time": unit,
        "horizon": 20 * unit,
        "tolerance": 1e-9,
        "evaluations": 10_000,
    } | changes
    times = [0.001 * unit, unit]
    return integrate(
        flow,
        loss,
        Settings(**values),
        times=times,
        observe=lambda time, state: (time, state.item()),
    )


@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e8])
def test_times_and_events_of_an_exponential_in_any_unit(unit: float) -> None:
    course = approached(unit)
    assert course.ending == "complete"
    assert [time for time, _ in course.moments] == [0.001 * unit, unit]
    for time, seen in course.moments:
        assert seen == (time, pytest.approx(2 - 2 * math.exp(-time / unit), abs=1e-7))
    # At time log 2, in multiples of `unit`, the logit has changed by 1, and the loss
    # has fallen to 1/2. A logit that starts at 0 has norm 0, so there is no event
    # relative to the norm.
    expected = {UNIT: math.log(2), FIT: math.log(2), LEARNED: math.log(10)}
    assert {
        name: time / unit for name, (time, _) in course.crossings.items()
    } == pytest.approx(expected, rel=1e-7)
    assert course.evaluations < 400


def test_a_flow_ends_at_its_limits() -> None:
    limited = approached(evaluations=30)
    assert limited.ending == "evaluations"
    assert 30 <= limited.evaluations < 50
    assert approached(horizon=1.0).ending == "horizon"
    assert approached(stop=0.5).ending == "failed"


@pytest.mark.parametrize("inverse_temperature", [0.01, 100.0])
def test_squared_loss_decays_as_the_kernel_says(inverse_temperature: float) -> None:
    inputs = torch.randn(
        7, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64
    )
    start = inputs @ torch.ones(5, CLASSES, dtype=torch.float64)
    targets = torch.randn(
        7, CLASSES, generator=torch.Generator().manual_seed(3), dtype=torch.float64
    )
    model = nn.Linear(5, CLASSES, bias=False).double()  # The kernel is constant.
    model.weight.data = (torch.linalg.pinv(inputs) @ start).T / inverse_temperature
    flat = FlatNetwork(model, inputs)
    loss = SquaredError(targets)
    times = [0.01, 0.1, 1.0]
    linearised = flows.linearised_flow(
        start, lambda weights: flat.kernel_product(flat.start, weights), loss
    )
    for flow in (flows.gradient_flow(flat, loss, inverse_temperature), linearised):
        integrated = logits_at(flow, loss, times, 0.01)
        for time, logits in zip(times, integrated, strict=True):
            decay = torch.from_numpy(expm(-flat.kernel(flat.start).numpy() * time))
            expected = targets.flatten() + decay @ (start - targets).flatten()
            torch.testing.assert_close(logits.flatten(), expected, rtol=1e-8, atol=1e-8)


# At each kink of a ReLU network the integrator needs extra steps; the smaller the
# tolerance, the more steps.
@pytest.mark.parametrize(("name", "tolerance"), [("mlp", 1e-8), ("wide-resnet", 1e-2)])
def test_networks_become_their_linearisation_as_the_inverse_temperature_grows(
    name: str, tolerance: float
) -> None:
    problem = make_problem(name)
    start = Start(problem, 1.0, 1.0)
    unit = start.scales.unit_time
    times = [unit, 3 * unit]
    expected = logits_at(start.linearised_flow, problem.loss, times, unit, tolerance)
    distances = []
    for inverse_temperature in (10.0, 1000.0, 100_000.0):
        flow = Start(problem, 1.0, inverse_temperature).gradient_flow
        integrated = logits_at(flow, problem.loss, times, unit, tolerance)
        pairs = zip(integrated, expected, strict=True)
        distances.append([(logits - limit).norm().item() for logits, limit in pairs])
    for column in zip(*distances, strict=True):
        assert list(column) == sorted(column, reverse=True)
        assert column[-1] < 1e-3
        if name == "mlp":
            # For a smooth network, the distance between the logits is proportional to 1
            # / β as long as it is small.
            assert column[-1] / column[-2] == pytest.approx(0.01, rel=0.1)

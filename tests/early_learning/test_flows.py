"""The controls: a linear model, squared loss in closed form, and networks whose inverse temperature grows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.linalg import expm
from torch import Tensor, nn

from softmax_temperature.early_learning.courses import predicted_scales
from softmax_temperature.early_learning.flows import (
    Flow,
    GradientFlow,
    LinearisedFlow,
    Settings,
    State,
    integrate,
    kernel_product,
)
from softmax_temperature.early_learning.problem import Loss, Problem, SoftmaxCrossEntropy, SquaredError
from softmax_temperature.early_learning.tangent_kernel import FlatNetwork, full_kernel

MakeNetwork = Callable[..., nn.Module]
FOUR_DECADES = (0.01, 0.1, 1.0, 10.0, 100.0)
CLASSES = 4


@pytest.fixture
def inputs() -> Tensor:
    return torch.randn(7, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)


@pytest.fixture
def targets() -> Tensor:
    return torch.randn(7, CLASSES, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


@pytest.fixture
def cross_entropy() -> SoftmaxCrossEntropy:
    return SoftmaxCrossEntropy(torch.arange(7) % CLASSES, CLASSES)


def linear(inputs: Tensor, start: Tensor) -> FlatNetwork:
    """A linear model whose logits start as given: its kernel never changes."""
    model = nn.Linear(5, CLASSES, bias=False).double()
    with torch.no_grad():
        model.weight.copy_((torch.linalg.pinv(inputs) @ start).T)
    return FlatNetwork(model, inputs)


def followed(flow: Flow, times: list[float], unit_time: float, tolerance: float = 1e-10) -> list[Tensor]:
    settings = Settings(unit_time, times[-1], tolerance, 100_000)
    course = integrate(flow.rate, flow.size, settings, times=times, observe=lambda _, state: flow.logits(state))
    assert course.ending == "complete"
    return [logits for _, logits in course.moments]


def unit_of(flat: FlatNetwork, loss: Loss, inverse_temperature: float) -> float:
    start = inverse_temperature * flat.logits(flat.start)
    return predicted_scales(start, flat.kernel_product(flat.start, loss.residual(start))).unit_time


@pytest.mark.parametrize("size", [0.0, 0.5, 20.0])
def test_with_a_fixed_kernel_logits_do_not_depend_on_the_inverse_temperature(
    inputs: Tensor, cross_entropy: SoftmaxCrossEntropy, size: float
) -> None:
    drawn = torch.randn(5, CLASSES, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    start = size * inputs @ drawn  # Z_0; the model's own logits are Z_0 / β.
    found = []
    for inverse_temperature in FOUR_DECADES:
        flat = linear(inputs, start / inverse_temperature)
        unit = unit_of(flat, cross_entropy, inverse_temperature)
        flow = GradientFlow(flat, cross_entropy, inverse_temperature)
        found.append(followed(flow, [unit, 10 * unit, 100 * unit], unit))
    for other in found[1:]:
        for some, reference in zip(other, found[0], strict=True):
            torch.testing.assert_close(some, reference, rtol=1e-9, atol=1e-9)
    # They did learn: the test would pass on logits that stay.
    assert cross_entropy.mean(found[0][-1]) < 0.6 * cross_entropy.mean(start)


@pytest.mark.parametrize("inverse_temperature", [0.01, 1.0, 100.0])
def test_squared_loss_decays_as_the_kernel_says(inputs: Tensor, targets: Tensor, inverse_temperature: float) -> None:
    start = inputs @ torch.ones(5, CLASSES, dtype=torch.float64)
    flat, loss = linear(inputs, start / inverse_temperature), SquaredError(targets)
    kernel = full_kernel(flat, flat.start)
    times = [0.01, 0.1, 1.0]
    product = kernel_product(flat)
    flows = (GradientFlow(flat, loss, inverse_temperature), LinearisedFlow(start, product, loss))
    for flow in flows:
        for time, found in zip(times, followed(flow, times, 0.01), strict=True):
            decay = torch.from_numpy(expm(-kernel.numpy() * time))
            expected = targets.flatten() + decay @ (start - targets).flatten()
            torch.testing.assert_close(found.flatten(), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", ["mlp", "convnet", "vgg", "wide-resnet"])
def test_the_linearised_network_has_the_closed_form_of_squared_loss(
    make_network: MakeNetwork, images: Tensor, name: str
) -> None:
    flat = FlatNetwork(make_network(name), images)
    start, kernel = flat.logits(flat.start), full_kernel(flat, flat.start)
    loss = SquaredError(torch.ones(flat.shape, dtype=torch.float64))
    times = [0.1 / kernel.norm().item(), 2 / kernel.norm().item()]
    for product in (kernel_product(flat), kernel_product(flat, kernel)):
        for time, found in zip(times, followed(LinearisedFlow(start, product, loss), times, times[0]), strict=True):
            decay = torch.from_numpy(expm(-kernel.numpy() * time))
            expected = 1 + decay @ (start - 1).flatten()
            torch.testing.assert_close(found.flatten(), expected, rtol=1e-8, atol=1e-8)


def test_one_step_is_one_of_gradient_descent_on_the_loss(
    make_network: MakeNetwork, images: Tensor, labels: Tensor
) -> None:
    """dθ/ds against autograd: θ moves by -η ∇L in time t, and s = β² η t."""
    network, inverse_temperature = make_network("vgg").double().eval(), 0.3
    flow = GradientFlow(FlatNetwork(network, images), SoftmaxCrossEntropy(labels, CLASSES), inverse_temperature)
    total = nn.functional.cross_entropy(inverse_temperature * network(images), labels, reduction="sum")
    gradients = torch.autograd.grad(total, list(network.parameters()))
    descent = -torch.cat([gradient.flatten() for gradient in gradients])
    state = flow.rate(np.zeros(flow.size))
    moved = flow.parameters(state) - flow.parameters(np.zeros(flow.size))
    torch.testing.assert_close(inverse_temperature**2 * moved, descent)


# Each kink of a network with ReLU takes steps of its own, the more the less they may err.
@pytest.mark.parametrize(("name", "tolerance"), [("mlp", 1e-8), ("convnet", 1e-8), ("wide-resnet", 1e-2)])
def test_networks_become_their_linearisation_as_the_inverse_temperature_grows(
    make_problem: Callable[..., Problem], name: str, tolerance: float
) -> None:
    problem = make_problem(name)
    start = problem.start(1.0, 1.0)
    unit = start.scales.unit_time
    times = [unit, 3 * unit]
    expected = followed(start.linearised_flow(), times, unit, tolerance)
    distances = []
    for inverse_temperature in (10.0, 1000.0, 100_000.0):
        flow = problem.start(1.0, inverse_temperature).gradient_flow()
        found = followed(flow, times, unit, tolerance)
        distances.append([(some - other).norm().item() for some, other in zip(found, expected, strict=True)])
    for place in range(len(times)):
        column = [row[place] for row in distances]
        assert column == sorted(column, reverse=True)
        assert column[-1] < 1e-3
        # In proportion to 1 / β where both are small, if no kink is in the way.
        assert column[-1] / column[-2] == pytest.approx(0.01, rel=0.1) or name == "wide-resnet"


def test_logits_of_the_last_look_are_those_of_the_state(make_problem: Callable[..., Problem]) -> None:
    flow = make_problem().start(0.5, 2.0).gradient_flow()
    fresh = make_problem().start(0.5, 2.0).gradient_flow()
    state: State = np.random.default_rng(0).normal(size=flow.size) / 100
    flow.rate(state)
    torch.testing.assert_close(flow.logits(state), fresh.logits(state))
    state += 0.01  # The flow must not have kept the caller's array.
    torch.testing.assert_close(flow.logits(state), fresh.logits(state))


@pytest.mark.parametrize("value", [0.0, -1.0, float("inf")])
def test_inverse_temperatures_that_are_none_are_refused(inputs: Tensor, targets: Tensor, value: float) -> None:
    with pytest.raises(ValueError, match="inverse_temperature must be finite and positive, got"):
        GradientFlow(linear(inputs, targets), SquaredError(targets), value)

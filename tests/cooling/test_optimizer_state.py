"""If parameters are rescaled, the optimizer's state is rescaled with them."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn, optim

from softmax_temperature import cooling

MakeOptimizer = Callable[[list[nn.Parameter]], optim.Optimizer]
OPTIMIZERS: dict[str, MakeOptimizer] = {
    "SGD": lambda parameters: optim.SGD(
        parameters, lr=0.0, momentum=0.9, nesterov=True
    ),
    "SGD with damping": lambda parameters: optim.SGD(
        parameters, lr=0.0, momentum=0.8, dampening=0.1
    ),
    "Adam": lambda parameters: optim.Adam(parameters, lr=0.0, eps=0.1, amsgrad=True),
    "AdamW": lambda parameters: optim.AdamW(parameters, lr=0.0, weight_decay=0.1),
}


def step(
    optimizer: optim.Optimizer, parameter: nn.Parameter, gradient: Tensor, lr: float
) -> None:
    parameter.grad = gradient.clone()
    optimizer.param_groups[0]["lr"] = lr
    optimizer.step()


def history(
    make: MakeOptimizer, start: Tensor, scale: float
) -> tuple[optim.Optimizer, nn.Parameter]:
    """An optimizer after three steps at learning rate 0, and its parameter, which
    equals `scale * start`.
    """
    parameter = nn.Parameter(scale * start)
    optimizer = make([parameter])
    generator = torch.Generator().manual_seed(1)
    for _ in range(3):
        gradient = torch.randn(start.shape, generator=generator, dtype=torch.float64)
        step(optimizer, parameter, gradient / scale, lr=0.0)
    return optimizer, parameter


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_next_step_is_as_if_the_optimizer_had_always_had_the_rescaled_parameter(
    name: str,
) -> None:
    start = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    scale = 0.2
    gradient = torch.tensor([0.3, -0.1, 0.7], dtype=torch.float64)
    expected_optimizer, expected = history(OPTIMIZERS[name], start, scale)
    step(expected_optimizer, expected, gradient / scale, lr=0.1)
    moved = {}
    for policy in ("keep", "rescale"):
        optimizer, parameter = history(OPTIMIZERS[name], start, 1.0)
        with torch.no_grad():
            parameter.mul_(scale)
        cooling.rescale_optimizer_state(optimizer, {parameter: scale}, policy)
        step(optimizer, parameter, gradient / scale, lr=0.1)
        moved[policy] = parameter.detach()
    torch.testing.assert_close(
        moved["rescale"], expected.detach(), rtol=1e-12, atol=1e-12
    )
    assert not torch.allclose(moved["keep"], expected.detach(), rtol=1e-3)


@pytest.mark.parametrize("policy", ["keep", "rescale"])
def test_cooling_carries_the_state_of_the_layers_that_it_scales(
    make_network: Callable[..., nn.Module],
    images: Tensor,
    uncertain_labels: Callable[[Tensor], Tensor],
    policy: str,
) -> None:
    network = make_network("plain")
    held = cooling.Cooling(network, mode="distributed")
    optimizer = optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    logits = network(images)
    logits.square().sum().backward()
    optimizer.step()
    before = {
        parameter: optimizer.state[parameter]["momentum_buffer"].clone()
        for parameter in network.parameters()
    }
    logits = network(images).detach()
    applied = held.cool(
        logits, uncertain_labels(logits), optimizer=optimizer, policy=policy
    )
    powers = cooling.plan_redistribution(network).parameters
    for name, parameter in network.named_parameters():
        power = powers[name] if policy == "rescale" else 0
        expected = before[parameter] * applied**power
        torch.testing.assert_close(
            optimizer.state[parameter]["momentum_buffer"], expected
        )


def test_unknown_policies_and_optimizers_are_refused() -> None:
    parameter = nn.Parameter(torch.ones(2))
    optimizer = optim.Adadelta([parameter])
    cooling.rescale_optimizer_state(optimizer, {parameter: 0.5}, "keep")
    with pytest.raises(
        ValueError, match=r"optimizer must be one of SGD, Adam, AdamW .* got Adadelta"
    ):
        cooling.rescale_optimizer_state(optimizer, {parameter: 0.5}, "rescale")
    with pytest.raises(
        ValueError, match="policy must be 'keep' or 'rescale', got 'reset'"
    ):
        cooling.rescale_optimizer_state(optimizer, {parameter: math.nan}, "reset")


def test_a_policy_without_the_optimizer_whose_state_it_rescales_is_refused() -> None:
    held = cooling.Cooling(torch.nn.Linear(2, 3))
    logits = torch.randn(30, 3, generator=torch.Generator().manual_seed(0))
    with pytest.raises(
        ValueError, match="optimizer must be given for policy 'rescale'"
    ):
        held.cool(logits, torch.arange(30) % 3, policy="rescale")

"""Theorem 3.7 agrees with values worked out by hand; `theory_checks` compares all
statements with autograd.
"""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from softmax_temperature.cooling import theory

MakeNetwork = Callable[..., nn.Module]
TEMPERATURE = 6.0


def test_scale_equivalent_networks_compute_the_same(
    network: nn.Module, images_for: Callable[[nn.Module], Tensor]
) -> None:
    images = images_for(network)
    twin = theory.scale_equivalent(network, TEMPERATURE)
    before = network(images)
    torch.testing.assert_close(twin(images), before, rtol=1e-9, atol=1e-12)
    assert any(
        not torch.equal(value, twin.get_parameter(name))
        for name, value in network.named_parameters()
    )


def test_theorem_3_7_on_a_chain(make_network: MakeNetwork) -> None:
    # Equation 3.3 with β_i = T^(-i/4) for i < 4. The last factor is T^-1, because the
    # logits are divided by T.
    network = make_network("plain")
    beta = [TEMPERATURE ** (-i / 4) for i in range(5)]
    predicted = theory.predicted_gradient_ratios(network, TEMPERATURE)
    relative = theory.predicted_gradient_ratios(network, TEMPERATURE, relative=True)
    for i, path in enumerate(("0", "3", "8", "10")):
        assert predicted[f"{path}.weight"] == pytest.approx(beta[i] / beta[i + 1])
        assert predicted[f"{path}.bias"] == pytest.approx(1 / beta[i + 1])
        assert relative[f"{path}.weight"] == pytest.approx((beta[i] / beta[i + 1]) ** 2)
        assert relative[f"{path}.bias"] == pytest.approx(1 / beta[i + 1] ** 2)

"""Lemma 3.3, Proposition 3.5 and Theorem 3.7 against autograd, in float64."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from softmax_temperature import cooling

MakeNetwork = Callable[..., nn.Module]
SCORING = ["dense", "plain", "plain with batch norm", "CReLU", "residual", "residual with batch norm", "CifarResNet"]
TEMPERATURE = 6.0


@pytest.fixture
def labels(images: Tensor) -> Tensor:
    return torch.arange(len(images)) % 4


def test_scale_equivalent_networks_compute_the_same(
    network: nn.Module, images_for: Callable[[nn.Module], Tensor]
) -> None:
    images = images_for(network)
    twin = cooling.scale_equivalent(network, TEMPERATURE)
    before = network(images)
    torch.testing.assert_close(twin(images), before, rtol=1e-9, atol=1e-12)
    assert any(not torch.equal(value, twin.get_parameter(name)) for name, value in network.named_parameters())


def test_outputs_of_layers_are_scaled_as_lemma_3_3_says(
    network: nn.Module, images_for: Callable[[nn.Module], Tensor]
) -> None:
    predicted = cooling.predicted_output_ratios(network, TEMPERATURE)
    twin = cooling.scale_equivalent(network, TEMPERATURE)
    measured = cooling.measured_output_ratios(network, twin, images_for(network))
    assert measured.keys() == predicted.keys()
    for path, ratio in measured.items():
        assert ratio.value == pytest.approx(predicted[path], rel=1e-9)
        assert ratio.deviation < 1e-8
    # The last layer hands the whole temperature to the division behind it.
    assert list(predicted.values())[-1] == pytest.approx(1 / TEMPERATURE)


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("name", SCORING)
def test_gradients_are_scaled_as_theorem_3_7_says(
    make_network: MakeNetwork, images: Tensor, labels: Tensor, name: str, *, relative: bool
) -> None:
    network = make_network(name)
    predicted = cooling.predicted_gradient_ratios(network, TEMPERATURE, relative=relative)
    twin = cooling.scale_equivalent(network, TEMPERATURE)
    measured = cooling.measured_gradient_ratios(network, twin, images, labels, relative=relative)
    assert measured.keys() == predicted.keys()
    for parameter, ratio in measured.items():
        assert ratio.value == pytest.approx(predicted[parameter], rel=1e-8), parameter
        assert ratio.deviation < 1e-7, parameter


def test_theorem_3_7_on_a_chain(make_network: MakeNetwork) -> None:
    # Equation 3.3 with β_i = T^(-i/4) for i < 4 and, as the division takes the temperature back, T^-1 inside the last.
    network = make_network("plain")
    beta = [TEMPERATURE ** (-i / 4) for i in range(5)]
    predicted = cooling.predicted_gradient_ratios(network, TEMPERATURE)
    relative = cooling.predicted_gradient_ratios(network, TEMPERATURE, relative=True)
    for i, path in enumerate(("0", "3", "8", "10")):
        assert predicted[f"{path}.weight"] == pytest.approx(beta[i] / beta[i + 1])
        assert predicted[f"{path}.bias"] == pytest.approx(1 / beta[i + 1])
        assert relative[f"{path}.weight"] == pytest.approx((beta[i] / beta[i + 1]) ** 2)
        assert relative[f"{path}.bias"] == pytest.approx(1 / beta[i + 1] ** 2)


@pytest.mark.parametrize("name", SCORING)
def test_last_layer_gradients_are_those_of_proposition_3_5(
    make_network: MakeNetwork, images: Tensor, labels: Tensor, name: str
) -> None:
    network = make_network(name)
    held = cooling.Cooling(network)
    held.cool(network(images).detach(), labels)
    network.get_buffer("cooling_temperature").fill_(2.5)
    predicted = cooling.predicted_last_layer_gradients(network, images, labels)
    measured = cooling.measured_gradients(network, images, labels)
    assert predicted.keys() == measured.keys() == dict(network.named_parameters()).keys()
    for parameter, gradient in measured.items():
        torch.testing.assert_close(predicted[parameter], gradient, rtol=1e-9, atol=1e-13)

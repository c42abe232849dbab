"""The smallest networks equal written-out formulas; their initial weights are right."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.networks.small import MLP, ConvNet
from tests.networks.formulas import images, perturbed, weights_and_biases

ACTIVATIONS = pytest.mark.parametrize(
    ("activation", "function"), [("tanh", torch.tanh), ("relu", torch.relu)]
)


@ACTIVATIONS
def test_an_mlp_written_out(
    activation: str, function: Callable[[Tensor], Tensor]
) -> None:
    network = perturbed(MLP(5, (7, 6), activation, 7))
    *layers, (last_weight, last_bias) = weights_and_biases(network)
    hidden = images(3, 7).reshape(3, 147)
    for weight, bias in layers:
        hidden = function(hidden @ weight.T + bias)
    expected = hidden @ last_weight.T + last_bias
    torch.testing.assert_close(network(images(3, 7)), expected)


@ACTIVATIONS
def test_a_small_convolutional_network_written_out(
    activation: str, function: Callable[[Tensor], Tensor]
) -> None:
    network = perturbed(ConvNet(5, (4, 6), activation, 7))
    *layers, (last_weight, last_bias) = weights_and_biases(network)
    maps = images(3, 7)
    for weight, bias in layers:
        # Convolve at every pixel, then keep every second pixel, which equals a stride
        # of 2.
        every_pixel = F.conv2d(maps, weight, bias, padding=1)
        maps = function(every_pixel[:, :, ::2, ::2])
    expected = maps.reshape(3, 6 * 2 * 2) @ last_weight.T + last_bias
    torch.testing.assert_close(network(images(3, 7)), expected)


@pytest.mark.parametrize(("activation", "gain"), [("tanh", 1.0), ("relu", 2.0)])
def test_initial_weights_are_normal_with_the_variance_that_preserves_the_scale(
    activation: str, gain: float
) -> None:
    torch.manual_seed(0)
    network = ConvNet(50, (200, 100), activation, image_size=8)
    fan_ins = (27, 9 * 200, 4 * 100)
    layers = weights_and_biases(network)
    for (weight, bias), fan_in in zip(layers, fan_ins, strict=True):
        assert not bias.any()
        scaled = weight * (fan_in / gain) ** 0.5
        assert scaled.std().item() == pytest.approx(1, rel=0.03)
        # The standardised fourth moment of a normal distribution is 3.
        assert scaled.pow(4).mean().item() == pytest.approx(3, rel=0.1)

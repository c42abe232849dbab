from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature.networks.small_networks import MLP, ConvNet


def images(samples: int, side: int) -> Tensor:
    return torch.randn(samples, 3, side, side, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def tiny_mlp(**arguments: object) -> MLP:
    torch.manual_seed(0)
    return MLP(**{"num_classes": 5, "widths": (7, 6), "image_size": 4} | arguments).double()


def tiny_convnet(**arguments: object) -> ConvNet:
    torch.manual_seed(0)
    return ConvNet(**{"num_classes": 5, "widths": (4, 6), "image_size": 8} | arguments).double()


@pytest.mark.parametrize(("activation", "function"), [("tanh", torch.tanh), ("relu", torch.relu)])
def test_an_mlp_written_out(activation: str, function: object) -> None:
    network = tiny_mlp(activation=activation)
    with torch.no_grad():
        for value in network.parameters():
            value.add_(torch.linspace(-0.1, 0.1, value.numel()).view_as(value))  # So that biases count too.
    first, second, last = zip(*[iter(network.parameters())] * 2, strict=True)
    hidden = images(3, 4).reshape(3, 48)
    for weight, bias in (first, second):
        hidden = function(hidden @ weight.T + bias)  # type: ignore[operator]
    torch.testing.assert_close(network.features(images(3, 4)), hidden)
    torch.testing.assert_close(network(images(3, 4)), hidden @ last[0].T + last[1])
    torch.testing.assert_close(network.classifier(network.features(images(3, 4))), network(images(3, 4)))


@pytest.mark.parametrize(("activation", "function"), [("tanh", torch.tanh), ("relu", torch.relu)])
def test_a_convnet_written_out(activation: str, function: object) -> None:
    network = tiny_convnet(activation=activation)
    with torch.no_grad():
        for value in network.parameters():
            value.add_(torch.linspace(-0.1, 0.1, value.numel()).view_as(value))  # So that biases count too.
    first, second, last = zip(*[iter(network.parameters())] * 2, strict=True)
    maps = images(3, 8)
    for weight, bias in (first, second):
        # All 3 x 3 neighbourhoods, of which a stride of 2 keeps every second.
        maps = function(F.conv2d(maps, weight, bias, padding=1)[:, :, ::2, ::2])  # type: ignore[operator]
    features = maps.reshape(3, 6 * 2 * 2)
    torch.testing.assert_close(network.features(images(3, 8)), features)
    torch.testing.assert_close(network(images(3, 8)), features @ last[0].T + last[1])
    torch.testing.assert_close(network.classifier(network.features(images(3, 8))), network(images(3, 8)))


@pytest.mark.parametrize("side", [1, 3, 5, 7, 10])
def test_sides_are_halved_rounding_up(side: int) -> None:
    assert tiny_convnet(image_size=side, widths=(4, 4, 4))(images(2, side)).shape == (2, 5)


@pytest.mark.parametrize(("activation", "factor"), [("tanh", 1.0), ("relu", 2.0)])
def test_weights_start_normal_with_the_variance_that_keeps_the_size(activation: str, factor: float) -> None:
    network = tiny_convnet(widths=(200, 100), num_classes=50, activation=activation)
    layers = [module for module in network.modules() if isinstance(module, (nn.Conv2d, nn.Linear))]
    inputs = [27, 9 * 200, 4 * 100]
    for layer, count in zip(layers, inputs, strict=True):
        assert layer.bias is not None
        assert (layer.bias == 0).all()
        scaled = layer.weight * (count / factor) ** 0.5
        assert scaled.mean().item() == pytest.approx(0, abs=0.03)
        assert scaled.std().item() == pytest.approx(1, rel=0.03)
        assert scaled.pow(4).mean().item() == pytest.approx(3, rel=0.1)

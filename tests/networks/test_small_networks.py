from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from softmax_temperature.networks.small_networks import MLP, ConvNet
from tests.networks.formulas import images, perturbed

EITHER = pytest.mark.parametrize(("activation", "function"), [("tanh", torch.tanh), ("relu", torch.relu)])


def pairs(network: nn.Module) -> Any:
    return zip(*[iter(network.parameters())] * 2, strict=True)


@EITHER
def test_an_mlp_written_out(activation: str, function: Any) -> None:
    network = perturbed(MLP(5, (7, 6), activation, image_size=4))
    first, second, last = pairs(network)
    hidden = images(3, 4).reshape(3, 48)
    for weight, bias in (first, second):
        hidden = function(hidden @ weight.T + bias)
    torch.testing.assert_close(network(images(3, 4)), hidden @ last[0].T + last[1])


@EITHER
def test_a_convnet_written_out(activation: str, function: Any) -> None:
    network = perturbed(ConvNet(5, (4, 6), activation, image_size=7))
    first, second, last = pairs(network)
    maps = images(3, 7)
    for weight, bias in (first, second):
        # All 3 x 3 neighbourhoods, of which a stride of 2 keeps every second.
        maps = function(F.conv2d(maps, weight, bias, padding=1)[:, :, ::2, ::2])
    torch.testing.assert_close(network(images(3, 7)), maps.reshape(3, 6 * 2 * 2) @ last[0].T + last[1])


@pytest.mark.parametrize(("activation", "factor"), [("tanh", 1.0), ("relu", 2.0)])
def test_weights_start_normal_with_the_variance_that_keeps_the_size(activation: str, factor: float) -> None:
    torch.manual_seed(0)
    network = ConvNet(50, (200, 100), activation, image_size=8)
    for (weight, bias), inputs in zip(pairs(network), [27, 9 * 200, 4 * 100], strict=True):
        assert not bias.any()
        scaled = weight * (inputs / factor) ** 0.5
        assert scaled.std().item() == pytest.approx(1, rel=0.03)
        assert scaled.pow(4).mean().item() == pytest.approx(3, rel=0.1)

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from softmax_temperature.networks.small_networks import MLP


def images(samples: int = 3, side: int = 4) -> Tensor:
    return torch.randn(samples, 3, side, side, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def tiny(**arguments: object) -> MLP:
    torch.manual_seed(0)
    return MLP(**{"num_classes": 5, "widths": (7, 6), "image_size": 4} | arguments).double()


def test_parameters() -> None:
    # 8 x 8 pixels of 3 channels, two layers of 64, 10 classes; each unit with a bias.
    assert sum(value.numel() for value in MLP().parameters()) == 193 * 64 + 65 * 64 + 65 * 10 == 17_162
    assert sum(value.numel() for value in tiny(widths=(7,)).parameters()) == 49 * 7 + 8 * 5


@pytest.mark.parametrize(("activation", "function"), [("tanh", torch.tanh), ("relu", torch.relu)])
def test_the_network_written_out(activation: str, function: object) -> None:
    network = tiny(activation=activation)
    with torch.no_grad():
        for value in network.parameters():
            value.add_(torch.linspace(-0.1, 0.1, value.numel()).view_as(value))  # So that biases count too.
    first, second, last = zip(*[iter(network.parameters())] * 2, strict=True)
    hidden = images().reshape(3, 48)
    for weight, bias in (first, second):
        hidden = function(hidden @ weight.T + bias)  # type: ignore[operator]
    torch.testing.assert_close(network.features(images()), hidden)
    torch.testing.assert_close(network(images()), hidden @ last[0].T + last[1])
    torch.testing.assert_close(network.classifier(network.features(images())), network(images()))


@pytest.mark.parametrize(("activation", "factor"), [("tanh", 1.0), ("relu", 2.0)])
def test_weights_start_normal_with_the_variance_that_keeps_the_size(activation: str, factor: float) -> None:
    network = tiny(widths=(300, 400), num_classes=50, image_size=8, activation=activation)
    layers = [module for module in network.modules() if isinstance(module, nn.Linear)]
    assert [layer.in_features for layer in layers] == [192, 300, 400]
    for layer in layers:
        assert (layer.bias == 0).all()
        scaled = layer.weight * (layer.in_features / factor) ** 0.5
        assert scaled.mean().item() == pytest.approx(0, abs=0.03)
        assert scaled.std().item() == pytest.approx(1, rel=0.02)
        # A normal number's fourth power has mean 3, an even one's 1.8.
        assert scaled.pow(4).mean().item() == pytest.approx(3, rel=0.1)
    # Inputs of size 1 give logits of about the size of the last features times the gain.
    features = network.features(images(200, 8))
    gain = network(images(200, 8)).square().mean() / features.square().mean()
    assert gain.item() == pytest.approx(factor, rel=0.1)


def test_bad_arguments_are_refused_by_name() -> None:
    for arguments, message in (
        ({"activation": "gelu"}, "activation must be 'tanh' or 'relu', got 'gelu'"),
        ({"widths": ()}, r"widths must name at least one layer, got \(\)"),
        ({"widths": (4, 0)}, "widths must be an integer of at least 1, got 0"),
        ({"widths": (2.5,)}, "widths must be an integer of at least 1, got 2.5"),
        ({"num_classes": 0}, "num_classes must be an integer of at least 1, got 0"),
        ({"image_size": 0}, "image_size must be an integer of at least 1, got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            tiny(**arguments)

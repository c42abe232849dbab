from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature.networks.unet import UNet


def images(samples: int = 2, height: int = 32, width: int = 48) -> Tensor:
    return torch.randn(samples, 3, height, width, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def tiny() -> UNet:
    torch.manual_seed(0)
    network = UNet(num_classes=5, width=2).double()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            for values in (module.weight, module.bias, module.running_mean, module.running_var):
                nn.init.uniform_(values, 0.5, 1.5)
    return network


def written_out(state: dict[str, Tensor], maps: Tensor) -> Tensor:
    """The network in evaluation."""

    def twice(name: str, values: Tensor) -> Tensor:
        for convolution, norm in ((0, 1), (3, 4)):
            values = F.conv2d(values, state[f"{name}.{convolution}.weight"], padding=1)
            parts = [state[f"{name}.{norm}.{part}"] for part in ("running_mean", "running_var", "weight", "bias")]
            mean, variance, scale, shift = (part[None, :, None, None] for part in parts)
            values = ((values - mean) / (variance + 1e-5).sqrt() * scale + shift).clamp(min=0)
        return values

    def enlarged(name: str, values: Tensor) -> Tensor:
        """Each pixel becomes 2×2: an up-convolution of stride 2 has no overlaps."""
        n, _, height, width = values.shape
        grown = torch.einsum("nihw,ioab->nohawb", values, state[f"{name}.weight"])
        return grown.reshape(n, -1, 2 * height, 2 * width) + state[f"{name}.bias"][None, :, None, None]

    down = [twice("stem", maps)]
    for level in range(4):
        down.append(twice(f"encoders.{level}", F.max_pool2d(down[-1], 2)))
    maps = down.pop()
    for level in range(4):
        maps = twice(f"decoders.{level}", torch.cat([down.pop(), enlarged(f"enlargers.{level}", maps)], 1))
    return (
        torch.einsum("nihw,oi->nohw", maps, state["classifier.weight"][:, :, 0, 0])
        + state["classifier.bias"][None, :, None, None]
    )


def test_the_network_is_its_formula() -> None:
    network = tiny().eval()
    expected = written_out(network.state_dict(), images())
    torch.testing.assert_close(network(images()), expected)
    torch.testing.assert_close(network.classifier(network.features(images())), expected)


def test_logits_have_the_size_of_the_images() -> None:
    with torch.device("meta"):
        network = UNet()
        for height, width in ((256, 256), (64, 64), (32, 32), (16, 80)):
            assert network(torch.empty(2, 3, height, width)).shape == (2, 150, height, width)
            assert network.features(torch.empty(2, 3, height, width)).shape == (2, 34, height, width)


def test_sides_that_cannot_be_halved_four_times_are_refused() -> None:
    network = tiny()
    for height, width in ((24, 32), (32, 40), (0, 16)):
        message = f"images must have a height and width that are multiples of 16, got {height}×{width}"
        for call in (network, network.features):
            with pytest.raises(ValueError, match=message):
                call(images(2, height, width))


def test_the_graph_holds_modules_and_four_concatenations() -> None:
    network = tiny().eval()
    graph = torch.fx.symbolic_trace(network)
    assert torch.equal(graph(images()), network(images()))
    functions = [node.target for node in graph.graph.nodes if node.op == "call_function"]
    assert functions == 4 * [torch.cat]
    assert not [node for node in graph.graph.nodes if node.op == "call_method"]

"""The U-Net's outputs match those of a second implementation."""

import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.networks.unet import UNet
from tests.networks.formulas import (
    images,
    normalised,
    per_channel,
    perturbed,
    rectified,
)

State = dict[str, Tensor]


def two_convolutions(state: State, name: str, maps: Tensor) -> Tensor:
    for convolution, norm in ((0, 1), (3, 4)):
        weight = state[f"{name}.{convolution}.weight"]
        maps = F.conv2d(maps, weight, padding=1)
        maps = rectified(normalised(state, f"{name}.{norm}", maps))
    return maps


def enlarged(state: State, name: str, maps: Tensor) -> Tensor:
    """Apply an up-convolution of stride 2: each pixel becomes 2×2, without overlap."""
    samples, _, height, width = maps.shape
    weight = state[f"{name}.weight"]
    [bias] = per_channel(state[f"{name}.bias"])
    grown = torch.einsum("nihw,ioab->nohawb", maps, weight)
    return grown.reshape(samples, -1, 2 * height, 2 * width) + bias


def written_out(state: State, maps: Tensor) -> Tensor:
    before_halving = [two_convolutions(state, "stem", maps)]
    for level in range(4):
        halved = F.max_pool2d(before_halving[-1], 2)
        before_halving.append(two_convolutions(state, f"encoders.{level}", halved))
    maps = before_halving.pop()
    for level in range(4):
        larger = enlarged(state, f"enlargers.{level}", maps)
        joined = torch.cat([before_halving.pop(), larger], 1)
        maps = two_convolutions(state, f"decoders.{level}", joined)
    weight = state["classifier.weight"][:, :, 0, 0]
    [bias] = per_channel(state["classifier.bias"])
    return torch.einsum("nihw,oi->nohw", maps, weight) + bias


def test_a_unet_equals_its_formula() -> None:
    torch.manual_seed(0)
    network = perturbed(UNet(num_classes=5, width=2)).eval()
    expected = written_out(network.state_dict(), images(2, 32))
    torch.testing.assert_close(network(images(2, 32)), expected)

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.networks.unet import UNet
from tests.networks.formulas import images, normalised, perturbed


def written_out(state: dict[str, Tensor], maps: Tensor) -> Tensor:
    """The network in evaluation."""

    def twice(name: str, values: Tensor) -> Tensor:
        for convolution, norm in ((0, 1), (3, 4)):
            values = F.conv2d(values, state[f"{name}.{convolution}.weight"], padding=1)
            values = normalised(state, f"{name}.{norm}", values).clamp(min=0)
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
    logits = torch.einsum("nihw,oi->nohw", maps, state["classifier.weight"][:, :, 0, 0])
    return logits + state["classifier.bias"][None, :, None, None]


def test_the_network_is_its_formula() -> None:
    torch.manual_seed(0)
    network = perturbed(UNet(num_classes=5, width=2)).eval()
    torch.testing.assert_close(network(images(2, 32)), written_out(network.state_dict(), images(2, 32)))

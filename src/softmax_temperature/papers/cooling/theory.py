"""The paper's theory in numbers: its lemma, proposition and theorem against autograd on small networks."""

from collections.abc import Callable
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from softmax_temperature.cooling.last_layer import hold, set_last_layer_temperature
from softmax_temperature.cooling.theory import statements
from softmax_temperature.networks.convolutional import DenseNet, SmallVGG
from softmax_temperature.networks.layers import drawn_from
from softmax_temperature.networks.resnets import BottleneckResNet, WideResNet

TEMPERATURE = 100.0  # Above which the paper's periodic Cooling redistributes.
CLASSES, IMAGES, SIZE = 10, 16, 8
_SMALL: Any = {"widths": (8, 8, 16, 16), "dense": 16, "image_size": SIZE}
NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "VGG, ReLU": lambda: SmallVGG(CLASSES, **_SMALL),
    "VGG, CReLU": lambda: SmallVGG(CLASSES, "crelu", **_SMALL),
    "VGG, batch normalisation": lambda: SmallVGG(CLASSES, batch_norm=True, **_SMALL),
    "ResNet of bottlenecks": lambda: BottleneckResNet((1, 2), CLASSES, 4),
    "ResNet of bottlenecks, CReLU": lambda: BottleneckResNet((1, 2), CLASSES, 4, "crelu"),
    "Wide-ResNet": lambda: WideResNet(8, 1, CLASSES),
    "DenseNet": lambda: DenseNet((2, 2), growth=4, num_classes=CLASSES),
}


def theory_checks() -> pd.DataFrame:
    """Every one of `cooling.theory.statements` on every network, random, in float64 and evaluation mode."""
    rows = [
        (row[0], name, *row[1:]) for name in NETWORKS for row in statements(*_overheated(NETWORKS[name]), TEMPERATURE)
    ]
    return pd.DataFrame(rows, columns=["statement", "network", "predicted", "measured", "largest_relative_difference"])


def _overheated(make: Callable[[], nn.Module]) -> tuple[nn.Module, Tensor, Tensor]:
    with drawn_from(0):
        network = make().double()
        images = torch.randn(IMAGES, 3, SIZE, SIZE, dtype=torch.float64)
        labels = torch.randint(CLASSES, (IMAGES,))
        with torch.no_grad():
            for parameter in network.parameters():  # Shifts of batch normalisation are 0 at first.
                parameter.add_(0.1 * torch.randn_like(parameter))
            network(images)  # In training mode: running statistics.
            spread = network.eval()(images).std()
            for parameter in network.get_submodule("classifier").parameters():
                parameter.mul_(2 * TEMPERATURE / spread)
    hold(network)
    set_last_layer_temperature(network, TEMPERATURE)
    return network, images, labels

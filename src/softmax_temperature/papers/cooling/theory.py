"""The paper's theory in numbers: its lemma, proposition and theorem against autograd on small networks."""

import math
from collections.abc import Callable, Iterator, Mapping
from statistics import geometric_mean
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from softmax_temperature.cooling import theory
from softmax_temperature.cooling.last_layer import hold, set_last_layer_temperature
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
    """Every statement on every network, with random weights, images and labels, in float64 and evaluation mode.

    Proposition 3.5: norms of the whole gradient of a network with a temperature of 100 in its last layer. The others:
    geometric means over modules or parameters of the ratios to it of the network with this temperature in its layers.
    """
    rows = [(row[0], name, *row[1:]) for name in NETWORKS for row in _checks(*_overheated(NETWORKS[name]))]
    return pd.DataFrame(rows, columns=["statement", "network", "predicted", "measured", "largest_relative_difference"])


def _checks(network: nn.Module, images: Tensor, labels: Tensor) -> Iterator[tuple[str, float, float, float]]:
    twin = theory.scale_equivalent(network, TEMPERATURE)
    before, after = (theory.measured_outputs(each, images) for each in (network, twin))
    ratios = theory.predicted_output_ratios(network, TEMPERATURE)
    yield "Lemma 3.3: outputs of modules", *_ratios(ratios, before, after)
    gradients = theory.predicted_last_layer_gradients(network, images, labels)
    found = theory.measured_gradients(network, images, labels)
    errors = [((gradients[path] - each).norm() / each.norm()).item() for path, each in found.items()]
    norms = [nn.utils.get_total_norm(each.values()).item() for each in (gradients, found)]
    yield "Proposition 3.5: gradients", norms[0], norms[1], max(errors)
    for statement, relative in (("Theorem 3.7: gradients", False), ("Section 3.3: relative gradients", True)):
        predicted = theory.predicted_gradient_ratios(network, TEMPERATURE, relative=relative)
        both = [theory.measured_gradients(each, images, labels, relative=relative) for each in (network, twin)]
        for kind, ending in (("weights", ".weight"), ("biases", ".bias")):
            before, after = ({path: one for path, one in each.items() if path.endswith(ending)} for each in both)
            yield f"{statement} of {kind}", *_ratios(predicted, before, after)


def _ratios(predicted: Mapping[str, float], before: Mapping[str, Tensor], after: Mapping[str, Tensor]) -> Any:
    """Of tensors after to those before: the factor of least squares, and what is off, the remainder included."""
    found, errors = [], []
    for path, old in before.items():
        above, below = after[path].double().flatten(), old.double().flatten()
        value = ((above @ below) / (below @ below)).item()
        remainder = ((above - value * below).norm() / above.norm()).item()
        found.append(value)
        errors.append(math.hypot(1 - predicted[path] / value, remainder))
    return geometric_mean(predicted[path] for path in before), geometric_mean(found), max(errors)


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

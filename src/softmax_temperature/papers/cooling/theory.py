"""The paper's theory in numbers: its lemma, proposition and theorem against autograd on small networks."""

import math
from collections.abc import Callable, Mapping
from statistics import geometric_mean
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from softmax_temperature import cooling
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

Row = tuple[str, str, float, float, float]


def theory_checks() -> pd.DataFrame:
    """Every statement on every network, with random weights, images and labels, in float64 and evaluation mode.

    The logits of each network are divided by a temperature of 100 in the last layer (Proposition 3.5), and it is
    compared with the network that carries this temperature in its layers (the other statements).

    For Proposition 3.5 predicted and measured are norms of the whole gradient; for the others geometric means over
    modules or parameters of the ratios of the second network to the first. The difference is the largest norm of
    measured minus predicted, over measured.
    """
    rows = [row for name in NETWORKS for row in _checks(name)]
    return pd.DataFrame(rows, columns=["statement", "network", "predicted", "measured", "largest_relative_difference"])


def _checks(name: str) -> list[Row]:
    network, images, labels = _overheated(name)
    twin = cooling.scale_equivalent(network, TEMPERATURE)
    outputs = cooling.predicted_output_ratios(network, TEMPERATURE)
    measured_outputs = cooling.measured_output_ratios(network, twin, images)
    rows = [_ratios("Lemma 3.3: outputs of modules", name, outputs, measured_outputs)]
    gradients = cooling.predicted_last_layer_gradients(network, images, labels)
    found = cooling.measured_gradients(network, images, labels)
    errors = [((gradients[path] - each).norm() / each.norm()).item() for path, each in found.items()]
    norms = (nn.utils.get_total_norm(each.values()).item() for each in (gradients, found))
    rows.append(("Proposition 3.5: gradients", name, *norms, max(errors)))
    for statement, relative in (("Theorem 3.7: gradients", False), ("Section 3.3: relative gradients", True)):
        predicted = cooling.predicted_gradient_ratios(network, TEMPERATURE, relative=relative)
        measured = cooling.measured_gradient_ratios(network, twin, images, labels, relative=relative)
        for kind, ending in (("weights", ".weight"), ("biases", ".bias")):
            chosen = {path: ratio for path, ratio in measured.items() if path.endswith(ending)}
            rows.append(_ratios(f"{statement} of {kind}", name, predicted, chosen))
    return rows


def _overheated(name: str) -> tuple[nn.Module, Tensor, Tensor]:
    """A network whose temperature is 100, images and labels."""
    with drawn_from(0):
        network = NETWORKS[name]().double()
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


def _ratios(
    statement: str, name: str, predicted: Mapping[str, float], measured: Mapping[str, cooling.MeasuredRatio]
) -> Row:
    expected, found = [predicted[path] for path in measured], [ratio.value for ratio in measured.values()]
    errors = [math.hypot(1 - predicted[path] / ratio.value, ratio.deviation) for path, ratio in measured.items()]
    return statement, name, geometric_mean(expected), geometric_mean(found), max(errors)

"""The smallest networks, whose tangent kernels can be computed in full."""

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from softmax_temperature.networks.layers import Classifier, check_choice, redraw

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU}

# Deviation: both networks are ours, because our copy of the temperature_check paper
# describes neither a dense nor a small convolutional network. Their default activation
# is smooth (tanh), so that the tangent kernel changes in proportion to small changes of
# the weights; ReLU is an alternative. The convolutional network uses strides instead of
# pooling, because a maximum is not smooth.


class MLP(Classifier):
    """Dense layers, each followed by the activation, and a classifier.

    Initial weights are normal with variance 1 / fan-in, or 2 / fan-in with ReLU.

    Args:
        num_classes: The number of logits.
        widths: Units of each hidden layer.
        activation: "tanh" or "relu".
        image_size: Height and width of images in pixels.
    """

    def __init__(
        self,
        num_classes: int = 10,
        widths: Sequence[int] = (64, 64),
        activation: str = "tanh",
        image_size: int = 8,
    ) -> None:
        super().__init__()
        check_choice("activation", activation, ACTIVATIONS)
        units = [3 * image_size**2, *widths]
        self.hidden = nn.Sequential(nn.Flatten())
        for inputs, outputs in pairwise(units):
            self.hidden.append(nn.Linear(inputs, outputs))
            self.hidden.append(ACTIVATIONS[activation]())
        self.classifier = nn.Linear(units[-1], num_classes)
        _draw_by_fan_in(self, activation)


class ConvNet(Classifier):
    """3×3 convolutions with stride 2 and an activation, and a classifier on all maps.

    Initial weights are drawn as in `MLP`.

    Args:
        num_classes: The number of logits.
        widths: Output channels of each convolution.
        activation: "tanh" or "relu".
        image_size: Height and width of images in pixels.
    """

    def __init__(
        self,
        num_classes: int = 10,
        widths: Sequence[int] = (8, 16),
        activation: str = "tanh",
        image_size: int = 8,
    ) -> None:
        super().__init__()
        check_choice("activation", activation, ACTIVATIONS)
        channels = [3, *widths]
        self.convolutions = nn.Sequential()
        side = image_size
        for inputs, outputs in pairwise(channels):
            convolution = nn.Conv2d(inputs, outputs, 3, stride=2, padding=1)
            self.convolutions.append(convolution)
            self.convolutions.append(ACTIVATIONS[activation]())
            side = (side + 1) // 2
        self.flatten = nn.Flatten()
        self.classifier = nn.Linear(channels[-1] * side**2, num_classes)
        _draw_by_fan_in(self, activation)


def _draw_by_fan_in(network: nn.Module, activation: str) -> None:
    gain = 2.0 if activation == "relu" else 1.0

    def draw(weight: Tensor) -> None:
        fan_in = weight[0].numel()
        weight.normal_(std=(gain / fan_in) ** 0.5)

    redraw(network, draw)

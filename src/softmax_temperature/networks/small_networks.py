"""The smallest networks, on which the theory of early learning is measured (temperature_check paper)."""

from collections.abc import Sequence

from torch import nn

from softmax_temperature.networks.layers import Classifier, check_choice, redraw

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU}

# Deviation: the text at hand of the temperature_check paper names no dense network. This one is ours: the smallest with
# a smooth activation (tanh), whose tangent kernel changes in proportion to its weights, and with ReLU beside it.


class MLP(Classifier):
    """Dense layers, each followed by the activation ("tanh" or "relu"), and the classifier.

    Weights start normal with variance 1 / fan-in, with ReLU twice that; biases start at 0. `image_size` is height and
    width in pixels.
    """

    def __init__(
        self, num_classes: int = 10, widths: Sequence[int] = (64, 64), activation: str = "tanh", image_size: int = 8
    ) -> None:
        super().__init__()
        check_choice("activation", activation, ACTIVATIONS)
        self.hidden = nn.Sequential(nn.Flatten())
        inputs = 3 * image_size**2
        for width in widths:
            self.hidden.extend([nn.Linear(inputs, width), ACTIVATIONS[activation]()])
            inputs = width
        self.classifier = nn.Linear(inputs, num_classes)
        _draw_fan_in(self, activation)


# Deviation: the text at hand of the temperature_check paper names no small convolutional network. This one is ours. It
# strides where others pool, because the choice of a maximum has kinks of its own.


class ConvNet(Classifier):
    """3×3 convolutions with stride 2, each followed by the activation, and the classifier of the flattened maps.

    Arguments and weights are those of `MLP`; each convolution halves height and width, rounding up.
    """

    def __init__(
        self, num_classes: int = 10, widths: Sequence[int] = (8, 16), activation: str = "tanh", image_size: int = 8
    ) -> None:
        super().__init__()
        check_choice("activation", activation, ACTIVATIONS)
        self.convolutions = nn.Sequential()
        inputs, side = 3, image_size
        for width in widths:
            self.convolutions.extend([nn.Conv2d(inputs, width, 3, stride=2, padding=1), ACTIVATIONS[activation]()])
            inputs, side = width, -(-side // 2)
        self.flatten = nn.Flatten()
        self.classifier = nn.Linear(inputs * side**2, num_classes)
        _draw_fan_in(self, activation)


def _draw_fan_in(network: nn.Module, activation: str) -> None:
    factor = 2.0 if activation == "relu" else 1.0
    redraw(network, lambda weight: weight.normal_(std=(factor / weight[0].numel()) ** 0.5))

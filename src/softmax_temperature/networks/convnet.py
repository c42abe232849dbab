"""A small network of convolutions that stride; with tanh, every function that it computes is smooth."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from softmax_temperature.metrics.checks import check_count
from softmax_temperature.networks.fan_in import choose_activation, initialise

CHANNELS = 3

# Deviation: the text at hand of the temperature_check paper names no small convolutional network. This one is ours. It
# strides where others pool, because the choice of a maximum has kinks of its own.


class ConvNet(nn.Module):
    """3×3 convolutions with stride 2, each followed by the activation, and the classifier of all that is left.

    Weights start normal with variance 1 / inputs of a unit, with ReLU twice that; biases start at 0.

    Args:
        num_classes: Outputs of `classifier`.
        widths: Filters of each convolution.
        activation: "tanh" or "relu".
        image_size: Height and width of the images in pixels; each convolution halves them, rounding up.

    Raises:
        ValueError: If an argument is unknown or too small; the message names it and its value.
    """

    def __init__(
        self,
        num_classes: int = 10,
        widths: Sequence[int] = (8, 16),
        activation: str = "tanh",
        image_size: int = 8,
    ) -> None:
        super().__init__()
        build = choose_activation(activation)
        check_count(num_classes, "num_classes", least=1)
        check_count(image_size, "image_size", least=1)
        if len(widths) == 0:
            raise ValueError(f"widths must name at least one layer, got {widths!r}")
        layers: list[nn.Module] = []
        inputs, side = CHANNELS, image_size
        for width in widths:
            check_count(width, "widths", least=1)
            layers += [nn.Conv2d(inputs, width, 3, stride=2, padding=1), build()]
            inputs, side = width, -(-side // 2)
        self.convolutions = nn.Sequential(*layers)
        self.flatten = nn.Flatten()
        self.classifier = nn.Linear(inputs * side**2, num_classes)
        initialise(self, activation)

    def features(self, images: Tensor) -> Tensor:
        """What `classifier` reads: the last maps, flattened, of images (n, 3, height, width)."""
        features: Tensor = self.flatten(self.convolutions(images))
        return features

    def forward(self, images: Tensor) -> Tensor:
        """Logits (n, num_classes) of images (n, 3, height, width)."""
        logits: Tensor = self.classifier(self.features(images))
        return logits


make = ConvNet
"""What a task that names this architecture trains."""

"""A network of dense layers for small images: the simplest on which the theory of early learning is measured."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from softmax_temperature.metrics.checks import check_count
from softmax_temperature.networks.fan_in import choose_activation, initialise

CHANNELS = 3

# Deviation: the text at hand of the temperature_check paper names no dense network. This one is ours: the smallest with
# a smooth activation (tanh), whose tangent kernel changes in proportion to its weights, and with ReLU beside it.


class MLP(nn.Module):
    """Dense layers, each followed by the activation, and the classifier.

    Weights start normal with variance 1 / inputs of a unit, with ReLU twice that; biases start at 0.

    Args:
        num_classes: Outputs of `classifier`.
        widths: Units of each hidden layer.
        activation: "tanh" or "relu".
        image_size: Height and width of the images in pixels.

    Raises:
        ValueError: If an argument is unknown or too small; the message names it and its value.
    """

    def __init__(
        self,
        num_classes: int = 10,
        widths: Sequence[int] = (64, 64),
        activation: str = "tanh",
        image_size: int = 8,
    ) -> None:
        super().__init__()
        build = choose_activation(activation)
        check_count(num_classes, "num_classes", least=1)
        check_count(image_size, "image_size", least=1)
        if len(widths) == 0:
            raise ValueError(f"widths must name at least one layer, got {widths!r}")
        layers: list[nn.Module] = [nn.Flatten()]
        inputs = CHANNELS * image_size**2
        for width in widths:
            check_count(width, "widths", least=1)
            layers += [nn.Linear(inputs, width), build()]
            inputs = width
        self.hidden = nn.Sequential(*layers)
        self.classifier = nn.Linear(inputs, num_classes)
        initialise(self, activation)

    def features(self, images: Tensor) -> Tensor:
        """What `classifier` reads: (n, last width), of images (n, 3, height, width)."""
        features: Tensor = self.hidden(images)
        return features

    def forward(self, images: Tensor) -> Tensor:
        """Logits (n, num_classes) of images (n, 3, height, width)."""
        logits: Tensor = self.classifier(self.features(images))
        return logits


make = MLP
"""What a task that names this architecture trains."""

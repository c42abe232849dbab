"""The small VGG-style network of the cooling paper (section 4.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor, nn

from softmax_temperature.metrics.checks import check_count
from softmax_temperature.networks.layers import Classifier, check_sizes, draw_glorot, rectifier

POOLINGS = ("flatten", "average")
WEIGHTS = ("glorot", "pytorch")

# Deviation: the cooling paper gives the widths and about 620,000 parameters for 32×32 images and 10 classes, but not
# the padding, the pooling or whether there is normalisation. With zero padding, max-pooling after each pair and no
# normalisation, the candidates have 550,570 (ReLU, flatten), 304,810 (ReLU, average), 1,099,690 (CReLU, flatten) and
# 608,170 parameters (CReLU, average). None is 620,000; "flatten" is the default as VGG's own, and the nearest for ReLU.
# Deviation: the paper trains in TensorFlow and does not say how weights start; "glorot" is what Keras draws if nothing
# is said. PyTorch's own start is smaller: after an epoch with a learning rate of 0.01 this network still guesses (loss
# 2.303), a temperature fitted to it is noise (0.07 to 0.22 in two trainings), and Cooling then acts as a larger step.


class SmallVGG(Classifier):
    """3×3 convolutions with max-pooling after each pair, a dense layer and the classifier (cooling paper, section 4.2).

    Every hidden layer is followed by the activation; after CReLU, the next layer reads twice the channels.

    Args:
        activation: "relu" or "crelu".
        pooling: "flatten" gives every value of the last maps to the dense layer, "average" each map's mean.
        batch_norm: Whether each convolution, then without bias, is followed by batch normalisation.
        widths: Filters of the convolutions, an even number of them.
        weights: "glorot" starts as Keras does, see `draw_glorot`; "pytorch" as PyTorch does.
        image_size: Height and width of the images in pixels; each pooling halves them, rounding down.
    """

    def __init__(
        self,
        num_classes: int = 10,
        activation: str = "relu",
        pooling: str = "flatten",
        batch_norm: bool = False,
        widths: Sequence[int] = (32, 32, 64, 64, 128, 128),
        dense: int = 128,
        weights: str = "glorot",
        image_size: int = 32,
    ) -> None:
        super().__init__()
        build, copies = rectifier(activation)
        check_sizes(widths=widths, dense=dense, num_classes=num_classes)
        if len(widths) % 2:
            raise ValueError(f"widths must hold pairs of convolutions, got {widths!r}")
        check_count(image_size, "image_size", least=2 ** (len(widths) // 2))
        if pooling not in POOLINGS:
            raise ValueError(f"pooling must be 'flatten' or 'average', got {pooling!r}")
        if weights not in WEIGHTS:
            raise ValueError(f"weights must be 'glorot' or 'pytorch', got {weights!r}")
        pool_first = activation == "relu"
        layers = _convolutions(widths, build, copies, batch_norm=batch_norm, pool_first=pool_first)
        self.convolutions = nn.Sequential(*layers)
        self.pool = nn.Identity() if pooling == "flatten" else nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        side = image_size >> (len(widths) // 2) if pooling == "flatten" else 1
        self.dense = nn.Linear(copies * widths[-1] * side**2, dense)
        self.activation = build()
        self.classifier = nn.Linear(copies * dense, num_classes)
        if weights == "glorot":
            draw_glorot(self)

    def features(self, inputs: Tensor) -> Tensor:
        """Shape (n, dense), or (n, 2 dense) with CReLU, of images (n, 3, height, width)."""
        maps = self.flatten(self.pool(self.convolutions(inputs)))
        features: Tensor = self.activation(self.dense(maps))
        return features


def _convolutions(
    widths: Sequence[int], build: Callable[[], nn.Module], copies: int, *, batch_norm: bool, pool_first: bool
) -> list[nn.Module]:
    layers: list[nn.Module] = []
    inputs = 3
    for number, width in enumerate(widths, start=1):
        layers.append(nn.Conv2d(inputs, width, 3, padding=1, bias=not batch_norm))
        layers += [nn.BatchNorm2d(width)] if batch_norm else []
        if number % 2:
            layers.append(build())
        else:
            # An activation that never falls commutes with the maximum, bit by bit and in its gradient, and behind it
            # has a quarter of the values. CReLU falls: the maximum of -x is not minus the maximum of x.
            layers += [nn.MaxPool2d(2), build()] if pool_first else [build(), nn.MaxPool2d(2)]
        inputs = copies * width
    return layers

"""DenseNet for 32×32 images."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from softmax_temperature.networks.layers import Classifier


class DenseNet(Classifier):
    """A 3×3 stem, dense blocks with halving transitions between them, and a classifier.

    Args:
        blocks: Layers per dense block; the default is DenseNet-121.
        growth: Number of feature maps that each layer adds.
        num_classes: The number of logits.
    """

    def __init__(
        self,
        blocks: Sequence[int] = (6, 12, 24, 16),
        growth: int = 32,
        num_classes: int = 10,
    ) -> None:
        super().__init__()
        channels = 2 * growth
        self.conv1 = nn.Conv2d(3, channels, 3, padding=1, bias=False)
        self.stages = nn.Sequential()
        for number, layers in enumerate(blocks):
            if number > 0:
                self.stages.append(_transition(channels))
                channels //= 2
            self.stages.append(_dense_block(channels, layers, growth))
            channels += layers * growth
        self.norm = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.classifier = nn.Linear(channels, num_classes)


def _transition(channels: int) -> nn.Sequential:
    """Layers that halve the number of channels, the height and the width."""
    return nn.Sequential(
        nn.BatchNorm2d(channels),
        nn.ReLU(),
        nn.Conv2d(channels, channels // 2, 1, bias=False),
        nn.AvgPool2d(2),
    )


def _dense_block(channels: int, layers: int, growth: int) -> nn.Sequential:
    block = nn.Sequential()
    for number in range(layers):
        block.append(_DenseLayer(channels + number * growth, growth))
    return block


class _DenseLayer(nn.Module):
    """A 1×1 and a 3×3 convolution, each after normalisation and ReLU.

    The new feature maps are concatenated to the input.
    """

    def __init__(self, inputs: int, growth: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inputs)
        self.relu1 = nn.ReLU()
        self.conv1 = nn.Conv2d(inputs, 4 * growth, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(4 * growth)
        self.relu2 = nn.ReLU()
        self.conv2 = nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, maps: Tensor) -> Tensor:
        inner = self.conv1(self.relu1(self.norm1(maps)))
        new_maps = self.conv2(self.relu2(self.norm2(inner)))
        return torch.cat((maps, new_maps), dim=1)

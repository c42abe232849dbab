"""Densely connected networks with bottlenecks and compression (Huang et al. 2017), in their port to small images."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from softmax_temperature.networks.layers import Classifier

BOTTLENECK = 4


class DenseNet(Classifier):
    """A 3×3 stem, dense blocks with transitions between them, and the classifier; the defaults are DenseNet-121.

    A layer adds `growth` maps, and a transition halves height and width and keeps a share `reduction` of the maps,
    rounded down. Weights start as PyTorch's, as in the focal paper's released code.
    """

    def __init__(
        self, blocks: Sequence[int] = (6, 12, 24, 16), growth: int = 32, reduction: float = 0.5, num_classes: int = 10
    ) -> None:
        super().__init__()
        channels = 2 * growth
        self.conv1 = nn.Conv2d(3, channels, 3, padding=1, bias=False)
        self.stages = nn.Sequential()
        for number, layers in enumerate(blocks):
            if number:
                kept = int(reduction * channels)
                convolution = nn.Conv2d(channels, kept, 1, bias=False)
                self.stages.append(nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU(), convolution, nn.AvgPool2d(2)))
                channels = kept
            self.stages.append(nn.Sequential(*(_DenseLayer(channels + i * growth, growth) for i in range(layers))))
            channels += layers * growth
        self.norm = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.classifier = nn.Linear(channels, num_classes)


class _DenseLayer(nn.Module):
    """A 1×1 and a 3×3 convolution, each after normalisation and ReLU; their maps are appended to the input."""

    def __init__(self, inputs: int, growth: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inputs)
        self.relu1 = nn.ReLU()
        self.conv1 = nn.Conv2d(inputs, BOTTLENECK * growth, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(BOTTLENECK * growth)
        self.relu2 = nn.ReLU()
        self.conv2 = nn.Conv2d(BOTTLENECK * growth, growth, 3, padding=1, bias=False)

    def forward(self, maps: Tensor) -> Tensor:
        inner = self.conv1(self.relu1(self.norm1(maps)))
        return torch.cat((maps, self.conv2(self.relu2(self.norm2(inner)))), dim=1)

"""Residual networks of bottleneck blocks (He et al. 2016), ported to small images: a 3×3 stem and no max-pooling."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from softmax_temperature.metrics.checks import check_count
from softmax_temperature.networks.crelu import choose_activation

EXPANSION = 4

# Deviation: the focal paper's ResNet-110 cites the network with three stages of basic blocks; its released code trains
# bottlenecks (3, 4, 26, 3) instead, which is the one here. The cited one is `CifarResNet(blocks=18)`.
# Deviation: for Tiny-ImageNet the released code averages the last 8×8 maps to 2×2 and so has 8,192 features, and draws
# normal weights; here, as for CIFAR, pooling is global and weights start as PyTorch's.
# Deviation: the cooling paper's ResNet-50 cites the later network of He et al. with the activations first and counts
# 23.5 million parameters. Here it is the network of the focal paper, 23.7 million for 100 classes: one for both papers.
# Deviation: the cooling paper does not say how a residual network takes CReLU. Here convolutions keep their outputs and
# read twice the channels, and identity shortcuts pass on the sum before its activation, since after it the channels
# would be twice those of the branch. The network has 47.4 million parameters for 100 classes then.


class BottleneckResNet(nn.Module):
    """A residual network with 3 sum(`blocks`) + 2 layers of weights, the projections of shortcuts not counted.

    (3, 4, 6, 3) is ResNet-50, and (3, 4, 26, 3) what the focal paper's released code calls ResNet-110. Each stage after
    the first halves height and width and doubles the channels. Weights start as PyTorch's: uniform within
    ±1 / sqrt(inputs of a unit), batch normalisation with scale 1 and shift 0.

    Args:
        blocks: Bottleneck blocks in each stage.
        num_classes: Outputs of `classifier`.
        width: Channels of the stem and of the first stage's inner convolutions.
        activation: "relu" or "crelu".

    Raises:
        ValueError: If an argument is unknown or too small; the message names it and its value.
    """

    def __init__(
        self,
        blocks: Sequence[int] = (3, 4, 6, 3),
        num_classes: int = 10,
        width: int = 64,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        build, copies = choose_activation(activation)
        if len(blocks) == 0:
            raise ValueError(f"blocks must hold at least one stage, got {blocks!r}")
        for count in blocks:
            check_count(count, "blocks", least=1)
        check_count(num_classes, "num_classes", least=1)
        check_count(width, "width", least=1)
        self.conv1 = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.stages = nn.Sequential()
        inputs = width
        for number, count in enumerate(blocks):
            planes = width * 2**number
            self.stages.append(_stage(inputs, planes, count, stride=2 if number else 1, activation=activation))
            inputs = EXPANSION * planes
        self.activation = build()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.classifier = nn.Linear(copies * inputs, num_classes)

    def features(self, images: Tensor) -> Tensor:
        """What `classifier` reads, the means of the last maps, of images (n, 3, height, width).

        Shape (n, 4 width 2^(stages - 1)), with CReLU twice as wide.
        """
        total = self.stages(self.bn1(self.conv1(images)))
        features: Tensor = self.flatten(self.pool(self.activation(total)))
        return features

    def forward(self, images: Tensor) -> Tensor:
        """Logits (n, num_classes) of images (n, 3, height, width)."""
        logits: Tensor = self.classifier(self.features(images))
        return logits


make = BottleneckResNet
"""What a task that names this architecture trains."""


class Bottleneck(nn.Module):
    """1×1, 3×3 and 1×1 convolution beside a shortcut, which is a projection where the shape changes.

    What goes from block to block is the sum before its activation, which the next block applies: the function of the
    paper, and with CReLU the sum is what an identity shortcut needs.
    """

    def __init__(self, inputs: int, planes: int, *, stride: int, activation: str) -> None:
        super().__init__()
        build, copies = choose_activation(activation)
        outputs = EXPANSION * planes
        projects = stride != 1 or inputs != outputs
        self.activation1 = build()
        self.conv1 = nn.Conv2d(copies * inputs, planes, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.activation2 = build()
        self.conv2 = nn.Conv2d(copies * planes, planes, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.activation3 = build()
        self.conv3 = nn.Conv2d(copies * planes, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.shortcut = _projection(copies * inputs, outputs, stride) if projects else nn.Identity()
        self.passes_sum = copies > 1 and not projects

    def forward(self, total: Tensor) -> Tensor:
        """The next sum, (n, 4 planes, height / stride, width / stride), from the one before, (n, inputs, ...)."""
        maps = self.activation1(total)
        inner = self.bn1(self.conv1(maps))
        inner = self.bn2(self.conv2(self.activation2(inner)))
        inner = self.bn3(self.conv3(self.activation3(inner)))
        following: Tensor = inner + self.shortcut(total if self.passes_sum else maps)
        return following


def _projection(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))


def _stage(inputs: int, planes: int, blocks: int, *, stride: int, activation: str) -> nn.Sequential:
    first = Bottleneck(inputs, planes, stride=stride, activation=activation)
    rest = [Bottleneck(EXPANSION * planes, planes, stride=1, activation=activation) for _ in range(blocks - 1)]
    return nn.Sequential(first, *rest)

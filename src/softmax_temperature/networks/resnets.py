"""Residual networks for small images: basic blocks, bottlenecks and wide blocks, all with a 3×3 stem."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature.metrics.checks import check_count
from softmax_temperature.networks.layers import Classifier, check_sizes, rectifier

EXPANSION = 4
STEM = 16


class CifarResNet(Classifier):
    """A residual network of basic blocks with 6 `blocks` + 2 layers of weights (He et al. 2016, section 4.2).

    3 blocks give ResNet-20, 18 give ResNet-110. Shortcuts have no parameters.

    Args:
        blocks: Residual blocks in each of the three stages.
        widths: Channels in each of the three stages; even differences.
    """

    def __init__(self, blocks: int = 3, num_classes: int = 10, widths: Sequence[int] = (16, 32, 64)) -> None:
        super().__init__()
        check_sizes(blocks=blocks)
        first, second, third = widths
        self.conv1 = nn.Conv2d(3, first, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(first)
        self.layer1 = _basic_stage(first, first, blocks, stride=1)
        self.layer2 = _basic_stage(first, second, blocks, stride=2)
        self.layer3 = _basic_stage(second, third, blocks, stride=2)
        self.linear = nn.Linear(third, num_classes)

    @property
    def classifier(self) -> nn.Linear:  # type: ignore[override]
        """The last layer; its parameters are called `linear`, as in other projects' weights files."""
        return self.linear

    def features(self, inputs: Tensor) -> Tensor:
        """Shape (n, last width), of images (n, 3, height, width)."""
        maps = F.relu(self.bn1(self.conv1(inputs)))
        pooled: Tensor = self.layer3(self.layer2(self.layer1(maps))).mean((2, 3))
        return pooled


class BasicBlock(nn.Module):
    """Two 3×3 convolutions beside the identity, which is subsampled and padded with zeros where the size changes.

    Half of the zero channels come before and half after (option A of the paper, in the order of its widely used
    re-implementation; the paper leaves the order open).
    """

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.stride, self.zero_channels = stride, outputs - inputs

    def forward(self, maps: Tensor) -> Tensor:
        """Maps (n, outputs, height / stride, width / stride)."""
        inner = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(maps)))))
        before = self.zero_channels // 2
        shortcut = maps[:, :, :: self.stride, :: self.stride]
        return F.relu(inner + F.pad(shortcut, (0, 0, 0, 0, before, self.zero_channels - before)))


def _basic_stage(inputs: int, outputs: int, blocks: int, stride: int) -> nn.Sequential:
    rest = [BasicBlock(outputs, outputs, 1) for _ in range(blocks - 1)]
    return nn.Sequential(BasicBlock(inputs, outputs, stride), *rest)


# Deviation: the focal paper's ResNet-110 cites the network with three stages of basic blocks; its released code trains
# bottlenecks (3, 4, 26, 3) instead, which is the one here. The cited one is `CifarResNet(blocks=18)`.
# Deviation: for Tiny-ImageNet the released code averages the last 8×8 maps to 2×2 and so has 8,192 features, and draws
# normal weights; here, as for CIFAR, pooling is global and weights start as PyTorch's.
# Deviation: the cooling paper's ResNet-50 cites the later network of He et al. with the activations first and counts
# 23.5 million parameters. Here it is the network of the focal paper, 23.7 million for 100 classes: one for both papers.
# Deviation: the cooling paper does not say how a residual network takes CReLU. Here convolutions keep their outputs and
# read twice the channels, and identity shortcuts pass on the sum before its activation, since after it the channels
# would be twice those of the branch. The network has 47.4 million parameters for 100 classes then.


class BottleneckResNet(Classifier):
    """A residual network with 3 sum(`blocks`) + 2 layers of weights, the projections of shortcuts not counted.

    (3, 4, 6, 3) is ResNet-50, and (3, 4, 26, 3) what the focal paper's released code calls ResNet-110. Each stage after
    the first halves height and width and doubles the channels. Weights start as PyTorch's.

    Args:
        blocks: Bottleneck blocks in each stage.
        width: Channels of the stem and of the first stage's inner convolutions.
        activation: "relu" or "crelu".
    """

    def __init__(
        self, blocks: Sequence[int] = (3, 4, 6, 3), num_classes: int = 10, width: int = 64, activation: str = "relu"
    ) -> None:
        super().__init__()
        build, copies = rectifier(activation)
        check_sizes(blocks=blocks, num_classes=num_classes, width=width)
        self.conv1 = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.stages = nn.Sequential()
        inputs = width
        for number, count in enumerate(blocks):
            planes = width * 2**number
            stage = nn.Sequential(Bottleneck(inputs, planes, stride=2 if number else 1, activation=activation))
            inputs = EXPANSION * planes
            stage.extend(Bottleneck(inputs, planes, stride=1, activation=activation) for _ in range(count - 1))
            self.stages.append(stage)
        self.activation = build()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.classifier = nn.Linear(copies * inputs, num_classes)

    def features(self, inputs: Tensor) -> Tensor:
        """The means of the last maps, (n, 4 width 2^(stages - 1)), with CReLU twice as wide."""
        total = self.stages(self.bn1(self.conv1(inputs)))
        features: Tensor = self.flatten(self.pool(self.activation(total)))
        return features


class Bottleneck(nn.Module):
    """1×1, 3×3 and 1×1 convolution beside a shortcut, which is a projection where the shape changes.

    A block returns the sum before its activation, and the next block applies it: the function of the paper, and with
    CReLU the sum is what an identity shortcut needs.
    """

    def __init__(self, inputs: int, planes: int, *, stride: int, activation: str) -> None:
        super().__init__()
        build, copies = rectifier(activation)
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
        self.shortcut: nn.Module = nn.Identity()
        if projects:
            projection = nn.Conv2d(copies * inputs, outputs, 1, stride, bias=False)
            self.shortcut = nn.Sequential(projection, nn.BatchNorm2d(outputs))
        self.passes_sum = copies > 1 and not projects

    def forward(self, total: Tensor) -> Tensor:
        """The next sum, (n, 4 planes, height / stride, width / stride), from the one before, (n, inputs, ...)."""
        maps = self.activation1(total)
        inner = self.bn1(self.conv1(maps))
        inner = self.bn2(self.conv2(self.activation2(inner)))
        inner = self.bn3(self.conv3(self.activation3(inner)))
        following: Tensor = inner + self.shortcut(total if self.passes_sum else maps)
        return following


# Deviation: the focal paper names Wide-ResNet-26-10, a depth that the cited paper's rule 6 n + 4 does not allow. The
# released code counts 6 n + 2, without the three projections and with the linear layer: its 26 is the cited paper's 28,
# and both numbers build the same network here.
# Deviation: the released code applies batch normalisation and activation after each convolution and normalises the
# projections too; here they come before, as in the cited paper.
# Deviation: the text at hand of the temperature_check paper gives neither depth and width of its networks nor how those
# without batch normalisation start. Here their convolutions have biases, which start at 0, and He's normal weights; the
# last ones of each residual branch are divided by the square root of the number of blocks. The mean square of the maps
# then grows by a factor of at most e over all blocks, where it would double in each, and no weight starts at zero,
# which would take gradients and tangent kernel from the layers below.


class WideResNet(Classifier):
    """A wide residual network (Zagoruyko and Komodakis 2016): activations first, `width` times 16, 32 and 64 channels.

    Convolutions start as He's: normal, with variance 2 / (kernel area times output channels), as in the focal paper's
    released code. Without batch normalisation the variance is 2 / (kernel area times input channels), which keeps the
    size of the maps, divided by the number of blocks in the last convolution of each block; biases are 0. The linear
    layer starts as PyTorch's.

    Args:
        depth: 6 n + 2 layers of weights for n blocks in each of the three stages, projections not counted; or the
            6 n + 4 convolutions of the same network, projections counted.
        width: Factor of the channels.
        batch_norm: Whether there are normalisation layers.
    """

    def __init__(self, depth: int = 26, width: int = 10, num_classes: int = 10, batch_norm: bool = True) -> None:
        super().__init__()
        check_count(depth, "depth", least=8)
        if depth % 6 not in {2, 4}:
            raise ValueError(f"depth must be 6 n + 2 or 6 n + 4, got {depth}")
        check_sizes(width=width, num_classes=num_classes)
        blocks = (depth - 2) // 6
        self.conv1 = nn.Conv2d(3, STEM, 3, padding=1, bias=not batch_norm)
        self.stages = nn.Sequential()
        inputs = STEM
        for number in range(3):
            outputs, stride = STEM * width * 2**number, 2 if number else 1
            stage = nn.Sequential(WideBlock(inputs, outputs, stride=stride, batch_norm=batch_norm))
            stage.extend(WideBlock(outputs, outputs, stride=1, batch_norm=batch_norm) for _ in range(blocks - 1))
            self.stages.append(stage)
            inputs = outputs
        self.norm = _norm(inputs, batch_norm=batch_norm)
        self.relu = nn.ReLU()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.classifier = nn.Linear(inputs, num_classes)
        self._draw(batch_norm=batch_norm)

    def features(self, inputs: Tensor) -> Tensor:
        """The means of the last maps, (n, 64 width), of images (n, 3, height, width)."""
        total = self.stages(self.conv1(inputs))
        features: Tensor = self.flatten(self.pool(self.relu(self.norm(total))))
        return features

    @torch.no_grad()
    def _draw(self, *, batch_norm: bool) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out" if batch_norm else "fan_in", nonlinearity="relu")
                if module.bias is not None:
                    module.bias.zero_()
        if not batch_norm:
            blocks = [module for module in self.modules() if isinstance(module, WideBlock)]
            for block in blocks:
                block.conv2.weight.div_(len(blocks) ** 0.5)


class WideBlock(nn.Module):
    """Two 3×3 convolutions beside the identity or, where the shape changes, a projection of the activated input."""

    def __init__(self, inputs: int, outputs: int, *, stride: int, batch_norm: bool) -> None:
        super().__init__()
        self.norm1 = _norm(inputs, batch_norm=batch_norm)
        self.relu1 = nn.ReLU()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=not batch_norm)
        self.norm2 = _norm(outputs, batch_norm=batch_norm)
        self.relu2 = nn.ReLU()
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=not batch_norm)
        self.projects = stride != 1 or inputs != outputs
        projection = nn.Conv2d(inputs, outputs, 1, stride, bias=not batch_norm) if self.projects else nn.Identity()
        self.shortcut = projection

    def forward(self, total: Tensor) -> Tensor:
        """Maps (n, outputs, height / stride, width / stride)."""
        maps = self.relu1(self.norm1(total))
        inner = self.conv2(self.relu2(self.norm2(self.conv1(maps))))
        following: Tensor = inner + self.shortcut(maps if self.projects else total)
        return following


def _norm(channels: int, *, batch_norm: bool) -> nn.Module:
    return nn.BatchNorm2d(channels) if batch_norm else nn.Identity()

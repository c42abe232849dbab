"""Wide residual networks (Zagoruyko and Komodakis 2016) for small images, with and without batch normalisation."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from softmax_temperature.metrics.checks import check_count

STEM = 16

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


class WideResNet(nn.Module):
    """A residual network of blocks with the activations first, `width` times the channels 16, 32 and 64.

    Convolutions start as He's: normal, with variance 2 / (kernel area times output channels), as in the focal paper's
    released code. Without batch normalisation the variance is 2 / (kernel area times input channels), which keeps the
    size of the maps, divided by the number of blocks in the last convolution of each block; biases are 0. The linear
    layer starts as PyTorch's.

    Args:
        depth: 6 n + 2 layers of weights for n blocks in each of the three stages, projections not counted; or the
            6 n + 4 convolutions of the same network, projections counted.
        width: Factor of the channels.
        num_classes: Outputs of `classifier`.
        batch_norm: Whether there are normalisation layers.

    Raises:
        ValueError: If `depth` is not such a number, or another argument is too small.
    """

    def __init__(self, depth: int = 26, width: int = 10, num_classes: int = 10, batch_norm: bool = True) -> None:
        super().__init__()
        check_count(depth, "depth", least=8)
        if depth % 6 not in {2, 4}:
            raise ValueError(f"depth must be 6 n + 2 or 6 n + 4, got {depth}")
        check_count(width, "width", least=1)
        check_count(num_classes, "num_classes", least=1)
        blocks = (depth - 2) // 6
        channels = [STEM * width * 2**number for number in range(3)]
        self.conv1 = nn.Conv2d(3, STEM, 3, padding=1, bias=not batch_norm)
        self.stages = nn.Sequential(
            _stage(STEM, channels[0], blocks, stride=1, batch_norm=batch_norm),
            _stage(channels[0], channels[1], blocks, stride=2, batch_norm=batch_norm),
            _stage(channels[1], channels[2], blocks, stride=2, batch_norm=batch_norm),
        )
        self.norm = _norm(channels[2], batch_norm=batch_norm)
        self.relu = nn.ReLU()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.classifier = nn.Linear(channels[2], num_classes)
        _initialise(self, batch_norm=batch_norm)

    def features(self, images: Tensor) -> Tensor:
        """What `classifier` reads: the means of the last maps, (n, 64 width), of images (n, 3, height, width)."""
        total = self.stages(self.conv1(images))
        features: Tensor = self.flatten(self.pool(self.relu(self.norm(total))))
        return features

    def forward(self, images: Tensor) -> Tensor:
        """Logits (n, num_classes) of images (n, 3, height, width)."""
        logits: Tensor = self.classifier(self.features(images))
        return logits


make = WideResNet
"""What a task that names this architecture trains."""


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


def _stage(inputs: int, outputs: int, blocks: int, *, stride: int, batch_norm: bool) -> nn.Sequential:
    rest = [WideBlock(outputs, outputs, stride=1, batch_norm=batch_norm) for _ in range(blocks - 1)]
    return nn.Sequential(WideBlock(inputs, outputs, stride=stride, batch_norm=batch_norm), *rest)


@torch.no_grad()
def _initialise(network: WideResNet, *, batch_norm: bool) -> None:
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out" if batch_norm else "fan_in", nonlinearity="relu")
            if module.bias is not None:
                module.bias.zero_()
    if not batch_norm:
        blocks = [module for module in network.modules() if isinstance(module, WideBlock)]
        for block in blocks:
            block.conv2.weight.div_(len(blocks) ** 0.5)

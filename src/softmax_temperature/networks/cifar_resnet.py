"""The small residual networks for 32×32 images (He et al. 2016, section 4.2); their shortcuts have no parameters."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

WIDTHS = (16, 32, 64)


class CifarResNet(nn.Module):
    """A residual network with 6 `blocks` + 2 layers of weights; 3 blocks give ResNet-20, 18 give ResNet-110.

    Args:
        blocks: residual blocks in each of the three stages.
        num_classes: outputs of the linear layer.
        widths: channels in each of the three stages; even differences.
    """

    def __init__(self, blocks: int = 3, num_classes: int = 10, widths: Sequence[int] = WIDTHS) -> None:
        super().__init__()
        if blocks < 1:
            raise ValueError(f"blocks: {blocks}, must be at least 1")
        first, second, third = widths
        self.conv1 = nn.Conv2d(3, first, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(first)
        self.layer1 = _stage(first, first, blocks, stride=1)
        self.layer2 = _stage(first, second, blocks, stride=2)
        self.layer3 = _stage(second, third, blocks, stride=2)
        self.linear = nn.Linear(third, num_classes)

    @property
    def classifier(self) -> nn.Linear:
        """The last layer; its parameters are called `linear`, as in the weights files of others."""
        return self.linear

    def features(self, images: Tensor) -> Tensor:
        """What the last layer receives (n, last width), of images (n, 3, height, width)."""
        maps = F.relu(self.bn1(self.conv1(images)))
        pooled: Tensor = self.layer3(self.layer2(self.layer1(maps))).mean((2, 3))
        return pooled

    def forward(self, images: Tensor) -> Tensor:
        """Logits (n, num_classes) of images (n, 3, height, width)."""
        logits: Tensor = self.linear(self.features(images))
        return logits


make = CifarResNet
"""What a task that names this architecture trains."""


class BasicBlock(nn.Module):
    """Two 3×3 convolutions beside the identity, which is thinned and padded with zeros where the size changes.

    The zero channels stand half before and half after (option A of the paper, in the order of its widely used
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


def _stage(inputs: int, outputs: int, blocks: int, stride: int) -> nn.Sequential:
    rest = [BasicBlock(outputs, outputs, 1) for _ in range(blocks - 1)]
    return nn.Sequential(BasicBlock(inputs, outputs, stride), *rest)

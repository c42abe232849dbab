"""Inception-ResNet-v1 (Szegedy et al. 2017, figure 10), in the form in which FaceNet's weights are passed around.

Parameters have the names of facenet-pytorch's weights, whose layers `HEAD` for the face identities are left out.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

HEAD = ("last_linear", "last_bn", "logits")


class InceptionResnetV1(nn.Module):
    """Images (n, 3, 160, 160) to embeddings (n, 1792), the means of the last maps, unnormalised."""

    def __init__(self) -> None:
        super().__init__()
        self.conv2d_1a = _Convolution(3, 32, 3, stride=2)
        self.conv2d_2a = _Convolution(32, 32, 3)
        self.conv2d_2b = _Convolution(32, 64, 3, padding=1)
        self.conv2d_3b = _Convolution(64, 80, 1)
        self.conv2d_4a = _Convolution(80, 192, 3)
        self.conv2d_4b = _Convolution(192, 256, 3, stride=2)
        self.repeat_1 = nn.Sequential(*(_block35() for _ in range(5)))
        deep = _same(256, 192, 1, 3).append(_Convolution(192, 256, 3, stride=2))
        self.mixed_6a = _Branches(_Convolution(256, 384, 3, stride=2), deep, nn.MaxPool2d(3, stride=2))
        self.repeat_2 = nn.Sequential(*(_narrow_block(896, 128, 7, scale=0.10) for _ in range(10)))
        ends = (((1,), 384), ((1,), 256), ((1, 3), 256))
        branches = (_same(896, 256, *k).append(_Convolution(256, o, 3, stride=2)) for k, o in ends)
        self.mixed_7a = _Branches(*branches, nn.MaxPool2d(3, stride=2))
        self.repeat_3 = nn.Sequential(*(_narrow_block(1792, 192, 3, scale=0.20) for _ in range(5)))
        self.block8 = _narrow_block(1792, 192, 3, scale=1.0, rectified=False)

    def forward(self, images: Tensor) -> Tensor:
        """Embeddings (n, 1792)."""
        maps = F.max_pool2d(self.conv2d_2b(self.conv2d_2a(self.conv2d_1a(images))), 3, stride=2)
        maps = self.conv2d_4b(self.conv2d_4a(self.conv2d_3b(maps)))
        maps = self.mixed_7a(self.repeat_2(self.mixed_6a(self.repeat_1(maps))))
        embeddings: Tensor = self.block8(self.repeat_3(maps)).mean((2, 3))
        return embeddings


class _Convolution(nn.Module):
    def __init__(self, inputs: int, outputs: int, kernel: Any, *, stride: int = 1, padding: int | str = 0) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=False)
        self.bn = nn.BatchNorm2d(outputs, eps=0.001)

    def forward(self, maps: Tensor) -> Tensor:
        return F.relu(self.bn(self.conv(maps)))


class _Branches(nn.Module):
    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        for number, branch in enumerate(branches):
            self.add_module(f"branch{number}", branch)

    def forward(self, maps: Tensor) -> Tensor:
        return torch.cat([branch(maps) for name, branch in self.named_children() if name.startswith("branch")], dim=1)


class _Residual(_Branches):
    """Branches whose mixture, scaled, is added to the input."""

    def __init__(self, mixed: int, outputs: int, *branches: nn.Module, scale: float, rectified: bool = True) -> None:
        super().__init__(*branches)
        self.conv2d = nn.Conv2d(mixed, outputs, 1)
        self.scale, self.rectified = scale, rectified

    def forward(self, maps: Tensor) -> Tensor:
        total = maps + self.scale * self.conv2d(super().forward(maps))
        return F.relu(total) if self.rectified else total


def _same(inputs: int, width: int, *kernels: Any) -> nn.Sequential:
    """Convolutions one after the other that keep height and width."""
    channels = [inputs] + (len(kernels) - 1) * [width]
    pairs = zip(channels, kernels, strict=True)
    return nn.Sequential(*(_Convolution(i, width, kernel, padding="same") for i, kernel in pairs))


def _block35() -> nn.Module:
    deeper = [_same(256, 32, *kernels) for kernels in ((1, 3), (1, 3, 3))]
    return _Residual(96, 256, _Convolution(256, 32, 1), *deeper, scale=0.17)


def _narrow_block(channels: int, width: int, length: int, *, scale: float, rectified: bool = True) -> nn.Module:
    """A 1×1 convolution, and one followed by a row and a column."""
    crossed = _same(channels, width, 1, (1, length), (length, 1))
    return _Residual(2 * width, channels, _Convolution(channels, width, 1), crossed, scale=scale, rectified=rectified)

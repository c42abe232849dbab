"""Inception-ResNet-v1 (Szegedy et al. 2017, figure 10), FaceNet's network.

Its layers are named as in facenet-pytorch, so that weights from there can be loaded.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

HEAD = ("last_linear", "last_bn", "logits")
"""The layers that classify faces, which we leave out."""


class InceptionResnetV1(nn.Module):
    """Maps images (n, 3, 160, 160) to embeddings (n, 1792).

    An embedding consists of the spatial means of the last feature maps, and is not
    normalised.
    """

    def __init__(self) -> None:
        super().__init__()
        self.conv2d_1a = _Convolution(3, 32, 3, stride=2)
        self.conv2d_2a = _Convolution(32, 32, 3)
        self.conv2d_2b = _Convolution(32, 64, 3, padding=1)
        self.conv2d_3b = _Convolution(64, 80, 1)
        self.conv2d_4a = _Convolution(80, 192, 3)
        self.conv2d_4b = _Convolution(192, 256, 3, stride=2)
        self.repeat_1 = nn.Sequential(*[_block35() for _ in range(5)])
        self.mixed_6a = _mixed_6a()
        self.repeat_2 = nn.Sequential(
            *[_narrow_block(896, 128, 7, scale=0.10) for _ in range(10)]
        )
        self.mixed_7a = _mixed_7a()
        self.repeat_3 = nn.Sequential(
            *[_narrow_block(1792, 192, 3, scale=0.20) for _ in range(5)]
        )
        self.block8 = _narrow_block(1792, 192, 3, scale=1.0, rectified=False)

    def forward(self, images: Tensor) -> Tensor:
        """The embeddings of `images`, (n, 1792)."""
        maps = self.conv2d_2b(self.conv2d_2a(self.conv2d_1a(images)))
        maps = F.max_pool2d(maps, 3, stride=2)
        maps = self.conv2d_4b(self.conv2d_4a(self.conv2d_3b(maps)))
        maps = self.mixed_6a(self.repeat_1(maps))
        maps = self.mixed_7a(self.repeat_2(maps))
        maps = self.block8(self.repeat_3(maps))
        embeddings: Tensor = maps.mean((2, 3))
        return embeddings


class _Convolution(nn.Module):
    """A convolution without bias, followed by batch normalisation and ReLU."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: int | tuple[int, int],
        *,
        stride: int = 1,
        padding: int | str = 0,
    ) -> None:
        super().__init__()
        options: dict[str, Any] = {"stride": stride, "padding": padding}
        self.conv = nn.Conv2d(inputs, outputs, kernel, bias=False, **options)
        self.bn = nn.BatchNorm2d(outputs, eps=0.001)

    def forward(self, maps: Tensor) -> Tensor:
        return F.relu(self.bn(self.conv(maps)))


class _Branches(nn.Module):
    """Parallel branches whose feature maps are concatenated."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        for number, branch in enumerate(branches):
            self.add_module(f"branch{number}", branch)

    def forward(self, maps: Tensor) -> Tensor:
        branches = [
            module
            for name, module in self.named_children()
            if name.startswith("branch")
        ]
        return torch.cat([branch(maps) for branch in branches], dim=1)


class _Residual(_Branches):
    """Adds its branches' maps, mixed by a 1×1 convolution and scaled, to its input."""

    def __init__(
        self,
        mixed: int,
        outputs: int,
        *branches: nn.Module,
        scale: float,
        rectified: bool = True,
    ) -> None:
        super().__init__(*branches)
        self.conv2d = nn.Conv2d(mixed, outputs, 1)
        self.scale = scale
        self.rectified = rectified

    def forward(self, maps: Tensor) -> Tensor:
        total = maps + self.scale * self.conv2d(super().forward(maps))
        return F.relu(total) if self.rectified else total


def _same_size(
    inputs: int, width: int, *kernels: int | tuple[int, int]
) -> nn.Sequential:
    """Make a chain of convolutions with `kernels` that keeps height and width."""
    layers = nn.Sequential()
    channels = inputs
    for kernel in kernels:
        layers.append(_Convolution(channels, width, kernel, padding="same"))
        channels = width
    return layers


def _halving(inputs: int, width: int, outputs: int, *kernels: int) -> nn.Sequential:
    """Make a chain as `_same_size` does, then add a 3×3 convolution with stride 2."""
    layers = _same_size(inputs, width, *kernels)
    return layers.append(_Convolution(width, outputs, 3, stride=2))


def _block35() -> nn.Module:
    # Make the 1×1 branch last, because the order determines the random weights.
    second = _same_size(256, 32, 1, 3)
    third = _same_size(256, 32, 1, 3, 3)
    first = _Convolution(256, 32, 1)
    return _Residual(96, 256, first, second, third, scale=0.17)


def _mixed_6a() -> nn.Module:
    second = _halving(256, 192, 256, 1, 3)
    first = _Convolution(256, 384, 3, stride=2)
    return _Branches(first, second, nn.MaxPool2d(3, stride=2))


def _mixed_7a() -> nn.Module:
    return _Branches(
        _halving(896, 256, 384, 1),
        _halving(896, 256, 256, 1),
        _halving(896, 256, 256, 1, 3),
        nn.MaxPool2d(3, stride=2),
    )


def _narrow_block(
    channels: int, width: int, length: int, *, scale: float, rectified: bool = True
) -> nn.Module:
    """Make a residual block with two branches.

    One branch is a 1×1 convolution; the other is a chain of a 1×1, a row and a column
    convolution.
    """
    crossed = _same_size(channels, width, 1, (1, length), (length, 1))
    return _Residual(
        2 * width,
        channels,
        _Convolution(channels, width, 1),
        crossed,
        scale=scale,
        rectified=rectified,
    )

"""Inception-ResNet-v1 (Szegedy et al. 2017, figure 10), in the form in which FaceNet's weights are passed around.

The embedding is the pooled map of 1,792 channels. Names of the parameters are those of the VGGFace2 and CASIA-WebFace
weights of facenet-pytorch, whose three last layers (`HEAD`) belong to the face identities and are left out.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

HEAD = ("last_linear", "last_bn", "logits")


class InceptionResnetV1(nn.Module):
    """Images (n, 3, 160, 160) to embeddings (n, 1792)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv2d_1a = _Convolution(3, 32, 3, stride=2)
        self.conv2d_2a = _Convolution(32, 32, 3)
        self.conv2d_2b = _Convolution(32, 64, 3, padding=1)
        self.conv2d_3b = _Convolution(64, 80, 1)
        self.conv2d_4a = _Convolution(80, 192, 3)
        self.conv2d_4b = _Convolution(192, 256, 3, stride=2)
        self.repeat_1 = nn.Sequential(*(_block35(scale=0.17) for _ in range(5)))
        self.mixed_6a = _reduction_a()
        self.repeat_2 = nn.Sequential(*(_block17(scale=0.10) for _ in range(10)))
        self.mixed_7a = _reduction_b()
        self.repeat_3 = nn.Sequential(*(_block8(scale=0.20) for _ in range(5)))
        self.block8 = _block8(scale=1.0, rectified=False)

    def forward(self, images: Tensor) -> Tensor:
        """Embeddings (n, 1792), unnormalised."""
        maps = F.max_pool2d(self.conv2d_2b(self.conv2d_2a(self.conv2d_1a(images))), 3, stride=2)
        maps = self.conv2d_4b(self.conv2d_4a(self.conv2d_3b(maps)))
        maps = self.mixed_6a(self.repeat_1(maps))
        maps = self.mixed_7a(self.repeat_2(maps))
        embeddings: Tensor = self.block8(self.repeat_3(maps)).mean((2, 3))
        return embeddings


class _Convolution(nn.Module):
    """Convolution without bias, batch normalisation, ReLU."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int | tuple[int, int], *, stride: int = 1, padding: int | str = 0
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=False)
        self.bn = nn.BatchNorm2d(outputs, eps=0.001)

    def forward(self, maps: Tensor) -> Tensor:
        return F.relu(self.bn(self.conv(maps)))


class _Branches(nn.Module):
    """Parallel branches, concatenated."""

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


def _block35(*, scale: float) -> nn.Module:
    two = nn.Sequential(_Convolution(256, 32, 1), _Convolution(32, 32, 3, padding=1))
    three = nn.Sequential(*(_Convolution(i, 32, k, padding="same") for i, k in ((256, 1), (32, 3), (32, 3))))
    return _Residual(96, 256, _Convolution(256, 32, 1), two, three, scale=scale)


def _block17(*, scale: float) -> nn.Module:
    return _Residual(256, 896, *_narrow_branches(896, 128, length=7), scale=scale)


def _block8(*, scale: float, rectified: bool = True) -> nn.Module:
    return _Residual(384, 1792, *_narrow_branches(1792, 192, length=3), scale=scale, rectified=rectified)


def _narrow_branches(inputs: int, width: int, *, length: int) -> tuple[nn.Module, nn.Module]:
    """A 1×1 convolution, and one followed by a row and a column."""
    kernels = ((inputs, 1), (width, (1, length)), (width, (length, 1)))
    crossed = nn.Sequential(*(_Convolution(i, width, kernel, padding="same") for i, kernel in kernels))
    return _Convolution(inputs, width, 1), crossed


def _reduction_a() -> nn.Module:
    deep = (_Convolution(256, 192, 1), _Convolution(192, 192, 3, padding=1), _Convolution(192, 256, 3, stride=2))
    return _Branches(_Convolution(256, 384, 3, stride=2), nn.Sequential(*deep), nn.MaxPool2d(3, stride=2))


def _reduction_b() -> nn.Module:
    first = nn.Sequential(_Convolution(896, 256, 1), _Convolution(256, 384, 3, stride=2))
    second = nn.Sequential(_Convolution(896, 256, 1), _Convolution(256, 256, 3, stride=2))
    deep = (_Convolution(896, 256, 1), _Convolution(256, 256, 3, padding=1), _Convolution(256, 256, 3, stride=2))
    return _Branches(first, second, nn.Sequential(*deep), nn.MaxPool2d(3, stride=2))

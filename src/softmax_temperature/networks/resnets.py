"""Residual networks for small images: basic blocks, bottlenecks and wide blocks, all
with a 3×3 stem.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature.networks.layers import Classifier, rectifier, redraw

STEM = 16


class CifarResNet(Classifier):
    """6 `blocks` + 2 layers in three stages (He et al. 2016, section 4.2), whose
    `widths` have even differences.
    """

    def __init__(
        self,
        blocks: int = 3,
        num_classes: int = 10,
        widths: Sequence[int] = (16, 32, 64),
    ) -> None:
        super().__init__()
        self.conv1, self.bn1 = _normalised(3, widths[0], 3, 1)
        sides = zip((widths[0], *widths), widths, (1, 2, 2), strict=False)
        self.layer1, self.layer2, self.layer3 = (
            _basic_stage(*side, blocks) for side in sides
        )
        self.linear = nn.Linear(widths[-1], num_classes)

    @property
    def classifier(self) -> nn.Linear:  # type: ignore[override]
        """The last layer; its parameters are called `linear`, as in other projects'
        weights files.
        """
        return self.linear

    def features(self, inputs: Tensor) -> Tensor:
        """The means of the last maps, (n, last width)."""
        maps = F.relu(self.bn1(self.conv1(inputs)))
        pooled: Tensor = self.layer3(self.layer2(self.layer1(maps))).mean((2, 3))
        return pooled


class BasicBlock(nn.Module):
    """Two 3×3 convolutions beside the identity, subsampled and padded with zero
    channels on both sides (option A).
    """

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = _normalised(inputs, outputs, 3, stride)
        self.conv2, self.bn2 = _normalised(outputs, outputs, 3, 1)
        self.stride, self.zero_channels = stride, outputs - inputs

    def forward(self, maps: Tensor) -> Tensor:
        """Maps (n, outputs, height / stride, width / stride)."""
        inner = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(maps)))))
        before = self.zero_channels // 2
        shortcut = maps[:, :, :: self.stride, :: self.stride]
        return F.relu(
            inner + F.pad(shortcut, (0, 0, 0, 0, before, self.zero_channels - before))
        )


def _basic_stage(inputs: int, outputs: int, stride: int, blocks: int) -> nn.Sequential:
    rest = [
        BasicBlock(outputs, outputs, 1) for _ in range(blocks - 1)
    ]  # Drawn before the first block.
    return nn.Sequential(BasicBlock(inputs, outputs, stride), *rest)


# Deviation: the focal paper's ResNet-110 cites the network with three stages of basic
# blocks; its released code trains bottlenecks (3, 4, 26, 3) instead, which is the one
# here. The cited one is `CifarResNet(blocks=18)`.
# Deviation: for Tiny-ImageNet the released code averages the last 8×8 maps to 2×2 and
# so has 8,192 features, and draws normal weights (`as_released`); by default, as for
# CIFAR, pooling is global and weights start as PyTorch's.
# Deviation: the cooling paper's ResNet-50 cites the later network of He et al. with the
# activations first and counts 23.5 million parameters. Here it is the network of the
# focal paper, 23.7 million for 100 classes: one for both papers.
# Deviation: the cooling paper does not say how a residual network takes CReLU. Here
# convolutions keep their outputs and read twice the channels, and identity shortcuts
# pass on the sum before its activation, since after it the channels would be twice
# those of the branch. The network has 47.4 million parameters for 100 classes then.


class BottleneckResNet(Classifier):
    """A residual network with 3 sum(`blocks`) + 2 layers of weights, the projections of
    shortcuts not counted.

    (3, 4, 6, 3) is ResNet-50, and (3, 4, 26, 3) what the focal paper's released code
    calls ResNet-110. `width` channels of the stem double in each further stage.
    `as_released` is the focal paper's network for Tiny-ImageNet.
    """

    def __init__(
        self,
        blocks: Sequence[int] = (3, 4, 6, 3),
        num_classes: int = 10,
        width: int = 64,
        activation: str = "relu",
        as_released: bool = False,
    ) -> None:
        super().__init__()
        build, copies = rectifier(activation)
        self.conv1, self.bn1 = _normalised(3, width, 3, 1)
        widths = [4 * width * 2**number for number in range(len(blocks))]
        self.stages = _stages(
            partial(_Bottleneck, activation=activation), width, widths, blocks
        )
        self.activation = build()
        side = 2 if as_released else 1
        self.pool = nn.AdaptiveAvgPool2d(side)
        self.flatten = nn.Flatten()
        self.classifier = nn.Linear(copies * widths[-1] * side**2, num_classes)
        if as_released:
            _draw_normal(self, "fan_out")


class _Bottleneck(nn.Module):
    """1×1, 3×3, 1×1 convolution beside a shortcut; returns the sum, whose activation
    the next block applies.
    """

    def __init__(
        self, inputs: int, outputs: int, stride: int, *, activation: str
    ) -> None:
        super().__init__()
        build, copies = rectifier(activation)
        planes = outputs // 4
        self.activation1 = build()
        self.conv1, self.bn1 = _normalised(copies * inputs, planes, 1, 1)
        self.activation2 = build()
        self.conv2, self.bn2 = _normalised(copies * planes, planes, 3, stride)
        self.activation3 = build()
        self.conv3, self.bn3 = _normalised(copies * planes, outputs, 1, 1)
        self.shortcut: nn.Module = nn.Identity()
        if projects := stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                *_normalised(copies * inputs, outputs, 1, stride)
            )
        self.passes_sum = copies > 1 and not projects

    def forward(self, total: Tensor) -> Tensor:
        maps = self.activation1(total)
        inner = self.bn2(self.conv2(self.activation2(self.bn1(self.conv1(maps)))))
        inner = self.bn3(self.conv3(self.activation3(inner)))
        following: Tensor = inner + self.shortcut(total if self.passes_sum else maps)
        return following


# Deviation: the focal paper names Wide-ResNet-26-10, a depth that the cited paper's
# rule 6 n + 4 does not allow. The released code counts 6 n + 2, without the three
# projections and with the linear layer: its 26 is the cited paper's 28, and both
# numbers build the same network here.
# Deviation: the released code applies batch normalisation and activation after each
# convolution and normalises the projections too (`as_released`); by default they come
# before, as in the cited paper.
# Deviation: the text at hand of the temperature_check paper gives neither depth and
# width of its networks nor how those without batch normalisation start. Here their
# convolutions have biases, which start at 0, and He's normal weights; the last ones of
# each residual branch are divided by the square root of the number of blocks. The mean
# square of the maps then grows by a factor of at most e over all blocks, where it would
# double in each, and no weight starts at zero, which would take gradients and tangent
# kernel from the layers below.


class WideResNet(Classifier):
    """A wide residual network (Zagoruyko and Komodakis 2016): activations first,
    `width` times 16, 32 and 64 channels.

    `depth` is 6 n + 2 for n blocks in each of the three stages, projections not
    counted, or 6 n + 4 with them. Convolutions start normal with variance 2 / fan-out,
    as in the focal paper's released code. Without batch normalisation it is 2 / fan-in,
    which keeps the size of the maps, and divided by the number of blocks in the last
    convolution of each block. `as_released` is the focal paper's released network, with
    the activations last.
    """

    def __init__(
        self,
        depth: int = 26,
        width: int = 10,
        num_classes: int = 10,
        batch_norm: bool = True,
        as_released: bool = False,
    ) -> None:
        super().__init__()
        if depth < 8 or depth % 6 not in {2, 4}:
            raise ValueError(
                f"depth must be 6 n + 2 or 6 n + 4 of at least 8, got {depth}"
            )
        if as_released and not batch_norm:
            raise ValueError(
                "as_released must be false without batch_norm, which the released network has"
            )
        blocks = (depth - 2) // 6
        first = nn.Conv2d(3, STEM, 3, padding=1, bias=not batch_norm)
        self.conv1 = (
            nn.Sequential(first, nn.BatchNorm2d(STEM), nn.ReLU())
            if as_released
            else first
        )
        widths = [STEM * width * 2**number for number in range(3)]
        block = (
            _ReleasedWideBlock
            if as_released
            else partial(_WideBlock, batch_norm=batch_norm)
        )
        self.stages = _stages(block, STEM, widths, 3 * [blocks])
        self.norm = (
            nn.BatchNorm2d(widths[-1])
            if batch_norm and not as_released
            else nn.Identity()
        )
        self.relu = nn.ReLU()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.classifier = nn.Linear(widths[-1], num_classes)
        _draw_normal(self, "fan_out" if batch_norm else "fan_in")
        for module in self.modules():
            if isinstance(module, _WideBlock) and not batch_norm:
                module.conv2.weight.data.div_((3 * blocks) ** 0.5)


class _WideBlock(nn.Module):
    """Two 3×3 convolutions beside the identity or, where the shape changes, a
    projection of the activated input.
    """

    def __init__(
        self, inputs: int, outputs: int, stride: int, *, batch_norm: bool
    ) -> None:
        super().__init__()
        norm = nn.BatchNorm2d if batch_norm else nn.Identity
        self.norm1 = norm(inputs)
        self.relu1 = nn.ReLU()
        self.conv1 = nn.Conv2d(
            inputs, outputs, 3, stride, padding=1, bias=not batch_norm
        )
        self.norm2 = norm(outputs)
        self.relu2 = nn.ReLU()
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=not batch_norm)
        self.shortcut = None
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=not batch_norm)

    def forward(self, total: Tensor) -> Tensor:
        maps = self.relu1(self.norm1(total))
        inner: Tensor = self.conv2(self.relu2(self.norm2(self.conv1(maps))))
        return inner + (self.shortcut(maps) if self.shortcut else total)


class _ReleasedWideBlock(nn.Module):
    """Two normalised 3×3 convolutions beside the identity or a normalised projection,
    activated behind the sum.
    """

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        first, second = (
            _normalised(inputs, outputs, 3, stride),
            _normalised(outputs, outputs, 3, 1),
        )
        self.inner = nn.Sequential(*first, nn.ReLU(), *second)
        same = stride == 1 and inputs == outputs
        self.shortcut = (
            nn.Sequential()
            if same
            else nn.Sequential(*_normalised(inputs, outputs, 1, stride))
        )

    def forward(self, maps: Tensor) -> Tensor:
        return F.relu(self.inner(maps) + self.shortcut(maps))


def _stages(
    block: Callable[[int, int, int], nn.Module],
    inputs: int,
    widths: Sequence[int],
    counts: Sequence[int],
) -> nn.Sequential:
    """Blocks (inputs, outputs, stride); the first of each stage but the first halves
    height and width.
    """
    stages = nn.Sequential()
    for outputs, count in zip(widths, counts, strict=True):
        first = block(inputs, outputs, 2 if len(stages) else 1)
        stages.append(
            nn.Sequential(
                first, *(block(outputs, outputs, 1) for _ in range(count - 1))
            )
        )
        inputs = outputs
    return stages


def _normalised(
    inputs: int, outputs: int, side: int, stride: int
) -> tuple[nn.Module, nn.Module]:
    convolution = nn.Conv2d(
        inputs, outputs, side, stride, padding=side // 2, bias=False
    )
    return convolution, nn.BatchNorm2d(outputs)


def _draw_normal(network: nn.Module, mode: Literal["fan_in", "fan_out"]) -> None:
    redraw(
        network,
        lambda weight: nn.init.kaiming_normal_(weight, mode=mode, nonlinearity="relu"),
        dense=False,
    )

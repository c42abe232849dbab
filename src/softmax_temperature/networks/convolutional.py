"""VGG, DenseNet, U-Net, the smallest convolutional and dense networks, and FaceNet's
Inception-ResNet-v1.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature.networks.layers import (
    Classifier,
    check_choice,
    rectifier,
    redraw,
)

# Deviation: the cooling paper gives the widths and about 620,000 parameters for 32×32
# images and 10 classes, but not the padding, the pooling or whether there is
# normalisation. With zero padding, max-pooling after each pair and no normalisation,
# the candidates have 550,570 (ReLU, flatten), 304,810 (ReLU, average), 1,099,690
# (CReLU, flatten) and 608,170 parameters (CReLU, average). None is 620,000; "flatten"
# is the default as VGG's own, and the nearest for ReLU.
# Deviation: the paper trains in TensorFlow and does not say how weights start; here
# they do as Keras draws them if nothing is said, uniform within ±sqrt(6 / (fan-in +
# fan-out)), biases 0. PyTorch's own start is smaller: after an epoch with a learning
# rate of 0.01 this network still guesses (loss 2.303), a temperature fitted to it is
# noise (0.07 to 0.22 in two trainings), and Cooling then acts as a larger step.


class SmallVGG(Classifier):
    """3×3 convolutions with max-pooling after each pair, a dense layer and the
    classifier.

    Every hidden layer is followed by the activation, "relu" or "crelu"; after CReLU,
    the next layer reads twice the channels. With `batch_norm`, each convolution has no
    bias and is followed by batch normalisation. The dense layer reads every value of
    the last maps (`pooling` "flatten") or each map's mean ("average"). Images have
    `image_size` pixels in height and width, which each max-pooling halves, rounding
    down.
    """

    def __init__(
        self,
        num_classes: int = 10,
        activation: str = "relu",
        pooling: str = "flatten",
        batch_norm: bool = False,
        widths: Sequence[int] = (32, 32, 64, 64, 128, 128),
        dense: int = 128,
        image_size: int = 32,
    ) -> None:
        super().__init__()
        build, copies = rectifier(activation)
        check_choice("pooling", pooling, ("flatten", "average"))
        self.convolutions = nn.Sequential()
        inputs = 3
        for number, width in enumerate(widths, start=1):
            self.convolutions.append(
                nn.Conv2d(inputs, width, 3, padding=1, bias=not batch_norm)
            )
            if batch_norm:
                self.convolutions.append(nn.BatchNorm2d(width))
            # An activation that never falls commutes with the maximum, bit by bit and
            # in its gradient, and behind it has a quarter of the values. CReLU falls:
            # the maximum of -x is not minus the maximum of x.
            pool = [nn.MaxPool2d(2)] if number % 2 == 0 else []
            self.convolutions.extend(
                [*pool, build()] if activation == "relu" else [build(), *pool]
            )
            inputs = copies * width
        self.pool = nn.Identity() if pooling == "flatten" else nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        side = image_size >> (len(widths) // 2) if pooling == "flatten" else 1
        self.dense = nn.Linear(inputs * side**2, dense)
        self.activation = build()
        self.classifier = nn.Linear(copies * dense, num_classes)
        redraw(self, nn.init.xavier_uniform_)


class DenseNet(Classifier):
    """A 3×3 stem, dense blocks of `growth` maps a layer, halving transitions, a
    classifier; by default DenseNet-121.
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
            if number:
                convolution = nn.Conv2d(channels, channels // 2, 1, bias=False)
                self.stages.append(
                    nn.Sequential(
                        nn.BatchNorm2d(channels),
                        nn.ReLU(),
                        convolution,
                        nn.AvgPool2d(2),
                    )
                )
                channels //= 2
            self.stages.append(
                nn.Sequential(
                    *(_DenseLayer(channels + i * growth, growth) for i in range(layers))
                )
            )
            channels += layers * growth
        self.norm = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.classifier = nn.Linear(channels, num_classes)


class _DenseLayer(nn.Module):
    """A 1×1 and a 3×3 convolution, each after normalisation and ReLU; their maps are
    appended to the input.
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
        return torch.cat((maps, self.conv2(self.relu2(self.norm2(inner)))), dim=1)


# Deviation: the cooling paper says only that its U-Net is small, has about 9 million
# parameters and sees 256×256 images. Here it is the cited network with 34 instead of 64
# channels at full size, which makes 8.8 million; with zero padding, so that the logits
# have the size of the images, and with batch normalisation after each 3×3 convolution.


class UNet(Classifier):
    """Logits for every pixel: four halvings, four up-convolutions, each joined with the
    halvings' maps of its size.
    """

    def __init__(self, num_classes: int = 150, width: int = 34) -> None:
        super().__init__()
        levels = [(width * 2**level, width * 2 ** (level + 1)) for level in range(4)]
        self.stem = _two_convolutions(3, width)
        self.pool = nn.MaxPool2d(2)
        self.encoders = nn.ModuleList(
            _two_convolutions(above, below) for above, below in levels
        )
        self.enlargers = nn.ModuleList(
            nn.ConvTranspose2d(below, above, 2, 2) for above, below in reversed(levels)
        )
        self.decoders = nn.ModuleList(
            _two_convolutions(2 * above, above) for above, _ in reversed(levels)
        )
        self.classifier = nn.Conv2d(width, num_classes, 1)

    def features(self, inputs: Tensor) -> Tensor:
        """Maps (n, width, h, w) of images (n, 3, h, w), both multiples of 16; the
        logits are (n, num_classes, h, w).
        """
        passed: list[Tensor] = [self.stem(inputs)]
        for encode in self.encoders:
            passed.append(encode(self.pool(passed[-1])))
        maps = passed.pop()
        for enlarge, decode in zip(self.enlargers, self.decoders, strict=True):
            maps = decode(torch.cat((passed.pop(), enlarge(maps)), dim=1))
        return maps


def _two_convolutions(inputs: int, outputs: int) -> nn.Sequential:
    layers = nn.Sequential()
    for channels in (inputs, outputs):
        convolution = nn.Conv2d(channels, outputs, 3, padding=1, bias=False)
        layers.extend([convolution, nn.BatchNorm2d(outputs), nn.ReLU()])
    return layers


ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "relu": nn.ReLU}

# Deviation: the text at hand of the temperature_check paper names no dense network.
# This one is ours: the smallest with a smooth activation (tanh), whose tangent kernel
# changes in proportion to its weights, and with ReLU beside it. Nor does it name a
# small convolutional network; ours strides where others pool, because a maximum has
# kinks of its own.


class MLP(Classifier):
    """Dense layers, each followed by the activation; normal weights with variance 1 /
    fan-in, with ReLU 2 / fan-in.
    """

    def __init__(
        self,
        num_classes: int = 10,
        widths: Sequence[int] = (64, 64),
        activation: str = "tanh",
        image_size: int = 8,
    ) -> None:
        super().__init__()
        check_choice("activation", activation, ACTIVATIONS)
        self.hidden = nn.Sequential(nn.Flatten())
        sides = [3 * image_size**2, *widths]
        for inputs, width in pairwise(sides):
            self.hidden.extend([nn.Linear(inputs, width), ACTIVATIONS[activation]()])
        self.classifier = nn.Linear(sides[-1], num_classes)
        _draw_fan_in(self, activation)


class ConvNet(Classifier):
    """3×3 convolutions with stride 2 and the activation, and a classifier of flattened
    maps; weights as of `MLP`.
    """

    def __init__(
        self,
        num_classes: int = 10,
        widths: Sequence[int] = (8, 16),
        activation: str = "tanh",
        image_size: int = 8,
    ) -> None:
        super().__init__()
        check_choice("activation", activation, ACTIVATIONS)
        self.convolutions = nn.Sequential()
        for inputs, width in pairwise([3, *widths]):
            self.convolutions.extend(
                [
                    nn.Conv2d(inputs, width, 3, stride=2, padding=1),
                    ACTIVATIONS[activation](),
                ]
            )
        self.flatten = nn.Flatten()
        side = -(-image_size // 2 ** len(widths))
        self.classifier = nn.Linear([3, *widths][-1] * side**2, num_classes)
        _draw_fan_in(self, activation)


def _draw_fan_in(network: nn.Module, activation: str) -> None:
    factor = 2.0 if activation == "relu" else 1.0
    redraw(
        network, lambda weight: weight.normal_(std=(factor / weight[0].numel()) ** 0.5)
    )


# Inception-ResNet-v1 (Szegedy et al. 2017, figure 10) has the names of
# facenet-pytorch's weights. These layers, for the face identities, are left out.
HEAD = ("last_linear", "last_bn", "logits")


class InceptionResnetV1(nn.Module):
    """Images (n, 3, 160, 160) to embeddings (n, 1792), the means of the last maps,
    unnormalised.
    """

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
        self.mixed_6a = _Branches(
            _Convolution(256, 384, 3, stride=2), deep, nn.MaxPool2d(3, stride=2)
        )
        self.repeat_2 = nn.Sequential(
            *(_narrow_block(896, 128, 7, scale=0.10) for _ in range(10))
        )
        ends = (((1,), 384), ((1,), 256), ((1, 3), 256))
        branches = (
            _same(896, 256, *k).append(_Convolution(256, o, 3, stride=2))
            for k, o in ends
        )
        self.mixed_7a = _Branches(*branches, nn.MaxPool2d(3, stride=2))
        self.repeat_3 = nn.Sequential(
            *(_narrow_block(1792, 192, 3, scale=0.20) for _ in range(5))
        )
        self.block8 = _narrow_block(1792, 192, 3, scale=1.0, rectified=False)

    def forward(self, images: Tensor) -> Tensor:
        """Embeddings (n, 1792)."""
        maps = F.max_pool2d(
            self.conv2d_2b(self.conv2d_2a(self.conv2d_1a(images))), 3, stride=2
        )
        maps = self.conv2d_4b(self.conv2d_4a(self.conv2d_3b(maps)))
        maps = self.mixed_7a(self.repeat_2(self.mixed_6a(self.repeat_1(maps))))
        embeddings: Tensor = self.block8(self.repeat_3(maps)).mean((2, 3))
        return embeddings


class _Convolution(nn.Module):
    def __init__(
        self,
        inputs: int,
        outputs: int,
        kernel: Any,
        *,
        stride: int = 1,
        padding: int | str = 0,
    ) -> None:
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
        return torch.cat(
            [
                branch(maps)
                for name, branch in self.named_children()
                if name.startswith("branch")
            ],
            dim=1,
        )


class _Residual(_Branches):
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
        self.scale, self.rectified = scale, rectified

    def forward(self, maps: Tensor) -> Tensor:
        total = maps + self.scale * self.conv2d(super().forward(maps))
        return F.relu(total) if self.rectified else total


def _same(inputs: int, width: int, *kernels: Any) -> nn.Sequential:
    """Convolutions one after the other that keep height and width."""
    channels = [inputs] + (len(kernels) - 1) * [width]
    pairs = zip(channels, kernels, strict=True)
    return nn.Sequential(
        *(_Convolution(i, width, kernel, padding="same") for i, kernel in pairs)
    )


def _block35() -> nn.Module:
    deeper = [_same(256, 32, *kernels) for kernels in ((1, 3), (1, 3, 3))]
    return _Residual(96, 256, _Convolution(256, 32, 1), *deeper, scale=0.17)


def _narrow_block(
    channels: int, width: int, length: int, *, scale: float, rectified: bool = True
) -> nn.Module:
    """A 1×1 convolution, and one followed by a row and a column."""
    crossed = _same(channels, width, 1, (1, length), (length, 1))
    return _Residual(
        2 * width,
        channels,
        _Convolution(channels, width, 1),
        crossed,
        scale=scale,
        rectified=rectified,
    )

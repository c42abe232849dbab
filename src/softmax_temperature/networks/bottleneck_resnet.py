"""Residual networks of bottleneck blocks: ResNet-50 and its relatives."""

from collections.abc import Sequence

from torch import Tensor, nn

from softmax_temperature.networks.layers import Classifier, rectifier
from softmax_temperature.networks.residual import (
    draw_he_normal,
    normalised_convolution,
    residual_stages,
)

# The inner convolutions of a block have a quarter of its output channels.
_EXPANSION = 4

# Deviation: for ResNet-110 we train bottlenecks (3, 4, 26, 3), like the focal paper's
# released code. The paper cites the network with three stages of basic blocks, which is
# `CifarResNet(blocks=18)`.
# Deviation: for Tiny-ImageNet, as for CIFAR, pooling is global by default and initial
# weights are PyTorch's default. The released code averages the last 8×8 feature maps to
# 2×2, which gives 8,192 features, and draws initial weights from a normal distribution
# (`as_released`).
# Deviation: with CReLU, which no paper uses in this network, our convolutions have as
# many output channels as with ReLU, and twice as many input channels. Identity
# shortcuts pass on the sum before its activation, because the activated sum would have
# twice the branch's channels.


class BottleneckResNet(Classifier):
    """A residual network with 3 sum(`blocks`) + 2 layers, not counting projections.

    (3, 4, 6, 3) is ResNet-50, and (3, 4, 26, 3) the focal paper's ResNet-110.

    Args:
        blocks: Blocks per stage.
        num_classes: The number of logits.
        width: Channels of the stem. The first stage has four times as many, and each
            later stage twice as many as the one before.
        activation: "relu" or "crelu".
        as_released: Whether to build the network that the focal paper's released code
            uses for Tiny-ImageNet.
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
        make_activation, copies = rectifier(activation)
        self.conv1, self.bn1 = normalised_convolution(3, width, 3, 1)
        widths = [_EXPANSION * width * 2**number for number in range(len(blocks))]

        def make_block(inputs: int, outputs: int, stride: int) -> nn.Module:
            return _Bottleneck(inputs, outputs, stride, activation=activation)

        self.stages = residual_stages(make_block, width, widths, blocks)
        self.activation = make_activation()
        side = 2 if as_released else 1
        self.pool = nn.AdaptiveAvgPool2d(side)
        self.flatten = nn.Flatten()
        features = copies * widths[-1] * side**2
        self.classifier = nn.Linear(features, num_classes)
        if as_released:
            draw_he_normal(self, "fan_out")


class _Bottleneck(nn.Module):
    """A 1×1, a 3×3 and a 1×1 convolution with a shortcut around them.

    The block returns the sum; the next block applies the activation.
    """

    def __init__(
        self, inputs: int, outputs: int, stride: int, *, activation: str
    ) -> None:
        super().__init__()
        make_activation, copies = rectifier(activation)
        planes = outputs // _EXPANSION
        self.activation1 = make_activation()
        self.conv1, self.bn1 = normalised_convolution(copies * inputs, planes, 1, 1)
        self.activation2 = make_activation()
        self.conv2, self.bn2 = normalised_convolution(
            copies * planes, planes, 3, stride
        )
        self.activation3 = make_activation()
        self.conv3, self.bn3 = normalised_convolution(copies * planes, outputs, 1, 1)
        changes_shape = stride != 1 or inputs != outputs
        self.shortcut: nn.Module = nn.Identity()
        if changes_shape:
            projection = normalised_convolution(copies * inputs, outputs, 1, stride)
            self.shortcut = nn.Sequential(*projection)
        self.passes_sum = copies > 1 and not changes_shape

    def forward(self, total: Tensor) -> Tensor:
        maps = self.activation1(total)
        inner = self.bn1(self.conv1(maps))
        inner = self.bn2(self.conv2(self.activation2(inner)))
        inner = self.bn3(self.conv3(self.activation3(inner)))
        next_total: Tensor = inner + self.shortcut(total if self.passes_sum else maps)
        return next_total

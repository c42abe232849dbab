"""Bottleneck ResNets that normalise and activate before convolving (He et al. 2016b).

Other residual networks normalise and activate after each convolution.
"""

from collections.abc import Sequence

from torch import Tensor, nn

from softmax_temperature.networks.layers import Classifier, rectifier
from softmax_temperature.networks.residual import residual_stages

# The inner convolutions of a block have a quarter of its output channels.
_EXPANSION = 4

# Deviation: for 32×32 images our stem is one 3×3 convolution, and nothing is pooled
# before the last feature maps, as in the cited paper's own networks for CIFAR. The
# network then has 23.5 million parameters below its last layer, which is the cooling
# paper's count. The cooling paper does not say how it adapts the network, which was
# designed for 224×224 images.
# Deviation: with CReLU our convolutions have as many output channels as with ReLU, and
# twice as many input channels; the sums on the identity path are not activated and keep
# their channels. The cooling paper does not say how a residual network uses CReLU.


class PreactivationResNet(Classifier):
    """A residual network with 3 sum(`blocks`) + 2 layers, not counting projections.

    (3, 4, 6, 3) is ResNet-50. Each convolution except the stem reads normalised and
    activated feature maps, and the next block receives the sums unchanged.

    Args:
        blocks: Blocks per stage.
        num_classes: The number of logits.
        width: Channels of the stem. The first stage has four times as many, and each
            later stage twice as many as the one before.
        activation: "relu" or "crelu".
    """

    def __init__(
        self,
        blocks: Sequence[int] = (3, 4, 6, 3),
        num_classes: int = 10,
        width: int = 64,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        make_activation, copies = rectifier(activation)
        self.conv1 = nn.Conv2d(3, width, 3, padding=1, bias=False)
        widths = [_EXPANSION * width * 2**number for number in range(len(blocks))]

        def make_block(inputs: int, outputs: int, stride: int) -> nn.Module:
            return _PreactivationBottleneck(inputs, outputs, stride, activation)

        self.stages = residual_stages(make_block, width, widths, blocks)
        self.norm = nn.BatchNorm2d(widths[-1])
        self.activation = make_activation()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.classifier = nn.Linear(copies * widths[-1], num_classes)


class _PreactivationBottleneck(nn.Module):
    """A 1×1, a 3×3 and a 1×1 convolution with an identity shortcut around them.

    Where the shape changes, a projection of the activated input replaces the identity.
    """

    def __init__(self, inputs: int, outputs: int, stride: int, activation: str) -> None:
        super().__init__()
        make_activation, copies = rectifier(activation)
        planes = outputs // _EXPANSION
        self.norm1 = nn.BatchNorm2d(inputs)
        self.activation1 = make_activation()
        self.conv1 = nn.Conv2d(copies * inputs, planes, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(planes)
        self.activation2 = make_activation()
        self.conv2 = nn.Conv2d(
            copies * planes, planes, 3, stride, padding=1, bias=False
        )
        self.norm3 = nn.BatchNorm2d(planes)
        self.activation3 = make_activation()
        self.conv3 = nn.Conv2d(copies * planes, outputs, 1, bias=False)
        self.shortcut = None
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Conv2d(copies * inputs, outputs, 1, stride, bias=False)

    def forward(self, total: Tensor) -> Tensor:
        maps = self.activation1(self.norm1(total))
        inner = self.conv1(maps)
        inner = self.conv2(self.activation2(self.norm2(inner)))
        inner = self.conv3(self.activation3(self.norm3(inner)))
        shortcut = total if self.shortcut is None else self.shortcut(maps)
        next_total: Tensor = inner + shortcut
        return next_total

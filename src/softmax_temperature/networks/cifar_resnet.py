"""The residual network of He et al. 2016, section 4.2, for 32×32 images."""

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature.networks.layers import Classifier
from softmax_temperature.networks.residual import normalised_convolution


class CifarResNet(Classifier):
    """A residual network with 6 `blocks` + 2 layers in three stages.

    Args:
        blocks: Basic blocks per stage.
        num_classes: The number of logits.
        widths: Channels of each stage.
    """

    def __init__(
        self,
        blocks: int = 3,
        num_classes: int = 10,
        widths: Sequence[int] = (16, 32, 64),
    ) -> None:
        super().__init__()
        first, second, third = widths
        self.conv1, self.bn1 = normalised_convolution(3, first, 3, 1)
        self.layer1 = _stage(first, first, 1, blocks)
        self.layer2 = _stage(first, second, 2, blocks)
        self.layer3 = _stage(second, third, 2, blocks)
        self.linear = nn.Linear(third, num_classes)

    @property
    def classifier(self) -> nn.Linear:  # type: ignore[override]
        """The last layer, which is named `linear` as in other projects' weights."""
        return self.linear

    def features(self, inputs: Tensor) -> Tensor:
        """The spatial means of the last feature maps, with shape (n, channels)."""
        maps = F.relu(self.bn1(self.conv1(inputs)))
        maps = self.layer3(self.layer2(self.layer1(maps)))
        means: Tensor = maps.mean((2, 3))
        return means


class BasicBlock(nn.Module):
    """Two 3×3 convolutions with an identity shortcut around them.

    Where the shape changes, the identity is subsampled, and zero channels are added
    before and after its own channels (option A).
    """

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = normalised_convolution(inputs, outputs, 3, stride)
        self.conv2, self.bn2 = normalised_convolution(outputs, outputs, 3, 1)
        self.stride = stride
        self.zero_channels = outputs - inputs

    def forward(self, maps: Tensor) -> Tensor:
        """The output maps, of shape (n, outputs, height / stride, width / stride)."""
        inner = F.relu(self.bn1(self.conv1(maps)))
        inner = self.bn2(self.conv2(inner))
        shortcut = maps[:, :, :: self.stride, :: self.stride]
        before = self.zero_channels // 2
        after = self.zero_channels - before
        return F.relu(inner + F.pad(shortcut, (0, 0, 0, 0, before, after)))


def _stage(inputs: int, outputs: int, stride: int, blocks: int) -> nn.Sequential:
    # Make the first block last, as earlier versions did, because the order in which
    # weights are drawn determines their values.
    rest = [BasicBlock(outputs, outputs, 1) for _ in range(blocks - 1)]
    return nn.Sequential(BasicBlock(inputs, outputs, stride), *rest)

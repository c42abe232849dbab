"""Wide residual networks (Zagoruyko and Komodakis 2016)."""

from torch import Tensor, nn
from torch.nn import functional as F

from softmax_temperature.networks.layers import Classifier
from softmax_temperature.networks.residual import (
    draw_he_normal,
    normalised_convolution,
    residual_stages,
)

STEM = 16
"""Channels of the first convolution."""
_STAGES = 3

# Deviation: the depths 26 and 28 build the same network, with n = 4 blocks per stage.
# The focal paper names Wide-ResNet-26-10, but depths in the cited paper are 6 n + 4,
# which 26 is not. The reason is that the focal paper's released code counts different
# layers: the stem, two convolutions in each of 3 n blocks, and the linear layer, 6 n +
# 2 in all. The cited paper counts the three projections instead of the linear layer.
# The network of depth 26 in the released code therefore has depth 28 in the cited
# paper.
# Deviation: by default batch normalisation and activation come before each convolution,
# as in the cited paper. The released code applies them after each convolution and
# normalises the projections too (`as_released`).
# Deviation: without batch normalisation our convolutions have biases, which start at 0,
# and initial weights from He's normal distribution; the initial weights of the last
# convolution of each residual branch are divided by the square root of the number of
# blocks. The mean square of the activations then grows by a factor of at most e over
# all blocks, instead of doubling in each block. No weight starts at zero, because zeros
# would remove gradients and the tangent kernel from the layers below. Our copy of the
# temperature_check paper gives neither the depth and width of its networks nor the
# initial weights of those without batch normalisation.


class WideResNet(Classifier):
    """A wide residual network, which by default activates before each convolution.

    The initial weights of convolutions are normal with variance 2 / fan-out, as in the
    focal paper's released code. Without batch normalisation the variance is 2 / fan-in,
    which preserves the magnitude of the activations; in the last convolution of each
    block, the variance is also divided by the number of blocks.

    Args:
        depth: 6 n + 2 or, as the cited paper counts layers, 6 n + 4; both build n
            blocks in each of the three stages.
        width: The stages have `width` times 16, 32 and 64 channels.
        num_classes: The number of logits.
        batch_norm: Whether to use batch normalisation.
        as_released: Whether to build the network of the focal paper's released code,
            which normalises and activates after each convolution.

    Raises:
        ValueError: If no network has that depth, or `as_released` is used without
            `batch_norm`.
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
                f"depth must be at least 8 and equal 6 n + 2 or 6 n + 4, got {depth}"
            )
        if as_released and not batch_norm:
            raise ValueError(
                "as_released requires batch_norm, because the released network has it"
            )
        blocks = (depth - 2) // 6
        widths = [STEM * width * 2**number for number in range(_STAGES)]

        def make_block(inputs: int, outputs: int, stride: int) -> nn.Module:
            if as_released:
                return _ReleasedWideBlock(inputs, outputs, stride)
            return _WideBlock(inputs, outputs, stride, batch_norm=batch_norm)

        self.conv1 = _stem(batch_norm=batch_norm, as_released=as_released)
        self.stages = residual_stages(make_block, STEM, widths, _STAGES * [blocks])
        self.norm: nn.Module = nn.Identity()
        if batch_norm and not as_released:
            self.norm = nn.BatchNorm2d(widths[-1])
        self.relu = nn.ReLU()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.classifier = nn.Linear(widths[-1], num_classes)
        draw_he_normal(self, "fan_out" if batch_norm else "fan_in")
        if not batch_norm:
            self._shrink_branches(_STAGES * blocks)

    def _shrink_branches(self, blocks: int) -> None:
        """Divide the variance of each branch's last weights by the number of blocks."""
        for module in self.modules():
            if isinstance(module, _WideBlock):
                module.conv2.weight.data.div_(blocks**0.5)


def _stem(*, batch_norm: bool, as_released: bool) -> nn.Module:
    convolution = nn.Conv2d(3, STEM, 3, padding=1, bias=not batch_norm)
    if as_released:
        return nn.Sequential(convolution, nn.BatchNorm2d(STEM), nn.ReLU())
    return convolution


class _WideBlock(nn.Module):
    """Two 3×3 convolutions with an identity shortcut around them.

    Where the shape changes, a projection of the activated input replaces the identity.
    """

    def __init__(
        self, inputs: int, outputs: int, stride: int, *, batch_norm: bool
    ) -> None:
        super().__init__()
        norm = nn.BatchNorm2d if batch_norm else nn.Identity
        bias = not batch_norm
        self.norm1 = norm(inputs)
        self.relu1 = nn.ReLU()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=bias)
        self.norm2 = norm(outputs)
        self.relu2 = nn.ReLU()
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=bias)
        self.shortcut = None
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=bias)

    def forward(self, total: Tensor) -> Tensor:
        maps = self.relu1(self.norm1(total))
        inner = self.conv1(maps)
        inner = self.conv2(self.relu2(self.norm2(inner)))
        shortcut = total if self.shortcut is None else self.shortcut(maps)
        next_total: Tensor = inner + shortcut
        return next_total


class _ReleasedWideBlock(nn.Module):
    """Two normalised 3×3 convolutions and a shortcut; their sum is activated.

    The shortcut is the identity, or a normalised projection where the shape changes.
    """

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        first = normalised_convolution(inputs, outputs, 3, stride)
        second = normalised_convolution(outputs, outputs, 3, 1)
        self.inner = nn.Sequential(*first, nn.ReLU(), *second)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            projection = normalised_convolution(inputs, outputs, 1, stride)
            self.shortcut = nn.Sequential(*projection)

    def forward(self, maps: Tensor) -> Tensor:
        return F.relu(self.inner(maps) + self.shortcut(maps))

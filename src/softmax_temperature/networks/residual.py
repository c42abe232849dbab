"""Parts that the residual networks share."""

from collections.abc import Callable, Sequence
from typing import Literal

from torch import Tensor, nn

from softmax_temperature.networks.layers import redraw

MakeBlock = Callable[[int, int, int], nn.Module]
"""Makes a block from its input channels, output channels and stride."""


def normalised_convolution(
    inputs: int, outputs: int, side: int, stride: int
) -> tuple[nn.Module, nn.Module]:
    """Make a zero-padded convolution without bias, and a batch normalisation for it."""
    convolution = nn.Conv2d(
        inputs, outputs, side, stride, padding=side // 2, bias=False
    )
    return convolution, nn.BatchNorm2d(outputs)


def residual_stages(
    make_block: MakeBlock, inputs: int, widths: Sequence[int], counts: Sequence[int]
) -> nn.Sequential:
    """Make stages of `counts` blocks with `widths` channels.

    Every stage except the first starts with a block that halves height and width.
    """
    stages = nn.Sequential()
    for outputs, count in zip(widths, counts, strict=True):
        stride = 2 if len(stages) else 1
        blocks = [make_block(inputs, outputs, stride)]
        blocks += [make_block(outputs, outputs, 1) for _ in range(count - 1)]
        stages.append(nn.Sequential(*blocks))
        inputs = outputs
    return stages


def draw_he_normal(network: nn.Module, mode: Literal["fan_in", "fan_out"]) -> None:
    """Redraw convolutions' weights with variance 2 / fan, and set their biases to 0."""

    def draw(weight: Tensor) -> None:
        nn.init.kaiming_normal_(weight, mode=mode, nonlinearity="relu")

    redraw(network, draw, dense=False)

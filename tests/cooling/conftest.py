"""Small random networks of every kind that Cooling supports, in float64.

Their batch-norm layers have non-trivial running statistics.
"""

import gc
from collections.abc import Callable, Sequence

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature.networks.bottleneck_resnet import BottleneckResNet
from softmax_temperature.networks.cifar_resnet import CifarResNet
from softmax_temperature.networks.densenet import DenseNet
from softmax_temperature.networks.layers import CReLU
from softmax_temperature.networks.preactivation_resnet import PreactivationResNet
from softmax_temperature.networks.unet import UNet
from softmax_temperature.networks.vgg import SmallVGG
from softmax_temperature.networks.wide_resnet import WideResNet

CLASSES = 4
MakeNetwork = Callable[..., nn.Module]


class Residual(nn.Module):
    """Two convolutions plus the input, which is projected if the number of channels
    changes.
    """

    def __init__(self, inputs: int, outputs: int, *, norm: bool) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(outputs) if norm else nn.Identity()
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(outputs) if norm else nn.Identity()
        self.shortcut = (
            nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1)
        )

    def forward(self, maps: Tensor) -> Tensor:
        inner = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(maps)))))
        inner += self.shortcut(maps)
        return F.relu(inner)


class Appended(nn.Module):
    """Concatenates the input and the output of a convolution."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs - inputs, 3, padding=1, bias=False)

    def forward(self, maps: Tensor) -> Tensor:
        return torch.cat((maps, self.conv(maps).relu()), dim=1)


# Each function takes the number of input channels, and returns a block and its number
# of output channels.
BLOCKS: dict[str, Callable[[int], tuple[nn.Module, int]]] = {
    "convolution": lambda channels: (nn.Conv2d(channels, 5, 3, padding=1), 5),
    "batch norm": lambda channels: (nn.BatchNorm2d(channels), channels),
    "ReLU": lambda channels: (nn.ReLU(), channels),
    "CReLU": lambda channels: (CReLU(), 2 * channels),
    "tanh": lambda channels: (nn.Tanh(), channels),
    "GELU": lambda channels: (nn.GELU(), channels),
    "SiLU": lambda channels: (nn.SiLU(inplace=True), channels),
    "group norm": lambda channels: (nn.GroupNorm(1, channels), channels),
    "average": lambda channels: (nn.AvgPool2d(3, 1, 1), channels),
    "identity shortcut": lambda channels: (
        Residual(channels, channels, norm=False),
        channels,
    ),
    "normed shortcut": lambda channels: (
        Residual(channels, channels, norm=True),
        channels,
    ),
    "projection": lambda channels: (
        Residual(channels, channels + 1, norm=True),
        channels + 1,
    ),
    "append": lambda channels: (Appended(channels, channels + 2), channels + 2),
}


def stacked(names: Sequence[str]) -> nn.Module:
    """A stack of blocks, followed by global average pooling and a dense layer."""
    network = nn.Sequential()
    channels = 3
    for name in names:
        block, channels = BLOCKS[name](channels)
        network.append(block)
    return network.extend(
        [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES)]
    )


class MixerBlock(nn.Module):
    """Layer norm and two dense layers with GELU, plus the input, as in transformers."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 2 * width)
        self.activation = nn.GELU()
        self.narrow = nn.Linear(2 * width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        inner = self.narrow(self.activation(self.wide(self.norm(tokens))))
        return tokens + inner


def mixer() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 6, 4, stride=4),
        nn.Flatten(2),
        nn.Linear(4, 5),
        nn.SiLU(),
        MixerBlock(5),
        MixerBlock(5),
        nn.Flatten(),
        nn.LayerNorm(30),
        nn.Linear(30, CLASSES),
    )


def plain(
    activation: Callable[[], nn.Module] = nn.ReLU,
    copies: int = 1,
    *,
    norm: bool = False,
) -> nn.Module:
    def block(inputs: int, outputs: int) -> list[nn.Module]:
        normed: list[nn.Module] = [nn.BatchNorm2d(outputs)] if norm else []
        return [nn.Conv2d(inputs, outputs, 3, padding=1), *normed, activation()]

    maps = [
        *block(3, 4),
        nn.MaxPool2d(2),
        *block(4 * copies, 6),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.2),
    ]
    return nn.Sequential(
        *maps, nn.Linear(24 * copies, 8), activation(), nn.Linear(8 * copies, CLASSES)
    )


def residual(*, norm: bool) -> nn.Module:
    blocks = [
        Residual(4, 4, norm=norm),
        Residual(4, 6, norm=norm),
        Residual(6, 6, norm=norm),
    ]
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1),
        *blocks,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(6, CLASSES),
    )


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "dense": lambda: nn.Sequential(
        nn.Flatten(), nn.Linear(192, 7), nn.PReLU(), nn.Linear(7, CLASSES)
    ),
    "plain": plain,
    "plain with batch norm": lambda: plain(norm=True),
    "CReLU": lambda: plain(CReLU, 2),
    "tanh": lambda: plain(nn.Tanh),
    "GELU with batch norm": lambda: plain(nn.GELU, norm=True),
    "layer norms and GELU": mixer,
    "residual": lambda: residual(norm=False),
    "residual with batch norm": lambda: residual(norm=True),
    "CifarResNet": lambda: CifarResNet(1, CLASSES, widths=(4, 6, 8)),
    "VGG with CReLU and batch norm": lambda: SmallVGG(
        CLASSES,
        "crelu",
        "average",
        batch_norm=True,
        widths=(4, 4),
        dense=8,
        image_size=8,
    ),
    "U-Net": lambda: UNet(CLASSES, width=3),
    "bottlenecks with CReLU": lambda: BottleneckResNet((1, 2), CLASSES, 2, "crelu"),
    "bottlenecks, activations first": lambda: PreactivationResNet((1, 2), CLASSES, 2),
    "WideResNet": lambda: WideResNet(8, 1, CLASSES),
    "DenseNet": lambda: DenseNet((2, 2), growth=3, num_classes=CLASSES),
}


@pytest.fixture(scope="module", autouse=True)
def _only_own_objects_are_searched() -> None:
    """Keep Cooling from searching objects that existed before a module's tests.

    After anything has been compiled, Cooling searches the garbage collector's objects
    for compiled networks. Most of the objects that existed before a module's tests
    belong to libraries, and need not be searched for every network.
    """
    gc.freeze()


@pytest.fixture(scope="session")
def make_network() -> MakeNetwork:
    """A function that builds a network by name, or from blocks, in evaluation mode."""

    def make(name: str | Sequence[str], seed: int = 0) -> nn.Module:
        torch.manual_seed(seed)
        network = (
            (NETWORKS[name]() if isinstance(name, str) else stacked(name))
            .double()
            .eval()
        )
        with torch.no_grad():
            for module in network.modules():
                if (
                    isinstance(module, nn.BatchNorm2d)
                    and module.running_mean is not None
                ):
                    assert module.running_var is not None
                    module.running_mean.normal_()
                    module.running_var.uniform_(0.01, 2)
                    module.weight.uniform_(0.5, 1.5)
                    module.bias.normal_(0, 0.3)
        return network

    return make


@pytest.fixture(params=NETWORKS)
def network(request: pytest.FixtureRequest, make_network: MakeNetwork) -> nn.Module:
    return make_network(request.param)


@pytest.fixture(scope="session")
def images() -> Tensor:
    return torch.randn(
        12, 3, 8, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )


@pytest.fixture
def images_for(images: Tensor) -> Callable[[nn.Module], Tensor]:
    """A function that returns the images in the size that a network expects."""
    return lambda network: (
        images.repeat(1, 1, 2, 2) if isinstance(network, UNet) else images
    )


@pytest.fixture(scope="session")
def uncertain_labels() -> Callable[[Tensor], Tensor]:
    """A function that makes labels for logits of shape (n, classes, ...), such that the
    best temperature is finite.

    Of every three labels, two are the class of the largest logit, and one is the class
    of the second largest logit.
    """

    def label(logits: Tensor) -> Tensor:
        ranked = logits.topk(2, dim=1).indices
        largest = ranked[:, 0]
        every_third = torch.arange(largest.numel()) % 3 == 2
        return torch.where(every_third.view(largest.shape), ranked[:, 1], largest)

    return label

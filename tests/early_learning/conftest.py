"""Tiny networks and samples on which the whole kernel can be formed."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from softmax_temperature.early_learning.problem import Problem, SoftmaxCrossEntropy
from softmax_temperature.networks.resnets import WideResNet
from softmax_temperature.networks.small_networks import MLP, ConvNet
from softmax_temperature.networks.vgg import SmallVGG

CLASSES, SAMPLES, SIDE = 4, 6, 8
MAKERS: dict[str, Callable[[], nn.Module]] = {
    "mlp": lambda: MLP(CLASSES, widths=(12, 10), image_size=SIDE),
    "mlp-relu": lambda: MLP(CLASSES, widths=(12, 10), activation="relu", image_size=SIDE),
    "convnet": lambda: ConvNet(CLASSES, widths=(4, 6), image_size=SIDE),
    "vgg": lambda: SmallVGG(CLASSES, widths=(3, 3), dense=6, image_size=SIDE),
    "wide-resnet": lambda: WideResNet(8, 1, CLASSES, batch_norm=False),
    "wide-resnet-bn": lambda: WideResNet(8, 1, CLASSES, batch_norm=True),
}

MakeNetwork = Callable[..., nn.Module]


@pytest.fixture
def make_network() -> MakeNetwork:
    """A network by name, with weights that depend on a seed; float32."""

    def make(name: str = "mlp", seed: int = 0) -> nn.Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return MAKERS[name]()

    return make


@pytest.fixture
def images() -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(SAMPLES, 3, SIDE, SIDE, generator=generator, dtype=torch.float64)


@pytest.fixture
def labels() -> Tensor:
    return torch.arange(SAMPLES) % CLASSES


@pytest.fixture
def make_problem(make_network: MakeNetwork, images: Tensor, labels: Tensor) -> Callable[..., Problem]:
    """Two draws of a network and the samples."""

    def make(name: str = "mlp", *, probes: int | None = None, chunk: int = 100) -> Problem:
        first, second = (make_network(name, seed).double().eval() for seed in (0, 1))
        return Problem(first, second, images, SoftmaxCrossEntropy(labels, CLASSES), probes, chunk, seed=0)

    return make

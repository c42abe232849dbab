"""Networks and samples so small that the whole tangent kernel can be formed."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from softmax_temperature.early_learning.courses import Problem
from softmax_temperature.early_learning.flows import SoftmaxCrossEntropy
from softmax_temperature.networks.small import MLP, ConvNet
from softmax_temperature.networks.vgg import SmallVGG
from softmax_temperature.networks.wide_resnet import WideResNet

CLASSES = 4
SAMPLES = 6
SIDE = 8
MAKERS: dict[str, Callable[[], nn.Module]] = {
    "mlp": lambda: MLP(CLASSES, widths=(12, 10), image_size=SIDE),
    "mlp-relu": lambda: MLP(
        CLASSES, widths=(12, 10), activation="relu", image_size=SIDE
    ),
    "convnet": lambda: ConvNet(CLASSES, widths=(4, 6), image_size=SIDE),
    "vgg": lambda: SmallVGG(CLASSES, widths=(3, 3), dense=6, image_size=SIDE),
    "wide-resnet": lambda: WideResNet(8, 1, CLASSES, batch_norm=False),
    "wide-resnet-bn": lambda: WideResNet(8, 1, CLASSES, batch_norm=True),
}


def make_network(name: str = "mlp", seed: int = 0) -> nn.Module:
    """Build a network by name, in float32, with weights drawn from a seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return MAKERS[name]()


def make_problem(name: str = "mlp", *, probes: int | None = None) -> Problem:
    """A problem with two draws of the named network's weights, the samples and the
    loss.
    """
    first, second = (make_network(name, seed).double().eval() for seed in (0, 1))
    loss = SoftmaxCrossEntropy(torch.arange(SAMPLES) % CLASSES, CLASSES)
    return Problem(first, second, make_images(), loss, probes, chunk=100, seed=0)


def make_images() -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(SAMPLES, 3, SIDE, SIDE, generator=generator, dtype=torch.float64)


@pytest.fixture
def images() -> Tensor:
    return make_images()

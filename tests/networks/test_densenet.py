"""DenseNet gives the same outputs as torchvision's."""

import pytest
import torch
import torchvision
from torch import nn

from softmax_temperature.networks.densenet import DenseNet
from tests.networks.formulas import images, perturbed

BLOCKS = (2, 1, 3)
GROWTH = 4
CLASSES = 5


def torchvision_densenet() -> nn.Module:
    """torchvision's DenseNet, with a 3×3 convolution as its whole stem."""
    network = torchvision.models.DenseNet(
        GROWTH, BLOCKS, 2 * GROWTH, num_classes=CLASSES
    )
    network.features.conv0 = nn.Conv2d(3, 2 * GROWTH, 3, padding=1, bias=False)
    for name in ("norm0", "relu0", "pool0"):
        setattr(network.features, name, nn.Identity())
    return network.double()


@pytest.mark.parametrize("training", [False, True])
def test_a_densenet_equals_torchvisions_except_for_the_stem(training: bool) -> None:
    torch.manual_seed(0)
    network = perturbed(DenseNet(BLOCKS, growth=GROWTH, num_classes=CLASSES))
    reference = torchvision_densenet()
    names = list(reference.state_dict())
    weights = network.state_dict().values()
    reference.load_state_dict(dict(zip(names, weights, strict=True)))
    torch.testing.assert_close(
        network.train(training)(images()), reference.train(training)(images())
    )

from __future__ import annotations

import pytest
import torch
import torchvision
from torch import nn

from softmax_temperature.networks.densenet import DenseNet
from tests.networks.formulas import images, perturbed


def torchvision_s(blocks: tuple[int, ...], growth: int, classes: int) -> nn.Module:
    """torchvision's network with the stem of the port: a 3×3 convolution, no normalisation and no pooling."""
    network = torchvision.models.DenseNet(growth, blocks, 2 * growth, num_classes=classes)
    network.features.conv0 = nn.Conv2d(3, 2 * growth, 3, padding=1, bias=False)
    for name in ("norm0", "relu0", "pool0"):
        setattr(network.features, name, nn.Identity())
    return network.double()


@pytest.mark.parametrize("training", [False, True])
def test_the_network_is_torchvision_s_but_for_the_stem(training: bool) -> None:
    torch.manual_seed(0)
    network, other = perturbed(DenseNet((2, 1, 3), growth=4, num_classes=5)), torchvision_s((2, 1, 3), 4, 5)
    ours, theirs = network.state_dict(), other.state_dict()
    other.load_state_dict(dict(zip(theirs, ours.values(), strict=True)))
    torch.testing.assert_close(network.train(training)(images()), other.train(training)(images()))

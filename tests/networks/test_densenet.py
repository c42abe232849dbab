from __future__ import annotations

import pytest
import torch
import torchvision
from torch import nn

from softmax_temperature.networks.densenet import DenseNet


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
    images = torch.randn(4, 3, 16, 16, dtype=torch.float64)
    network, other = DenseNet((2, 1, 3), growth=4, num_classes=5).double(), torchvision_s((2, 1, 3), 4, 5)
    for values in network.state_dict().values():
        if values.is_floating_point() and values.ndim == 1:
            nn.init.uniform_(values, 0.5, 1.5)
    ours, theirs = network.state_dict(), other.state_dict()
    other.load_state_dict(dict(zip(theirs, ours.values(), strict=True)))
    expected = other.train(training)(images)
    torch.testing.assert_close(network.train(training)(images), expected)
    torch.testing.assert_close(network.classifier(network.features(images)), expected)


def test_transitions_round_down() -> None:
    # 2 x 3 + 3 = 9 maps; a share of 0.4 is 3.6.
    network = DenseNet((1, 1), growth=3, reduction=0.4)
    assert network.stages[1][2].out_channels == 3
    assert DenseNet((1, 1), growth=3, reduction=1.0).stages[1][2].out_channels == 9

"""Operations and memory are counted as by hand, and as a real network keeps them."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

from softmax_temperature.cost.networks import count, embedding_cost, image_network_cost, state_bytes
from softmax_temperature.params.backbone import Backbone
from softmax_temperature.params.network import Network
from softmax_temperature.training.networks import build_network, count_parameters

VGG = Network(architecture="vgg", arguments={"widths": [4, 4, 8, 8], "dense": 8, "image_size": 8, "batch_norm": True})


def test_two_layers_by_hand() -> None:
    network = nn.Sequential(nn.Linear(5, 7, bias=False), nn.Linear(7, 3, bias=False))
    found = count(network, torch.randn(4, 5))
    assert found.forward == 2 * (5 * 7 + 7 * 3)
    # Gradients of both weights, and of what the second layer reads; nobody asks for the first layer's.
    assert found.training == found.forward + 2 * (5 * 7 + 7 * 3) + 2 * 7 * 3
    assert found.parameters == 5 * 7 + 7 * 3
    assert found.kept_bytes == 4 * (5 + 7)


def test_a_convolution_by_hand() -> None:
    found = count(nn.Conv2d(3, 8, 3, padding=1, bias=False), torch.randn(2, 3, 10, 10))
    assert found.forward == 2 * 10 * 10 * 8 * 3 * 9


def test_what_needs_no_data_is_what_data_show() -> None:
    foretold = image_network_cost(VGG, classes=5, side=8)
    network = build_network(VGG, classes=5, seed=0)
    assert count(network, torch.randn(2, 3, 8, 8)) == foretold
    assert foretold.parameters == count_parameters(network)
    assert foretold.state_bytes == state_bytes(VGG, classes=5)
    assert foretold.state_bytes == sum(value.nbytes for value in network.state_dict().values())


def test_what_is_kept_is_what_autograd_keeps() -> None:
    network, kept = build_network(VGG, classes=5, seed=0), {}
    alive = []

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        alive.append(tensor)
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        network(torch.randn(6, 3, 8, 8))
    weights = {parameter.data_ptr() for parameter in network.parameters()}
    by_hand = sum(size for place, size in kept.items() if place not in weights)
    assert image_network_cost(VGG, classes=5, side=8).kept_bytes == pytest.approx(by_hand / 6, rel=0.1)


def test_resnet_50_has_its_known_size() -> None:
    # He et al., Table 1: 3.8e9 multiply-adds of a 224-pixel image, without batch norm; torchvision says 4.09e9.
    described = {"input_size": 224, "mean": [0.5] * 3, "std": [0.2] * 3}
    spec = Backbone(library="torchvision", architecture="resnet50", weights="untrained", embedding=2048, **described)
    operations, calls = embedding_cost(spec)
    assert operations == pytest.approx(2 * 4.09e9, rel=0.01)
    assert 100 < calls < 300

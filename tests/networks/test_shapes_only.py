from __future__ import annotations

import torch

from softmax_temperature.networks.resnets import WideResNet
from softmax_temperature.networks.shapes_only import shapes_only


def test_shapes_are_those_of_the_network_with_numbers() -> None:
    with shapes_only():
        shapes = WideResNet(8, 1).state_dict()
        assert torch.empty(3).normal_().is_meta
    whole = WideResNet(8, 1).state_dict()
    assert {name: value.shape for name, value in shapes.items()} == {name: value.shape for name, value in whole.items()}
    assert all(value.is_meta for value in shapes.values())
    assert len(torch.zeros(3).normal_().unique()) == 3

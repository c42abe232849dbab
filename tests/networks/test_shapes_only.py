"""Networks without their numbers."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from softmax_temperature.networks.shapes_only import shapes_only
from softmax_temperature.params.network import Network
from softmax_temperature.training import build_network

CHECKS = """
import sys
from softmax_temperature.params.network import Network
from softmax_temperature.training import check_network
check_network(Network(architecture="wide_resnet", arguments={"depth": 8, "width": 1}))
print("torch._dynamo" in sys.modules)
"""


@pytest.mark.parametrize("architecture", ["cifar_resnet", "vgg", "wide_resnet", "densenet", "mlp", "bottleneck_resnet"])
def test_shapes_are_those_of_the_network_with_numbers(architecture: str) -> None:
    spec = Network(architecture=architecture)
    with shapes_only():
        shapes = build_network(spec, classes=3, seed=0).state_dict()
    whole = build_network(spec, classes=3, seed=0).state_dict()
    assert {name: value.shape for name, value in shapes.items()} == {name: value.shape for name, value in whole.items()}
    assert all(value.is_meta for value in shapes.values())


def test_draws_are_as_ever_outside() -> None:
    with shapes_only():
        assert torch.empty(3).normal_().is_meta
    assert len(torch.zeros(3).normal_().unique()) == 3


def test_a_check_of_arguments_imports_no_compiler() -> None:
    """It takes longer than the check, in each process that trains."""
    done = subprocess.run([sys.executable, "-c", CHECKS], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

"""Stage train_temperature_check: what is described of a trained network."""

from types import SimpleNamespace
from typing import Any

import torch

from softmax_temperature.params.network import Network
from softmax_temperature.stages import train_temperature_check
from softmax_temperature.training import build_network, last_layer_inputs


def test_a_network_whose_units_are_out_is_not_described() -> None:
    """As large rates leave it: its logits are finite, so that it has not diverged, and its features are 0."""
    spec = Network(architecture="wide_resnet", arguments={"depth": 8, "width": 1, "batch_norm": False})
    network = build_network(spec, classes=2, seed=0)
    images = torch.randn(8, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    sample = SimpleNamespace(inputs=images, labels=torch.arange(8) % 2)
    trainer: Any = SimpleNamespace(outputs=lambda inputs: [last_layer_inputs(network.eval(), inputs)])
    with torch.no_grad():
        assert train_temperature_check._statistics(trainer, sample)["dim"] == 64
        for parameter in network.parameters():
            parameter.zero_()
        assert train_temperature_check._statistics(trainer, sample) is None

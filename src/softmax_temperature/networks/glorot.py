"""Weights as Keras draws them when nothing is said: Glorot and Bengio (2010), uniform."""

from __future__ import annotations

import torch
from torch import nn


@torch.no_grad()
def draw_glorot(network: nn.Module) -> None:
    """Draw the weights of dense layers and convolutions anew, in place; their biases become 0.

    Weights are uniform within ±sqrt(6 / (inputs + outputs of a unit)); a filter of k×k pixels counts each channel k²
    times, on both sides, one of k words k times.

    Args:
        network: its other layers stay as they are.
    """
    for module in network.modules():
        if isinstance(module, (nn.Linear, nn.Conv1d, nn.Conv2d)):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)

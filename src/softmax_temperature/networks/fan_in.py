"""Activations, each with normal weights of a variance that keeps the size of what passes."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

_CHOICES: dict[str, tuple[Callable[[], nn.Module], float]] = {"tanh": (nn.Tanh, 1.0), "relu": (nn.ReLU, 2.0)}
"""LeCun's factor of the variance for tanh, He's for ReLU."""


def choose_activation(activation: str) -> Callable[[], nn.Module]:
    """What builds an activation layer.

    Raises:
        ValueError: If `activation` is neither "tanh" nor "relu".
    """
    if activation not in _CHOICES:
        raise ValueError(f"activation must be 'tanh' or 'relu', got {activation!r}")
    return _CHOICES[activation][0]


@torch.no_grad()
def initialise(network: nn.Module, activation: str) -> None:
    """Draw the weights of dense layers and convolutions anew, for an activation behind each; biases become 0."""
    factor = _CHOICES[activation][1]
    for module in network.modules():
        if isinstance(module, (nn.Linear, nn.Conv2d)):
            inputs = module.weight[0].numel()
            module.weight.normal_(std=(factor / inputs) ** 0.5)
            if module.bias is not None:
                module.bias.zero_()

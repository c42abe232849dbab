"""The activation CReLU, and the choice between it and ReLU (cooling paper, section 4.2)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn


class CReLU(nn.Module):
    """The concatenated ReLU (Shang et al. 2016): relu(x) and then relu(-x) along dimension 1, which it doubles."""

    def __init__(self) -> None:
        super().__init__()
        self.relu = nn.ReLU()

    def forward(self, inputs: Tensor) -> Tensor:
        """Of inputs (n, channels, ...): shape (n, 2 channels, ...)."""
        return torch.cat((self.relu(inputs), self.relu(-inputs)), dim=1)


def choose_activation(activation: str) -> tuple[Callable[[], nn.Module], int]:
    """What builds an activation layer, and how many channels that layer returns for one.

    Raises:
        ValueError: If `activation` is neither "relu" nor "crelu".
    """
    choices: dict[str, tuple[Callable[[], nn.Module], int]] = {"relu": (nn.ReLU, 1), "crelu": (CReLU, 2)}
    if activation not in choices:
        raise ValueError(f"activation must be 'relu' or 'crelu', got {activation!r}")
    return choices[activation]

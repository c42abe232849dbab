"""What the networks share: the form of a classifier, activations, and how weights start."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from softmax_temperature.metrics.checks import check_count


class Classifier(nn.Module):
    """A network whose last layer, `classifier`, makes logits of `features`.

    Constructors take `num_classes`, the outputs of `classifier`, and raise ValueError, which names an argument that is
    unknown or too small, and its value.
    """

    classifier: nn.Module

    def features(self, inputs: Tensor) -> Tensor:
        """What `classifier` reads, shape (n, features), or (n, features, height, width) for pixel-wise logits."""
        raise NotImplementedError

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits (n, num_classes) of images (n, 3, height, width) or of tokens (n, length)."""
        logits: Tensor = self.classifier(self.features(inputs))
        return logits


class CReLU(nn.Module):
    """The concatenated ReLU (Shang et al. 2016): relu(x) and then relu(-x) along dimension 1, which it doubles."""

    def __init__(self) -> None:
        super().__init__()
        self.relu = nn.ReLU()

    def forward(self, inputs: Tensor) -> Tensor:
        """Of inputs (n, channels, ...): shape (n, 2 channels, ...)."""
        return torch.cat((self.relu(inputs), self.relu(-inputs)), dim=1)


_RECTIFIERS: dict[str, tuple[Callable[[], nn.Module], int]] = {"relu": (nn.ReLU, 1), "crelu": (CReLU, 2)}
_FAN_IN: dict[str, tuple[Callable[[], nn.Module], float]] = {"tanh": (nn.Tanh, 1.0), "relu": (nn.ReLU, 2.0)}
"""With LeCun's factor of the variance for tanh, He's for ReLU."""


def rectifier(activation: str) -> tuple[Callable[[], nn.Module], int]:
    """The constructor of ReLU or CReLU (cooling paper, section 4.2), and how many channels it makes of one."""
    if activation not in _RECTIFIERS:
        raise ValueError(f"activation must be 'relu' or 'crelu', got {activation!r}")
    return _RECTIFIERS[activation]


def fan_in_activation(activation: str) -> Callable[[], nn.Module]:
    """The constructor of an activation whose weights `draw_fan_in` knows."""
    if activation not in _FAN_IN:
        raise ValueError(f"activation must be 'tanh' or 'relu', got {activation!r}")
    return _FAN_IN[activation][0]


@torch.no_grad()
def draw_fan_in(network: nn.Module, activation: str) -> None:
    """Redraw dense and convolutional weights: normal, variance 1 / fan-in, with ReLU twice that; biases become 0."""
    for module in network.modules():
        if isinstance(module, (nn.Linear, nn.Conv2d)):
            module.weight.normal_(std=(_FAN_IN[activation][1] / module.weight[0].numel()) ** 0.5)
            if module.bias is not None:
                module.bias.zero_()


@torch.no_grad()
def draw_glorot(network: nn.Module) -> None:
    """Redraw dense and convolutional weights as Keras does: uniform within ±sqrt(6 / (fan-in + fan-out)); biases 0."""
    for module in network.modules():
        if isinstance(module, (nn.Linear, nn.Conv1d, nn.Conv2d)):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


def check_sizes(**sizes: int | Sequence[int]) -> None:
    """Refuse a size below 1 and an empty list of sizes; the message names the argument and its value."""
    for name, size in sizes.items():
        if isinstance(size, Sequence) and len(size) == 0:
            raise ValueError(f"{name} must not be empty, got {size!r}")
        for one in size if isinstance(size, Sequence) else [size]:
            check_count(one, name, least=1)

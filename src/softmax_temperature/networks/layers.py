"""Parts that several networks share: classifiers, activations, initial weights.

The module also has functions that move tensors to a GPU.
"""

from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn


class Classifier(nn.Module):
    """A network whose last layer, `classifier`, maps `features` to logits."""

    classifier: nn.Module

    def features(self, inputs: Tensor) -> Tensor:
        """The input of `classifier`, (n, features) or (n, features, height, width).

        By default, `features` applies all other layers in sequence.
        """
        for name, layer in self.named_children():
            if name != "classifier":
                inputs = layer(inputs)
        return inputs

    def forward(self, inputs: Tensor) -> Tensor:
        """The logits of `inputs`, (n, num_classes) or (n, num_classes, height, width).

        Args:
            inputs: Images of shape (n, 3, height, width), tokens of shape (n, length),
                or trees of shape (n, nodes, 4).
        """
        logits: Tensor = self.classifier(self.features(inputs))
        return logits


def last_layer_inputs(network: Any, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Compute logits, and the features from which the last layer computes them.

    Both are float32, even under autocast: bfloat16 is too coarse for the calibration
    metrics.

    Args:
        network: A network whose last layer is `classifier`, or DistributedDataParallel
            around one.
        inputs: The network's inputs.
    """
    head = getattr(network, "module", network).classifier
    forward = head.forward
    features: list[Tensor] = []

    def in_full_precision(last: Tensor) -> Tensor:
        features.append(last.float())
        with torch.autocast(last.device.type, enabled=False):
            logits: Tensor = forward(features[-1])
        return logits

    head.forward = in_full_precision
    try:
        return network(inputs), features[-1]
    finally:
        del head.forward


class CReLU(nn.Module):
    """The concatenated ReLU (Shang et al. 2016): relu(x), then relu(-x).

    Both are concatenated along dimension 1, whose size doubles.
    """

    def __init__(self) -> None:
        super().__init__()
        self.relu = nn.ReLU()

    def forward(self, inputs: Tensor) -> Tensor:
        """The activated maps, (n, 2 channels, ...), of inputs (n, channels, ...)."""
        return torch.cat((self.relu(inputs), self.relu(-inputs)), dim=1)


def rectifier(activation: str) -> tuple[Callable[[], nn.Module], int]:
    """Return an activation's constructor, and the factor by which channels increase.

    `activation` is "relu" or "crelu".

    Source: cooling paper, section 4.2.
    """
    check_choice("activation", activation, ("relu", "crelu"))
    if activation == "crelu":
        return CReLU, 2
    return nn.ReLU, 1


@torch.no_grad()
def redraw(
    network: nn.Module, draw: Callable[[Tensor], object], *, dense: bool = True
) -> None:
    """Redraw the weights of convolutions and dense layers; biases become 0.

    Args:
        network: The network, which is changed in place.
        draw: Fills one weight tensor in place.
        dense: Whether to redraw dense layers too.
    """
    kinds = (nn.Conv1d, nn.Conv2d, nn.Linear) if dense else (nn.Conv1d, nn.Conv2d)
    for module in network.modules():
        if isinstance(module, kinds):
            draw(module.weight)
            if module.bias is not None:
                module.bias.zero_()


def check_choice(name: str, value: str, choices: Collection[str]) -> None:
    """Raise ValueError unless `value`, of the argument `name`, is in `choices`."""
    if value not in choices:
        valid = " or ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be {valid}, got {value!r}")


def upload(device: torch.device, *tables: Tensor) -> list[Tensor]:
    """Return `tables`, which are tensors of one dtype, on `device`.

    If `device` is a GPU, they are copied together from pinned memory, so that neither
    the CPU nor the GPU waits.
    """
    if device.type != "cuda" or tables[0].is_cuda:
        return [table.to(device) for table in tables]
    packed = torch.cat([table.flatten() for table in tables])
    uploaded = packed.pin_memory().to(device, non_blocking=True)
    parts = uploaded.split([table.numel() for table in tables])
    return [part.view(table.shape) for part, table in zip(parts, tables, strict=True)]


@lru_cache(maxsize=64)
def channels(values: tuple[float, ...], device: torch.device) -> Tensor:
    """Return a cached float32 tensor of `values`, (n,), which must not be modified."""
    # Leave inference mode, because a tensor created in it cannot be used in training.
    with torch.inference_mode(False):
        return torch.tensor(values, device=device)

"""What the networks share: the form of a classifier, activations, how weights start,
and uploads to a GPU.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn


class Classifier(nn.Module):
    """A network whose last layer, `classifier`, makes `num_classes` logits of
    `features`.
    """

    classifier: nn.Module

    def features(self, inputs: Tensor) -> Tensor:
        """What `classifier` reads, (n, features), or (n, features, height, width) for
        pixels: here all other layers.
        """
        for name, layer in self.named_children():
            if name != "classifier":
                inputs = layer(inputs)
        return inputs

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits (n, num_classes) of images (n, 3, height, width) or of tokens (n,
        length).
        """
        logits: Tensor = self.classifier(self.features(inputs))
        return logits


def last_layer_inputs(network: Any, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Logits, and the features that the last layer makes them of, both float32, under
    autocast too.
    """
    # In bfloat16 logits would fall into steps, too coarse for the calibration metrics.
    head, features = (
        getattr(network, "module", network).classifier,
        [],
    )  # Perhaps in DistributedDataParallel.
    forward = head.forward

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
    """The concatenated ReLU (Shang et al. 2016): relu(x) and then relu(-x) along
    dimension 1, which it doubles.
    """

    def __init__(self) -> None:
        super().__init__()
        self.relu = nn.ReLU()

    def forward(self, inputs: Tensor) -> Tensor:
        """Of inputs (n, channels, ...): shape (n, 2 channels, ...)."""
        return torch.cat((self.relu(inputs), self.relu(-inputs)), dim=1)


def rectifier(activation: str) -> tuple[Callable[[], nn.Module], int]:
    """The constructor of ReLU or CReLU (cooling paper, section 4.2), and how many
    channels it makes of one.
    """
    check_choice("activation", activation, ("relu", "crelu"))
    return (nn.ReLU, 1) if activation == "relu" else (CReLU, 2)


@contextmanager
def drawn_from(seed: int) -> Iterator[None]:
    """Draw weights that depend on the seed alone; the caller's random numbers stay as
    they are.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@torch.no_grad()
def redraw(
    network: nn.Module, draw: Callable[[Tensor], object], *, dense: bool = True
) -> None:
    """Draw the weights of convolutions, and of dense layers unless told not to; their
    biases become 0.
    """
    for module in network.modules():
        if isinstance(module, (nn.Conv1d, nn.Conv2d)) or (
            dense and isinstance(module, nn.Linear)
        ):
            draw(module.weight)
            if module.bias is not None:
                module.bias.zero_()


def check_choice(name: str, value: str, choices: Collection[str]) -> None:
    """Refuse an argument of a network that is none of the choices."""
    if value not in choices:
        raise ValueError(
            f"{name} must be {' or '.join(map(repr, choices))}, got {value!r}"
        )


def upload(device: torch.device, *tables: Tensor) -> list[Tensor]:
    """Tensors of one dtype on a device, in one copy from pinned memory, so that neither
    side waits.
    """
    if device.type != "cuda" or tables[0].is_cuda:
        return [table.to(device) for table in tables]
    packed = (
        torch.cat([table.flatten() for table in tables])
        .pin_memory()
        .to(device, non_blocking=True)
    )
    parts = packed.split([table.numel() for table in tables])
    return [part.view(table.shape) for part, table in zip(parts, tables, strict=True)]


@lru_cache(maxsize=64)
def channels(values: tuple[float, ...], device: torch.device) -> Tensor:
    """One number for each channel, float32, uploaded once and not to be changed."""
    with torch.inference_mode(
        False
    ):  # Or a tensor made while embedding could not be used while training.
        return torch.tensor(values, device=device)

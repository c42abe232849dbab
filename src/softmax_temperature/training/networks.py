"""Networks by their description, and what training reads from their last layer."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import torch
from torch import nn

from softmax_temperature.networks import ARCHITECTURES
from softmax_temperature.networks.shapes_only import shapes_only
from softmax_temperature.params.network import Network
from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor


def build_network(spec: Network, *, classes: int, seed: int) -> nn.Module:
    """A network with random weights that depend on the seed alone.

    Args:
        spec: which one.
        classes: outputs.
        seed: of the weights.

    Raises:
        InputError: it does not take the arguments.
    """
    make = ARCHITECTURES[spec.architecture]
    arguments = {key: tuple(value) if isinstance(value, list) else value for key, value in spec.arguments.items()}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            network: nn.Module = make(**arguments, num_classes=classes)
        except (TypeError, ValueError) as error:
            what = f"does not take the arguments {spec.arguments} ({error})"
            raise InputError(what, where=f"network {spec.architecture!r}", remedy="Correct `arguments`.") from error
    return network


def check_network(spec: Network) -> None:
    """Refuse arguments that a network does not take, without the memory and time of its weights.

    Raises:
        InputError: as `build_network`.
    """
    _check_once(spec.model_dump_json())


@cache  # A stage asks for each of its cells, and they share a few networks.
def _check_once(spec: str) -> None:
    with shapes_only():
        build_network(Network.model_validate_json(spec), classes=2, seed=0)


def count_parameters(network: nn.Module) -> int:
    """Numbers that training changes; running statistics are none."""
    return sum(parameter.numel() for parameter in network.parameters())


def last_layer_inputs(network: nn.Module, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Logits, and the features that the last layer makes them of; that layer computes in float32 under autocast too.

    Logits of bfloat16 have 8 bits: too few for the calibration metrics, whose confidences would fall into steps.

    Args:
        network: called as it is, with whatever hooks it has; `classifier` is its last layer.
        inputs: as the network takes them: normalised images (n, 3, height, width), or tokens (n, length).

    Returns:
        Logits (n, classes, ...) and features (n, width, ...), float32.
    """
    head, features = network.classifier, []
    forward = head.forward  # type: ignore[union-attr]

    def in_full_precision(last: Tensor) -> Tensor:
        features.append(last.float())
        with torch.autocast(last.device.type, enabled=False):
            logits: Tensor = forward(features[-1])
        return logits

    head.forward = in_full_precision  # type: ignore[union-attr]
    try:
        return network(inputs), features[-1]
    finally:
        del head.forward  # type: ignore[union-attr]

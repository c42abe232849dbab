"""What one image costs a network: operations, and numbers kept for the backward pass, counted without computing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from softmax_temperature.networks.backbones.networks import build_embedding_network
from softmax_temperature.networks.shapes_only import shapes_only
from softmax_temperature.params.backbone import Backbone
from softmax_temperature.params.network import Network
from softmax_temperature.training.networks import build_network

USUAL_SIDE = 224
_SAMPLES = 2  # Batch norm cannot train on one.


@dataclass(frozen=True)
class NetworkCost:
    """What a network costs.

    Attributes:
        parameters: numbers that training changes.
        state_bytes: of weights and running statistics, as they are stored.
        forward: floating-point operations of one sample's logits; a multiplication and an addition are two.
        training: likewise of its logits and gradients.
        calls: operators that one batch runs through, forward and backward, whatever its size.
        kept_bytes: of one sample between forward and backward pass, in float32.
    """

    parameters: int
    state_bytes: int
    forward: float
    training: float
    calls: int
    kept_bytes: int


def image_network_cost(spec: Network, *, classes: int, side: int) -> NetworkCost:
    """What one image of `side` x `side` pixels costs a network that is trained from scratch.

    Args:
        spec: the network.
        classes: outputs.
        side: pixels.

    Raises:
        InputError: it does not take its arguments.
    """
    return _counted(spec.model_dump_json(), classes, side)


def state_bytes(spec: Network, *, classes: int) -> int:
    """The bytes of a network's weights and running statistics, whatever its inputs are."""
    return _bytes(_built(spec.model_dump_json(), classes))


def embedding_cost(spec: Backbone) -> tuple[float, int]:
    """Floating-point operations of one image's embedding, and the operators that one batch runs through.

    Weights from a hub bring their own image size, which is taken as the usual 224 pixels.

    Raises:
        InputError: its library has no such network.
    """
    return _embedded(spec.model_dump_json())


@cache
def _embedded(text: str) -> tuple[float, int]:
    spec = Backbone.model_validate_json(text)
    side = spec.input_size or USUAL_SIDE
    with shapes_only():
        network = build_embedding_network(spec).network.eval()
    calls = _Calls()
    with torch.no_grad(), FlopCounterMode(display=False) as operations, calls:
        network(torch.empty(1, 3, side, side, device="meta"))
    return operations.get_total_flops(), calls.count


@cache
def _counted(spec: str, classes: int, side: int) -> NetworkCost:
    return count(_built(spec, classes), torch.empty(_SAMPLES, 3, side, side, device="meta"))


def _built(spec: str, classes: int) -> nn.Module:
    with shapes_only():
        return build_network(Network.model_validate_json(spec), classes=classes, seed=0)


def _bytes(network: nn.Module) -> int:
    return sum(value.numel() * value.element_size() for value in network.state_dict().values())


def count(network: nn.Module, inputs: Tensor) -> NetworkCost:
    """What each of some samples costs a network.

    Args:
        network: in training mode.
        inputs: (n, ...) as it takes them; on the device "meta" nothing is computed.
    """
    samples = len(inputs)
    calls = _Calls()
    with FlopCounterMode(display=False) as operations, calls, _kept() as kept:
        logits = network(inputs)
        forward = operations.get_total_flops()
        logits.sum().backward()
    known = {parameter.untyped_storage()._cdata for parameter in network.parameters()}  # noqa: SLF001  # Its identity.
    return NetworkCost(
        parameters=sum(parameter.numel() for parameter in network.parameters()),
        state_bytes=_bytes(network),
        forward=forward / samples,
        training=operations.get_total_flops() / samples,
        calls=calls.count,
        kept_bytes=sum(size for storage, size in kept.items() if storage not in known) // samples,
    )


class _Calls(TorchDispatchMode):
    """Counts operators, without those that only look at memory in another way."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        self.count += not function.is_view
        return function(*args, **(kwargs or {}))


@contextmanager
def _kept() -> Iterator[dict[int, int]]:
    """Bytes by storage, of what is kept for the backward pass; two views of one storage count once."""
    sizes: dict[int, int] = {}
    alive: list[Tensor] = []  # So that no storage takes the place of another.

    def keep(tensor: Tensor) -> Tensor:
        alive.append(tensor)
        storage = tensor.untyped_storage()
        sizes[storage._cdata] = storage.nbytes()  # noqa: SLF001  # Its identity.
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        yield sizes

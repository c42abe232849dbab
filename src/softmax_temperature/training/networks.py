"""Networks by their description, and what training reads from their last layer."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from softmax_temperature.networks.architectures import ARCHITECTURES
from softmax_temperature.params.network import Network
from softmax_temperature.runner.errors import InputError


def build_network(spec: Network, *, classes: int, seed: int) -> nn.Module:
    """A network with random weights that depend on the seed alone; InputError if it does not take the arguments."""
    arguments = {key: tuple(value) if isinstance(value, list) else value for key, value in spec.arguments.items()}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        try:
            return ARCHITECTURES[spec.architecture](**arguments, num_classes=classes)
        except (TypeError, ValueError) as error:
            what = f"does not take the arguments {spec.arguments} ({error})"
            raise InputError(what, where=f"network {spec.architecture!r}", remedy="Correct `arguments`.") from error


def check_network(spec: Network) -> nn.Module:
    """The network for two classes without its weights; refuses arguments that it does not take, in no time."""
    with torch.device("meta"), _NoDraws():
        return build_network(spec, classes=2, seed=0)


class _NoDraws(TorchFunctionMode):
    """Leaves weights undrawn: drawing on the device "meta" imports torch's compiler, which takes two seconds."""

    def __torch_function__(self, func: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.__name__ in ("normal_", "uniform_", "div_"):
            return args[0] if args else kwargs["tensor"]
        return func(*args, **(kwargs or {}))


def count_parameters(network: nn.Module) -> int:
    """The number of trainable parameters."""
    return sum(parameter.numel() for parameter in network.parameters())


def last_layer_inputs(network: Any, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Logits, and the features that the last layer makes them of; that layer computes in float32 under autocast too.

    Logits of bfloat16 have 8 bits: too few for the calibration metrics, whose confidences would fall into steps. The
    network is called with its hooks; logits (n, classes, ...) and features (n, width, ...) are float32.
    """
    head, features = network.classifier, []
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

"""A registry of the networks that are trained from scratch.

Each network is a class in its own module, which is imported when it is needed.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from softmax_temperature.data.seeds import drawn_from
from softmax_temperature.params.implementations import NETWORKS
from softmax_temperature.params.network import Network
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.implementations import load_class, reference_to

WEIGHTS = "weights.safetensors"
"""The file with the weights of a network that the pipeline trained."""


def network_class(name: str) -> Any:
    """Return the class of a network from its short name or "package.module:Class".

    The constructor of the class takes `num_classes` and the network's own arguments.

    Raises:
        InputError: If there is no such class.
    """
    return load_class(reference_to(name, NETWORKS, "network"), nn.Module)


def build_network(spec: Network, *, classes: int, seed: int) -> nn.Module:
    """Build the network `spec` with random weights that depend only on the seed.

    Args:
        spec: The network.
        classes: The number of classes.
        seed: The seed of the random weights.

    Raises:
        InputError: If the network does not accept the arguments.
    """
    build = network_class(spec.architecture)
    arguments = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in spec.arguments.items()
    }
    with drawn_from(seed):
        try:
            network: nn.Module = build(**arguments, num_classes=classes)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"does not take the arguments {spec.arguments} ({error})",
                where=f"network {spec.architecture!r}",
                remedy="Correct `arguments`.",
            ) from error
    return network


class _NoNormalDraws(TorchFunctionMode):
    """Leaves tensors unchanged instead of drawing normal random numbers.

    On the device "meta" there are no numbers, but `normal_` would import torch's
    compiler, which takes seconds.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        named = kwargs or {}
        if func in (torch.Tensor.normal_, nn.init.normal_):
            return args[0] if args else named["tensor"]
        return func(*args, **named)


def check_network(spec: Network) -> nn.Module:
    """Build the network `spec` for two classes on the device "meta", without weights.

    Raises:
        InputError: If the network does not accept the arguments.
    """
    with torch.device("meta"), _NoNormalDraws():
        return build_network(spec, classes=2, seed=0)


def check_networks(networks: Mapping[str, Network], names: Iterable[str]) -> None:
    """Raise InputError if one of the networks `names` does not accept its arguments.

    The check reports wrong parameters before any cell runs.
    """
    for name in dict.fromkeys(names):
        check_network(networks[name])


def count_parameters(network: nn.Module) -> int:
    """Count the parameters of `network`."""
    return sum(parameter.numel() for parameter in network.parameters())

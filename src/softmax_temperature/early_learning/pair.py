"""Correlated pairs: two networks, one trained and one frozen at its start, whose logits are subtracted."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)

# Deviation: the abstract of the temperature_check paper makes the size of the logits at initialisation a variable of
# its own, and the text at hand does not say how it is set. The pair is ours. The frozen parameters are
# c θ + sqrt(1 - c²) θ'' with the trained network's θ at the start and an independent draw θ'': they are distributed as
# θ is where that is normal, and the logits of the pair shrink to 0 as the correlation c rises to 1, which is the
# centred model of the literature on lazy training.


class CorrelatedPair(nn.Module):
    """f(x) = g(x; θ) - g(x; θ'), of which only θ is trained.

    θ' = c θ(0) + sqrt(1 - c²) θ'', number by number. Where both draws agree, nothing was drawn: biases that start at
    0, scales that start at 1 and the like are what they are in both networks. With c = 1 every logit starts at exactly
    0.

    The frozen network has buffers in the place of parameters: it moves and is saved with the pair, and no optimizer
    sees it. It is in evaluation mode always, so dropout acts on the trained network alone. Batch normalisation follows
    the mode of the pair in both networks: in training both normalise by the batch, in evaluation each by running
    estimates of its own. The frozen network then depends on the batch, but on nothing that is learned.

    Attributes:
        network: the trained one; its hooks stay.
        frozen: the other.

    Args:
        network: `classifier(features(inputs))` with whatever hooks it has; trained in place.
        other: an independent draw of the same architecture; only read.
        correlation: c, in [0, 1].

    Raises:
        ValueError: `correlation` is outside [0, 1], or the networks differ in their parameters.
    """

    def __init__(self, network: nn.Module, other: nn.Module, correlation: float) -> None:
        super().__init__()
        values = frozen_parameters(network, other, correlation)
        self.network = network
        self.frozen = _with_buffers(copy.deepcopy(network), values)
        self.train(network.training)

    @property
    def classifier(self) -> nn.Module:
        """The last layer of the trained network."""
        classifier: nn.Module = self.network.classifier  # type: ignore[assignment]
        return classifier

    def features(self, inputs: Tensor) -> Tensor:
        """What `classifier` reads: the trained network's features."""
        features: Tensor = self.network.features(inputs)  # type: ignore[operator]
        return features

    @torch.no_grad()
    def frozen_logits(self, inputs: Tensor) -> Tensor:
        """What is subtracted, (n, classes); the last layer computes in its own precision under autocast too."""
        features, head = self.frozen.features(inputs), self.frozen.classifier  # type: ignore[operator]
        weight: Tensor = next(head.buffers())  # type: ignore[union-attr]
        with torch.autocast(features.device.type, enabled=False):
            logits: Tensor = head(features.to(weight.dtype))  # type: ignore[operator]
        return logits

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits (n, classes)."""
        logits: Tensor = self.network(inputs) - self.frozen_logits(inputs)
        return logits

    def train(self, mode: bool = True) -> CorrelatedPair:
        """Set the mode; of the frozen network, that of its batch normalisation."""
        super().train(mode)
        self.frozen.eval()
        for module in self.frozen.modules():
            if isinstance(module, BATCH_NORMS):
                module.train(mode)
        return self


def frozen_parameters(network: nn.Module, other: nn.Module, correlation: float) -> dict[str, Tensor]:
    """The parameters θ' of the frozen network, by name.

    Args:
        network: at its start.
        other: an independent draw.
        correlation: in [0, 1].

    Raises:
        ValueError: as `CorrelatedPair`.
    """
    if not 0 <= correlation <= 1:
        raise ValueError(f"correlation must be in [0, 1], got {correlation}")
    first, second = _parameters(network), _parameters(other)
    if {name: value.shape for name, value in first.items()} != {name: value.shape for name, value in second.items()}:
        raise ValueError(f"other must have the parameters of network, got {_difference(first, second)}")
    share = math.sqrt((1 - correlation) * (1 + correlation))  # 1 - c² would lose the digits of a c close to 1.
    return {
        name: torch.where(value == second[name], value, correlation * value + share * second[name])
        for name, value in first.items()
    }


def _parameters(network: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.detach() for name, parameter in network.named_parameters()}


def _difference(first: Mapping[str, Tensor], second: Mapping[str, Tensor]) -> str:
    for name in (*first, *second):
        shapes = [tuple(some[name].shape) if name in some else None for some in (first, second)]
        if shapes[0] != shapes[1]:
            return f"{name}: {shapes[1]} in the place of {shapes[0]}"
    return "the same"


def _with_buffers(network: nn.Module, values: Mapping[str, Tensor]) -> nn.Module:
    """Put values in the place of all parameters, as buffers; in place."""
    buffers = {parameter: values[name].clone() for name, parameter in network.named_parameters()}
    for module in network.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            delattr(module, name)
            module.register_buffer(name, buffers[parameter])
    # Recurrent layers keep a list of their weights, which moving a network makes anew.
    return network.to(next(iter(values.values())).device)

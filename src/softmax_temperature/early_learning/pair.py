"""Correlated pairs: two networks, one trained and one frozen at its start, whose logits are subtracted."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping

import torch
from scipy.optimize import brentq
from torch import Tensor, nn

from softmax_temperature.metrics.checks import check_positive

BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
TOLERANCE = 1e-6
"""Of the norm in `correlation_for_norm`, relative."""

# Deviation: the abstract of the temperature_check paper makes the size of the logits at initialisation a variable of
# its own, and the text at hand does not say how it is set. The pair is ours. The frozen parameters are
# c θ + sqrt(1 - c²) θ'' with the trained network's θ at the start and an independent draw θ'': they are distributed as
# θ is where that is normal, and the logits of the pair shrink to 0 as the correlation c rises to 1, which is the
# centred model of the literature on lazy training.


class CorrelatedPair(nn.Module):
    """f(x) = g(x; θ) - g(x; θ'), of which only θ is trained.

    θ' = c θ(0) + sqrt(1 - c²) θ'', number by number. Numbers that are equal in both draws were not drawn (biases that
    start at 0, scales that start at 1) and are kept. With c = 1 every logit starts at exactly 0.

    The frozen network has buffers in the place of parameters: it moves and is saved with the pair, and no optimizer
    sees it. It is always in evaluation mode, so dropout acts on the trained network alone. Batch normalisation follows
    the mode of the pair in both networks: in training both normalise by the batch, in evaluation each by running
    estimates of its own.

    `network` is `classifier(features(inputs))`, with its hooks, and `other` an independent draw, which is only read.

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
    """The parameters θ' of the frozen network of a `CorrelatedPair`, by name."""
    if not 0 <= correlation <= 1:
        raise ValueError(f"correlation must be in [0, 1], got {correlation}")
    first, second = (
        {name: parameter.detach() for name, parameter in each.named_parameters()} for each in (network, other)
    )
    shapes, others = ({name: tuple(value.shape) for name, value in each.items()} for each in (first, second))
    if shapes != others:
        name = next(name for name in (*shapes, *others) if shapes.get(name) != others.get(name))
        what = f"{name}: {others.get(name)} in the place of {shapes.get(name)}"
        raise ValueError(f"other must have the parameters of network, got {what}")
    share = math.sqrt((1 - correlation) * (1 + correlation))  # 1 - c² would lose the digits of a c close to 1.
    return {
        name: torch.where(value == second[name], value, correlation * value + share * second[name])
        for name, value in first.items()
    }


def correlation_for_norm(
    network: nn.Module, other: nn.Module, inputs: Tensor, logit_norm: float, *, inverse_temperature: float
) -> float:
    """The correlation at which a pair starts with tempered logits of a given norm.

    The norm of the logits rises from 0 at correlation 1, in proportion to the angle whose cosine the correlation is, so
    the angle is what is solved for. Where the norm is not monotonic, one of the solutions is found.

    Args:
        network: at its start, in the mode that the logits are wanted in; it is not changed.
        other: an independent draw of the same architecture.
        inputs: (n, ...), the samples over which the norm is taken.
        logit_norm: the wanted ||Z||, the Frobenius norm over samples and classes; at least 0.
        inverse_temperature: multiplies the logits of the pair.

    Raises:
        ValueError: `logit_norm` is negative or larger than at correlation 0; the message names the range.
    """
    check_positive(inverse_temperature, "inverse_temperature")
    own = copy.deepcopy(network)  # Each forward pass in training mode moves running estimates of batch normalisation.

    @torch.no_grad()
    def norm(correlation: float) -> float:
        replaced = torch.func.functional_call(own, frozen_parameters(network, other, correlation), (inputs,))
        return inverse_temperature * float((own(inputs) - replaced).double().norm().item())

    largest = norm(0.0)
    if not 0 <= logit_norm <= largest:
        reach = f"[0, {largest:g}] for correlations from 1 to 0 at inverse temperature {inverse_temperature:g}"
        raise ValueError(f"logit_norm must be in {reach}, got {logit_norm}")
    if logit_norm == 0:
        return 1.0
    if logit_norm == largest:
        return 0.0
    right = math.pi / 2
    angle = brentq(
        lambda some: norm(math.cos(some) if some < right else 0.0) - logit_norm,
        0.0,
        right,
        xtol=TOLERANCE * min(1.0, logit_norm / largest),
        rtol=TOLERANCE,
    )
    return math.cos(angle)


def _with_buffers(network: nn.Module, values: Mapping[str, Tensor]) -> nn.Module:
    """Put values in the place of all parameters, as buffers; in place."""
    buffers = {parameter: values[name].clone() for name, parameter in network.named_parameters()}
    for module in network.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            delattr(module, name)
            module.register_buffer(name, buffers[parameter])
    # Recurrent layers keep a list of their weights, which moving a network makes anew.
    return network.to(next(iter(values.values())).device)

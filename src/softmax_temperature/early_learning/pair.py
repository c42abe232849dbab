"""Correlated pairs: two networks, one trained and one frozen at its start, whose logits
are subtracted.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from scipy.optimize import brentq
from torch import Tensor, nn

BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
TOLERANCE = 1e-6  # Of the norm in `correlation_for_norm`, relative.

# Deviation: the abstract of the temperature_check paper makes the size of the logits at
# initialisation a variable of its own, and the text at hand does not say how it is set.
# The pair is ours. The frozen parameters are c θ + sqrt(1 - c²) θ'' with the trained
# network's θ at the start and an independent draw θ'': they are distributed as θ is
# where that is normal, and the logits of the pair shrink to 0 as the correlation c
# rises to 1, which is the centred model of the literature on lazy training.


class CorrelatedPair(nn.Module):
    """f(x) = g(x; θ) - s g(x; θ'), of which only θ is trained, with a share s and θ' as
    in `frozen_parameters`.

    With c = 1 the pair starts as (1 - s) g(x; θ(0)), of any norm, where a natural start
    reaches small ones only: s = 1 is the centred model, which starts at exactly 0, s =
    0 the network alone, and a negative s makes the logits larger. Gradients and tangent
    kernel are those of the network for every s.

    The frozen network has buffers in the place of parameters: it is saved with the
    pair, and no optimizer sees it. It is in evaluation mode, so dropout acts on the
    trained network alone; batch normalisation follows the mode of the pair in both.
    `network` is `classifier(features(inputs))`, and `other` an independent draw, which
    is only read.
    """

    def __init__(
        self,
        network: nn.Module,
        other: nn.Module,
        correlation: float,
        *,
        share: float = 1.0,
    ) -> None:
        super().__init__()
        self.share, self.network = share, network
        self.frozen = _with_buffers(
            copy.deepcopy(network), frozen_parameters(network, other, correlation)
        )
        self.train(network.training)

    @property
    def classifier(self) -> Any:
        """The last layer of the trained network."""
        return self.network.classifier

    @property
    def features(self) -> Any:
        """What `classifier` reads: the trained network's features of inputs."""
        return self.network.features

    @torch.no_grad()
    def frozen_logits(self, inputs: Tensor) -> Any:
        """g(x; θ'), (n, classes); the last layer computes in its own precision under
        autocast too.
        """
        frozen: Any = self.frozen
        features = frozen.features(inputs)
        with torch.autocast(features.device.type, enabled=False):
            return frozen.classifier(
                features.to(next(frozen.classifier.buffers()).dtype)
            )

    def forward(self, inputs: Tensor) -> Any:
        """Logits (n, classes)."""
        return self.network(inputs) - self.share * self.frozen_logits(inputs)

    def train(self, mode: bool = True) -> CorrelatedPair:
        """Set the mode; of the frozen network, that of its batch normalisation."""
        super().train(mode)
        self.frozen.eval()
        for module in self.frozen.modules():
            if isinstance(module, BATCH_NORMS):
                module.train(mode)
        return self


@torch.no_grad()
def frozen_parameters(
    network: nn.Module, other: nn.Module, correlation: float
) -> dict[str, Tensor]:
    """θ' = c θ + sqrt(1 - c²) θ'' by name, number by number, for a correlation c and an
    independent draw θ''.

    Numbers that are equal in both draws were not drawn (biases that start at 0, scales
    that start at 1) and are kept.
    """
    share = math.sqrt(
        (1 - correlation) * (1 + correlation)
    )  # 1 - c² would lose the digits of a c close to 1.
    draws = zip(network.named_parameters(), other.parameters(), strict=True)
    return {
        name: torch.where(own == new, own, correlation * own + share * new)
        for (name, own), new in draws
    }


def correlation_for_norm(
    network: nn.Module,
    other: nn.Module,
    inputs: Tensor,
    logit_norm: float,
    *,
    inverse_temperature: float,
) -> float:
    """The correlation at which a pair starts with tempered logits of a given norm.

    The norm ||Z||_F over samples and classes rises from 0 at correlation 1, in
    proportion to the angle whose cosine the correlation is, so the angle is what is
    solved for. Where the norm is not monotonic, one of the solutions is found.
    ValueError, with the range, if `logit_norm` is negative or larger than at
    correlation 0.
    """
    own = copy.deepcopy(
        network
    )  # Each forward pass in training mode moves running estimates of batch normalisation.
    right = math.pi / 2

    @torch.no_grad()
    def norm(angle: float) -> float:
        frozen = frozen_parameters(
            network, other, math.cos(angle) if angle < right else 0.0
        )
        difference = own(inputs) - torch.func.functional_call(own, frozen, (inputs,))
        return inverse_temperature * float(difference.double().norm().item())

    largest = norm(right)
    if not 0 <= logit_norm <= largest:
        reach = f"[0, {largest:g}] for correlations from 1 to 0 at inverse temperature {inverse_temperature:g}"
        raise ValueError(f"logit_norm must be in {reach}, got {logit_norm}")
    if logit_norm == 0:
        return 1.0
    precision = {"xtol": TOLERANCE * min(1.0, logit_norm / largest), "rtol": TOLERANCE}
    return math.cos(
        brentq(lambda angle: norm(angle) - logit_norm, 0.0, right, **precision)
    )


def _with_buffers(network: nn.Module, values: dict[str, Tensor]) -> nn.Module:
    """Put values in the place of all parameters, as buffers; in place."""
    buffers = {
        parameter: values[name].clone()
        for name, parameter in network.named_parameters()
    }
    for module in network.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            delattr(module, name)
            module.register_buffer(name, buffers[parameter])
    # Recurrent layers keep a list of their weights, which moving a network makes anew.
    return network.to(next(iter(values.values())).device)

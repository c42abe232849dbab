"""Correlated pairs: the logits of a trained network minus those of a frozen one."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from scipy.optimize import brentq
from torch import Tensor, nn

BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
# Relative tolerance of the norm in `correlation_for_norm`.
TOLERANCE = 1e-6

# Deviation: this pair is our way of setting the size of the logits at initialisation.
# The abstract of the temperature_check paper treats this size as a variable, but our
# copy lacks the method that sets it. The frozen parameters of the pair are c θ + sqrt(1
# - c²) θ'', where θ are the initial parameters of the trained network and θ'' an
# independent draw. If θ is normally distributed, the frozen parameters have the same
# distribution. The pair's logits shrink to 0 as the correlation c rises to 1; at c = 1
# the pair is the centred model of the literature on lazy training.


class CorrelatedPair(nn.Module):
    """f(x) = g(x; θ) - s g(x; θ') with trained parameters θ and frozen ones θ'.

    θ' comes from `frozen_parameters`, and s is the argument `share`. For every s, the
    gradient of f with respect to θ, and so the tangent kernel, is the same as that of
    g. With correlation 1 the pair starts as (1 - s) g(x; θ(0)), which can have any
    norm: s = 1 is the centred model, which starts at exactly 0; s = 0 is the network
    alone; a negative s enlarges the logits.

    The frozen network stores its values in buffers instead of parameters, so that they
    are saved with the pair but no optimizer sees them. The frozen network stays in
    evaluation mode, so dropout acts on the trained network only; batch normalisation
    follows the mode of the pair in both networks.

    Args:
        network: Computes `classifier(features(inputs))`.
        independent_draw: The same network with independently drawn parameters, which
            are only read.
        correlation: c in `frozen_parameters`, in [0, 1].
        share: The factor s.
    """

    def __init__(
        self,
        network: nn.Module,
        independent_draw: nn.Module,
        correlation: float,
        *,
        share: float = 1.0,
    ) -> None:
        super().__init__()
        self.share = share
        self.network = network
        frozen = frozen_parameters(network, independent_draw, correlation)
        self.frozen = _with_buffers(copy.deepcopy(network), frozen)
        self.train(network.training)

    @property
    def classifier(self) -> Any:
        """The last layer of the trained network."""
        return self.network.classifier

    @property
    def features(self) -> Any:
        """The trained network's function from inputs to the input of `classifier`."""
        return self.network.features

    @torch.no_grad()
    def frozen_logits(self, inputs: Tensor) -> Any:
        """Compute g(x; θ'), shape (n, classes).

        The last layer computes in the precision of its weights, even under autocast.
        """
        frozen: Any = self.frozen
        features = frozen.features(inputs)
        dtype = next(frozen.classifier.buffers()).dtype
        with torch.autocast(features.device.type, enabled=False):
            return frozen.classifier(features.to(dtype))

    def forward(self, inputs: Tensor) -> Any:
        """Compute the logits of the pair, shape (n, classes)."""
        return self.network(inputs) - self.share * self.frozen_logits(inputs)

    def train(self, mode: bool = True) -> CorrelatedPair:
        """Set the mode; in the frozen network only batch normalisation follows it."""
        super().train(mode)
        self.frozen.eval()
        for module in self.frozen.modules():
            if isinstance(module, BATCH_NORMS):
                module.train(mode)
        return self


@torch.no_grad()
def frozen_parameters(
    network: nn.Module, independent_draw: nn.Module, correlation: float
) -> dict[str, Tensor]:
    """Compute θ' = c θ + sqrt(1 - c²) θ'' for a correlation c in [0, 1].

    The result is keyed by parameter name. θ are the parameters of `network`, and θ''
    those of `independent_draw`. Entries that are equal in both were not drawn at random
    (biases that start at 0, scales that start at 1) and stay as they are.
    """
    # Use the product, because 1 - c² would lose precision for c close to 1.
    share = math.sqrt((1 - correlation) * (1 + correlation))
    draws = zip(network.named_parameters(), independent_draw.parameters(), strict=True)
    frozen = {}
    for (name, first), second in draws:
        mixture = correlation * first + share * second
        frozen[name] = torch.where(first == second, first, mixture)
    return frozen


def correlation_for_norm(
    network: nn.Module,
    independent_draw: nn.Module,
    inputs: Tensor,
    logit_norm: float,
    *,
    inverse_temperature: float,
) -> float:
    """Find the correlation at which a pair's tempered logits start with `logit_norm`.

    The norm ||Z||_F over samples and classes is 0 at correlation 1. Near correlation 1,
    the norm is proportional to the angle whose cosine is the correlation, so the
    function solves for that angle. If the norm is not monotonic, the result is one of
    the solutions.

    Raises:
        ValueError: If `logit_norm` is negative or above the norm at correlation 0; the
            message states the range.
    """
    # Use a copy, because forward passes in training mode would move the running
    # estimates of batch normalisation.
    trained = copy.deepcopy(network)
    right_angle = math.pi / 2

    @torch.no_grad()
    def norm(angle: float) -> float:
        correlation = math.cos(angle) if angle < right_angle else 0.0
        frozen = frozen_parameters(network, independent_draw, correlation)
        frozen_logits = torch.func.functional_call(trained, frozen, (inputs,))
        difference = trained(inputs) - frozen_logits
        return inverse_temperature * float(difference.double().norm().item())

    largest = norm(right_angle)
    if not 0 <= logit_norm <= largest:
        raise ValueError(
            f"logit_norm must be in [0, {largest:g}] for correlations from 1 to 0 at "
            f"inverse temperature {inverse_temperature:g}, got {logit_norm}"
        )
    if logit_norm == 0:
        return 1.0
    angle = brentq(
        lambda angle: norm(angle) - logit_norm,
        0.0,
        right_angle,
        xtol=TOLERANCE * min(1.0, logit_norm / largest),
        rtol=TOLERANCE,
    )
    return math.cos(angle)


def _with_buffers(network: nn.Module, values: dict[str, Tensor]) -> nn.Module:
    """Replace all parameters of `network` with buffers that hold `values`, in place."""
    buffers = {
        parameter: values[name].clone()
        for name, parameter in network.named_parameters()
    }
    for module in network.modules():
        for name, parameter in list(module.named_parameters(recurse=False)):
            delattr(module, name)
            module.register_buffer(name, buffers[parameter])
    # Recurrent layers keep a list of their weights; moving the network rebuilds that
    # list.
    device = next(iter(values.values())).device
    return network.to(device)

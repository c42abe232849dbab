"""Gradient flow of a network in rescaled time, and the flow of its linearisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch

from softmax_temperature.metrics.checks import check_positive

if TYPE_CHECKING:
    from torch import Tensor

    from softmax_temperature.early_learning.flat_network import FlatNetwork
    from softmax_temperature.early_learning.integration import State
    from softmax_temperature.early_learning.losses import Loss


class Flow(Protocol):
    """A state that starts at 0, its rate, and the tempered logits Z (n, classes) that belong to it."""

    @property
    def size(self) -> int:
        """Of the state."""

    def rate(self, state: State) -> State:
        """Change of the state in a unit of rescaled time."""

    def logits(self, state: State) -> Tensor:
        """Z, (n, classes) float64."""


class GradientFlow:
    """Gradient flow of a loss of the tempered logits Z = β z(θ), summed over samples, in the rescaled time s = β² η t.

    dθ/ds = (1/β) Jᵀ residual(Z). The state is β (θ - θ_0), whose rate and size do not depend on β while the kernel is
    what it was: the same tolerance then means the same for every β.

    Args:
        network: z.
        loss: of Z.
        inverse_temperature: β.

    Raises:
        ValueError: `inverse_temperature` is not finite and positive.
    """

    def __init__(self, network: FlatNetwork, loss: Loss, inverse_temperature: float) -> None:
        check_positive(inverse_temperature, "inverse_temperature")
        self._network, self._loss, self._inverse_temperature = network, loss, inverse_temperature
        self._seen: tuple[State, Tensor] | None = None

    @property
    def size(self) -> int:
        """The number of parameters."""
        return self._network.start.numel()

    def parameters(self, state: State) -> Tensor:
        """θ, (p,)."""
        moved = torch.from_numpy(state).to(self._network.start)
        return self._network.start + moved / self._inverse_temperature

    def rate(self, state: State) -> State:
        """Jᵀ residual(Z)."""
        factor = self._inverse_temperature
        logits, pulled = self._network.descend(
            self.parameters(state), lambda some, rows: self._loss.residual(factor * some, rows)
        )
        # The integrator's last look at a step is at its end, where its caller asks for the logits.
        self._seen = state.copy(), factor * logits
        return _numbers(pulled)

    def logits(self, state: State) -> Tensor:
        """Z = β z(θ)."""
        if self._seen is not None and np.array_equal(self._seen[0], state):
            return self._seen[1]
        return self._inverse_temperature * self._network.logits(self.parameters(state))


class LinearisedFlow:
    """dZ/ds = Θ_0 residual(Z) with the kernel of the start: the same for every β.

    The state is Z - Z_0.

    Args:
        start: Z_0, (n, classes) float64.
        kernel_product: Θ_0 v, (n, classes), of v (n, classes).
        loss: of Z.
    """

    def __init__(self, start: Tensor, kernel_product: Callable[[Tensor], Tensor], loss: Loss) -> None:
        self._start, self._kernel_product, self._loss = start, kernel_product, loss

    @property
    def size(self) -> int:
        """Samples times classes."""
        return self._start.numel()

    def rate(self, state: State) -> State:
        """Θ_0 residual(Z)."""
        return _numbers(self._kernel_product(self._loss.residual(self.logits(state))).flatten())

    def logits(self, state: State) -> Tensor:
        """Z."""
        return self._start + torch.from_numpy(state).to(self._start).view(self._start.shape)


def kernel_product(network: FlatNetwork, kernel: Tensor | None = None) -> Callable[[Tensor], Tensor]:
    """The product with the kernel of a network's start: of v (n, classes), Θ_0 v (n, classes).

    Args:
        network: whose kernel.
        kernel: Θ_0 whole, (n classes, n classes), where it is there already; otherwise products with the Jacobian.
    """
    if kernel is None:
        return lambda weights: network.kernel_product(network.start, weights)
    return lambda weights: (kernel @ weights.flatten()).view(weights.shape)


def _numbers(values: Tensor) -> State:
    return values.detach().cpu().numpy()

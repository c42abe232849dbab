"""What early learning is measured on: a network at its start with an independent draw of it, and samples to learn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from softmax_temperature.early_learning.correlation import correlation_for_norm
from softmax_temperature.early_learning.flat_network import FlatNetwork
from softmax_temperature.early_learning.flows import GradientFlow, LinearisedFlow, kernel_product
from softmax_temperature.early_learning.kernel import KernelSketch
from softmax_temperature.early_learning.pair import frozen_parameters
from softmax_temperature.early_learning.scales import Scales, predicted_scales

if TYPE_CHECKING:
    from torch import Tensor, nn

    from softmax_temperature.early_learning.losses import Loss


@dataclass(frozen=True, eq=False)
class Problem:
    """Two draws of a network, samples, and the tangent kernel, which is the same for all pairs that they make.

    Attributes:
        network: the one that is trained; not changed. In float64 already, so that nothing is rounded on the way.
        other: an independent draw, in float64.
        inputs: (n, ...) float64, on the networks' device.
        loss: of the tempered logits of these samples.
        probes: of the kernel, or None for the whole; see `KernelSketch`.
        chunk: samples at a time.
        seed: of the probes.
    """

    network: nn.Module
    other: nn.Module
    inputs: Tensor
    loss: Loss
    probes: int | None
    chunk: int
    seed: int

    def pair(self, correlation: float) -> FlatNetwork:
        """The pair with a correlation, at its start."""
        frozen = frozen_parameters(self.network, self.other, correlation)
        return FlatNetwork(self.network, self.inputs, frozen=frozen, chunk=self.chunk)

    def correlation(self, logit_norm: float, inverse_temperature: float) -> float:
        """That at which the tempered logits start with a norm; see `correlation_for_norm`."""
        return correlation_for_norm(
            self.network, self.other, self.inputs, logit_norm, inverse_temperature=inverse_temperature
        )

    @cached_property
    def sketch(self) -> KernelSketch:
        """Of the kernel."""
        return KernelSketch(self.pair(1.0), probes=self.probes, seed=self.seed)

    @cached_property
    def kernel(self) -> Tensor:
        """What the sketch sees at the start."""
        return self.sketch.at(self.pair(1.0).start)

    def start(self, correlation: float, inverse_temperature: float) -> Start:
        """Where the flows of a pair start."""
        return Start(self, self.pair(correlation), inverse_temperature)


class Start:
    """Where the flow of a pair and that of its linearisation start.

    Attributes:
        network: the pair.
        logits: Z_0, (n, classes).
        residual: Y - softmax(Z_0), (n, classes).
        scales: what is predicted from here.

    Args:
        problem: its draws and samples.
        network: the pair.
        inverse_temperature: multiplies its logits.
    """

    def __init__(self, problem: Problem, network: FlatNetwork, inverse_temperature: float) -> None:
        self.network, self._loss, self._inverse_temperature = network, problem.loss, inverse_temperature
        self._product = kernel_product(network, problem.kernel if problem.probes is None else None)
        self.logits = inverse_temperature * network.logits(network.start)
        self.residual = problem.loss.residual(self.logits)
        self.scales: Scales = predicted_scales(self.logits, self._product(self.residual))

    def gradient_flow(self) -> GradientFlow:
        """That of the pair."""
        return GradientFlow(self.network, self._loss, self._inverse_temperature)

    def linearised_flow(self) -> LinearisedFlow:
        """The same with the kernel of the start."""
        return LinearisedFlow(self.logits, self._product, self._loss)

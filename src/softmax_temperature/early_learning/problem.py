"""What early learning is measured on: a network at its start with an independent draw of it, and samples to learn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature.early_learning.flows import GradientFlow, LinearisedFlow, Loss
from softmax_temperature.early_learning.pair import correlation_for_norm, frozen_parameters
from softmax_temperature.early_learning.tangent_kernel import FlatNetwork, KernelSketch
from softmax_temperature.metrics.checks import check_labels

ALL = slice(None)


class SoftmaxCrossEntropy:
    """Cross-entropy of the softmax of tempered logits, nats, summed over samples with labels (n,) int64."""

    def __init__(self, labels: Tensor, classes: int) -> None:
        check_labels(labels, torch.zeros(len(labels), classes, dtype=torch.float64, device=labels.device))
        self._labels, self._targets = labels, F.one_hot(labels.long(), classes).double()

    def residual(self, logits: Tensor, rows: slice = ALL) -> Tensor:
        """Y - softmax(Z), (b, classes): minus the gradient, at the tempered logits of some samples."""
        return self._targets[rows] - torch.softmax(logits, dim=1)

    def mean(self, logits: Tensor) -> float:
        """Mean over all samples, nats."""
        return F.cross_entropy(logits, self._labels).item()


@dataclass(frozen=True)
class Scales:
    """The time scales that the theory predicts from ||Z_0||_F and the speed ||Θ_0 residual(Z_0)||_F of its change."""

    logit_norm: float
    speed: float

    @property
    def unit_time(self) -> float:
        """When the logits have changed by 1: about 1 / ||Θ_0||, however small Z_0 is."""
        return 1 / self.speed

    @property
    def logit_time(self) -> float:
        """tau_z, when the logits have changed by their own norm: ||Z_0|| / ||Θ_0 residual(Z_0)||."""
        return self.logit_norm / self.speed


@dataclass(frozen=True, eq=False)
class Problem:
    """Two draws of a network, samples, and the tangent kernel, which is the same for all pairs that they make.

    Both draws and the inputs (n, ...) are in float64 already, so that nothing is rounded on the way, and on one device;
    `probes`, `chunk` and `seed` are those of `KernelSketch` and `FlatNetwork`.
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
    """Where the flow of a pair and that of its linearisation start: Z_0 and its residual, both (n, classes).

    Raises:
        ValueError: Θ_0 residual(Z_0) is 0: nothing will ever change.
    """

    def __init__(self, problem: Problem, network: FlatNetwork, inverse_temperature: float) -> None:
        self.network, self._problem, self._inverse_temperature = network, problem, inverse_temperature
        self.logits = inverse_temperature * network.logits(network.start)
        self.residual = problem.loss.residual(self.logits)
        speed = self.kernel_product(self.residual).norm().item()
        if not speed > 0:
            raise ValueError(f"velocity must not vanish, got norm {speed}")
        self.scales = Scales(self.logits.norm().item(), speed)

    def kernel_product(self, weights: Tensor) -> Tensor:
        """Θ_0 v, (n, classes), of v (n, classes)."""
        if self._problem.probes is None:
            return (self._problem.kernel @ weights.flatten()).view(weights.shape)
        return self.network.kernel_product(self.network.start, weights)

    def gradient_flow(self) -> GradientFlow:
        """That of the pair."""
        return GradientFlow(self.network, self._problem.loss, self._inverse_temperature)

    def linearised_flow(self) -> LinearisedFlow:
        """The same with the kernel of the start."""
        return LinearisedFlow(self.logits, self.kernel_product, self._problem.loss)

"""What early learning is measured on: a network at its start with an independent draw of it, and samples to learn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature.early_learning.flows import Flow, Loss, gradient_flow, linearised_flow
from softmax_temperature.early_learning.pair import correlation_for_norm, frozen_parameters
from softmax_temperature.early_learning.tangent_kernel import FlatNetwork, KernelSketch

ALL = slice(None)


class SoftmaxCrossEntropy:
    """Cross-entropy of the softmax of tempered logits, nats, summed over samples with labels (n,) int64."""

    def __init__(self, labels: Tensor, classes: int) -> None:
        self._labels, self._targets = labels, F.one_hot(labels, classes).double()

    def residual(self, logits: Tensor, rows: slice = ALL) -> Tensor:
        """Y - softmax(Z), (b, classes): minus the gradient, at the tempered logits of some samples."""
        return self._targets[rows] - torch.softmax(logits, dim=1)

    def mean(self, logits: Tensor) -> float:
        """Mean over all samples, nats."""
        return F.cross_entropy(logits, self._labels).item()


class Scales(NamedTuple):
    """||Z_0||_F, and when the logits have changed by 1 and by their own norm (tau_z) at their first speed."""

    logit_norm: float
    unit_time: float
    logit_time: float


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
        own = (self.network, self.other, self.inputs)
        return correlation_for_norm(*own, logit_norm, inverse_temperature=inverse_temperature)

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
        return Start(self, correlation, inverse_temperature)


class Start:
    """Where the flow of a pair and that of its linearisation start: Z_0 and its residual, both (n, classes)."""

    def __init__(self, problem: Problem, correlation: float, inverse_temperature: float) -> None:
        self.network, self._problem, self._factor = problem.pair(correlation), problem, inverse_temperature
        self.logits = inverse_temperature * self.network.logits(self.network.start)
        self.residual = problem.loss.residual(self.logits)
        norm, speed = self.logits.norm().item(), self._kernel_product(self.residual).norm().item()
        self.scales = Scales(norm, 1 / speed, norm / speed)

    def gradient_flow(self) -> Flow:
        """That of the pair."""
        return gradient_flow(self.network, self._problem.loss, self._factor)

    def linearised_flow(self) -> Flow:
        """The same with the kernel of the start."""
        return linearised_flow(self.logits, self._kernel_product, self._problem.loss)

    def _kernel_product(self, weights: Tensor) -> Tensor:
        if self._problem.probes is None:
            return (self._problem.kernel @ weights.flatten()).view(weights.shape)
        return self.network.kernel_product(self.network.start, weights)

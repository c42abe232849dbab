"""Early-learning problems, and their flows recorded at chosen times and at events."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from torch import Tensor, nn

from softmax_temperature.early_learning import flows
from softmax_temperature.early_learning.flows import (
    Flow,
    Settings,
    SoftmaxCrossEntropy,
    State,
    integrate,
)
from softmax_temperature.early_learning.pair import (
    correlation_for_norm,
    frozen_parameters,
)
from softmax_temperature.early_learning.tangent_kernel import FlatNetwork, KernelSketch
from softmax_temperature.losses.tempered_cross_entropy import tempered_logits

# The `moment` of a row at a requested time. The `moment` of a row at an event is the
# event's name.
TIME = "time"
# Time step over which the initial rate of kernel change is measured, as a fraction of
# `Scales.unit_time`.
DRIFT_STEP = 1e-5
# Modules that are not differentiable everywhere.
KINKED_MODULES = (
    nn.ReLU,
    nn.Hardtanh,
    nn.LeakyReLU,
    nn.PReLU,
    nn.RReLU,
    nn.Threshold,
    nn.Hardswish,
    nn.Hardsigmoid,
    nn.MaxPool1d,
    nn.MaxPool2d,
    nn.MaxPool3d,
    nn.AdaptiveMaxPool1d,
    nn.AdaptiveMaxPool2d,
    nn.AdaptiveMaxPool3d,
)


@dataclass(frozen=True, eq=False)
class Problem:
    """Two random draws of a network, and the samples that the network learns.

    The tangent kernel at the start is the same for pairs of every correlation.

    Attributes:
        network: The network that is trained, in float64 and evaluation mode.
        independent_draw: The same network with independently drawn parameters.
        inputs: Samples, a float64 tensor of shape (n, ...).
        loss: Cross-entropy with the labels of the samples.
        probes: Number of random probes of the kernel sketch. If None, the whole kernel
            is computed.
        chunk: Samples per forward pass.
        seed: Seed of the probes.
    """

    network: nn.Module
    independent_draw: nn.Module
    inputs: Tensor
    loss: SoftmaxCrossEntropy
    probes: int | None
    chunk: int
    seed: int

    def pair(self, correlation: float) -> FlatNetwork:
        """Make the untrained pair with the given `correlation`."""
        frozen = frozen_parameters(self.network, self.independent_draw, correlation)
        return FlatNetwork(self.network, self.inputs, frozen=frozen, chunk=self.chunk)

    def correlation(self, logit_norm: float, beta: float) -> float:
        """Find the correlation at which tempered logits start with norm `logit_norm`.

        See `correlation_for_norm`.
        """
        return correlation_for_norm(
            self.network,
            self.independent_draw,
            self.inputs,
            logit_norm,
            inverse_temperature=beta,
        )

    @cached_property
    def sketch(self) -> KernelSketch:
        """The kernel sketch, which computes the whole kernel if `probes` is None."""
        return KernelSketch(self.pair(1.0), probes=self.probes, seed=self.seed)

    @cached_property
    def kernel(self) -> Tensor:
        """The kernel at the start, as `sketch.at` returns it."""
        return self.sketch.at(self.pair(1.0).start)


class Scales(NamedTuple):
    """Norm of the initial logits, and two rescaled times.

    Attributes:
        logit_norm: ||Z_0||_F.
        unit_time: Time in which the logits change by 1 at their initial speed.
        logit_time: Time in which the logits would change by their own norm at their
            initial rate (tau_z).
    """

    logit_norm: float
    unit_time: float
    logit_time: float


class Start:
    """Starting point of a pair's gradient flow and of its linearised flow.

    `logits` are Z_0 and `residual` is Y - softmax(Z_0), both (n, classes).
    """

    def __init__(
        self, problem: Problem, correlation: float, inverse_temperature: float
    ) -> None:
        self.problem = problem
        self.network = problem.pair(correlation)
        start = self.network.logits(self.network.start)
        self.logits = tempered_logits(start, inverse_temperature)
        self.residual = problem.loss.residual(self.logits)
        norm = self.logits.norm().item()
        speed = self._kernel_product(self.residual).norm().item()
        self.scales = Scales(norm, 1 / speed, norm / speed)
        self.gradient_flow = flows.gradient_flow(
            self.network, problem.loss, inverse_temperature
        )
        self.linearised_flow = flows.linearised_flow(
            self.logits, self._kernel_product, problem.loss
        )

    def _kernel_product(self, weights: Tensor) -> Tensor:
        if self.problem.probes is None:
            return (self.problem.kernel @ weights.flatten()).view(weights.shape)
        return self.network.kernel_product(self.network.start, weights)

    def drift_rate(self) -> float:
        """Return the initial rate of kernel change per unit of rescaled time, at β = 1.

        The parameters start to move along (1/β) Jᵀ residual(Z_0), so ||dΘ/ds||_F /
        ||Θ_0||_F is the returned rate divided by β.
        """
        start = self.network.start
        sketch = self.problem.sketch
        step = DRIFT_STEP * self.scales.unit_time
        moved = start + step * self.network.pull_back(start, self.residual)
        drift = sketch.drift(sketch.at(moved), sketch.at(start))
        return drift.value / step

    def described(self) -> dict[str, Any]:
        """Return facts about the problem and the start, for the record of a cell.

        The kernel's norm comes with its standard error.
        """
        norm = self.problem.sketch.norm(self.problem.kernel)
        images, classes = self.network.shape
        return {
            "parameters": self.network.start.numel(),
            "smooth": is_smooth(self.problem.network),
            "images": images,
            "classes": classes,
            "kernel_norm": norm.value,
            "kernel_norm_error": norm.standard_error,
            "unit_time": self.scales.unit_time,
        }


def log_times(first: float, last: float, points: int) -> list[float]:
    """Return `points` times from `first` to `last`, evenly spaced on a log scale."""
    step = math.log(last / first) / (points - 1)
    return [first * math.exp(step * number) for number in range(points)]


def course(
    start: Start,
    settings: Settings,
    times: Sequence[float],
    *,
    kernel_times: Collection[float] = (),
    linearised: Mapping[float, Tensor] | None = None,
) -> tuple[dict[str, Any], dict[float, Tensor]]:
    """Integrate a flow, and record one row per requested time and per event.

    Args:
        start: Starting point of the flows.
        settings: Settings of the integrator.
        times: Rescaled times to record, ascending.
        kernel_times: The times among `times` at which the kernel is measured.
        linearised: Tempered logits of the linearised flow, keyed by time. If they are
            given, the gradient flow is integrated; if not, the linearised flow is.

    Returns:
        The record of the trajectory, and the tempered logits Z at the recorded times
        and events, keyed by time. The record has the entries `ending`, `evaluations`
        and `rows`. A row has `moment`, `time`, `loss` (mean over samples, nats) and
        `change` (||Z - Z_0||). For the gradient flow it also has `drift`, the relative
        change of the kernel, and its standard error `drift_error`, at events and at
        `kernel_times`; and `distance`, ||Z - Z_linearised||, at the times of
        `linearised`. Missing values are None.
    """
    problem = start.problem
    logits_by_time: dict[float, Tensor] = {}
    times_without_kernel = set(times) - set(kernel_times)
    flow = start.linearised_flow if linearised is None else start.gradient_flow

    def observe(time: float, state: State) -> dict[str, Any]:
        logits = flow.logits(state)
        logits_by_time[time] = logits
        row = {
            "time": time,
            "loss": problem.loss.mean(logits),
            "change": (logits - start.logits).norm().item(),
            "drift": None,
            "drift_error": None,
            "distance": None,
        }
        if linearised is None:
            return row
        if time not in times_without_kernel:
            kernel = problem.sketch.at(flow.parameters(state))
            drift = problem.sketch.drift(kernel, problem.kernel)
            row["drift"] = drift.value
            row["drift_error"] = drift.standard_error
        if time in linearised:
            row["distance"] = (logits - linearised[time]).norm().item()
        return row

    integrated = integrate(flow, problem.loss, settings, times=times, observe=observe)
    rows = [{"moment": TIME, **row} for _, row in integrated.moments]
    for event, (_, row) in integrated.crossings.items():
        rows.append({"moment": event, **row})
    record = {
        "ending": integrated.ending,
        "evaluations": integrated.evaluations,
        "rows": rows,
    }
    return record, logits_by_time


def event_times(
    flow: Flow, loss: SoftmaxCrossEntropy, settings: Settings
) -> dict[str, Any]:
    """Integrate `flow`, and return how it ended and the rescaled time of each event.

    Events that did not happen are absent. `evaluations` is the number of evaluations of
    the rate.
    """
    integrated = integrate(flow, loss, settings)
    times = {event: time for event, (time, _) in integrated.crossings.items()}
    return {
        "ending": integrated.ending,
        "evaluations": integrated.evaluations,
        **times,
    }


# Deviation: we judge predictions of the drift separately for smooth networks and for
# other networks. The theory expands a network in its parameters, and so assumes that it
# is smooth. When a ReLU unit crosses its kink, the kernel jumps, and on few samples the
# number of crossings during a small move is not proportional to the move.


def is_smooth(network: nn.Module) -> bool:
    """Whether all modules are smooth; function calls in `forward` are not examined."""
    return not any(isinstance(module, KINKED_MODULES) for module in network.modules())

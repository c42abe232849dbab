"""What early learning is measured on, and its courses: one row for each moment that was
observed.
"""

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
    follow,
)
from softmax_temperature.early_learning.pair import (
    correlation_for_norm,
    frozen_parameters,
)
from softmax_temperature.early_learning.tangent_kernel import FlatNetwork, KernelSketch

# The moment of a row at a wanted time; rows at events have the event's name.
TIME = "time"
MOVE = 1e-5  # Of the unit of time, for the rate at which the kernel starts to change.
KINKED = (
    *(
        nn.ReLU,
        nn.Hardtanh,
        nn.LeakyReLU,
        nn.PReLU,
        nn.RReLU,
        nn.Threshold,
        nn.Hardswish,
        nn.Hardsigmoid,
    ),
    *(
        nn.MaxPool1d,
        nn.MaxPool2d,
        nn.MaxPool3d,
        nn.AdaptiveMaxPool1d,
        nn.AdaptiveMaxPool2d,
        nn.AdaptiveMaxPool3d,
    ),
)


@dataclass(frozen=True, eq=False)
class Problem:
    """Two draws of a network, samples (n, ...) in float64, and the kernel, which is the
    same for all pairs of them.
    """

    network: nn.Module
    other: nn.Module
    inputs: Tensor
    loss: SoftmaxCrossEntropy
    probes: int | None
    chunk: int
    seed: int

    def pair(self, correlation: float) -> FlatNetwork:
        """The pair with a correlation, at its start."""
        frozen = frozen_parameters(self.network, self.other, correlation)
        return FlatNetwork(self.network, self.inputs, frozen=frozen, chunk=self.chunk)

    def correlation(self, logit_norm: float, beta: float) -> float:
        """That at which the tempered logits start with a norm; see
        `correlation_for_norm`.
        """
        return correlation_for_norm(
            self.network, self.other, self.inputs, logit_norm, inverse_temperature=beta
        )

    @cached_property
    def sketch(self) -> KernelSketch:
        """What sees the kernel."""
        return KernelSketch(self.pair(1.0), probes=self.probes, seed=self.seed)

    @cached_property
    def kernel(self) -> Tensor:
        """What the sketch sees at the start."""
        return self.sketch.at(self.pair(1.0).start)


class Scales(NamedTuple):
    """||Z_0||_F, and when the logits have changed by 1 and by their own norm (tau_z) at
    their first speed.
    """

    logit_norm: float
    unit_time: float
    logit_time: float


class Start:
    """Where the flow of a pair and that of its linearisation start: Z_0 and its
    residual, both (n, classes).
    """

    def __init__(
        self, problem: Problem, correlation: float, inverse_temperature: float
    ) -> None:
        self.problem, self.network = problem, problem.pair(correlation)
        self.logits = inverse_temperature * self.network.logits(self.network.start)
        self.residual = problem.loss.residual(self.logits)
        norm, speed = (
            self.logits.norm().item(),
            self._kernel_product(self.residual).norm().item(),
        )
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
        """The rate at which the kernel starts to drift, per unit of rescaled time, for
        inverse temperature 1.

        As the parameters start along (1/β) Jᵀ residual(Z_0), ||dΘ/ds||_F / ||Θ_0||_F is
        this number over β.
        """
        own, sketch, move = (
            self.network,
            self.problem.sketch,
            MOVE * self.scales.unit_time,
        )
        moved = own.start + move * own.pull_back(own.start, self.residual)
        return sketch.drift(sketch.at(moved), sketch.at(own.start)).value / move

    def described(self) -> dict[str, Any]:
        """Problem and start as a record has them; norms of the kernel with their
        standard errors.
        """
        norm, (images, classes) = (
            self.problem.sketch.norm(self.problem.kernel),
            self.network.shape,
        )
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
    """`points` times from `first` to `last`, evenly spaced on a log axis."""
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
    """The course of the linearised flow or, with its logits by time, of the gradient
    flow; and the logits Z by time.

    A course has `ending`, `evaluations` and `rows`, each with `moment`, `time`, `loss`
    (mean over samples), `change` (||Z - Z_0||), and three that are None for the
    linearised flow: `drift`, the relative change of the kernel, and `drift_error`, at
    events and `kernel_times`; `distance`, ||Z - Z_linearised||, at the times of
    `linearised`.
    """
    problem, logits_at, without = (
        start.problem,
        dict[float, Tensor](),
        set(times) - set(kernel_times),
    )
    flow = start.linearised_flow if linearised is None else start.gradient_flow

    def observe(time: float, state: State) -> dict[str, Any]:
        logits = logits_at[time] = flow.logits(state)
        row = {
            "time": time,
            "loss": problem.loss.mean(logits),
            "change": (logits - start.logits).norm().item(),
        }
        row |= dict.fromkeys(("drift", "drift_error", "distance"))
        if linearised is not None and time not in without:
            kernel = problem.sketch.at(flow.parameters(state))
            row["drift"], row["drift_error"] = problem.sketch.drift(
                kernel, problem.kernel
            )
        if linearised is not None and time in linearised:
            row["distance"] = (logits - linearised[time]).norm().item()
        return row

    found = follow(flow, problem.loss, settings, times=times, observe=observe)
    seen = [(TIME, row) for _, row in found.moments] + [
        (name, row) for name, (_, row) in found.crossings.items()
    ]
    rows = [{"moment": moment, **row} for moment, row in seen]
    return {
        "ending": found.ending,
        "evaluations": found.evaluations,
        "rows": rows,
    }, logits_at


def event_times(
    flow: Flow, loss: SoftmaxCrossEntropy, settings: Settings
) -> dict[str, Any]:
    """`ending`, `evaluations` and, by the name of each event that happened, its
    rescaled time.
    """
    found = follow(flow, loss, settings)
    times = {name: time for name, (time, _) in found.crossings.items()}
    return {"ending": found.ending, "evaluations": found.evaluations, **times}


# Deviation: the theory expands a network in its parameters and thereby takes it to be
# smooth. Where a unit of ReLU crosses its kink, the kernel jumps: on few samples, the
# number of crossings during a small move is not in proportion to the move. Predictions
# of the drift are judged apart for smooth networks and for others.


def is_smooth(network: nn.Module) -> bool:
    """Whether no module of a network has a kink; functions that its code calls are not
    seen.
    """
    return not any(isinstance(module, KINKED) for module in network.modules())

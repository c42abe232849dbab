"""Gradient flow of a network in rescaled time, the flow of its linearisation, and the events along them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.integrate import RK45
from scipy.optimize import brentq
from torch import Tensor

from softmax_temperature.early_learning.tangent_kernel import FlatNetwork
from softmax_temperature.metrics.checks import check_positive

State = NDArray[np.float64]
Observe = Callable[[float, State], Any]

UNIT, TENTH, WHOLE, FIT, LEARNED = "unit", "tenth", "whole", "fit", "learned"
"""||Z - Z_0|| reaches 1, a tenth of ||Z_0||, ||Z_0||; the loss falls to a half and to a tenth of what it was."""
HALF, SHARE = 0.5, 0.1
FIRST_STEP = 0.01
"""In the unit of time; the integrator's own guess does not know that unit, and starts far too small or too large."""
PRECISION = 1e-9
"""Of the time of an event, relative."""

# Deviation: the paper's own definition of when a model has learned is not at hand. The time to fit is here that to half
# of the loss at the start, which is reached whatever the size of the logits, and early, where the theory speaks. A
# tenth of the norm stands beside the whole because large logits that fit stop short of changing by all of their norm.


class Loss(Protocol):
    """A sum over samples of a function of their tempered logits; see `SoftmaxCrossEntropy`."""

    def residual(self, logits: Tensor, rows: slice = ...) -> Tensor: ...  # noqa: D102
    def mean(self, logits: Tensor) -> float: ...  # noqa: D102


class GradientFlow:
    """Gradient flow of a loss of the tempered logits Z = β z(θ), summed over samples, in the rescaled time s = β² η t.

    dθ/ds = (1/β) Jᵀ residual(Z). The state is β (θ - θ_0), whose rate and size do not depend on β as long as the kernel
    does not change: the same tolerance then means the same for every β.
    """

    def __init__(self, network: FlatNetwork, loss: Loss, inverse_temperature: float) -> None:
        check_positive(inverse_temperature, "inverse_temperature")
        self._network, self._loss, self._inverse_temperature = network, loss, inverse_temperature
        self._seen: tuple[State, Tensor] | None = None
        self.size = network.start.numel()

    def parameters(self, state: State) -> Tensor:
        """θ, (p,)."""
        return self._network.start + torch.from_numpy(state).to(self._network.start) / self._inverse_temperature

    def rate(self, state: State) -> State:
        """Jᵀ residual(Z)."""
        factor = self._inverse_temperature
        logits, pulled = self._network.descend(
            self.parameters(state), lambda some, rows: self._loss.residual(factor * some, rows)
        )
        # The integrator's last look at a step is at its end, where its caller asks for the logits.
        self._seen = state.copy(), factor * logits
        return pulled.cpu().numpy()

    def logits(self, state: State) -> Tensor:
        """Z = β z(θ), (n, classes) float64."""
        if self._seen is not None and np.array_equal(self._seen[0], state):
            return self._seen[1]
        return self._inverse_temperature * self._network.logits(self.parameters(state))


class LinearisedFlow:
    """dZ/ds = Θ_0 residual(Z) with the kernel of the start: the same for every β. The state is Z - Z_0."""

    def __init__(self, start: Tensor, kernel_product: Callable[[Tensor], Tensor], loss: Loss) -> None:
        self._start, self._kernel_product, self._loss = start, kernel_product, loss
        self.size = start.numel()

    def rate(self, state: State) -> State:
        """Θ_0 residual(Z)."""
        return self._kernel_product(self._loss.residual(self.logits(state))).detach().flatten().cpu().numpy()

    def logits(self, state: State) -> Tensor:
        """Z, (n, classes) float64."""
        return self._start + torch.from_numpy(state).to(self._start).view(self._start.shape)


Flow = GradientFlow | LinearisedFlow


@dataclass(frozen=True)
class Settings:
    """How a flow is integrated.

    Attributes:
        unit_time: the time in which the state changes by what counts as one.
        horizon: where to end at the latest.
        tolerance: relative to the state, and to what its numbers change by in one unit of time (root mean square): the
            error of a step is at most the sum of both.
        evaluations: limit on evaluations of the flow's rate, checked between steps.
    """

    unit_time: float
    horizon: float
    tolerance: float
    evaluations: int


@dataclass
class Course:
    """What was seen of a flow: time and observation, at the wanted times reached and, by name, at events.

    `ending` is "complete" when it has learned; otherwise what ended the integration: "horizon", "evaluations" or
    "failed" (a step too small to change the time, as where numbers are no longer finite).
    """

    moments: list[tuple[float, Any]] = field(default_factory=list)
    crossings: dict[str, tuple[float, Any]] = field(default_factory=dict)
    ending: str = "complete"
    evaluations: int = 0


def follow(flow: Flow, loss: Loss, settings: Settings, *, times: Sequence[float] = (), observe: Observe) -> Course:
    """Integrate a flow from its start until it has learned, or the settings end it.

    The method is RK45 of scipy's `solve_ivp`, which itself has no limit on evaluations.

    `observe` is called with time and state, at each of `times` (rescaled, positive, ascending) and at each event: UNIT,
    TENTH, WHOLE, FIT and LEARNED, as far as they happen. A start with logits of 0 has neither TENTH nor WHOLE.
    """
    origin = np.zeros(flow.size)
    levels = _levels(flow, loss)
    pending = [name for name, level in levels(origin).items() if level < 0]
    waiting, course = list(times), Course()
    spread = float(np.sqrt(np.mean(np.square(flow.rate(origin)))))
    solver = RK45(
        lambda _, state: flow.rate(state),
        0.0,
        origin,
        settings.horizon,
        first_step=min(FIRST_STEP * settings.unit_time, settings.horizon),
        rtol=settings.tolerance,
        atol=settings.tolerance * spread * settings.unit_time,
    )
    while LEARNED not in course.crossings:
        if solver.status != "running" or solver.nfev >= settings.evaluations:
            course.ending = {"finished": "horizon", "failed": "failed", "running": "evaluations"}[solver.status]
            break
        before = float(solver.t)
        solver.step()
        if solver.status != "failed":
            _look(before, solver, levels, waiting, pending, observe, course)
    course.evaluations = int(solver.nfev)
    return course


Levels = Callable[[State], Mapping[str, float]]


def _levels(flow: Flow, loss: Loss) -> Levels:
    """Numbers by the names of events; an event is where one rises to 0 for the first time."""
    start = flow.logits(np.zeros(flow.size))
    norm, first = start.norm().item(), loss.mean(start)

    def levels(state: State) -> dict[str, float]:
        logits = flow.logits(state)
        change, now = (logits - start).norm().item(), loss.mean(logits)
        changes = {UNIT: change - 1, TENTH: change - SHARE * norm, WHOLE: change - norm}
        return {**changes, FIT: HALF * first - now, LEARNED: SHARE * first - now}

    return levels


def _look(
    before: float,
    solver: RK45,
    levels: Levels,
    waiting: list[float],
    pending: list[str],
    observe: Observe,
    course: Course,
) -> None:
    """Record what happened in the step that the integrator took from a time."""
    after, between = float(solver.t), solver.dense_output()
    while waiting and waiting[0] <= after:
        time = waiting.pop(0)
        course.moments.append((time, observe(time, between(time))))
    reached = levels(solver.y)
    for name in [each for each in pending if reached[each] >= 0]:

        def level(time: float, name: str = name) -> float:
            return levels(between(time))[name]

        time = after
        # The level is negative at the start of the step, up to the rounding of the interpolation.
        if level(before) < 0 < level(after):
            time = float(brentq(level, before, after, xtol=PRECISION * after, rtol=PRECISION))
        course.crossings[name] = time, observe(time, between(time))
        pending.remove(name)

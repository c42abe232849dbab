"""Gradient flow of a network in rescaled time, the flow of its linearisation, and the events along them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.integrate import RK45
from scipy.optimize import brentq
from torch import Tensor

from softmax_temperature.early_learning.tangent_kernel import FlatNetwork

State = NDArray[np.float64]

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
        self._network, self._loss, self._factor = network, loss, inverse_temperature
        self.size = network.start.numel()

    def parameters(self, state: State) -> Tensor:
        """θ, (p,)."""
        return self._network.start + torch.from_numpy(state).to(self._network.start) / self._factor

    def rate(self, state: State) -> State:
        """Jᵀ residual(Z)."""
        parameters = self.parameters(state)
        pulled = self._network.descend(parameters, lambda z, rows: self._loss.residual(self._factor * z, rows))
        return pulled.cpu().numpy()

    def logits(self, state: State) -> Tensor:
        """Z = β z(θ), (n, classes) float64."""
        return self._factor * self._network.logits(self.parameters(state))


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


class Settings(NamedTuple):
    """The time in which the state changes by what counts as one, where to end, and what a step may err and cost.

    `tolerance` is relative to the state plus its change in one unit of time (root mean square).
    """

    unit_time: float
    horizon: float
    tolerance: float
    evaluations: int


@dataclass
class Course:
    """Time and observation, at the wanted times reached and, by name, at events.

    `ending` is "complete" when the flow has learned; otherwise what ended the integration: "horizon", "evaluations" or
    "failed" (a step too small to change the time, as where numbers are no longer finite).
    """

    moments: list[tuple[float, Any]] = field(default_factory=list)
    crossings: dict[str, tuple[float, Any]] = field(default_factory=dict)
    ending: str = "complete"
    evaluations: int = 0


def follow(
    flow: Flow,
    loss: Loss,
    settings: Settings,
    *,
    times: Sequence[float] = (),
    observe: Callable[[float, State], Any] = lambda *_: None,
) -> Course:
    """Integrate a flow from its start by RK45 until it has learned, or the settings end it.

    `observe` is called with time and state, at each of `times` (rescaled, positive, ascending) and at each event that
    happens. A start with logits of 0 has neither TENTH nor WHOLE.
    """
    origin = np.zeros(flow.size)
    levels = partial(_levels, flow, loss, flow.logits(origin))
    pending = [name for name, level in levels(origin).items() if level < 0]
    waiting, course = list(times), Course()
    unit, horizon, tolerance, evaluations = settings
    size, step = (
        tolerance * float(np.sqrt(np.mean(np.square(flow.rate(origin))))) * unit,
        min(FIRST_STEP * unit, horizon),
    )
    solver = RK45(lambda _, state: flow.rate(state), 0.0, origin, horizon, first_step=step, rtol=tolerance, atol=size)
    while LEARNED not in course.crossings:
        if solver.status != "running" or solver.nfev >= evaluations:
            course.ending = {"finished": "horizon", "failed": "failed", "running": "evaluations"}[solver.status]
            break
        solver.step()
        if solver.status == "failed":
            continue
        between = solver.dense_output()
        while waiting and waiting[0] <= solver.t:
            time = waiting.pop(0)
            course.moments.append((time, observe(time, between(time))))
        reached = levels(solver.y)
        for name in [each for each in pending if reached[each] >= 0]:
            time = _crossing(levels, between, name, solver.t_old, solver.t)
            course.crossings[name] = time, observe(time, between(time))
            pending.remove(name)
    course.evaluations = int(solver.nfev)
    return course


def _levels(flow: Flow, loss: Loss, start: Tensor, state: State) -> dict[str, float]:
    """Numbers by the names of events; an event is where one rises to 0 for the first time."""
    logits = flow.logits(state)
    norm, first = start.norm().item(), loss.mean(start)
    change, now = (logits - start).norm().item(), loss.mean(logits)
    changes = {UNIT: change - 1, TENTH: change - SHARE * norm, WHOLE: change - norm}
    return {**changes, FIT: HALF * first - now, LEARNED: SHARE * first - now}


def _crossing(
    levels: Callable[[State], dict[str, float]], between: Any, name: str, before: float, after: float
) -> float:
    def level(time: float) -> float:
        return levels(between(time))[name]

    # The level is negative at the start of the step, up to the rounding of the interpolation.
    if level(before) < 0 < level(after):
        return float(brentq(level, before, after, xtol=PRECISION * after, rtol=PRECISION))
    return float(after)

"""Integration of a flow until everything that is asked about it has been seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import RK45
from scipy.optimize import brentq

State = NDArray[np.float64]
Seen = TypeVar("Seen")
Ending = Literal["complete", "horizon", "evaluations", "failed"]

FIRST_STEP = 0.01
"""In the unit of time; the integrator's own guess does not know that unit, and starts far too small or too large."""

PRECISION = 1e-9
"""Of the time of an event, relative."""


@dataclass(frozen=True)
class Settings:
    """How a flow is integrated.

    Attributes:
        unit_time: the time in which the state changes by what counts as one.
        horizon: where to end at the latest.
        tolerance: relative to the state, and to what its numbers change by in one unit of time (root mean square): the
            error of a step is at most the sum of both.
        evaluations: of the flow's rate, at most about so many.
    """

    unit_time: float
    horizon: float
    tolerance: float
    evaluations: int


@dataclass(frozen=True)
class Course(Generic[Seen]):
    """What was seen of a flow.

    Attributes:
        moments: time and what was observed then, for each of the wanted times that was reached.
        crossings: the same for each level that was crossed, by name.
        ending: "complete" when nothing was left to wait for; otherwise what ended the integration: the horizon, the
            limit of evaluations, or ("failed") a step that became too small to change the time, as where numbers are no
            longer finite.
        evaluations: of the flow's rate.
    """

    moments: list[tuple[float, Seen]]
    crossings: dict[str, tuple[float, Seen]]
    ending: Ending
    evaluations: int


def integrate(
    rate: Callable[[State], State],
    size: int,
    settings: Settings,
    *,
    times: Sequence[float] = (),
    levels: Callable[[State], Mapping[str, float]] = lambda _: {},
    last: str | None = None,
    observe: Callable[[float, State], Seen],
) -> Course[Seen]:
    """Follow d state / ds = rate(state) from state 0 by the Runge-Kutta method of orders 5 and 4 of `solve_ivp`.

    It is that function's method in a loop of ours, which can stop when the last of several events has happened.

    Args:
        rate: of the state.
        size: of the state.
        settings: scales and limits.
        times: positive, ascending, when to observe.
        levels: names and numbers; an event is where one rises to 0 for the first time. One that is not negative at the
            start has none.
        last: the level after whose event nothing else is waited for.
        observe: called with time and state at each of `times`, and at each event.
    """
    watch = _Watch(list(times), levels, observe, last, size)
    spread = float(np.sqrt(np.mean(np.square(rate(np.zeros(size))))))
    solver = RK45(
        lambda _, state: rate(state),
        0.0,
        np.zeros(size),
        settings.horizon,
        first_step=min(FIRST_STEP * settings.unit_time, settings.horizon),
        rtol=settings.tolerance,
        atol=settings.tolerance * spread * settings.unit_time,
    )
    while watch.waits and solver.status == "running" and solver.nfev < settings.evaluations:
        before = float(solver.t)
        solver.step()
        if solver.status != "failed":
            watch.look(before, solver)
    return Course(watch.moments, watch.crossings, _ending(watch, solver), int(solver.nfev))


@dataclass
class _Watch(Generic[Seen]):
    """What is still to be seen, and what was."""

    times: list[float]
    levels: Callable[[State], Mapping[str, float]]
    observe: Callable[[float, State], Seen]
    last: str | None
    size: int
    moments: list[tuple[float, Seen]] = field(default_factory=list)
    crossings: dict[str, tuple[float, Seen]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pending = [name for name, level in self.levels(np.zeros(self.size)).items() if level < 0]

    @property
    def waits(self) -> bool:
        return self.last not in self.crossings and bool(self.times or self.pending)

    def look(self, before: float, solver: Any) -> None:
        """See what happened in the step that the integrator took from a time."""
        after, between = float(solver.t), solver.dense_output()
        while self.times and self.times[0] <= after:
            time = self.times.pop(0)
            self.moments.append((time, self.observe(time, between(time))))
        reached = self.levels(solver.y)
        for name in [each for each in self.pending if reached[each] >= 0]:
            time = self._crossing(name, before, after, between)
            self.crossings[name] = time, self.observe(time, between(time))
            self.pending.remove(name)

    def _crossing(self, name: str, before: float, after: float, between: Callable[[float], State]) -> float:
        def level(time: float) -> float:
            return self.levels(between(time))[name]

        # Negative at the end of the step before, up to the rounding of the interpolation.
        if not level(before) < 0 < level(after):
            return after
        return float(brentq(level, before, after, xtol=PRECISION * after, rtol=PRECISION))


def _ending(watch: _Watch[Any], solver: Any) -> Ending:
    if not watch.waits:
        return "complete"
    endings: dict[str, Ending] = {"finished": "horizon", "failed": "failed", "running": "evaluations"}
    return endings[solver.status]

"""Courses of early learning as records tell them: one row for each moment that was seen."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from softmax_temperature.early_learning.following import follow

if TYPE_CHECKING:
    from torch import Tensor

    from softmax_temperature.early_learning.flows import Flow
    from softmax_temperature.early_learning.integration import Course, Settings, State
    from softmax_temperature.early_learning.losses import Loss
    from softmax_temperature.early_learning.problem import Problem, Start

TIME = "time"
"""The moment of a row that stands at a wanted time; those of events have the names of `following`."""


def linearised_course(
    problem: Problem, start: Start, settings: Settings, times: Sequence[float]
) -> tuple[dict[str, Any], dict[float, Tensor]]:
    """Follow the linearised flow.

    Args:
        problem: its samples.
        start: where from.
        settings: of the integration.
        times: when to look, rescaled.

    Returns:
        `ending`, `evaluations` and `rows`, each with `moment`, `time`, `loss` (mean over samples), `change` (||Z -
        Z_0||), and empty what a fixed kernel has not: `drift`, `drift_error`, `distance`. And Z by time.
    """
    flow = start.linearised_flow()
    seen: dict[float, Tensor] = {}

    def observe(time: float, state: State) -> dict[str, Any]:
        seen[time] = flow.logits(state)
        return _row(problem.loss, start, seen[time])

    return _told(follow(flow, problem.loss, settings, times=times, observe=observe)), seen


def real_course(
    problem: Problem,
    start: Start,
    settings: Settings,
    times: Sequence[float],
    *,
    kernel_times: Collection[float],
    linearised: Mapping[float, Tensor],
) -> dict[str, Any]:
    """Follow the gradient flow of a network.

    Args:
        problem: its samples and kernel.
        start: where from.
        settings: of the integration.
        times: when to look, rescaled.
        kernel_times: those of them at which the kernel is computed; it also is at each event.
        linearised: Z of the linearised flow by time.

    Returns:
        As `linearised_course`, with `drift`, the relative change of the kernel, its standard error, and `distance`, ||Z
        - Z_linearised||; each empty where it was not computed.
    """
    flow, without = start.gradient_flow(), set(times) - set(kernel_times)

    def observe(time: float, state: State) -> dict[str, Any]:
        logits = flow.logits(state)
        row = _row(problem.loss, start, logits)
        if time in linearised:
            row["distance"] = (logits - linearised[time]).norm().item()
        if time not in without:
            drift = problem.sketch.drift(problem.sketch.at(flow.parameters(state)), problem.kernel)
            row |= {"drift": drift.value, "drift_error": drift.standard_error}
        return row

    return _told(follow(flow, problem.loss, settings, times=times, observe=observe))


def event_times(flow: Flow, loss: Loss, settings: Settings) -> dict[str, Any]:
    """When the events of early learning happen in a flow.

    Returns:
        `ending`, `evaluations` and, by the name of the event, its rescaled time; those that did not happen are left
        out.
    """
    course = follow(flow, loss, settings, observe=lambda *_: None)
    times = {name: time for name, (time, _) in course.crossings.items()}
    return {"ending": course.ending, "evaluations": course.evaluations, **times}


def _row(loss: Loss, start: Start, logits: Tensor) -> dict[str, Any]:
    empty = dict.fromkeys(("drift", "drift_error", "distance"))
    return {"loss": loss.mean(logits), "change": (logits - start.logits).norm().item(), **empty}


def _told(course: Course[dict[str, Any]]) -> dict[str, Any]:
    rows = [{"moment": TIME, "time": time, **row} for time, row in course.moments]
    rows += [{"moment": name, "time": time, **row} for name, (time, row) in course.crossings.items()]
    return {"ending": course.ending, "evaluations": course.evaluations, "rows": rows}

"""Courses of early learning as they are recorded: one row for each moment that was observed."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from softmax_temperature.early_learning.flows import Course, Flow, Loss, Settings, State, follow
from softmax_temperature.early_learning.problem import Problem, Start
from softmax_temperature.early_learning.tangent_kernel import FlatNetwork, KernelSketch

TIME = "time"
"""The moment of a row at a wanted time; rows at events have the event's name."""
MOVE = 1e-5
"""Of the unit of time, for the rate at which the kernel starts to change."""
KINKED = (
    *(nn.ReLU, nn.Hardtanh, nn.LeakyReLU, nn.PReLU, nn.RReLU, nn.Threshold, nn.Hardswish, nn.Hardsigmoid),
    *(nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d),
)


def linearised_course(
    problem: Problem, start: Start, settings: Settings, times: Sequence[float]
) -> tuple[dict[str, Any], dict[float, Tensor]]:
    """Follow the linearised flow, observed at rescaled times.

    Returns:
        `ending`, `evaluations` and `rows`, each with `moment`, `time`, `loss` (mean over samples), `change` (||Z -
        Z_0||), and None for what a fixed kernel does not have: `drift`, `drift_error`, `distance`. And Z by time.
    """
    flow = start.linearised_flow()
    seen: dict[float, Tensor] = {}

    def observe(time: float, state: State) -> dict[str, Any]:
        seen[time] = flow.logits(state)
        return _row(problem.loss, start, time, seen[time])

    return _recorded(follow(flow, problem.loss, settings, times=times, observe=observe)), seen


def real_course(
    problem: Problem,
    start: Start,
    settings: Settings,
    times: Sequence[float],
    *,
    kernel_times: Collection[float],
    linearised: Mapping[float, Tensor],
) -> dict[str, Any]:
    """The same of the gradient flow, with `drift`, the relative change of the kernel, at events and `kernel_times`.

    `distance`, ||Z - Z_linearised||, is there at the times of `linearised`.
    """
    flow, without = start.gradient_flow(), set(times) - set(kernel_times)

    def observe(time: float, state: State) -> dict[str, Any]:
        logits = flow.logits(state)
        row = _row(problem.loss, start, time, logits)
        if time in linearised:
            row["distance"] = (logits - linearised[time]).norm().item()
        if time not in without:
            kernel = problem.sketch.at(flow.parameters(state))
            row["drift"], row["drift_error"] = problem.sketch.drift(kernel, problem.kernel)
        return row

    return _recorded(follow(flow, problem.loss, settings, times=times, observe=observe))


def _row(loss: Loss, start: Start, time: float, logits: Tensor) -> dict[str, Any]:
    change, empty = (logits - start.logits).norm().item(), dict.fromkeys(("drift", "drift_error", "distance"))
    return {"time": time, "loss": loss.mean(logits), "change": change, **empty}


def _recorded(course: Course) -> dict[str, Any]:
    seen = [(TIME, row) for _, row in course.moments] + [(name, row) for name, (_, row) in course.crossings.items()]
    rows = [{"moment": moment, **row} for moment, row in seen]
    return {"ending": course.ending, "evaluations": course.evaluations, "rows": rows}


def event_times(flow: Flow, loss: Loss, settings: Settings) -> dict[str, Any]:
    """`ending`, `evaluations` and, by the name of each event that happened, its rescaled time."""
    course = follow(flow, loss, settings)
    times = {name: time for name, (time, _) in course.crossings.items()}
    return {"ending": course.ending, "evaluations": course.evaluations, **times}


def drift_rate(network: FlatNetwork, sketch: KernelSketch, weights: Tensor, unit_time: float) -> float:
    """The rate at which the kernel starts to drift, per unit of rescaled time, for inverse temperature 1.

    The parameters start along (1/β) Jᵀ residual(Z_0), so ||dΘ/ds||_F / ||Θ_0||_F is this number over β, and the time
    tau_nl of leaving the linear regime is β over it. `weights` are residual(Z_0), (n, classes).
    """
    moved = network.start + MOVE * unit_time * network.pull_back(network.start, weights)
    return sketch.drift(sketch.at(moved), sketch.at(network.start)).value / (MOVE * unit_time)


# Deviation: the theory expands a network in its parameters and thereby takes it to be smooth. Where a unit of ReLU
# crosses its kink, the kernel jumps: on few samples, the number of crossings during a small move is not in proportion
# to the move. Predictions of the drift are judged apart for smooth networks and for others.


def is_smooth(network: nn.Module) -> bool:
    """Whether no module of a network has a kink; functions that its code calls are not seen."""
    return not any(isinstance(module, KINKED) for module in network.modules())

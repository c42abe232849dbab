"""Gradient flow of a network in rescaled time, linearised flow, and their events."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy.integrate import RK45
from scipy.optimize import brentq
from torch import Tensor

from softmax_temperature.early_learning.tangent_kernel import FlatNetwork
from softmax_temperature.losses.tempered_cross_entropy import tempered_logits

State = NDArray[np.float64]

# Events: ||Z - Z_0|| reaches 1, a tenth of ||Z_0||, or ||Z_0||.
UNIT = "unit"
TENTH = "tenth"
WHOLE = "whole"
# The loss falls to a half, and to a tenth, of its initial value.
FIT = "fit"
LEARNED = "learned"

# The fraction that defines TENTH and LEARNED, and the fraction that defines FIT.
SHARE = 0.1
HALF = 0.5
# First step of the integrator, as a fraction of `Settings.unit_time`. Without it, the
# integrator would choose a first step that ignores `Settings.unit_time`.
FIRST_STEP = 0.01
# Relative precision with which the time of an event is computed.
PRECISION = 1e-9

# Deviation: our time to fit is the time at which the loss has fallen to half of its
# initial value; the paper's definition of when a model has learned is missing from our
# copy. Logits of every size reach this point, and reach it early, where the theory
# applies. We record a change by a tenth of the norm as well as by the whole norm,
# because large logits that already fit the labels never change by their whole norm.


class SoftmaxCrossEntropy:
    """Cross-entropy of tempered logits in nats, summed over samples.

    Args:
        labels: True classes, an int64 tensor of shape (n,).
        classes: Number of classes.
    """

    def __init__(self, labels: Tensor, classes: int) -> None:
        self._labels = labels
        self._targets = F.one_hot(labels, classes).double()

    def residual(self, logits: Tensor, rows: slice = slice(None)) -> Tensor:
        """Y - softmax(Z), the negative gradient of the loss, shape (rows, classes).

        Args:
            logits: Tempered logits of the samples `rows`.
            rows: Indices of these samples; all by default.
        """
        return self._targets[rows] - torch.softmax(logits, dim=1)

    def mean(self, logits: Tensor) -> float:
        """Return the mean cross-entropy over all samples, in nats."""
        return F.cross_entropy(logits, self._labels).item()


class Flow(NamedTuple):
    """An ordinary differential equation whose state determines tempered logits.

    Attributes:
        size: Length of the state.
        rate: Computes the time derivative of a state.
        logits: Computes the tempered logits Z of a state as a float64 tensor of shape
            (n, classes).
        parameters: Computes the parameters of a state; in a linearised flow, its
            logits.
    """

    size: int
    rate: Callable[[State], State]
    logits: Callable[[State], Tensor]
    parameters: Callable[[State], Tensor]


def gradient_flow(
    network: FlatNetwork, loss: SoftmaxCrossEntropy, inverse_temperature: float
) -> Flow:
    """Return the gradient flow of the summed loss of Z = β z(θ).

    dθ/ds = (1/β) Jᵀ residual(Z) in the rescaled time s = β² η t. The state is β (θ -
    θ_0), so that an integrator tolerance means the same for every β while the kernel is
    constant.
    """

    def parameters(state: State) -> Tensor:
        move = torch.from_numpy(state).to(network.start) / inverse_temperature
        return network.start + move

    def rate(state: State) -> State:
        def residual(logits: Tensor, rows: slice) -> Tensor:
            return loss.residual(tempered_logits(logits, inverse_temperature), rows)

        return network.descend(parameters(state), residual).cpu().numpy()

    def logits(state: State) -> Tensor:
        return tempered_logits(network.logits(parameters(state)), inverse_temperature)

    return Flow(network.start.numel(), rate, logits, parameters)


def linearised_flow(
    start: Tensor, kernel_product: Callable[[Tensor], Tensor], loss: SoftmaxCrossEntropy
) -> Flow:
    """Return the flow dZ/ds = Θ_0 residual(Z), which keeps the initial kernel.

    The flow is the same for every β. The state is Z - Z_0.
    """

    def logits(state: State) -> Tensor:
        return start + torch.from_numpy(state).to(start).view(start.shape)

    def rate(state: State) -> State:
        speed = kernel_product(loss.residual(logits(state)))
        return speed.detach().flatten().cpu().numpy()

    return Flow(start.numel(), rate, logits, logits)


class Settings(NamedTuple):
    """Settings of the integrator.

    Attributes:
        unit_time: Rescaled time in which the logits change by 1 at their initial speed.
        horizon: Rescaled time by which the integration ends.
        tolerance: Largest error that a step may have, as a fraction of a sum of two
            terms: the size of the state, and the root-mean-square change that the
            initial rate would make in `unit_time`.
        evaluations: Number of evaluations of the rate after which no further step
            begins.
    """

    unit_time: float
    horizon: float
    tolerance: float
    evaluations: int


class Course(NamedTuple):
    """Observations along a flow, each with its rescaled time.

    Attributes:
        moments: One observation for each requested time that was reached.
        crossings: One observation for each event that happened after the start, keyed
            by the event's name.
        ending: "complete" if the flow has learned, else the reason why the integration
            ended: "horizon", "evaluations", or "failed" (the step became too small to
            change the time, for instance because of an overflow).
        evaluations: Number of evaluations of the rate.
    """

    moments: list[tuple[float, Any]]
    crossings: dict[str, tuple[float, Any]]
    ending: str
    evaluations: int


def _no_observation(_time: float, _state: State) -> None:
    return None


def integrate(
    flow: Flow,
    loss: SoftmaxCrossEntropy,
    settings: Settings,
    *,
    times: Sequence[float] = (),
    observe: Callable[[float, State], Any] = _no_observation,
) -> Course:
    """Integrate a flow with RK45 until it has learned or reaches a limit in `settings`.

    Args:
        flow: The flow, which starts at state 0.
        loss: The loss that the flow descends, which defines the events FIT and LEARNED.
        settings: Settings of the integrator.
        times: Rescaled times of the observations, positive and in ascending order.
        observe: Called with time and state at each of `times` and at each event.
    """
    origin = np.zeros(flow.size)
    levels = _event_levels(flow, loss, flow.logits(origin))
    pending = [event for event, level in levels(origin).items() if level < 0]
    waiting = list(times)
    moments: list[tuple[float, Any]] = []
    crossings: dict[str, tuple[float, Any]] = {}
    solver = _solver(flow, origin, settings)
    while (
        LEARNED not in crossings
        and solver.status == "running"
        and solver.nfev < settings.evaluations
    ):
        solver.step()
        if solver.status == "failed":
            break
        interpolation = solver.dense_output()
        while waiting and waiting[0] <= solver.t:
            time = waiting.pop(0)
            moments.append((time, observe(time, interpolation(time))))
        reached = levels(solver.y)
        for event in list(pending):
            if reached[event] < 0:
                continue
            time = _crossing(levels, interpolation, event, solver.t_old, solver.t)
            crossings[event] = (time, observe(time, interpolation(time)))
            pending.remove(event)
    ending = _ending(solver.status, learned=LEARNED in crossings)
    return Course(moments, crossings, ending, int(solver.nfev))


def _event_levels(
    flow: Flow, loss: SoftmaxCrossEntropy, start: Tensor
) -> Callable[[State], dict[str, float]]:
    """Build a function that maps a state to the levels of all events, keyed by event.

    The level of an event is negative before the event, and 0 at the event.
    """
    norm = start.norm().item()
    first_loss = loss.mean(start)

    def levels(state: State) -> dict[str, float]:
        logits = flow.logits(state)
        change = (logits - start).norm().item()
        present_loss = loss.mean(logits)
        return {
            UNIT: change - 1,
            TENTH: change - SHARE * norm,
            WHOLE: change - norm,
            FIT: HALF * first_loss - present_loss,
            LEARNED: SHARE * first_loss - present_loss,
        }

    return levels


def _solver(flow: Flow, origin: State, settings: Settings) -> RK45:
    rms_rate = float(np.sqrt(np.mean(np.square(flow.rate(origin)))))
    return RK45(
        lambda _, state: flow.rate(state),
        0.0,
        origin,
        settings.horizon,
        first_step=min(FIRST_STEP * settings.unit_time, settings.horizon),
        rtol=settings.tolerance,
        atol=settings.tolerance * rms_rate * settings.unit_time,
    )


def _ending(status: str, *, learned: bool) -> str:
    if learned:
        return "complete"
    endings = {"finished": "horizon", "failed": "failed", "running": "evaluations"}
    return endings[status]


def _crossing(
    levels: Callable[[State], dict[str, float]],
    interpolation: Callable[[float], State],
    event: str,
    before: float,
    after: float,
) -> float:
    """Find the time within a step at which an event's level rises to 0.

    The level is negative at the start of the step, up to interpolation error; if that
    error hides the crossing, the end of the step is returned.
    """

    def level(time: float) -> float:
        return levels(interpolation(time))[event]

    if level(before) < 0 < level(after):
        root = brentq(level, before, after, xtol=PRECISION * after, rtol=PRECISION)
        return float(root)
    return float(after)

"""Gradient flow of a network in rescaled time, the flow of its linearisation, and the
events along them.
"""

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

State = NDArray[np.float64]

UNIT, TENTH, WHOLE, FIT, LEARNED = "unit", "tenth", "whole", "fit", "learned"
"""||Z - Z_0|| reaches 1, a tenth of ||Z_0||, ||Z_0||; the loss falls to a half and to a
tenth of what it was.
"""
HALF, SHARE = 0.5, 0.1
FIRST_STEP = (
    0.01  # In the unit of time, which the integrator's own guess does not know.
)
PRECISION = 1e-9  # Of the time of an event, relative.

# Deviation: the paper's own definition of when a model has learned is not at hand. The
# time to fit is here that to half of the loss at the start, which is reached whatever
# the size of the logits, and early, where the theory speaks. A tenth of the norm stands
# beside the whole because large logits that fit stop short of changing by all of their
# norm.


class SoftmaxCrossEntropy:
    """Cross-entropy of the softmax of tempered logits, nats, summed over samples with
    labels (n,) int64.
    """

    def __init__(self, labels: Tensor, classes: int) -> None:
        self._labels, self._targets = labels, F.one_hot(labels, classes).double()

    def residual(self, logits: Tensor, rows: slice = slice(None)) -> Tensor:
        """Y - softmax(Z), (b, classes): minus the gradient, at the tempered logits of
        some samples.
        """
        return self._targets[rows] - torch.softmax(logits, dim=1)

    def mean(self, logits: Tensor) -> float:
        """Mean over all samples, nats."""
        return F.cross_entropy(logits, self._labels).item()


class Flow(NamedTuple):
    """The rate of a flow's state, and at a state the tempered logits Z, (n, classes)
    float64, and what moves.
    """

    size: int
    rate: Callable[[State], State]
    logits: Callable[[State], Tensor]
    parameters: Callable[[State], Tensor]


def gradient_flow(
    network: FlatNetwork, loss: SoftmaxCrossEntropy, inverse_temperature: float
) -> Flow:
    """Gradient flow of a loss of Z = β z(θ), summed over samples: dθ/ds = (1/β) Jᵀ
    residual(Z) in time s = β² η t.

    The state is β (θ - θ_0): as long as the kernel does not change, one tolerance means
        the same for every β.
    """

    def parameters(state: State) -> Tensor:
        return (
            network.start
            + torch.from_numpy(state).to(network.start) / inverse_temperature
        )

    def rate(state: State) -> State:
        pulled = network.descend(
            parameters(state),
            lambda z, rows: loss.residual(inverse_temperature * z, rows),
        )
        return pulled.cpu().numpy()

    def logits(state: State) -> Tensor:
        return inverse_temperature * network.logits(parameters(state))

    return Flow(network.start.numel(), rate, logits, parameters)


def linearised_flow(
    start: Tensor, kernel_product: Callable[[Tensor], Tensor], loss: SoftmaxCrossEntropy
) -> Flow:
    """dZ/ds = Θ_0 residual(Z) with the kernel of the start: the same for every β. The
    state is Z - Z_0.
    """

    def logits(state: State) -> Tensor:
        return start + torch.from_numpy(state).to(start).view(start.shape)

    def rate(state: State) -> State:
        return (
            kernel_product(loss.residual(logits(state)))
            .detach()
            .flatten()
            .cpu()
            .numpy()
        )

    return Flow(start.numel(), rate, logits, logits)


class Settings(NamedTuple):
    """How to integrate; `tolerance` is relative to the state plus its mean square
    change in one unit of time.
    """

    unit_time: float
    horizon: float
    tolerance: float
    evaluations: int


class Course(NamedTuple):
    """Time and observation, at the wanted times reached and, by name, at events.

    `ending` is "complete" when the flow has learned; otherwise what ended the
    integration: "horizon", "evaluations" or "failed" (a step too small to change the
    time, as where numbers are no longer finite).
    """

    moments: list[tuple[float, Any]]
    crossings: dict[str, tuple[float, Any]]
    ending: str
    evaluations: int


def follow(
    flow: Flow,
    loss: SoftmaxCrossEntropy,
    settings: Settings,
    *,
    times: Sequence[float] = (),
    observe: Callable[[float, State], Any] = lambda *_: None,
) -> Course:
    """Integrate a flow from its start by RK45 until it has learned, or the settings end
    it.

    `observe` is called with time and state, at each of `times` (rescaled, positive,
    ascending) and at each event.
    """
    origin = np.zeros(flow.size)
    start = flow.logits(origin)
    norm, first = start.norm().item(), loss.mean(start)

    def levels(state: State) -> dict[str, float]:
        """Numbers by the names of events; an event is where one rises to 0 for the
        first time.
        """
        logits = flow.logits(state)
        change, now = (logits - start).norm().item(), loss.mean(logits)
        changes = {UNIT: change - 1, TENTH: change - SHARE * norm, WHOLE: change - norm}
        return {**changes, FIT: HALF * first - now, LEARNED: SHARE * first - now}

    pending = [name for name, level in levels(origin).items() if level < 0]
    waiting, moments, crossings = list(times), [], {}
    unit, horizon, tolerance, evaluations = settings
    size = tolerance * float(np.sqrt(np.mean(np.square(flow.rate(origin))))) * unit
    step = min(FIRST_STEP * unit, horizon)
    solver = RK45(
        lambda _, state: flow.rate(state),
        0.0,
        origin,
        horizon,
        first_step=step,
        rtol=tolerance,
        atol=size,
    )
    while (
        LEARNED not in crossings
        and solver.status == "running"
        and solver.nfev < evaluations
    ):
        solver.step()
        if solver.status == "failed":
            break
        between = solver.dense_output()
        while waiting and waiting[0] <= solver.t:
            time = waiting.pop(0)
            moments.append((time, observe(time, between(time))))
        reached = levels(solver.y)
        for name in [each for each in pending if reached[each] >= 0]:
            time = _crossing(levels, between, name, solver.t_old, solver.t)
            crossings[name] = time, observe(time, between(time))
            pending.remove(name)
    stopped = {"finished": "horizon", "failed": "failed", "running": "evaluations"}[
        solver.status
    ]
    return Course(
        moments,
        crossings,
        "complete" if LEARNED in crossings else stopped,
        int(solver.nfev),
    )


def _crossing(
    levels: Callable[[State], dict[str, float]],
    between: Any,
    name: str,
    before: float,
    after: float,
) -> float:
    """When a level rises to 0; it is negative at the start of the step, up to the
    rounding of the interpolation.
    """

    def level(time: float) -> float:
        return levels(between(time))[name]

    if level(before) < 0 < level(after):
        return float(
            brentq(level, before, after, xtol=PRECISION * after, rtol=PRECISION)
        )
    return float(after)

"""A flow followed from its start through the events of early learning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from softmax_temperature.early_learning.integration import Course, Settings, State, integrate

if TYPE_CHECKING:
    from softmax_temperature.early_learning.flows import Flow
    from softmax_temperature.early_learning.losses import Loss

Seen = TypeVar("Seen")

UNIT, TENTH, WHOLE, FIT, LEARNED = "unit", "tenth", "whole", "fit", "learned"
"""||Z - Z_0|| reaches 1, a tenth of ||Z_0||, ||Z_0||; the loss falls to a half and to a tenth of what it was."""
HALF, SHARE = 0.5, 0.1

# Deviation: the paper's own definition of when a model has learned is not at hand. The time to fit is here that to half
# of the loss at the start, which is reached whatever the size of the logits, and early, where the theory speaks. A
# tenth of the norm stands beside the whole because large logits that fit stop short of changing by all of their norm.


def follow(
    flow: Flow,
    loss: Loss,
    settings: Settings,
    *,
    times: Sequence[float] = (),
    observe: Callable[[float, State], Seen],
) -> Course[Seen]:
    """Integrate a flow until it has learned, or every event has happened and every time passed, or the settings end it.

    Args:
        flow: from its start.
        loss: the one that the flow descends.
        settings: scales and limits.
        times: rescaled times, ascending, when to observe.
        observe: called with time and state, at each of them and at each event.

    Returns:
        With the crossings UNIT, TENTH, WHOLE, FIT and LEARNED, as far as they happened; a start with logits of 0 has
        neither TENTH nor WHOLE.
    """
    start = flow.logits(np.zeros(flow.size))
    norm, first = start.norm().item(), loss.mean(start)

    def levels(state: State) -> Mapping[str, float]:
        logits = flow.logits(state)
        change, now = (logits - start).norm().item(), loss.mean(logits)
        changes = {UNIT: change - 1, TENTH: change - SHARE * norm, WHOLE: change - norm}
        return {**changes, FIT: HALF * first - now, LEARNED: SHARE * first - now}

    return integrate(flow.rate, flow.size, settings, times=times, levels=levels, last=LEARNED, observe=observe)

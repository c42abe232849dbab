"""Learning rates over a training, as factors of the first one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from softmax_temperature.params.recipe import Schedule


def learning_rate_factor(schedule: Schedule, position: float, length: float) -> float:
    """The factor that multiplies the learning rate (Cooling, section 4.1; focal paper, appendices E and K).

    Args:
        schedule: which one.
        position: epochs done, whole or not, at least 0 and below `length`.
        length: epochs in all.

    Returns:
        A number in [0, 1] for a `schedule.factor` up to 1.

    Raises:
        ValueError: `position` is outside the training.
    """
    if not 0 <= position < length:
        raise ValueError(f"position: {position}, must be at least 0 and below the length {length}")
    return _warm_up(schedule, position) * _decay(schedule, position, length)


def _warm_up(schedule: Schedule, position: float) -> float:
    return position / schedule.warmup if position < schedule.warmup else 1.0


def _decay(schedule: Schedule, position: float, length: float) -> float:
    share = position / length
    if schedule.name == "steps":
        return float(schedule.factor ** sum(position >= milestone for milestone in schedule.milestones))
    if schedule.name == "linear":
        return 1 - share
    if schedule.name == "exponential":
        return float(schedule.factor**share)
    if schedule.name == "cosine":
        return (1 + math.cos(math.pi * share)) / 2
    if schedule.name == "inverse_square_root":
        return math.sqrt(schedule.warmup / max(position, schedule.warmup))
    return 1.0

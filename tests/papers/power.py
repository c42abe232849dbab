"""How often a criterion says "holds" in simulated studies."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from softmax_temperature.papers.shared.claims import Criterion
from softmax_temperature.papers.shared.statistics import LEVEL, OverTasks, Task

Part = Sequence[dict[str, Any]]


def chance_of_holding(
    criterion: Criterion,
    parts: Sequence[Part],
    centers: Sequence[float],
    repeats: int,
    generator: np.random.Generator,
    *,
    keep_spread: bool,
) -> float:
    """How often a claim holds in simulated studies, from the tasks of each part (n, sd,
    value) and its true mean.

    With `keep_spread` the tasks of a part differ as the measured ones do; else all have
    its mean.
    """
    level = 1 - (1 - LEVEL) / len(parts) if criterion.some else LEVEL
    offsets = [
        [keep_spread * (task["value"] - _middle(part)) for task in part]
        for part in parts
    ]
    hits = 0
    for _ in range(repeats):
        inside = (
            criterion.contains(ends)
            for part, center, some in zip(parts, centers, offsets, strict=True)
            if (ends := _simulated(part, center, some, generator).estimate(level).ends)
        )
        hits += any(inside) if criterion.some else all(inside)
    return hits / repeats


def _simulated(
    part: Part, center: float, offsets: Sequence[float], generator: np.random.Generator
) -> OverTasks:
    values = (
        generator.normal(center + offset, task["sd"] or 1e-9, (task["n"],))
        for task, offset in zip(part, offsets, strict=True)
    )
    return OverTasks(tuple(Task("", tuple(some.tolist())) for some in values))


def _middle(part: Part) -> float:
    return float(np.mean([task["value"] for task in part]))

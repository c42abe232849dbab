"""Simulates how often a claim holds when it is judged by its criterion.

Values are drawn with the covariance of the measured values, so runs that share data,
network and seed stay dependent across schedules and arms.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softmax_temperature.papers.shared.claims import Criterion
from softmax_temperature.papers.shared.statistics import (
    LEVEL,
    OverTasks,
    Task,
    Values,
    common_seeds,
)

Parts = Mapping[str, OverTasks]


@dataclass(frozen=True)
class Block:
    """Measured values, in shape (seeds, tasks), of tasks that share seeds.

    `places` gives the part that each task belongs to, and the task's index in that
    part.
    """

    places: Sequence[tuple[str, int]]
    measured: Values

    def drawn(self, n: int, generator: np.random.Generator) -> Values:
        """Random values of n seeds, with mean 0 and the measured values' covariance."""
        seeds = len(self.measured)
        residuals = self.measured - self.measured.mean(axis=0)
        noise = generator.normal(size=(n, seeds)) @ residuals
        scaled: Values = noise / max(seeds - 1, 1) ** 0.5
        return scaled


def blocks(parts: Parts) -> list[Block]:
    """Group the tasks of all parts into blocks that share data, network and seeds."""
    sharing: dict[str, list[tuple[tuple[str, int], Task]]] = {}
    for name, part in parts.items():
        for place, task in enumerate(part.tasks):
            shared = task.shares if task.seeds else ""
            key = shared or f"{name}, {place}"
            sharing.setdefault(key, []).append(((name, place), task))
    found = []
    for members in sharing.values():
        seeds = common_seeds([task for _, task in members])
        if len(seeds) > 1:
            columns = [task.at(seeds).values for _, task in members]
            found.append(Block([at for at, _ in members], np.column_stack(columns)))
            continue
        found += [Block([at], np.array(task.values, ndmin=2).T) for at, task in members]
    return found


def simulated(
    parts: Parts,
    center: float,
    generator: np.random.Generator,
    *,
    n: int | None = None,
) -> Parts:
    """The parts of a simulated study in which the true value of every task is `center`.

    By default, each task has as many values as in the measured study.
    """
    tasks = {name: list(part.tasks) for name, part in parts.items()}
    for block in blocks(parts):
        count = n or len(block.measured)
        columns = center + block.drawn(count, generator).T
        for (name, place), column in zip(block.places, columns, strict=True):
            task = tasks[name][place]
            seeds = tuple(range(count)) if task.seeds else ()
            tasks[name][place] = replace(
                task, values=tuple(column.tolist()), seeds=seeds
            )
    return {
        name: replace(part, tasks=tuple(tasks[name])) for name, part in parts.items()
    }


def first(parts: Parts, n: int) -> Parts:
    """The parts, with only the first n values of every task."""
    return {
        name: replace(
            part,
            tasks=tuple(
                replace(task, values=task.values[:n], seeds=task.seeds[:n])
                for task in part.tasks
            ),
        )
        for name, part in parts.items()
    }


def holds(criterion: Criterion, parts: Parts, level: float) -> bool:
    """Return whether a claim with this criterion and these parts holds."""
    if criterion.some:
        level = 1 - (1 - level) / len(parts)
    inside = []
    for part in parts.values():
        ends = part.estimate(level).ends
        lies = ends is not None and criterion.contains(ends)
        inside.append(lies and not any(map(criterion.excludes, part.alone(level))))
    return any(inside) if criterion.some else all(inside)


def level_of(looks: int) -> float:
    """The confidence level of intervals if data are looked at `looks` times."""
    return 1 - (1 - LEVEL) / looks


def chance_of_holding(
    criterion: Criterion,
    parts: Parts,
    center: float,
    generator: np.random.Generator,
    *,
    level: float,
    looks: Sequence[int] = (),
    repeats: int,
) -> float:
    """The share of simulated studies in which a claim holds at any of its looks.

    Args:
        criterion: The claim's criterion.
        parts: The measured parts.
        center: The true value of every task.
        generator: The random generator that draws the studies.
        level: The confidence level at which each look is judged.
        looks: The number of seeds at each look. By default, there is one look with as
            many seeds as measured.
        repeats: The number of simulated studies.
    """
    hits = 0
    for _ in range(repeats):
        study = simulated(parts, center, generator, n=max(looks, default=None))
        seen = [first(study, n) for n in looks] or [study]
        hits += any(holds(criterion, some, level) for some in seen)
    return hits / repeats


def chance_of_a_false_hold(criterion: Criterion, parts: Parts, **design: Any) -> float:
    """The chance that a claim holds if the true value is at the claim's bound.

    If every part of the claim must hold, the worst case is simulated: the true value of
    one part is at the bound, and the other parts always hold.
    """
    if criterion.some:
        groups = [parts]
    else:
        groups = [{name: part} for name, part in parts.items()]
    return max(
        chance_of_holding(criterion, group, bound, **design)
        for group in groups
        for bound in criterion.bounds
    )

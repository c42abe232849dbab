"""Intervals of what the claims compare: means over seeds and tasks, shares of trainings, numbers with draws."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

LEVEL = 0.90  # Of every interval in this package, as in the focal paper's figures.
MOST = 1000
"""More values than these per task are nobody's plan: a comparison that needs more is not decided by seeds."""

Values = NDArray[np.float64]
Ends = tuple[float, float]


@dataclass(frozen=True)
class Estimate:
    """What is compared with a bound: a value, how many it rests on, their sd, and its interval, if it has one."""

    value: float
    n: int
    sd: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def ends(self) -> Ends | None:
        """The interval's ends."""
        return None if self.low is None or self.high is None else (self.low, self.high)


class Quantity(ABC):
    """Something with an interval at every level; `each` is what its n counts, in the plural."""

    each: str

    @abstractmethod
    def estimate(self, level: float = LEVEL) -> Estimate:
        """Value and interval."""

    @abstractmethod
    def ends(self, level: float, n: int) -> Ends | None:
        """The interval with n values in the place of those at hand (of each task), value and spread being as now."""

    def needed(self, is_decided: Callable[[Ends], bool], level: float = LEVEL) -> int | None:
        """The least n from 2 to MOST at which the interval decides; None if none does."""
        counts = [*range(2, 100), *range(100, MOST + 1, 25)]
        return next((n for n in counts if (ends := self.ends(level, n)) is not None and is_decided(ends)), None)

    def by_task(self) -> list[dict[str, Any]]:
        """Value, sd, interval and n of each task, where the values are of tasks."""
        return []


@dataclass(frozen=True)
class Task:
    """Independent values of one task, one per seed; `own` if the paper has it: others are shown and not pooled."""

    name: str
    values: tuple[float, ...]
    own: bool = True


@dataclass(frozen=True)
class OverTasks(Quantity):
    """The mean over tasks of their means over seeds.

    The seeds of one task share its data and network: they are no independent draws of a task. So each task's mean is
    one value, and the interval is Student's over tasks; it has the variance between tasks and that of the seeds in it.
    All tasks weigh the same, because standard errors from two or three seeds are too uncertain to weigh by. Two or
    three tasks leave that interval very wide; it need not be wider than from the lowest to the highest end of the
    tasks' own intervals, which hold the mean of these tasks whenever they hold the tasks' means.

    Attributes:
        tasks: at least one.
        each: what the values are.
        resolution: the step of the grid that the values lie on: their standard deviation is at least that of rounding.
        left_out: whether each value comes from a choice or fit on the others of its task. Such values lean on each
            other; their variance is corrected as by Nadeau and Bengio (2003) for cross-validation.
    """

    tasks: tuple[Task, ...]
    each: str = "seeds"
    resolution: float = 0.0
    left_out: bool = False

    def estimate(self, level: float = LEVEL) -> Estimate:
        """The mean of the tasks' means, and its interval; the sd is over tasks, or over the seeds of the only one."""
        means, sds, counts = self._tasks()
        variance = float(means.var(ddof=1)) if len(means) > 1 else 0.0
        sd: float | None = float(means.std(ddof=1)) if len(means) > 1 else None
        if len(means) == 1 and sds[0] is not None:
            sd = max(_sd(self.tasks[0].values) or 0.0, self.resolution / math.sqrt(12))
        ends = _ends_over_tasks(means, sds, counts, level, variance)
        return Estimate(float(means.mean()), sum(counts), sd, *(ends or (None, None)))

    def ends(self, level: float, n: int) -> Ends | None:
        """With n seeds of each task; the variance between tasks stays."""
        means, sds, counts = self._tasks()
        if any(sd is None for sd in sds):
            return None
        squares = np.array(sds, np.float64) ** 2
        between = max(0.0, float(means.var(ddof=1)) - float(np.mean(squares / counts))) if len(means) > 1 else 0.0
        return _ends_over_tasks(means, sds, [n] * len(sds), level, between + float(np.mean(squares)) / n)

    def by_task(self) -> list[dict[str, Any]]:
        """A row for each task."""
        rows = []
        for task in self.tasks:
            one = replace(self, tasks=(task,)).estimate()
            rows.append({"task": task.name, "value": one.value, "sd": one.sd, "low": one.low, "high": one.high})
            rows[-1] |= {"n": one.n, "pooled": task.own}
        return rows

    def _tasks(self) -> tuple[Values, list[float | None], list[int]]:
        """Of each task: its mean, the standard deviation that intervals are made from, and the number of values."""
        means = np.array([np.mean(task.values) for task in self.tasks])
        return means, [self._sd(task) for task in self.tasks], [len(task.values) for task in self.tasks]

    def _sd(self, task: Task) -> float | None:
        n, sd = len(task.values), _sd(task.values)
        if sd is None:
            return None
        return max(sd * math.sqrt(1 + n / (n - 1)) if self.left_out else sd, self.resolution / math.sqrt(12))


@dataclass(frozen=True)
class Share(Quantity):
    """The share of hits among n independent trials, with the exact interval of Clopper and Pearson.

    `own` says whether the paper has their task.
    """

    hits: int
    n: int
    each: str = "seeds"
    own: bool = True

    def estimate(self, level: float = LEVEL) -> Estimate:
        """The share and its interval."""
        return Estimate(self.hits / self.n, self.n, None, *self.ends(level, self.n))

    def ends(self, level: float, n: int) -> Ends:
        """With the same share of hits."""
        hits, tail = round(self.hits / self.n * n), (1 - level) / 2
        low = float(stats.beta.ppf(tail, hits, n - hits + 1)) if hits else 0.0
        return low, float(stats.beta.ppf(1 - tail, hits + 1, n - hits)) if hits < n else 1.0


@dataclass(frozen=True)
class Fitted(Quantity):
    """A coefficient of a regression, with its interval by Student's t.

    `error` is its standard error, None where there is none; n is what a repetition would multiply, say the seeds.
    """

    value: float
    error: float | None
    degrees: int
    n: int
    each: str = "seeds"

    def estimate(self, level: float = LEVEL) -> Estimate:
        """The coefficient and its interval."""
        if self.error is None or self.degrees < 1:
            return Estimate(self.value, self.n)
        half = _quantile(level, self.degrees) * self.error
        return Estimate(self.value, self.n, self.error * math.sqrt(self.n), self.value - half, self.value + half)

    def ends(self, level: float, n: int) -> Ends | None:
        """As if the standard error fell with the root of n, and the degrees of freedom grew with n."""
        if self.error is None or self.degrees < 1:
            return None
        degrees = self.degrees * n / self.n if self.degrees >= self.n else n - 1
        half = _quantile(level, degrees) * self.error * math.sqrt(self.n / n)
        return self.value - half, self.value + half


@dataclass(frozen=True)
class Drawn(Quantity):
    """A value whose uncertainty is given by draws, of a bootstrap say; the interval is that of their percentiles."""

    value: float
    draws: tuple[float, ...]
    n: int
    each: str = "seeds"

    def estimate(self, level: float = LEVEL) -> Estimate:
        """The value and its interval, which holds it."""
        low, high = map(float, np.quantile(self.draws, [(1 - level) / 2, (1 + level) / 2]))
        return Estimate(self.value, self.n, float(np.std(self.draws)), min(low, self.value), max(high, self.value))

    def ends(self, level: float, n: int) -> Ends:
        """As if the interval narrowed with the root of n."""
        low, high = self.estimate(level).ends or (self.value, self.value)
        scale = math.sqrt(self.n / n)
        return self.value - scale * (self.value - low), self.value + scale * (high - self.value)


def jackknife(groups: Sequence[Any], statistic: Callable[[Sequence[Any]], float]) -> Values:
    """Pseudo-values of a statistic, one per group (of at least 2), such as a data set, that is left out.

    Their mean is the statistic without its bias of order 1/n.
    """
    n, whole = len(groups), statistic(groups)
    without = [statistic([*groups[:place], *groups[place + 1 :]]) for place in range(n)]
    return n * whole - (n - 1) * np.array(without)


def pooled(values: Mapping[str, Sequence[float]], own: Callable[[str], bool] = lambda _: True) -> tuple[Task, ...]:
    """Tasks of values by task; tasks without values are left out."""
    return tuple(Task(name, tuple(map(float, some)), own(name)) for name, some in values.items() if len(some))


def _ends_over_tasks(
    means: Values, sds: Sequence[float | None], counts: Sequence[int], level: float, variance: float
) -> Ends | None:
    """The interval of the mean of some tasks' means, from the sd and count of each task's values; of one there is none.

    `variance` is that of the tasks' means.
    """
    own = [
        None if sd is None else (mean - (half := _half_width(sd, n, level)), mean + half)
        for mean, sd, n in zip(means.tolist(), sds, counts, strict=True)
    ]
    known = [ends for ends in own if ends is not None]
    around = (min(low for low, _ in known), max(high for _, high in known)) if len(known) == len(own) else None
    if len(means) == 1:
        return around
    value, half = float(means.mean()), _half_width(math.sqrt(variance), len(means), level)
    over_tasks = (value - half, value + half)
    return over_tasks if around is None or 2 * half <= around[1] - around[0] else around


def _sd(values: Sequence[float]) -> float | None:
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def _half_width(sd: float, n: int, level: float) -> float:
    return _quantile(level, n - 1) * sd / math.sqrt(n)


@lru_cache(maxsize=10_000)
def _quantile(level: float, degrees: float) -> float:
    return float(stats.t.ppf((1 + level) / 2, degrees))

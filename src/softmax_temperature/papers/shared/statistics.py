"""Intervals of the quantities that claims compare with a bound.

They are means over seeds and tasks, shares of trainings, coefficients of regressions,
and numbers with draws.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import stats

LEVEL = 0.90
"""The level of all intervals of results, as in the focal paper's figures."""
MOST = 1000
"""The most values per task: a comparison that needs more is not decided by seeds."""

Values = NDArray[np.float64]
Ends = tuple[float, float]


@dataclass(frozen=True)
class Estimate:
    """A value with its interval.

    Attributes:
        value: The value.
        n: The number of values that it rests on.
        sd: The standard deviation of these; None for fewer than two.
        low: The lower end of the interval; None without an interval.
        high: The upper end.
    """

    value: float
    n: int
    sd: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def ends(self) -> Ends | None:
        """The interval's ends."""
        if self.low is None or self.high is None:
            return None
        return self.low, self.high


@dataclass(frozen=True, kw_only=True)
class Quantity(ABC):
    """A number with an interval at every level.

    Attributes:
        each: The word for what its n counts, in the plural.
        own: Whether the paper has its task.
    """

    each: str = "seeds"
    own: bool = True

    @abstractmethod
    def estimate(self, level: float = LEVEL, n: int | None = None) -> Estimate:
        """The value and its interval.

        Args:
            level: The level of the interval.
            n: If it is given, the interval is the one that n values (of each task)
                would have with the same mean and spread.
        """

    def needed(
        self, is_decided: Callable[[Ends], bool], level: float = LEVEL
    ) -> int | None:
        """The least n from 2 to MOST whose interval decides; None if none does."""
        counts: list[int] = [*range(2, 100), *range(100, MOST + 1, 25)]
        for n in counts:
            ends = self.estimate(level, n).ends
            if ends is not None and is_decided(ends):
                return n
        return None

    def of_paper(self) -> Self | None:
        """The quantity over the paper's own tasks alone; None if it has none."""
        return self if self.own else None

    def by_task(self) -> list[dict[str, Any]]:
        """Value, sd, interval and n of each task, where the values are of tasks."""
        return []


@dataclass(frozen=True)
class Task:
    """Independent values of one task, one per seed.

    Attributes:
        name: Its name.
        values: The values.
        own: Whether the paper has the task. Other tasks are shown and not pooled.
    """

    name: str
    values: tuple[float, ...]
    own: bool = True


@dataclass(frozen=True)
class OverTasks(Quantity):
    """The mean over tasks of their means over seeds.

    Seeds of one task are no independent draws of a task. So each task's mean is one
    value, all weigh the same, and the interval is Student's over tasks, which contains
    both variances. For two or three tasks it is very wide. It need not be wider than
    from the lowest to the highest end of the tasks' own intervals: these contain the
    mean of the tasks whenever each contains the mean of its task.

    Attributes:
        tasks: The tasks, at least one.
        resolution: The step of the grid that the values lie on. Their sd is at least
            that of rounding to it.
        left_out: Whether each value comes from a fit on the others. The variance is
            then that of Nadeau and Bengio (2003).
    """

    tasks: tuple[Task, ...]
    resolution: float = 0.0
    left_out: bool = False

    def estimate(self, level: float = LEVEL, n: int | None = None) -> Estimate:
        """The mean, with the sd over tasks, or over the seeds of a single task.

        With n seeds the variance between tasks stays.
        """
        if len(self.tasks) == 1:
            return self._of_one_task(level, n)
        means = np.array([np.mean(task.values) for task in self.tasks])
        value = float(means.mean())
        sd = float(means.std(ddof=1))
        variance = float(means.var(ddof=1))
        counts = [len(task.values) for task in self.tasks]
        total = sum(counts)
        sds = [self._sd(task.values, left_out=self.left_out) for task in self.tasks]
        is_known = None not in sds
        if n is not None:
            if not is_known:
                return Estimate(value, total, sd)
            squares = np.array(sds, np.float64) ** 2
            between = max(0.0, variance - float(np.mean(squares / counts)))
            variance = between + float(np.mean(squares)) / n
            counts = [n] * len(counts)
        half = _half_width(math.sqrt(variance), len(means), level)
        ends = (value - half, value + half)
        if is_known:
            halves = [
                _half_width(sd, count, level)
                for sd, count in zip(sds, counts, strict=True)
                if sd is not None
            ]
            low = float((means - halves).min())
            high = float((means + halves).max())
            if high - low < 2 * half:
                ends = (low, high)
        return Estimate(value, total, sd, *ends)

    def _of_one_task(self, level: float, n: int | None) -> Estimate:
        (task,) = self.tasks
        count = len(task.values)
        value = float(np.mean(task.values))
        plain = self._sd(task.values, left_out=False)
        sd = self._sd(task.values, left_out=self.left_out)
        if sd is None:
            return Estimate(value, count, plain)
        half = _half_width(sd, n or count, level)
        return Estimate(value, count, plain, value - half, value + half)

    def of_paper(self) -> Self | None:
        """The mean over the paper's own tasks; None if it has none."""
        own = tuple(task for task in self.tasks if task.own)
        return replace(self, tasks=own) if own else None

    def by_task(self) -> list[dict[str, Any]]:
        """A row for each task."""
        rows = []
        for task in self.tasks:
            estimate = replace(self, tasks=(task,)).estimate()
            rows.append({"task": task.name, **asdict(estimate), "pooled": task.own})
        return rows

    def _sd(self, values: Sequence[float], *, left_out: bool) -> float | None:
        n = len(values)
        if n < 2:
            return None
        correction = math.sqrt(1 + n / (n - 1)) if left_out else 1.0
        sd = float(np.std(values, ddof=1)) * correction
        return max(sd, self.resolution / math.sqrt(12))


@dataclass(frozen=True)
class Share(Quantity):
    """The share of hits among n independent trials.

    The interval is the exact one of Clopper and Pearson.
    """

    hits: int
    n: int

    def estimate(self, level: float = LEVEL, n: int | None = None) -> Estimate:
        """The share; with another n it stays the same."""
        n = n or self.n
        tail = (1 - level) / 2
        hits = round(self.hits / self.n * n)
        low = float(stats.beta.ppf(tail, hits, n - hits + 1)) if hits else 0.0
        high = float(stats.beta.ppf(1 - tail, hits + 1, n - hits)) if hits < n else 1.0
        return Estimate(self.hits / self.n, self.n, None, low, high)


@dataclass(frozen=True)
class Fitted(Quantity):
    """A coefficient of a regression, with its interval by Student's t.

    Attributes:
        value: The coefficient.
        error: Its standard error; None if it is not known.
        degrees: The degrees of freedom of the error.
        n: The number that a repetition would multiply, say of seeds.
    """

    value: float
    error: float | None
    degrees: int
    n: int

    def estimate(self, level: float = LEVEL, n: int | None = None) -> Estimate:
        """The coefficient and its interval.

        With another n the standard error falls with its root, and the degrees of
        freedom grow with it.
        """
        if self.error is None or self.degrees < 1:
            return Estimate(self.value, self.n)
        error = self.error * math.sqrt(self.n / (n or self.n))
        degrees = float(self.degrees)
        if n is not None:
            degrees = self.degrees * n / self.n if self.degrees >= self.n else n - 1
        half = error * _quantile(level, degrees)
        sd = self.error * math.sqrt(self.n)
        return Estimate(self.value, self.n, sd, self.value - half, self.value + half)


@dataclass(frozen=True)
class Drawn(Quantity):
    """A value with draws, of a bootstrap say, whose percentiles are its interval."""

    value: float
    draws: tuple[float, ...]
    n: int

    def estimate(self, level: float = LEVEL, n: int | None = None) -> Estimate:
        """The value and an interval that contains it.

        With another n the interval narrows with its root.
        """
        tail = (1 - level) / 2
        low = min(float(np.quantile(self.draws, tail)), self.value)
        high = max(float(np.quantile(self.draws, (1 + level) / 2)), self.value)
        if n is not None:
            scale = math.sqrt(self.n / n)
            low = self.value - scale * (self.value - low)
            high = self.value + scale * (high - self.value)
        return Estimate(self.value, self.n, float(np.std(self.draws)), low, high)


def _half_width(sd: float, n: int, level: float) -> float:
    return _quantile(level, n - 1) * sd / math.sqrt(n)


@lru_cache(maxsize=10_000)
def _quantile(level: float, degrees: float) -> float:
    return float(stats.t.ppf((1 + level) / 2, degrees))

"""Intervals of what the claims compare: means over seeds and tasks, shares of
trainings, numbers with draws.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

LEVEL = 0.90  # Of every interval in this package, as in the focal paper's figures.
MOST = 1000  # Values per task: a comparison that needs more is not decided by seeds.

Values = NDArray[np.float64]
Ends = tuple[float, float]


@dataclass(frozen=True)
class Estimate:
    """What is compared with a bound: a value, how many it rests on, their sd, and its
    interval, if it has one.
    """

    value: float
    n: int
    sd: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def ends(self) -> Ends | None:
        """The interval's ends."""
        return None if self.low is None or self.high is None else (self.low, self.high)


@dataclass(frozen=True, kw_only=True)
class Quantity(ABC):
    """Something with an interval at every level."""

    each: str = "seeds"  # What its n counts, in the plural.
    own: bool = True  # Whether the paper has its task.

    @abstractmethod
    def estimate(self, level: float = LEVEL, n: int | None = None) -> Estimate:
        """Value and interval; the latter as it would be with n values (of each task),
        value and spread being as now.
        """

    def needed(
        self, is_decided: Callable[[Ends], bool], level: float = LEVEL
    ) -> int | None:
        """The least n from 2 to MOST at which the interval decides; None if none does."""
        counts = [*range(2, 100), *range(100, MOST + 1, 25)]
        return next(
            (
                n
                for n in counts
                if (ends := self.estimate(level, n).ends) and is_decided(ends)
            ),
            None,
        )

    def of_paper(self) -> Self | None:
        """What of it is about the paper's own tasks."""
        return self if self.own else None

    def by_task(self) -> list[dict[str, Any]]:
        """Value, sd, interval and n of each task, where the values are of tasks."""
        return []


@dataclass(frozen=True)
class Task:
    """Independent values of one task, one per seed; `own` if the paper has it: others
    are shown and not pooled.
    """

    name: str
    values: tuple[float, ...]
    own: bool = True


@dataclass(frozen=True)
class OverTasks(Quantity):
    """The mean over tasks of their means over seeds.

    Seeds of one task are no independent draws of a task. So each task's mean is one
    value, all weigh the same, and the interval is Student's over tasks, which has both
    variances in it. Of two or three tasks that is very wide; it need not be wider than
    from the lowest to the highest end of the tasks' own intervals, which hold the mean
    of these tasks whenever they hold the tasks' means.
    """

    tasks: tuple[Task, ...]
    # Step of the grid that the values lie on: their sd is at least that of rounding.
    resolution: float = 0.0
    # Each value comes from a fit on the others: variance as by Nadeau and Bengio
    # (2003).
    left_out: bool = False

    def estimate(self, level: float = LEVEL, n: int | None = None) -> Estimate:
        """The sd is over tasks, or over the seeds of the only one. With n seeds the
        variance between tasks stays.
        """
        means = np.array([np.mean(task.values) for task in self.tasks])
        counts = [len(task.values) for task in self.tasks]
        sds = [self._sd(task.values, left_out=self.left_out) for task in self.tasks]
        value, several = float(means.mean()), len(means) > 1
        sd = (
            float(means.std(ddof=1))
            if several
            else self._sd(self.tasks[0].values, left_out=False)
        )
        total, variance = sum(counts), float(means.var(ddof=1)) if several else 0.0
        if n is not None:
            if None in sds:
                return Estimate(value, total, sd)
            squares = np.array(sds, np.float64) ** 2
            between = max(0.0, variance - float(np.mean(squares / counts)))
            counts, variance = [n] * len(counts), between + float(np.mean(squares)) / n
        halves = [
            _half_width(sd, count, level)
            for sd, count in zip(sds, counts, strict=True)
            if sd is not None
        ]
        ends = (
            (float((means - halves).min()), float((means + halves).max()))
            if None not in sds
            else None
        )
        if several:
            half = _half_width(math.sqrt(variance), len(means), level)
            ends = (
                ends
                if ends and ends[1] - ends[0] < 2 * half
                else (value - half, value + half)
            )
        return Estimate(value, total, sd, *(ends or (None, None)))

    def of_paper(self) -> Self | None:
        """The mean over the paper's own tasks."""
        return (
            replace(self, tasks=own)
            if (own := tuple(task for task in self.tasks if task.own))
            else None
        )

    def by_task(self) -> list[dict[str, Any]]:
        """A row for each task."""
        estimates = (
            (task, replace(self, tasks=(task,)).estimate()) for task in self.tasks
        )
        return [
            {"task": task.name, **asdict(one), "pooled": task.own}
            for task, one in estimates
        ]

    def _sd(self, values: Sequence[float], *, left_out: bool) -> float | None:
        if (n := len(values)) < 2:
            return None
        correction = math.sqrt(1 + n / (n - 1)) if left_out else 1.0
        return max(
            float(np.std(values, ddof=1)) * correction, self.resolution / math.sqrt(12)
        )


@dataclass(frozen=True)
class Share(Quantity):
    """The share of hits among n independent trials, with the exact interval of Clopper
    and Pearson.
    """

    hits: int
    n: int

    def estimate(self, level: float = LEVEL, n: int | None = None) -> Estimate:
        """With other n the share stays."""
        n, tail = n or self.n, (1 - level) / 2
        hits = round(self.hits / self.n * n)
        low = float(stats.beta.ppf(tail, hits, n - hits + 1)) if hits else 0.0
        high = float(stats.beta.ppf(1 - tail, hits + 1, n - hits)) if hits < n else 1.0
        return Estimate(self.hits / self.n, self.n, None, low, high)


@dataclass(frozen=True)
class Fitted(Quantity):
    """A coefficient of a regression, with its interval by Student's t."""

    value: float
    error: float | None  # Its standard error.
    degrees: int
    n: int  # What a repetition would multiply, say the seeds.

    def estimate(self, level: float = LEVEL, n: int | None = None) -> Estimate:
        """With n as if the standard error fell with its root, and the degrees of
        freedom grew with it.
        """
        if self.error is None or self.degrees < 1:
            return Estimate(self.value, self.n)
        half, degrees = (
            self.error * math.sqrt(self.n / (n or self.n)),
            float(self.degrees),
        )
        if n is not None:
            degrees = self.degrees * n / self.n if self.degrees >= self.n else n - 1
        half *= _quantile(level, degrees)
        return Estimate(
            self.value,
            self.n,
            self.error * math.sqrt(self.n),
            self.value - half,
            self.value + half,
        )


@dataclass(frozen=True)
class Drawn(Quantity):
    """A value whose uncertainty is given by draws, of a bootstrap say; the interval is
    that of their percentiles.
    """

    value: float
    draws: tuple[float, ...]
    n: int

    def estimate(self, level: float = LEVEL, n: int | None = None) -> Estimate:
        """The interval holds the value; with n as if it narrowed with its root."""
        low, high = map(
            float, np.quantile(self.draws, [(1 - level) / 2, (1 + level) / 2])
        )
        low, high = min(low, self.value), max(high, self.value)
        if n is not None:
            scale = math.sqrt(self.n / n)
            low, high = (
                self.value - scale * (self.value - low),
                self.value + scale * (high - self.value),
            )
        return Estimate(self.value, self.n, float(np.std(self.draws)), low, high)


def pooled(
    values: Mapping[str, Sequence[float]], own: Callable[[str], bool] = lambda _: True
) -> tuple[Task, ...]:
    """Tasks of values by task; tasks without values are left out."""
    return tuple(
        Task(name, tuple(map(float, some)), own(name))
        for name, some in values.items()
        if len(some)
    )


def is_part(dataset: str, of: Collection[str]) -> bool:
    """Whether a data set is one of these, or a part of one as "cifar10-5000", or the
    whole as "newsgroups20_all".
    """
    return dataset.partition("-")[0].removesuffix("_all") in of


def paired(
    rows: pd.DataFrame,
    one: str,
    other: str,
    value: str,
    *,
    by: Sequence[str],
    across: str = "arm",
) -> pd.DataFrame:
    """A number of one arm minus that of another where both trained with the same seed:
    columns `by`, difference.
    """
    both = (
        rows.pivot(index=list(by), columns=across, values=value)
        .reindex(columns=[one, other])
        .dropna()
    )
    return (both[one] - both[other]).rename("difference").reset_index()


def _half_width(sd: float, n: int, level: float) -> float:
    return _quantile(level, n - 1) * sd / math.sqrt(n)


@lru_cache(maxsize=10_000)
def _quantile(level: float, degrees: float) -> float:
    return float(stats.t.ppf((1 + level) / 2, degrees))

"""Intervals of the quantities that the claims compare.

These are means over seeds and tasks, shares of trainings, and values with draws.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import stats

LEVEL = 0.90
"""Level of every interval in this package, as in the focal paper's figures."""
POWER = 0.80
"""The chance with which a study should find the effect that it is planned for."""
MOST = 1000
"""Values per task: a comparison that needs more is not decided by seeds."""

CORRECTED = "widened after Nadeau and Bengio"
"""What is done to the interval of values each of which comes from a fit on the others.

Their variance is multiplied by 1 + n / (n - 1).
"""
FOLDS_SHARED = "for folds that share training data"
SEEDS_SHARED = "for choices that share seeds"

Values = NDArray[np.float64]
Ends = tuple[float, float]


@dataclass(frozen=True)
class Estimate:
    """A value to compare with a bound.

    Attributes:
        value: The value.
        n: The number of values behind it.
        sd: Their standard deviation.
        low: The lower end of its interval, if it has one.
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
        return None if self.low is None or self.high is None else (self.low, self.high)


@dataclass(frozen=True, kw_only=True)
class Quantity(ABC):
    """A quantity with an interval at every level."""

    each: str = "seeds"  # The plural name of the things that n counts.
    own: bool = True  # Whether the paper has its task.

    @abstractmethod
    def estimate(self, level: float = LEVEL) -> Estimate:
        """Value and interval."""

    @abstractmethod
    def power(
        self, distances: Sequence[float], level: float, n: int | None = None
    ) -> float:
        """The chance that the interval of a study of size n clears its bounds.

        Args:
            distances: The distance of the true value from each bound, one or two.
            level: The level of the interval.
            n: The number of values (per task), with the measured spread; by default the
                measured number.
        """

    def detectable(self, level: float = LEVEL, *, sides: int = 1) -> float | None:
        """The smallest distance from the bound that a study of size n detects.

        It detects a true value at this distance, from each bound if there are two, with
        a chance of `POWER`. None if the values have no spread to judge by.
        """

        def found(distance: float) -> float:
            return self.power([distance] * sides, level)

        return _least(found)

    def n_for(self, distances: Sequence[float], level: float = LEVEL) -> int | None:
        """The smallest n from 2 to `MOST` that detects true values at these distances.

        It detects them with a chance of `POWER`. None if there is no such n.
        """
        if min(distances, default=0.0) <= 0:
            return None
        counts = [*range(2, 100), *range(100, MOST + 1, 25)]
        return next(
            (n for n in counts if self.power(distances, level, n) >= POWER), None
        )

    def alone(self, level: float = LEVEL) -> list[Ends]:  # noqa: ARG002
        """The interval of each task separately, if there are several."""
        return []

    def of_paper(self) -> Self | None:
        """Restricted to the paper's own tasks."""
        return self if self.own else None

    @property
    def remark(self) -> str:
        """A remark on the interval for readers, besides its level; "" if none."""
        return ""

    def by_task(self, level: float = LEVEL) -> list[dict[str, Any]]:  # noqa: ARG002
        """Value, sd, interval and n of each task, if the values belong to tasks."""
        return []


@dataclass(frozen=True)
class Task:
    """Values of one task, one per seed.

    Attributes:
        name: Its name.
        values: Its values.
        own: Whether the paper has it; other tasks are shown but not pooled.
        seeds: The seed of each value, if the values belong to seeds.
        shares: The data and network of the task. Tasks with the same data and network
            have dependent values for equal seeds, because such trainings start alike.
            "" if the task shares nothing.
    """

    name: str
    values: tuple[float, ...]
    own: bool = True
    seeds: tuple[Any, ...] = ()
    shares: str = ""

    def at(self, seeds: Collection[Any]) -> "Task":
        """The task restricted to some seeds."""
        kept = [place for place, seed in enumerate(self.seeds) if seed in seeds]
        return replace(
            self,
            values=tuple(self.values[place] for place in kept),
            seeds=tuple(self.seeds[place] for place in kept),
        )


@dataclass(frozen=True)
class OverTasks(Quantity):
    """The mean over tasks of their means over seeds; all tasks have equal weight.

    Tasks that share data, network and seeds (the schedules of one network, say) are
    dependent. They are averaged within each common seed, and these means are the
    values. Over tasks that share nothing the interval is the fixed effect's: it is
    about these tasks and says nothing about others. Its variance is the sum of theirs,
    with Welch's degrees of freedom.
    """

    tasks: tuple[Task, ...]
    # Step of the grid of values: their sd is at least that of rounding.
    resolution: float = 0.0
    # Whether each value comes from a fit on the others: variance as in Nadeau and
    # Bengio (2003).
    left_out: bool = False
    # The statistic itself, where the values are pseudo-values of the jackknife: their
    # mean is the statistic without its bias.
    uncorrected: float | None = None

    @property
    def remark(self) -> str:
        """A remark on what widens the interval or corrects the value."""
        remarks = []
        if self.left_out:
            shared = SEEDS_SHARED if self.each == "seeds" else FOLDS_SHARED
            remarks.append(f"Student's interval, {CORRECTED} {shared}")
        if self.uncorrected is not None:
            remarks.append(
                "bias-corrected by the jackknife, without which it is "
                f"{self.uncorrected:.3f}"
            )
        return "; ".join(remarks)

    def estimate(self, level: float = LEVEL) -> Estimate:
        """The sd is over tasks that share nothing, or over the seeds of one task."""
        blocks = self.independent()
        means = np.array([np.mean(values) for values in blocks])
        count = sum(map(len, blocks))
        value = float(means.mean())
        sd: float | None
        if len(blocks) > 1:
            sd = float(means.std(ddof=1))
        else:
            (values,) = blocks
            sd = self._sd(values, left_out=False)
        error = self._error()
        if error is None:
            return Estimate(value, count, sd)
        half = _quantile(level, error[1]) * error[0]
        return Estimate(value, count, sd, value - half, value + half)

    def power(
        self, distances: Sequence[float], level: float, n: int | None = None
    ) -> float:
        """The power from the non-central t distribution."""
        error = self._error(n)
        if error is None:
            return 0.0
        return _power_of_t(distances, *error, level)

    def alone(self, level: float = LEVEL) -> list[Ends]:
        """The interval of each block of tasks that shares nothing with the others."""
        blocks = self.independent()
        if len(blocks) < 2:
            return []
        parts = [replace(self, tasks=(Task("", values),)) for values in blocks]
        intervals = [part.estimate(level).ends for part in parts]
        return [ends for ends in intervals if ends is not None]

    def independent(self) -> list[tuple[float, ...]]:
        """Blocks of values by what they share.

        The values of a block are independent, and so are blocks.
        """
        blocks: dict[str, list[Task]] = {}
        for place, task in enumerate(self.tasks):
            shared = bool(task.shares and task.seeds)
            blocks.setdefault(task.shares if shared else f"{place}", []).append(task)
        return [_averaged_by_seed(tasks) for tasks in blocks.values()]

    def _error(self, n: int | None = None) -> tuple[float, float] | None:
        """The standard error and its degrees of freedom; None if there is none.

        If a task has only one value, it is the error of the tasks' means.
        """
        blocks = self.independent()
        sds = [self._sd(values, left_out=self.left_out) for values in blocks]
        counts = [n or len(values) for values in blocks]
        known = [sd for sd in sds if sd is not None]
        if len(known) == len(blocks):
            return _fixed_effect(known, counts)
        if len(blocks) < 2:
            return None
        means = [float(np.mean(values)) for values in blocks]
        return float(np.std(means, ddof=1)) / math.sqrt(len(means)), len(means) - 1

    def of_paper(self) -> Self | None:
        """The mean over the paper's own tasks."""
        own = tuple(task for task in self.tasks if task.own)
        return replace(self, tasks=own) if own else None

    def by_task(self, level: float = LEVEL) -> list[dict[str, Any]]:
        """A row for each task."""
        rows = []
        for task in self.tasks:
            estimate = replace(self, tasks=(task,)).estimate(level)
            rows.append({"task": task.name, **asdict(estimate), "pooled": task.own})
        return rows

    def _sd(self, values: Sequence[float], *, left_out: bool) -> float | None:
        n = len(values)
        if n < 2:
            return None
        correction = math.sqrt(1 + n / (n - 1)) if left_out else 1.0
        sd = float(np.std(values, ddof=1)) * correction
        return max(sd, self.resolution / math.sqrt(12))


def _averaged_by_seed(tasks: Sequence[Task]) -> tuple[float, ...]:
    """The mean over some tasks for each common seed."""
    if len(tasks) == 1:
        return tasks[0].values
    seeds = common_seeds(tasks)
    if not seeds:
        # Nothing is paired: one value without an interval.
        return (float(np.mean([np.mean(task.values) for task in tasks])),)
    by_seed = [dict(zip(task.seeds, task.values, strict=True)) for task in tasks]
    return tuple(float(np.mean([values[seed] for values in by_seed])) for seed in seeds)


def common_seeds(tasks: Sequence[Task]) -> list[Any]:
    """The common seeds of some tasks, in the order of the first task."""
    first, *others = tasks
    return [seed for seed in first.seeds if all(seed in task.seeds for task in others)]


def _fixed_effect(sds: Sequence[float], counts: Sequence[int]) -> tuple[float, float]:
    """The standard error of a mean of means, and Welch's degrees of freedom."""
    squares = np.array(sds) ** 2 / np.array(counts)
    total = float(squares.sum())
    if total == 0:
        return 0.0, float(min(counts) - 1)
    degrees = total**2 / float((squares**2 / (np.array(counts) - 1)).sum())
    return math.sqrt(total) / len(counts), degrees


@dataclass(frozen=True)
class Share(Quantity):
    """The share of hits among n independent trials.

    Its interval is the exact one of Clopper and Pearson.
    """

    hits: int
    n: int

    def estimate(self, level: float = LEVEL) -> Estimate:
        """The share with its exact interval."""
        low, high = _exact_interval(self.hits, self.n, level)
        return Estimate(self.hits / self.n, self.n, None, low, high)

    def power(
        self, distances: Sequence[float], level: float, n: int | None = None
    ) -> float:
        """The chance that a share exceeds a bound of one half by the distance."""
        count = n or self.n
        bound = 0.5
        true_share = min(1.0, bound + min(distances))
        hits = np.arange(count + 1)
        clears = [_exact_interval(int(hit), count, level)[0] > bound for hit in hits]
        return float(stats.binom.pmf(hits, count, true_share)[clears].sum())


@lru_cache(maxsize=10_000)
def _exact_interval(hits: int, n: int, level: float) -> Ends:
    """The interval of Clopper and Pearson."""
    tail = (1 - level) / 2
    low = float(stats.beta.ppf(tail, hits, n - hits + 1)) if hits else 0.0
    high = float(stats.beta.ppf(1 - tail, hits + 1, n - hits)) if hits < n else 1.0
    return low, high


@dataclass(frozen=True)
class Fitted(Quantity):
    """A coefficient of a regression, with Student's t interval."""

    value: float
    error: float | None  # Its standard error.
    degrees: int
    n: int  # The number of values, such as seeds, that a larger study would increase.
    corrected: str = ""  # The correction of the error, in words.

    @property
    def remark(self) -> str:
        """The correction of the error."""
        return self.corrected

    def estimate(self, level: float = LEVEL) -> Estimate:
        """The coefficient; its sd is that of one of the n values."""
        if self.error is None or self.degrees < 1:
            return Estimate(self.value, self.n)
        half = self.error * _quantile(level, self.degrees)
        sd = self.error * math.sqrt(self.n)
        return Estimate(self.value, self.n, sd, self.value - half, self.value + half)

    def power(
        self, distances: Sequence[float], level: float, n: int | None = None
    ) -> float:
        """With n, as if the error fell with its square root.

        The degrees of freedom grow with n.
        """
        if self.error is None or self.degrees < 1:
            return 0.0
        degrees = float(self.degrees)
        error = self.error
        if n is not None:
            error *= math.sqrt(self.n / n)
            degrees = degrees * n / self.n if self.degrees >= self.n else n - 1
        return _power_of_t(distances, error, degrees, level)


@dataclass(frozen=True)
class Drawn(Quantity):
    """A value whose uncertainty is given by draws, for instance of a bootstrap.

    The ends of its interval are percentiles of the draws.
    """

    value: float
    draws: tuple[float, ...]
    n: int

    def estimate(self, level: float = LEVEL) -> Estimate:
        """The interval holds the value."""
        ends = np.quantile(self.draws, [(1 - level) / 2, (1 + level) / 2])
        low = min(float(ends[0]), self.value)
        high = max(float(ends[1]), self.value)
        return Estimate(self.value, self.n, float(np.std(self.draws)), low, high)

    def power(
        self, distances: Sequence[float], level: float, n: int | None = None
    ) -> float:
        """As if the draws were normal and narrowed with the square root of n."""
        error = float(np.std(self.draws)) * math.sqrt(self.n / (n or self.n))
        return _power_of_t(distances, error, math.inf, level)


def pooled(
    values: Mapping[str, Sequence[float]], own: Callable[[str], bool] = lambda _: True
) -> tuple[Task, ...]:
    """Tasks from values by task; tasks without values are left out."""
    return tuple(
        Task(name, tuple(map(float, some)), own(name))
        for name, some in values.items()
        if len(some)
    )


def _power_of_t(
    distances: Sequence[float], error: float, degrees: float, level: float
) -> float:
    """The chance that Student's t interval clears bounds.

    The bounds lie at some distances from the true value. For two bounds it is a lower
    bound on the chance that both are cleared.
    """
    missed = 0.0
    for distance in distances:
        if error == 0:
            missed += distance <= 0
            continue
        quantile = _quantile(level, degrees)
        shift = distance / error
        if math.isinf(degrees):
            missed += float(stats.norm.cdf(quantile - shift))
        elif shift < FAR * quantile:
            missed += float(stats.nct.cdf(quantile, degrees, shift))
    return max(0.0, 1 - missed)


FAR = 5.0
"""Multiples of the interval's half width: even a study of two values finds an effect of
this size with near certainty.
"""


def _least(found: Callable[[float], float]) -> float | None:
    """The smallest distance with a chance of `POWER`, to four digits, or None.

    Without a spread, the values detect the smallest distance tried.
    """
    least = 1e-9
    high = least
    while found(high) < POWER:
        high *= 2
        if high > 1e6:
            return None
    if high == least:
        return least
    low = high / 2
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        if found(middle) < POWER:
            low = middle
        else:
            high = middle
    return high


@lru_cache(maxsize=10_000)
def _quantile(level: float, degrees: float) -> float:
    if math.isinf(degrees):
        return float(stats.norm.ppf((1 + level) / 2))
    return float(stats.t.ppf((1 + level) / 2, degrees))

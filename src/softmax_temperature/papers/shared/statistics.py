"""Intervals of the quantities that the claims compare.

There are four kinds of quantities: means over seeds and tasks; shares of trials;
estimates with a known standard error, such as regression coefficients; and values whose
uncertainty is given by random draws.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, Self

import numpy as np
import scipy  # Importing `scipy.stats` takes a second; it happens on the first use.
from numpy.typing import NDArray

LEVEL = 0.90
"""Default level of the intervals, as in the focal paper's figures."""
POWER = 0.80
"""The power with which a study should detect the planned effect."""
LARGEST_N = 1000
"""The largest number of values per task to plan for.

For a comparison that needs more, no number is planned.
"""

CORRECTED = "widened after Nadeau and Bengio"
"""Words that describe a widened interval.

An interval is widened if each value comes from a choice or a fit on the other values:
the variance of the n values is multiplied by 1 + n / (n - 1), as in Nadeau and Bengio
(2003).
"""
FOLDS_SHARED = "for folds that share training data"
SEEDS_SHARED = "for choices that share seeds"

Values = NDArray[np.float64]
Ends = tuple[float, float]


@dataclass(frozen=True)
class Estimate:
    """An estimate with its interval, to be compared with a bound.

    Attributes:
        value: The estimate.
        n: The number of values behind the estimate.
        sd: The standard deviation of these values, or another measure of spread that
            the quantity's `estimate` describes; None if there is none.
        low: The lower end of the interval, if there is one.
        high: The upper end of the interval, if there is one.
    """

    value: float
    n: int
    sd: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def ends(self) -> Ends | None:
        """The ends of the interval; None if there is no interval."""
        return None if self.low is None or self.high is None else (self.low, self.high)


@dataclass(frozen=True, kw_only=True)
class Quantity(ABC):
    """A quantity that can be estimated with an interval at any level."""

    counted: str = "seeds"  # Plural noun for the values that n counts.
    # Whether the runs are on the paper's data. `OverTasks` uses `Task.own` instead.
    own: bool = True

    @abstractmethod
    def estimate(self, level: float = LEVEL) -> Estimate:
        """The value with its interval at `level`."""

    @abstractmethod
    def power(
        self, distances: Sequence[float], level: float, n: int | None = None
    ) -> float:
        """Power: the probability that the interval of n values excludes the bounds.

        Args:
            distances: The distances from the true value to the bounds, of which there
                are one or two.
            level: The level of the interval.
            n: The number of values per task, by default the measured number. The values
                are assumed to have the measured spread.
        """

    def detectable(self, level: float = LEVEL, *, sides: int = 1) -> float | None:
        """Smallest distance from the bound that is detected with power `POWER`.

        With `sides=2` there are two bounds, and the true value has this distance from
        both. The result is None if the values have no standard error, or if no distance
        is large enough.
        """

        def power_at(distance: float) -> float:
            return self.power([distance] * sides, level)

        return _smallest_detectable(power_at)

    def n_for(self, distances: Sequence[float], level: float = LEVEL) -> int | None:
        """The smallest n with a power of at least `POWER` at `distances`.

        From 100 on, only every 25th n is tried. The result is None if `LARGEST_N`
        values are too few, or if a distance is not above 0.
        """
        if min(distances, default=0.0) <= 0:
            return None
        counts = [*range(2, 100), *range(100, LARGEST_N + 1, 25)]
        return next(
            (n for n in counts if self.power(distances, level, n) >= POWER), None
        )

    def alone(self, level: float = LEVEL) -> list[Ends]:  # noqa: ARG002
        """The interval of each independent block of tasks, if there are several."""
        return []

    def of_paper(self) -> Self | None:
        """The quantity restricted to the paper's own tasks; None if there are none."""
        return self if self.own else None

    @property
    def qualifier(self) -> str:
        """The corrections of the value and of its interval, in words; "" if none.

        Readers see this text wherever they see the numbers.
        """
        return ""

    def by_task(self, level: float = LEVEL) -> list[dict[str, Any]]:  # noqa: ARG002
        """The value, sd, interval and n of each task; empty if there are no tasks."""
        return []


@dataclass(frozen=True)
class Task:
    """The values of one task, for example one value per seed.

    Attributes:
        name: The name of the task.
        values: The values.
        own: Whether the task is one of the paper's. Other tasks are shown but not
            pooled, except in the profiles in `claims.DIRECTIONS_ONLY`.
        seeds: The seed of each value, if the values belong to seeds.
        shares: The data and network of the task. If two tasks have the same data and
            network, their values for equal seeds count as dependent, because such runs
            may start from the same weights. "" if the task shares nothing.
    """

    name: str
    values: tuple[float, ...]
    own: bool = True
    seeds: tuple[Any, ...] = ()
    shares: str = ""

    def at(self, seeds: Collection[Any]) -> "Task":
        """The same task, restricted to `seeds`."""
        places = [place for place, seed in enumerate(self.seeds) if seed in seeds]
        return replace(
            self,
            values=tuple(self.values[place] for place in places),
            seeds=tuple(self.seeds[place] for place in places),
        )


@dataclass(frozen=True)
class OverTasks(Quantity):
    """A mean over seeds and tasks, in which dependent tasks form one block.

    Tasks with values by seed are dependent if they have the same data and network.
    Dependent tasks, such as the schedules of one network, form a block. They are
    averaged within each seed that all of them have, and these means are the block's
    values. Any other task is a block of its own.

    The quantity is the mean of the blocks' means; all blocks have equal weight. Over
    several blocks, the interval is for a fixed effect: it describes these tasks and
    says nothing about other tasks. The squared standard error of the mean of k blocks
    is the sum of the blocks' squared standard errors, divided by k²; the degrees of
    freedom are Welch's. If a block has only one value, the standard error comes from
    the spread of the blocks' means instead.
    """

    tasks: tuple[Task, ...]
    # Step of the grid that the values lie on; 0 if there is none. The values' sd is
    # taken to be at least the sd of rounding to the grid.
    resolution: float = 0.0
    # Whether each value comes from a choice or a fit on the other values. If so, the
    # variance is corrected as in Nadeau and Bengio (2003).
    left_out: bool = False
    # The statistic before bias correction, if the values are jackknife pseudo-values,
    # whose mean is the bias-corrected statistic.
    uncorrected: float | None = None

    @property
    def qualifier(self) -> str:
        """The corrections of the interval and of the value, in words; "" if none."""
        corrections = []
        if self.left_out:
            shared = SEEDS_SHARED if self.counted == "seeds" else FOLDS_SHARED
            corrections.append(f"Student's interval, {CORRECTED} {shared}")
        if self.uncorrected is not None:
            corrections.append(
                "bias-corrected by the jackknife, without which it is "
                f"{self.uncorrected:.3f}"
            )
        return "; ".join(corrections)

    def estimate(self, level: float = LEVEL) -> Estimate:
        """The mean over blocks, with Student's interval unless there is only one value.

        `sd` is the standard deviation of the means of the independent blocks of tasks,
        or of the values if there is only one block.
        """
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
        """Compute the power with the non-central t distribution."""
        error = self._error(n)
        if error is None:
            return 0.0
        return _power_of_t(distances, *error, level)

    def alone(self, level: float = LEVEL) -> list[Ends]:
        """The interval of each independent block of tasks, if there are several."""
        blocks = self.independent()
        if len(blocks) < 2:
            return []
        parts = [replace(self, tasks=(Task("", values),)) for values in blocks]
        intervals = [part.estimate(level).ends for part in parts]
        return [ends for ends in intervals if ends is not None]

    def independent(self) -> list[tuple[float, ...]]:
        """Group the tasks into independent blocks, and average each block by seed.

        A block consists of the tasks that have values by seed and the same data and
        network. Different blocks are independent, and so are the values of one block.

        Returns:
            The values of each block.
        """
        blocks: dict[str, list[Task]] = {}
        for place, task in enumerate(self.tasks):
            shared = bool(task.shares and task.seeds)
            blocks.setdefault(task.shares if shared else f"{place}", []).append(task)
        return [_averaged_by_seed(tasks) for tasks in blocks.values()]

    def _error(self, n: int | None = None) -> tuple[float, float] | None:
        """Standard error and degrees of freedom of the mean; None for a single value.

        If one of several blocks has only one value, the error comes from the spread of
        the blocks' means.
        """
        blocks = self.independent()
        sds = [self._sd(values, left_out=self.left_out) for values in blocks]
        counts = [n or len(values) for values in blocks]
        known_sds = [sd for sd in sds if sd is not None]
        if len(known_sds) == len(blocks):
            return _fixed_effect(known_sds, counts)
        if len(blocks) < 2:
            return None
        means = [float(np.mean(values)) for values in blocks]
        return float(np.std(means, ddof=1)) / math.sqrt(len(means)), len(means) - 1

    def of_paper(self) -> Self | None:
        """The mean over the paper's own tasks; None if there are none."""
        paper_tasks = tuple(task for task in self.tasks if task.own)
        return replace(self, tasks=paper_tasks) if paper_tasks else None

    def by_task(self, level: float = LEVEL) -> list[dict[str, Any]]:
        """The value, sd, interval and n of each task, and whether it is pooled."""
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
    """The mean over `tasks`, for each seed that all of them have."""
    if len(tasks) == 1:
        return tasks[0].values
    seeds = common_seeds(tasks)
    if not seeds:
        # No seed is common to all tasks, so the mean is one value without an interval.
        return (float(np.mean([np.mean(task.values) for task in tasks])),)
    by_seed = [dict(zip(task.seeds, task.values, strict=True)) for task in tasks]
    return tuple(float(np.mean([values[seed] for values in by_seed])) for seed in seeds)


def common_seeds(tasks: Sequence[Task]) -> list[Any]:
    """The seeds that all `tasks` have, in the order of the first task."""
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

    The interval is Clopper and Pearson's exact interval.
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
        """Compute the power for a true share that exceeds 0.5 by the smallest distance.

        The bound is always 0.5.
        """
        count = n or self.n
        bound = 0.5
        true_share = min(1.0, bound + min(distances))
        hits = np.arange(count + 1)
        clears = [_exact_interval(int(hit), count, level)[0] > bound for hit in hits]
        return float(scipy.stats.binom.pmf(hits, count, true_share)[clears].sum())


@lru_cache(maxsize=10_000)
def _exact_interval(hits: int, n: int, level: float) -> Ends:
    """Clopper and Pearson's exact interval for `hits` of `n` trials."""
    tail = (1 - level) / 2
    low = float(scipy.stats.beta.ppf(tail, hits, n - hits + 1)) if hits else 0.0
    high = (
        float(scipy.stats.beta.ppf(1 - tail, hits + 1, n - hits)) if hits < n else 1.0
    )
    return low, high


@dataclass(frozen=True)
class Fitted(Quantity):
    """An estimate with a known standard error: a slope, or a difference of means.

    The interval is based on Student's t.
    """

    value: float
    error: float | None  # The standard error of `value`.
    degrees: int
    n: int  # The number of values, such as seeds; a larger study has more of them.
    corrected: str = ""  # The correction of the standard error, in words.

    @property
    def qualifier(self) -> str:
        """The correction of the standard error, in words; "" if there is none."""
        return self.corrected

    def estimate(self, level: float = LEVEL) -> Estimate:
        """The value with Student's interval; `sd` is the standard error times √n."""
        if self.error is None or self.degrees < 1:
            return Estimate(self.value, self.n)
        half = self.error * _quantile(level, self.degrees)
        sd = self.error * math.sqrt(self.n)
        return Estimate(self.value, self.n, sd, self.value - half, self.value + half)

    def power(
        self, distances: Sequence[float], level: float, n: int | None = None
    ) -> float:
        """Power with n values, assuming the standard error scales as 1/√n.

        The degrees of freedom grow in proportion to n. If the measurement has fewer
        degrees of freedom than values, they are n - 1 instead.
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
    """A value whose uncertainty is given by draws, for instance from a bootstrap.

    The ends of its interval are percentiles of the draws, or the value itself if it
    lies outside the percentiles.
    """

    value: float
    draws: tuple[float, ...]
    n: int

    def estimate(self, level: float = LEVEL) -> Estimate:
        """The value with its percentile interval, widened if needed to contain it."""
        ends = np.quantile(self.draws, [(1 - level) / 2, (1 + level) / 2])
        low = min(float(ends[0]), self.value)
        high = max(float(ends[1]), self.value)
        return Estimate(self.value, self.n, float(np.std(self.draws)), low, high)

    def power(
        self, distances: Sequence[float], level: float, n: int | None = None
    ) -> float:
        """Power with n values, assuming normal draws whose sd scales as 1/√n."""
        error = float(np.std(self.draws)) * math.sqrt(self.n / (n or self.n))
        return _power_of_t(distances, error, math.inf, level)


def pooled(
    values: Mapping[str, Sequence[float]], own: Callable[[str], bool] = lambda _: True
) -> tuple[Task, ...]:
    """One `Task` per name in `values`; names without values are left out.

    Args:
        values: The values of each task, keyed by task name.
        own: Function that says whether the task with a given name is one of the
            paper's.
    """
    return tuple(
        Task(name, tuple(map(float, numbers)), own(name))
        for name, numbers in values.items()
        if len(numbers)
    )


def _power_of_t(
    distances: Sequence[float], error: float, degrees: float, level: float
) -> float:
    """Power of Student's t interval for bounds at `distances` from the true value.

    With two bounds, the probability that the interval excludes both is at least the
    result.
    """
    missed = 0.0
    for distance in distances:
        if error == 0:
            missed += distance <= 0
            continue
        quantile = _quantile(level, degrees)
        shift = distance / error
        if math.isinf(degrees):
            missed += float(scipy.stats.norm.cdf(quantile - shift))
        elif shift < FAR * quantile:
            missed += float(scipy.stats.nct.cdf(quantile, degrees, shift))
    return max(0.0, 1 - missed)


FAR = 5.0
"""Effect size, in half-widths of the interval, above which power is taken to be 1.

Even a study of two values detects an effect of this size almost surely.
"""


def _smallest_detectable(power_at: Callable[[float], float]) -> float | None:
    """Smallest distance at which the power is at least `POWER`, to four digits.

    If the values have no spread, the result is the smallest distance that is tried,
    1e-9.

    Args:
        power_at: Function that returns the power at a distance, and increases with it.

    Returns:
        The distance; None if it exceeds 1e6.
    """
    smallest = 1e-9
    high = smallest
    while power_at(high) < POWER:
        high *= 2
        if high > 1e6:
            return None
    if high == smallest:
        return smallest
    low = high / 2
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        if power_at(middle) < POWER:
            low = middle
        else:
            high = middle
    return high


@lru_cache(maxsize=10_000)
def _quantile(level: float, degrees: float) -> float:
    if math.isinf(degrees):
        return float(scipy.stats.norm.ppf((1 + level) / 2))
    return float(scipy.stats.t.ppf((1 + level) / 2, degrees))

"""Contrasts along a swept factor: chosen and best values, slopes and correlations.

The value at which a seed is tested is chosen on the validation data of the other seeds,
so that the choice cannot favour the seed's own test data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import scipy  # Importing `scipy.stats` takes a second; it happens on the first use.

from softmax_temperature.papers.shared.contrasts import (
    OWN,
    Contrast,
    Declared,
    Evidence,
    Measurement,
    cells_of_runs,
    not_tested,
    one_run_each,
    reasons,
)
from softmax_temperature.papers.shared.display import value_label
from softmax_temperature.papers.shared.factors import ALL, Where
from softmax_temperature.papers.shared.metrics import Measure
from softmax_temperature.papers.shared.runs import CELL, SEED, Runs
from softmax_temperature.papers.shared.statistics import (
    Drawn,
    Fitted,
    OverTasks,
    Quantity,
    Task,
    Values,
)
from softmax_temperature.runner.errors import InputError

DRAWS = 4000
DRAW_SEED = 0
NO_LINE = "no seed of this study has two points where the prediction speaks"
"""The reason to give for a missing slope."""
_FEWEST_SPREADS = 3
"""The minimum number of spreads for fitting a line: two points always lie on a line."""


@dataclass(frozen=True)
class Choice:
    """A rule that chooses a value of a swept factor by a validation metric.

    The rule compares the means of the metric at the values of the factor.

    Attributes:
        among: The runs whose values are candidates.
        worst: Whether to choose the value of the factor with the lowest validation mean
            instead of the highest.
    """

    among: Where = ALL
    worst: bool = False

    def of(self, means: pd.Series[float]) -> Any:
        """Choose a value of the factor, from the validation mean at each value."""
        return means.idxmin() if self.worst else means.idxmax()


BEST = Choice()
WORST = Choice(worst=True)


@dataclass(frozen=True, kw_only=True)
class ChosenDifference(Declared):
    """The difference in a metric between two chosen values of a factor, for each seed.

    Attributes:
        over: The swept factor.
        first: The rule that chooses the value at which the metric is the minuend.
        second: The rule that chooses the value at which the metric is subtracted.
        chosen_by: The validation metric that chooses the values.
        compared: The runs whose values are candidates. The words of this predicate
            appear in the reason why a part is missing.
    """

    over: str
    first: Choice = BEST
    second: Choice = WORST
    chosen_by: Measure
    compared: Where = ALL
    left_out: bool = True

    def _whole(self, runs: Runs) -> Evidence:
        (chosen,) = self._sides(runs)
        if chosen.empty:
            return Evidence({}, {"": self._why_none(runs)}, chosen)
        compared = self.compared.select(chosen)
        differences = self.differences(runs, compared)
        if not differences:
            return Evidence({}, {"": self._why(compared, chosen)}, chosen)
        name = ", ".join(value_label(key, chosen[key].iloc[0]) for key in self.tasks)
        task = Task(name, tuple(differences), bool(chosen[OWN].iloc[0]))
        mean = OverTasks((task,), counted=self.counted, left_out=self.left_out)
        return Evidence({"": mean}, {}, chosen)

    def differences(self, runs: Runs, compared: pd.DataFrame) -> list[float]:
        """The difference for each seed; empty if there are too few seeds or values.

        At least two seeds and two values are needed.

        A seed is left out if the other seeds leave no candidate for one of the two
        choices, or if the metric is missing for the seed at a chosen value.
        """
        validation = table_by_seed(runs, compared, self.chosen_by, self.over)
        test = table_by_seed(runs, compared, self.of, self.over)
        if min(test.shape) < 2:
            return []
        differences = []
        for seed in test.index:
            means = validation.drop(index=seed).mean().dropna()
            first = means[self._allowed(self.first, compared, means)]
            second = means[self._allowed(self.second, compared, means)]
            if first.empty or second.empty:
                continue
            minuend = test.loc[seed, self.first.of(first)]
            differences.append(float(minuend - test.loc[seed, self.second.of(second)]))
        return [number for number in differences if pd.notna(number)]

    def _allowed(
        self, side: Choice, compared: pd.DataFrame, means: pd.Series[float]
    ) -> list[Any]:
        """The candidate values of a side that have a validation mean."""
        values = set(side.among.select(compared)[self.over])
        return [value for value in means.index if value in values]

    def _why(self, compared: pd.DataFrame, chosen: pd.DataFrame) -> str:
        if len(compared) == len(chosen):
            return "too few runs"
        if compared.empty:
            return f"no run has {self.compared}"
        values = sorted(compared[self.over].unique())
        listed = ", ".join(value_label(self.over, value) for value in values)
        return f"only the runs at {in_words(self.over)} {listed} have {self.compared}"


@dataclass(frozen=True)
class MeanOverSweeps(Contrast):
    """The mean of a `ChosenDifference` over sweeps, which have equal weight.

    Attributes:
        of: The difference, with one part per sweep.
    """

    of: ChosenDifference

    def measure(self, runs: Runs) -> Measurement:
        """Measure the mean, as one part, over the sweeps that have an estimate."""
        evidence = self.of.evidence(runs)
        sweeps = [
            part for part in evidence.parts.values() if isinstance(part, OverTasks)
        ]
        if not sweeps:
            return not_tested(reasons(evidence.missing))
        tasks = [task for sweep in sweeps for task in sweep.tasks]
        return Measurement(
            {"": replace(sweeps[0], tasks=tuple(tasks))},
            self.of.unit,
            "; ".join(self.of.notes(runs, evidence.runs)),
            evidence.missing,
            cells_of_runs(evidence.runs),
        )


@dataclass(frozen=True, kw_only=True)
class Argmax(Declared):
    """The distance between the best values of a factor in two groups, in decades.

    Both orders of two groups are parts, because only the data show which group has the
    larger value. There must be one run per group, seed and value.

    Attributes:
        over: The swept factor.
        groups: The factor whose values are the groups.
        compared: The runs whose values are candidates. A group is left out if it has
            fewer than two seeds, if its best value is at an end of the grid, or if some
            seed has no candidate run at one of the two values next to the best.
        sharing: Factors in which two groups must agree to form a pair.
    """

    over: str
    groups: str
    compared: Where = ALL
    sharing: Sequence[str] = ()
    unit_as: str = "decades"

    def _whole(self, runs: Runs) -> Evidence:
        """Estimate the distance for each ordered pair of groups, with its draws."""
        (chosen,) = self._sides(runs)
        if chosen[self.groups].nunique() < 2:
            reason = f"fewer than two values of {in_words(self.groups)}"
            return Evidence({}, {"": reason}, chosen)
        pairs = self._pairs(chosen)
        if not pairs:
            labels = [
                value_label(self.groups, group)
                for group in chosen[self.groups].unique()
            ]
            shared = " and ".join(map(in_words, self.sharing))
            reason = f"no two of these share the {shared}: {'; '.join(labels)}"
            return Evidence({}, {"": reason}, chosen)
        draws: dict[str, Values] = {}
        seeds: dict[str, int] = {}
        missing: dict[str, str] = {}
        for name, (table, tried) in self._tables(runs).items():
            if reason := self._why_no_best(table, tried):
                missing[name] = reason
            else:
                draws[name] = argmax_draws(table)
                seeds[name] = len(table)
        parts: dict[str, Quantity] = {}
        for first, second in pairs:
            if first not in draws or second not in draws:
                continue
            apart = draws[first] - draws[second]
            parts[f"{first} over {second}"] = Drawn(
                # The first entry of the draws is the estimate itself.
                float(apart[0]),
                tuple(apart[1:].tolist()),
                min(seeds[first], seeds[second]),
            )
        if parts:
            return Evidence(parts, {}, chosen)
        # If no pair of groups has two best values, say for each group without a best
        # value why it has none.
        return Evidence({}, missing, chosen)

    def _pairs(self, chosen: pd.DataFrame) -> list[tuple[str, str]]:
        """The labels of each ordered pair of groups that agree in `sharing`."""
        distinct = chosen.drop_duplicates(self.groups)
        groups = distinct[[self.groups, *self.sharing]].itertuples(index=False)
        return [
            (value_label(self.groups, first), value_label(self.groups, second))
            for (first, *of_first), (second, *of_second) in permutations(groups, 2)
            if of_first == of_second
        ]

    def best_values(self, runs: Runs) -> dict[str, float]:
        """The best value of each group that has one (see `without_best`)."""
        return {
            name: float(str(table.mean().idxmax()))
            for name, (table, tried) in self._tables(runs).items()
            if not self._why_no_best(table, tried)
        }

    def without_best(self, runs: Runs) -> dict[str, str]:
        """The groups without a best value, each with the reason."""
        reasons = {
            name: self._why_no_best(table, tried)
            for name, (table, tried) in self._tables(runs).items()
        }
        return {name: reason for name, reason in reasons.items() if reason}

    def _tables(self, runs: Runs) -> dict[str, tuple[pd.DataFrame, list[Any]]]:
        """For each group, a table of the metric, and the list of all values tried.

        The table has one row per seed and one column per value that every seed has.
        """
        (chosen,) = self._sides(runs)
        tables = {}
        for group, rows in chosen.groupby(self.groups, sort=False, observed=True):
            compared = self.compared.select(rows)
            table = table_by_seed(runs, compared, self.of, self.over)
            # The draws need a table without gaps, so drop each value of the factor that
            # any seed lacks.
            complete = table.dropna(axis="columns")
            tried = sorted(rows[self.over].unique())
            tables[value_label(self.groups, group)] = (complete, tried)
        return tables

    def _why_no_best(self, table: pd.DataFrame, tried: list[Any]) -> str:
        """The reason why the best value of a group is unknown; "" if it is known."""
        over = in_words(self.over)
        if len(table) < 2 or table.columns.empty:
            return f"fewer than two seeds have {self.compared} at one {over}"
        place = tried.index(table.mean().idxmax())
        if place in (0, len(tried) - 1):
            return f"the best {over} is at the end of its grid"
        if not set(tried[place - 1 : place + 2]) <= set(table.columns):
            return f"the best {over} or one next to it lacks {self.compared}"
        return ""


def argmax_draws(table: pd.DataFrame) -> Values:
    """Find the value with the highest mean, and draw samples of where it may be.

    The seeds are too few to resample. The means are therefore drawn from Student's t,
    with the sd that remains after removing the effects of seeds and values.

    Args:
        table: The metric, with one row per seed and one column per value of the factor.

    Returns:
        The base-10 logarithms of the value that was found and of the samples.
    """
    values = table.to_numpy(float)
    places = np.log10(table.columns.to_numpy(float))
    seeds, count = values.shape
    by_value = values.mean(axis=0)
    residuals = values - by_value - values.mean(axis=1, keepdims=True) + values.mean()
    degrees = (seeds - 1) * (count - 1)
    error = np.sqrt((residuals**2).sum() / degrees / seeds)
    generator = np.random.default_rng(DRAW_SEED)
    scale = error * np.sqrt(degrees / generator.chisquare(degrees, DRAWS))
    noise = generator.normal(size=(DRAWS, count))
    means = by_value + scale[:, None] * noise
    best = np.concatenate([[by_value.argmax()], means.argmax(axis=1)])
    drawn: Values = places[best]
    return drawn


@dataclass(frozen=True, kw_only=True)
class Slope(Declared):
    """Slope of a metric's logarithm against a factor's logarithm, minus its prediction.

    A line is fitted to the runs of each seed, and the slopes are averaged. If the runs
    belong to several tasks, `split_by` must separate the tasks.

    Attributes:
        against: The factor, or another metric of the runs.
        predicted: The predicted slope.
        straight: The largest factor by which a point may deviate from its line. If a
            point deviates by more, the slope alone does not show a power law, and the
            claim cannot hold.
    """

    against: Measure
    predicted: float = 0.0
    straight: float = np.inf
    unit_as: str = "slope minus predicted"

    def slopes(self, runs: Runs) -> tuple[list[float], float]:
        """The slope for each seed with two or more values of `against`, and the misfit.

        The misfit is the largest factor by which any seed's point deviates from its
        line.
        """
        (chosen,) = self._sides(runs)
        rows = chosen[[SEED]].assign(
            x=self.against.of(runs, chosen), y=self.of.of(runs, chosen)
        )
        fits = []
        for _, points in rows.dropna().groupby(SEED):
            if points["x"].min() < points["x"].max():
                fits.append(line_of_logarithms(points["x"], points["y"]))
        slopes = [slope for slope, _ in fits]
        return slopes, max((misfit for _, misfit in fits), default=0.0)

    def _whole(self, runs: Runs) -> Evidence:
        (chosen,) = self._sides(runs)
        _check_one_task(chosen, self.tasks)
        slopes, misfit = self.slopes(runs)
        if not slopes:
            return Evidence({}, {"": NO_LINE}, chosen)
        estimate = OverTasks((Task("", tuple(slopes)),)).estimate()
        count = len(slopes)
        error = None if estimate.sd is None else estimate.sd / count**0.5
        part = Fitted(estimate.value - self.predicted, error, count - 1, count)
        missing = {}
        if misfit > self.straight:
            missing["as a line"] = f"points miss it by a factor of {misfit:.2f}"
        return Evidence({"": part}, missing, chosen)


def line_of_logarithms(x: pd.Series[float], y: pd.Series[float]) -> tuple[float, float]:
    """The slope of log y on log x, and the largest factor by which a point deviates."""
    across = np.log(x.to_numpy(float))
    up = np.log(y.to_numpy(float))
    line = np.polyfit(across, up, 1)
    misfit = np.abs(up - np.polyval(line, across)).max()
    return float(line[0]), float(np.exp(misfit))


@dataclass(frozen=True, kw_only=True)
class SlopeOfSpread(Declared):
    """The slope of the logarithm of the sd over seeds, per decade of a factor.

    If the runs belong to several tasks, `split_by` must separate the tasks: one line
    through the sweeps of several tasks would treat all their points as independent.

    Attributes:
        over: The factor.
        compared: The runs whose spread is used. The words of this predicate appear in
            the reason why a part is missing.
    """

    over: str
    compared: Where = ALL
    unit_as: str = "log spread per decade"

    def spreads(self, runs: Runs) -> pd.Series[float]:
        """Standard deviation of the metric over seeds, for each value of the factor.

        Values whose deviation is 0 are dropped, because the fit takes the logarithm of
        the deviation.
        """
        (chosen,) = self._sides(runs)
        _check_one_task(chosen, self.tasks)
        table = table_by_seed(runs, self.compared.select(chosen), self.of, self.over)
        spreads = table.std()
        return spreads[spreads > 0]

    def _whole(self, runs: Runs) -> Evidence:
        (chosen,) = self._sides(runs)
        spreads = self.spreads(runs)
        if len(spreads) < _FEWEST_SPREADS:
            reason = f"too few spreads over seeds among the runs with {self.compared}"
            return Evidence({}, {"": reason}, chosen)
        across = np.log10(spreads.index.to_numpy(float))
        line = scipy.stats.linregress(across, np.log(spreads.to_numpy(float)))
        degrees = len(spreads) - 2
        seeds = chosen[SEED].nunique()
        part = Fitted(float(line.slope), float(line.stderr), degrees, seeds)
        return Evidence({"": part}, {}, chosen)


@dataclass(frozen=True, kw_only=True)
class Correlation(Declared):
    """Pearson's r between two metrics of the runs, jackknifed over groups.

    Attributes:
        of: The first metric.
        against: The second metric.
        groups: The factor whose values are left out one at a time.
        absolute: Whether to use |r| instead of r.
        minus: A metric whose |r| with `against` is subtracted, so that the contrast is
            the difference between two values of |r|.
        fewest: The minimum number of groups.
    """

    against: Measure
    groups: str = "dataset"
    absolute: bool = False
    minus: Measure | None = None
    fewest: int = 4
    counted: str = "data sets"

    @property
    def unit(self) -> str:
        """The unit of the estimates."""
        if self.minus is not None:
            return self.unit_as or "difference of |r|"
        return self.unit_as or ("|r|" if self.absolute else "r")

    def _whole(self, runs: Runs) -> Evidence:
        (chosen,) = self._sides(runs)
        columns: dict[str, Measure] = {"x": self.of, "y": self.against}
        if self.minus is not None:
            columns["z"] = self.minus
        table = chosen[[self.groups]].assign(
            **{name: measure.of(runs, chosen) for name, measure in columns.items()}
        )
        table = table.dropna()
        # Arrays, because each statistic is computed once per left-out group.
        groups = [
            rows[list(columns)].to_numpy() for _, rows in table.groupby(self.groups)
        ]
        if len(groups) < self.fewest:
            reason = f"fewer than {self.fewest} {self.counted}"
            return Evidence({}, {"": reason}, chosen)
        values = jackknife(groups, self._statistic)
        task = Task(self.counted, tuple(values.tolist()))
        part = OverTasks(
            (task,), counted=self.counted, uncorrected=self._statistic(groups)
        )
        return Evidence({"": part}, {}, chosen)

    def _statistic(self, groups: Sequence[Values]) -> float:
        x, y, *z = np.concatenate(groups).T
        r = correlation(x, y)
        if not z:
            return abs(r) if self.absolute else r
        return abs(r) - abs(correlation(z[0], y))


def correlation(x: Values, y: Values) -> float:
    """Pearson's r of `x` and `y`; 0 if `x` is constant."""
    if np.unique(x[~np.isnan(x)]).size < 2:
        return 0.0
    return float(np.corrcoef(x, y)[0, 1])


def jackknife(
    groups: Sequence[Any], statistic: Callable[[Sequence[Any]], float]
) -> Values:
    """The pseudo-values of `statistic`, one per left-out group."""
    count = len(groups)
    without = [
        statistic([*groups[:place], *groups[place + 1 :]]) for place in range(count)
    ]
    values: Values = count * statistic(groups) - (count - 1) * np.array(without)
    return values


def table_by_seed(
    runs: Runs, chosen: pd.DataFrame, measure: Measure, over: str
) -> pd.DataFrame:
    """The measure's values, with one row per seed and one column per value of a factor.

    Args:
        runs: All runs of the study.
        chosen: The rows of `runs.table` to use.
        measure: The metric of each run.
        over: The factor.

    Raises:
        InputError: If two runs have the same seed and value but differ in another
            factor.
    """
    distinct = one_run_each(chosen, [SEED, over])
    rows = distinct[[SEED, over]].assign(number=measure.of(runs, distinct))
    return rows.pivot(index=SEED, columns=over, values="number")


def in_words(factor: str) -> str:
    """The name of `factor` as it reads in a sentence."""
    return factor.replace("_", " ")


def _check_one_task(chosen: pd.DataFrame, tasks: Sequence[str]) -> None:
    places = chosen[list(tasks)].drop_duplicates()
    if len(places) > 1:
        names = ["/".join(map(str, place)) for place in places.to_numpy()]
        raise InputError(
            f"cannot fit one line to runs of several tasks: {', '.join(names)}",
            where=str(chosen[CELL].iloc[0]),
            remedy="Give the contrast one part per task.",
        )

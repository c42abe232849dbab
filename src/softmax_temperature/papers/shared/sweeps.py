"""Contrasts along a factor that is swept: chosen values, the best one, slopes.

A choice is made on the validation data of the other seeds: choosing makes nothing look
better on the test data of a seed that took part in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.shared.contrasts import (
    OWN,
    Declared,
    Evidence,
)
from softmax_temperature.papers.shared.display import value_label
from softmax_temperature.papers.shared.factors import ALL, Where
from softmax_temperature.papers.shared.metrics import Measure
from softmax_temperature.papers.shared.runs import SEED, Runs
from softmax_temperature.papers.shared.statistics import (
    Drawn,
    Fitted,
    OverTasks,
    Quantity,
    Task,
    Values,
)

DRAWS = 4000
DRAW_SEED = 0


@dataclass(frozen=True)
class Choice:
    """One value of a swept factor, chosen by validation data.

    Attributes:
        among: The runs whose values may be chosen.
        worst: Whether the value of the least validation number is chosen, not of the
            highest.
    """

    among: Where = ALL
    worst: bool = False

    def of(self, means: pd.Series[float]) -> Any:
        """The chosen value, from validation means by value."""
        return means.idxmin() if self.worst else means.idxmax()


BEST = Choice()
WORST = Choice(worst=True)


@dataclass(frozen=True, kw_only=True)
class ChosenDifference(Declared):
    """A number at one chosen value of a factor minus that at another, by seed.

    Attributes:
        over: The swept factor.
        first: The value at which the number is the minuend.
        second: The value at which it is subtracted.
        chosen_by: The validation number by which the values are chosen.
        compared: The runs that may be compared, in the words of the note.
    """

    over: str
    first: Choice = BEST
    second: Choice = WORST
    chosen_by: Measure
    compared: Where = ALL
    left_out: bool = True

    def _whole(self, runs: Runs) -> Evidence:
        (chosen,) = self._sides(runs)
        compared = self.compared.select(chosen)
        differences = self.differences(runs, compared)
        if not differences:
            return Evidence({}, {"": self._why(compared, chosen)}, chosen)
        name = ", ".join(value_label(key, chosen[key].iloc[0]) for key in self.tasks)
        task = Task(name, tuple(differences), bool(chosen[OWN].iloc[0]))
        mean = OverTasks((task,), each=self.counted, left_out=self.left_out)
        return Evidence({"": mean}, {}, chosen)

    def differences(self, runs: Runs, compared: pd.DataFrame) -> list[float]:
        """The difference of each seed; none if there is nothing to choose."""
        validation = table_by_seed(runs, compared, self.chosen_by, self.over)
        test = table_by_seed(runs, compared, self.of, self.over)
        sides = (self.first, self.second)
        allowed = [self._allowed(side, compared, test) for side in sides]
        if min(test.shape) < 2 or not all(allowed):
            return []
        differences = []
        for seed in test.index:
            means = validation.drop(index=seed).mean()
            values = [
                test.loc[seed, side.of(means[places])]
                for side, places in zip(sides, allowed, strict=True)
            ]
            differences.append(float(values[0] - values[1]))
        return [number for number in differences if pd.notna(number)]

    def _allowed(
        self, side: Choice, compared: pd.DataFrame, test: pd.DataFrame
    ) -> list[Any]:
        values = set(side.among.select(compared)[self.over])
        return [value for value in test.columns if value in values]

    def _why(self, compared: pd.DataFrame, chosen: pd.DataFrame) -> str:
        if len(compared) == len(chosen):
            return "too few runs"
        values = sorted(compared[self.over].unique())
        listed = ", ".join(f"{value:g}" for value in values)
        if not listed:
            return f"no run has {self.compared}"
        return f"only the runs at {self.over} {listed} have {self.compared}"


@dataclass(frozen=True, kw_only=True)
class Argmax(Declared):
    """The decades between the values of a factor at which two groups are best.

    Both orders of two groups are parts: which of the two is larger is seen in the data.

    Attributes:
        over: The swept factor.
        groups: The factor whose values are the groups.
        compared: The runs whose values may be the best. A group is left out if its best
            value, or one next to it, has none of them, or is at the end of the grid.
    """

    over: str
    groups: str
    compared: Where = ALL

    def evidence(self, runs: Runs) -> Evidence:
        """The distance of each ordered pair of groups, with a bootstrap of both."""
        chosen = runs.select(self.among)
        draws: dict[str, Values] = {}
        missing: dict[str, str] = {}
        for group, rows in chosen.groupby(self.groups, sort=False):
            name = value_label(self.groups, group)
            table = table_by_seed(runs, self.compared.select(rows), self.of, self.over)
            reason = _why_no_argmax(table, sorted(rows[self.over].unique()))
            if reason:
                missing[name] = reason
            else:
                draws[name] = argmax_draws(table)
        parts: dict[str, Quantity] = {}
        for first, second in permutations(draws, 2):
            apart = draws[first] - draws[second]
            parts[f"{first} over {second}"] = Drawn(
                # The first draw is the estimate.
                float(apart[0]),
                tuple(apart[1:].tolist()),
                chosen[SEED].nunique(),
            )
        return Evidence(parts, {} if parts else missing, chosen)

    def _whole(self, runs: Runs) -> Evidence:
        return self.evidence(runs)

    def best_values(self, runs: Runs) -> dict[str, float]:
        """The best value of each group that has one inside its grid."""
        best = {}
        chosen = runs.select(self.among)
        for group, rows in chosen.groupby(self.groups, sort=False):
            table = table_by_seed(runs, self.compared.select(rows), self.of, self.over)
            if not _why_no_argmax(table, sorted(rows[self.over].unique())):
                name = value_label(self.groups, group)
                best[name] = float(str(table.mean().idxmax()))
        return best


def _why_no_argmax(table: pd.DataFrame, tried: list[Any]) -> str:
    """The reason why the best value of a sweep is not known; "" if it is."""
    place = tried.index(table.mean().idxmax()) if table.shape[1] else 0
    neighbours = set(tried[max(0, place - 1) : place + 2])
    if len(table) < 2 or not neighbours <= set(table.columns):
        return (
            "the chosen learning rate is at the end of its grid next to the best "
            "inverse temperature"
        )
    if place in (0, len(tried) - 1):
        return "the best inverse temperature is at the end of its grid"
    return ""


def argmax_draws(table: pd.DataFrame) -> Values:
    """The common logarithm of the value of the highest mean, and then draws of it.

    Args:
        table: Numbers by seed (rows) and value of the factor (columns).

    Means are drawn by Student's t with the residual sd over both: three seeds are too
    few to be drawn from.
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
    """The slope of a number's logarithm in that of a factor, minus the predicted slope.

    A line is fitted to the runs of each seed, and the slopes are averaged.

    Attributes:
        against: The factor, or another number of the runs.
        predicted: The predicted slope.
        straight: The factor by which a point may miss its line. Where one misses it
            by more, the slope alone does not show a power law, and the part stays open.
    """

    against: Measure
    predicted: float = 0.0
    straight: float = np.inf

    def slopes(self, runs: Runs) -> tuple[list[float], float]:
        """The slope of each seed with two points, and the largest factor by which a
        point misses its line.
        """
        (chosen,) = self._sides(runs)
        rows = chosen[[SEED]].assign(
            x=self.against.of(runs, chosen), y=self.of.of(runs, chosen)
        )
        fits = []
        for _, points in rows.dropna(subset="y").groupby(SEED):
            if len(points) > 1:
                fits.append(line_of_logarithms(points["x"], points["y"]))
        slopes = [slope for slope, _ in fits]
        return slopes, max((misfit for _, misfit in fits), default=0.0)

    def _whole(self, runs: Runs) -> Evidence:
        (chosen,) = self._sides(runs)
        slopes, misfit = self.slopes(runs)
        if not slopes:
            reason = "no seed of this study has two points where the prediction speaks"
            return Evidence({}, {"": reason}, chosen)
        estimate = OverTasks((Task("", tuple(slopes)),)).estimate()
        count = len(slopes)
        error = None if estimate.sd is None else estimate.sd / count**0.5
        part = Fitted(estimate.value - self.predicted, error, count - 1, count)
        missing = {}
        if misfit > self.straight:
            missing["as a line"] = f"points miss it by a factor of {misfit:.2f}"
        return Evidence({"": part}, missing, chosen)


def line_of_logarithms(x: pd.Series[float], y: pd.Series[float]) -> tuple[float, float]:
    """The slope of logarithms, and the largest factor by which a point misses the line."""
    across = np.log(x.to_numpy(float))
    up = np.log(y.to_numpy(float))
    line = np.polyfit(across, up, 1)
    misfit = np.abs(up - np.polyval(line, across)).max()
    return float(line[0]), float(np.exp(misfit))


@dataclass(frozen=True, kw_only=True)
class SlopeOfSpread(Declared):
    """The slope of the logarithm of the sd over seeds, per decade of a factor.

    One regression over all groups, with an intercept for each.

    Attributes:
        over: The factor.
        groups: The factor whose values are the groups.
    """

    over: str
    groups: str

    def _whole(self, runs: Runs) -> Evidence:
        (chosen,) = self._sides(runs)
        rows = chosen.assign(number=self.of.of(runs, chosen))
        table = rows.groupby([self.groups, self.over], sort=False)["number"].std()
        spreads = table.reset_index(name="sd").query("sd > 0")
        several = spreads.groupby(self.groups)["sd"].transform("size") > 1
        spreads = spreads[several]
        spreads = spreads.assign(
            x=np.log10(spreads[self.over]), y=np.log(spreads["sd"])
        )
        count = spreads[self.groups].nunique()
        if len(spreads) < count + 2:
            reason = f"too few spreads over seeds among the runs with {self.among}"
            return Evidence({}, {"": reason}, chosen)
        slope, error, degrees = common_slope(spreads, self.groups)
        part = Fitted(slope, error, degrees, n=chosen[SEED].nunique())
        return Evidence({"": part}, {}, chosen)


def common_slope(table: pd.DataFrame, groups: str) -> tuple[float, float, int]:
    """Slope of the column y in x with an intercept for each group, its standard error,
    and the degrees of freedom.
    """
    x = table["x"] - table.groupby(groups)["x"].transform("mean")
    y = table["y"] - table.groupby(groups)["y"].transform("mean")
    square = float((x**2).sum())
    degrees = len(table) - table[groups].nunique() - 1
    slope = float((x * y).sum()) / square
    rest = float(((y - slope * x) ** 2).sum())
    return slope, float(np.sqrt(rest / degrees / square)), degrees


@dataclass(frozen=True, kw_only=True)
class Correlation(Declared):
    """Pearson's r of two numbers of the runs, jackknifed over groups.

    Attributes:
        of: The first number.
        against: The second number.
        groups: The factor whose values are left out in turn.
        minus: A number whose |r| is subtracted; then the contrast is a difference of
            |r|.
        fewest: The least number of groups.
    """

    against: Measure
    groups: str = "dataset"
    minus: Measure | None = None
    fewest: int = 4
    counted: str = "data sets"

    @property
    def unit(self) -> str:
        """The unit of the estimates."""
        return self.unit_as or ("r" if self.minus is None else "difference of |r|")

    def _whole(self, runs: Runs) -> Evidence:
        (chosen,) = self._sides(runs)
        columns: dict[str, Measure] = {"x": self.of, "y": self.against}
        if self.minus is not None:
            columns["z"] = self.minus
        table = chosen[[self.groups]].assign(
            **{name: measure.of(runs, chosen) for name, measure in columns.items()}
        )
        groups = [rows for _, rows in table.groupby(self.groups)]
        if len(groups) < self.fewest:
            reason = f"fewer than {self.fewest} {self.counted}"
            return Evidence({}, {"": reason}, chosen)
        values = jackknife(groups, self._statistic)
        task = Task(self.counted, tuple(values.tolist()))
        return Evidence({"": OverTasks((task,), each=self.counted)}, {}, chosen)

    def _statistic(self, groups: Sequence[pd.DataFrame]) -> float:
        table = pd.concat(groups)
        r = correlation(table["x"], table["y"])
        if self.minus is None:
            return r
        return abs(r) - abs(correlation(table["z"], table["y"]))


def correlation(x: pd.Series[float], y: pd.Series[float]) -> float:
    """Pearson's r; 0 for a constant x."""
    if x.nunique() < 2:
        return 0.0
    return float(np.corrcoef(x, y)[0, 1])


def jackknife(
    groups: Sequence[pd.DataFrame], statistic: Callable[[Sequence[Any]], float]
) -> Values:
    """Pseudo-values of a statistic, one per group that is left out."""
    count = len(groups)
    without = [
        statistic([*groups[:place], *groups[place + 1 :]]) for place in range(count)
    ]
    values: Values = count * statistic(groups) - (count - 1) * np.array(without)
    return values


def table_by_seed(
    runs: Runs, chosen: pd.DataFrame, measure: Measure, over: str
) -> pd.DataFrame:
    """A number of the runs, by seed (rows) and value of a factor (columns)."""
    rows = chosen[[SEED, over]].assign(number=measure.of(runs, chosen))
    return rows.pivot(index=SEED, columns=over, values="number")

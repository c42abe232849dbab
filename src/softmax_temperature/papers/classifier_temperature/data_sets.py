"""Contrasts in which a data set counts once, however many backbones it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from softmax_temperature.heuristic import leave_one_dataset_out
from softmax_temperature.papers.classifier_temperature.study import (
    BEST_INVERSE_TEMPERATURE,
    pairs,
)
from softmax_temperature.papers.shared.contrasts import (
    OWN,
    Declared,
    Difference,
    Evidence,
    all_runs,
)
from softmax_temperature.papers.shared.metrics import Measure
from softmax_temperature.papers.shared.runs import Runs
from softmax_temperature.papers.shared.statistics import OverTasks, Task

FEWEST = 4
"""The smallest number of data sets with which leaving one out makes sense."""
_FEWEST_CORRELATIONS = 3
_FEWEST_OF_THE_PAPER = 3


@dataclass(frozen=True, kw_only=True)
class DifferenceByDataSet(Difference):
    """A difference between runs on the same embeddings, with one value per data set.

    The value of a data set is the mean over its backbones.
    """

    tasks: Sequence[str] = ("dataset", "backbone")
    paired_by: Sequence[str] = ()

    def _whole(self, runs: Runs) -> Evidence:
        first, second = self._sides(runs)
        behind = all_runs([first, second])
        differences = self.differences(runs)
        if differences.empty:
            return Evidence({}, {"": self._why_none(runs)}, behind)
        means = differences.groupby("dataset").mean()
        return Evidence({"": over_data_sets(means, behind)}, {}, behind)


@dataclass(frozen=True, kw_only=True)
class CorrelationOfPredictions(Declared):
    """The correlation between predicted and best inverse temperatures.

    There is one value for each left-out data set.

    Attributes:
        statistics: The statistics that the regression uses, as in
            `leave_one_dataset_out`.
        minus: The statistics of another regression, whose correlation is subtracted;
            None to subtract nothing.
    """

    of: Measure = BEST_INVERSE_TEMPERATURE
    statistics: str = "all"
    minus: str | None = None

    @property
    def unit(self) -> str:
        """The unit of the correlations or of their differences."""
        return "r" if self.minus is None else "difference of r"

    def _whole(self, runs: Runs) -> Evidence:
        (chosen,) = self._sides(runs)
        if chosen["dataset"].nunique() < FEWEST:
            reason = f"fewer than {FEWEST} data sets with a trained backbone"
            return Evidence({}, {"": reason}, chosen)
        table = pairs(runs, chosen)
        values = _correlation_by_data_set(table, self.statistics)
        if self.minus is not None:
            values = values - _correlation_by_data_set(table, self.minus)
        values = values.dropna()
        if len(values) < _FEWEST_CORRELATIONS:
            reason = "fewer than three left-out data sets have a correlation"
            return Evidence({}, {"": reason}, chosen)
        part = over_data_sets(values, chosen, left_out=True)
        return Evidence({"": part}, {}, chosen)


def _correlation_by_data_set(table: pd.DataFrame, statistics: str) -> pd.Series[float]:
    folds = leave_one_dataset_out(table, statistics=statistics).folds
    return folds.set_index("dataset")["r"]


def over_data_sets(
    values: pd.Series[float], rows: pd.DataFrame, *, left_out: bool = False
) -> OverTasks:
    """The mean over data sets, with the generated data sets as a separate task.

    If fewer than three data sets are real, all data sets form a single task, which does
    not count as one of the paper's tasks.

    Args:
        values: One value per data set, indexed by the name of the data set.
        rows: The rows of `Runs.table` for runs on these data sets.
        left_out: Whether each value comes from a fit on the other data sets.
    """
    is_own = rows.drop_duplicates("dataset").set_index("dataset")[OWN]
    is_own = is_own[values.index]
    if is_own.sum() < _FEWEST_OF_THE_PAPER:
        tasks = [_task("data sets, some generated", values, own=False)]
    else:
        tasks = [_task("data sets", values[is_own], own=True)]
        if not is_own.all():
            drawn = _task("generated data sets", values[~is_own], own=False)
            tasks.append(drawn)
    return OverTasks(tuple(tasks), counted="data sets", left_out=left_out)


def _task(name: str, values: pd.Series[float], *, own: bool) -> Task:
    return Task(name, tuple(values.tolist()), own)

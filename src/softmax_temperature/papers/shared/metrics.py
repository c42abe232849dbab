"""Metrics: the one value per run that a claim or a table uses.

`Metric("accuracy")` is the test accuracy after the last epoch, `Metric("ece",
scaled=True)` the calibration error after temperature scaling. For a `Metric`, a run
that diverged or got stuck has no value, unless the attribute `lost` gives it one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pandas as pd

from softmax_temperature.papers.shared.runs import Runs
from softmax_temperature.params.cooling import JUDGED

DIVERGED = "diverged"
STUCK = "stuck"
LOST = (DIVERGED, STUCK)
"""The columns of `Runs.table` that mark a run as lost, one per outcome."""

Epochs = Callable[[pd.DataFrame, pd.DataFrame], "pd.Series[float]"]
"""A function that reduces a metric's values at several epochs to one value per run.

Its first argument has the columns run, split, epoch and value; its second argument has
the rows of `Runs.table` for these runs.
"""


class Measure(Protocol):
    """A metric, with one value per run."""

    @property
    def unit(self) -> str:
        """The unit of the metric, as it is spelled in `claims.json`."""

    def of(self, runs: Runs, chosen: pd.DataFrame) -> pd.Series[float]:
        """The value of each run, or NaN if it is missing.

        Args:
            runs: All runs of the study.
            chosen: The rows of `runs.table` for the runs to return.
        """


def last_epoch(values: pd.DataFrame, chosen: pd.DataFrame) -> pd.Series[float]:
    """Reduce `values` to the value after each run's last epoch."""
    last = values["run"].map(chosen["epochs_done"])
    return values[values["epoch"] == last].set_index("run")["value"]


def mean_of_last_epochs(values: pd.DataFrame, _: pd.DataFrame) -> pd.Series[float]:
    """Average over the last ten epochs, or the last fifth if there are fewer than 50.

    The value after the last epoch alone is about twice as noisy.
    """
    last = values.groupby("run")["epoch"].transform("max")
    judged = values[values["epoch"] > last - (last // 5).clip(1, JUDGED)]
    return judged.groupby("run")["value"].mean()


def at_epoch(column: str) -> Epochs:
    """Return a function that takes each run's value at the epoch in column `column`."""

    def value(values: pd.DataFrame, chosen: pd.DataFrame) -> pd.Series[float]:
        named = values["run"].map(chosen[column])
        return values[values["epoch"] == named].set_index("run")["value"]

    return value


@dataclass(frozen=True)
class Metric:
    """A measured value of each run.

    Attributes:
        name: The metric's column in `values.csv`.
        scaled: Whether the logits were divided by the temperature fitted on validation
            data.
        split: The split on which the metric was measured, or the name of another data
            set.
        epochs: Function that reduces the values at all epochs to one value per run.
        label: The metric's name for readers; "" means `name`.
        lost: The value of a run that diverged or got stuck: a number, or the name of a
            column of `Runs.table`. By default such a run has no value.
        complement: Whether to subtract the value from 1, for instance to get the error
            from the accuracy.
    """

    name: str
    scaled: bool = False
    split: str = "test"
    epochs: Epochs = last_epoch
    label: str = ""
    lost: float | str | None = None
    complement: bool = False

    @property
    def unit(self) -> str:
        """The label, or the name if there is no label."""
        return self.label or self.name

    def of(self, runs: Runs, chosen: pd.DataFrame) -> pd.Series[float]:
        """The value of each chosen run."""
        rows = runs.measured(self.name, split=self.split, scaled=self.scaled)
        rows = rows[rows["run"].isin(chosen.index)]
        values = self.epochs(rows, chosen).reindex(chosen.index)
        if self.complement:
            values = 1 - values
        if self.lost is None:
            return values.mask(is_lost(chosen))
        instead = chosen[self.lost] if isinstance(self.lost, str) else self.lost
        return values.mask(is_lost(chosen), instead)


def at_last_epoch(metric: Metric) -> Metric:
    """Return a copy of `metric` that takes the value after each run's last epoch."""
    return replace(metric, epochs=last_epoch)


@dataclass(frozen=True)
class Factor:
    """A factor, or another column of `Runs.table`, as a metric."""

    name: str
    label: str = ""

    @property
    def unit(self) -> str:
        """The label, or the name if there is no label."""
        return self.label or self.name

    def of(self, _: Runs, chosen: pd.DataFrame) -> pd.Series[float]:
        """The column's value for each chosen run."""
        return chosen[self.name].astype(float)


@dataclass(frozen=True)
class Average:
    """The mean of several metrics of each run, for instance over two test sets.

    A run that lacks one of the metrics has no value, because its mean would cover fewer
    metrics than the means of other runs.
    """

    measures: Sequence[Measure]

    @property
    def unit(self) -> str:
        """The unit of the first metric."""
        return self.measures[0].unit

    def of(self, runs: Runs, chosen: pd.DataFrame) -> pd.Series[float]:
        """The mean of the metrics for each chosen run that has all of them."""
        numbers = [measure.of(runs, chosen) for measure in self.measures]
        return pd.concat(numbers, axis="columns").mean(axis="columns", skipna=False)


@dataclass(frozen=True)
class Derived:
    """A metric that the function `compute` computes for each run."""

    label: str
    compute: Callable[[Runs, pd.DataFrame], pd.Series[float]]

    @property
    def unit(self) -> str:
        """The label."""
        return self.label

    def of(self, runs: Runs, chosen: pd.DataFrame) -> pd.Series[float]:
        """The value of each chosen run."""
        return self.compute(runs, chosen).reindex(chosen.index)


def source_text(measure: Measure) -> str:
    """Say what a measure reads: the column and rows of `values.csv`, or its unit.

    A `Metric` is named by its column even if it has a label, because the label would
    hide a misspelt name.
    """
    if not isinstance(measure, Metric):
        return measure.unit
    scaling = " after scaling" if measure.scaled else ""
    return f"{measure.name}{scaling} on split {measure.split!r}"


def is_lost(table: pd.DataFrame) -> pd.Series[bool]:
    """Whether each run in `table` diverged or got stuck."""
    lost = pd.Series(False, index=table.index)
    for outcome in LOST:
        if outcome in table:
            lost |= table[outcome].astype(bool)
    return lost


def lost_text(table: pd.DataFrame, *, counted: str = "") -> str:
    """Count the lost runs of each arm, as in "Last layer 1 of 3 diverged".

    The text is "" if no run was lost.

    Args:
        table: Rows of `Runs.table`, with the arms' labels in the column `arm`.
        counted: Words for the value that a lost run counts as; "" if it has no value.
    """
    texts = []
    for arm, rows in table.groupby("arm", sort=False):
        counts = [
            f"{rows[outcome].sum()} of {len(rows)} {outcome}"
            for outcome in LOST
            if outcome in rows and rows[outcome].any()
        ]
        if counts:
            texts.append(f"{arm} {', '.join(counts)}")
    text = ", ".join(texts)
    return f"counted as {counted}: {text}" if counted and text else text


def add_labels(table: pd.DataFrame, arm: Callable[[pd.Series[Any]], str]) -> Any:
    """Return `table` with a column `arm`: the label that `arm` returns for each row."""
    return table.assign(arm=[arm(row) for _, row in table.iterrows()])

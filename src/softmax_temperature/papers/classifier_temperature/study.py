"""The runs of the cosine-classifier paper, and predicates that select them.

A run has one of three tasks. A *search* trains a classifier on the embeddings of a data
set with one inverse temperature; its values are means over repeats. A *pair* represents
all searches of one data set and backbone, with the statistics of the embeddings and the
best inverse temperature. A *rescaling* is one training run of Figure 2, with the plain
loss or with the loss divided by the inverse temperature.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd

from softmax_temperature import stages
from softmax_temperature.dataset_statistics import STATISTICS
from softmax_temperature.papers.shared.factors import Where, where
from softmax_temperature.papers.shared.metrics import Derived, Metric
from softmax_temperature.papers.shared.runs import RUN, Runs, read_runs

SLUG = "classifier_temperature"
PAIR_COLUMNS = (
    "dataset",
    "backbone",
    "inverse_temperature",
    "plateau_low",
    "plateau_high",
    "best_accuracy",
    "selected_on",
    "inverse_temperature_test",
    "inverse_temperature_validation",
    "test_rows",
    "validation_rows",
    "log_variance",
    *STATISTICS,
)
"""The columns of the table of pairs.

They include the best inverse temperature of a pair with its plateau, and the 23
statistics of the embeddings. `log_variance` is the variance over repeats of the
logarithm of the best inverse temperature; it is empty if there is only one repeat.
"""
MEASURED_COLUMNS = {"pairs": PAIR_COLUMNS}
"""Maps each measured table whose rows belong to runs to its columns."""
FITTED = ("correlations", "predictions", "leave_one_out", "folds", "rules")
"""The names of the tables made by the `heuristic` stage; the tables belong to no run.

correlations: each statistic's correlation with the best inverse temperature.
predictions: each pair's best inverse temperature with two predictions: one from a fit
    on all pairs, and one from a fit without the pair's data set.
leave_one_out: summaries of the correlations between predicted and best inverse
    temperatures, by row of Table 1, subset of pairs and method.
folds: the correlations that `leave_one_out` summarises, one per left-out data set.
rules: for each rule and pair, the test accuracy at the inverse temperature that the
    rule chooses, and the accuracy lost compared with the best inverse temperature.
"""
MEASURED_TABLES = (*MEASURED_COLUMNS, *FITTED)
SEARCH_STAGE = stages.label(stages.SEARCH)
HEURISTIC_STAGE = stages.label(stages.HEURISTIC)

GENERATED = "glyphs-"
"""Prefix of the names of the data sets that this package generates."""
_PLACE = ["dataset", "backbone"]

# Kinds of runs. -----------------------------------------------------------------------

SEARCH = where(task="search").called("searches")
PAIR = where(task="pair").called("pairs")
RESCALING = where(task="rescaling").called("trainings of Figure 2")
# The paper has no backbone with random weights, so no claim about searches or pairs
# uses one.
TRAINED_BACKBONE = (~where(weights="untrained")).called("a trained backbone")
TRAINED_PAIR = (PAIR & TRAINED_BACKBONE).called("pairs with a trained backbone")
NO_SCALING = where(inverse_temperature=1.0).called("inverse temperature 1")
CHOSEN_BY_VALIDATION = where(is_chosen_by_validation=True).called(
    "the inverse temperature of highest validation accuracy"
)
PLAIN = where(loss="plain").called("the plain cross-entropy")
RESCALED = where(loss="rescaled").called("the rescaled cross-entropy")


def _high_temperatures(table: pd.DataFrame) -> pd.Series[bool]:
    searched = RESCALING.select(table)["inverse_temperature"]
    return table["inverse_temperature"] >= searched.median()


UPPER_HALF = Where("the upper half of the grid", _high_temperatures)
"""The inverse temperatures at and above the median of Figure 2's grid."""

# Metrics. -----------------------------------------------------------------------------

BEST_ACCURACY = Metric("best_accuracy", label="accuracy")
"""Test accuracy after the best epoch, as in the paper."""
VALIDATION_ACCURACY = Metric("best_accuracy", split="validation", label="accuracy")
ACCURACY_AT_VALIDATION_BEST = Metric("accuracy_at_validation_best", label="accuracy")
"""Test accuracy after the epoch with the best validation accuracy."""


def statistic(name: str) -> Derived:
    """The column `name` of the table of pairs, as a metric with one value per pair."""

    def column(runs: Runs, _: pd.DataFrame) -> pd.Series[float]:
        return runs.tables["pairs"].set_index(RUN)[name]

    return Derived(name, column)


BEST_INVERSE_TEMPERATURE = statistic("inverse_temperature")


def read(folder: Path) -> Runs:
    """The runs in `results/<study>/classifier_temperature`, with derived columns.

    The derived columns are `own` (whether the run counts as one on the paper's data),
    `is_chosen_by_validation`, `epochs_done` and the label `arm`.
    """
    return tidied(read_runs(folder, MEASURED_TABLES))


def tidied(runs: Runs) -> Runs:
    """Return `runs` with the columns that are derived from factors and values."""
    table = runs.table
    is_drawn = table["dataset"].str.startswith(GENERATED)
    table = table.assign(
        # Generated data sets do not count as the paper's, except in Figure 2, which is
        # about optimizers.
        own=~is_drawn | RESCALING.mask(table),
        arm=table["optimizer"] + ", " + table["loss"],
        epochs_done=table["epochs"],
    )
    searches = SEARCH.select(table)
    accuracy = VALIDATION_ACCURACY.of(runs, searches)
    places = [searches[name] for name in _PLACE]
    chosen = accuracy.groupby(places).idxmax()
    table = table.assign(is_chosen_by_validation=table.index.isin(chosen))
    return replace(runs, table=table)


def pairs(runs: Runs, chosen: pd.DataFrame | None = None) -> pd.DataFrame:
    """The table of the `chosen` pairs (by default all), with the column `weights`.

    Columns without any value are left out.
    """
    rows = runs.select(PAIR) if chosen is None else chosen
    table = runs.tables["pairs"].dropna(axis="columns", how="all")
    table = table[table[RUN].isin(rows.index)]
    return table.assign(weights=table[RUN].map(rows["weights"])).drop(columns=RUN)


def searches(runs: Runs) -> pd.DataFrame:
    """A table of test and validation accuracy, by pair and inverse temperature."""
    rows = runs.select(SEARCH)
    columns = [*_PLACE, "weights", "inverse_temperature"]
    return rows[columns].assign(
        test_accuracy=BEST_ACCURACY.of(runs, rows),
        validation_accuracy=VALIDATION_ACCURACY.of(runs, rows),
    )


def is_trained(runs: Runs, table: pd.DataFrame) -> pd.Series[bool]:
    """Whether the pair in each row of `table` has a trained backbone."""
    trained = runs.select(TRAINED_PAIR)
    index = pd.MultiIndex.from_frame(trained[_PLACE])
    rows = pd.MultiIndex.from_frame(table[_PLACE])
    return pd.Series(rows.isin(index), index=table.index)

"""The runs of the Cooling paper, and predicates that select the runs of an arm or role.

A run trains a network on a data set with a schedule, with or without Cooling. The role
of a run is the table, figure or section of the paper that it belongs to, or "ablation"
or "ours".
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd

from softmax_temperature.papers.cooling.changes import changes
from softmax_temperature.papers.cooling.outcome import outcome
from softmax_temperature.papers.shared.display import (
    ACTIVATIONS,
    cooling_label,
    network_label,
)
from softmax_temperature.papers.shared.factors import (
    Where,
    at_most,
    dataset_in,
    is_part,
    less_than,
    more_than,
    where,
)
from softmax_temperature.papers.shared.metrics import (
    Metric,
    add_labels,
    is_lost,
    last_epoch,
    mean_of_last_epochs,
)
from softmax_temperature.papers.shared.runs import Runs, cell_names, read_runs

SLUG = "cooling"
MEASURED_TABLES = ("theory_checks", "cost")
"""The names of the measured tables; each is a file below `tables/`.

They belong to no run.

theory_checks: one row per statement and network; see `cooling.theory.theory_checks`.
cost: one row per device and mode, from benchmarks/results.json. `seconds` is the time
    of one Cooling step, `epoch_seconds` the time of one epoch, and `share` the ratio of
    the two. All three are medians over several measurements, whose number is `rounds`.
"""

# Deviation: our studies of segmentation use CamVid, because none of them can train on
# ADE20K, the only data set that the paper segments.
DATA = ("cifar10", "cifar100", "ade20k", "camvid")
"""The data sets that count as the paper's: those it uses, and a substitute for ADE20K.

A part of one of these data sets, such as "cifar10-5000", also counts.
"""
WHOLE = 45_000
"""A run with fewer CIFAR-10 training images does not have the paper's setting."""
LIMIT = 100.0
"""The maximum temperature in section 3.2.

Figure 2 shows the number of epochs after which the temperature exceeds this limit.
"""

# Training factors.
# ---------------------------------------------------------------------

NO_COOLING = where(mode="none").called("no Cooling")
DISTRIBUTED = where(mode="distributed", factor=1.0).called("distributed Cooling")
PERIODIC_ANYWHERE = where(mode="periodic", factor=1.0)
PERIODIC = (PERIODIC_ANYWHERE & where(max_temperature=more_than(1))).called(
    "periodically redistributed Cooling, of temperatures above 1"
)
"""Runs whose maximum temperature is at most 1 are left out, because the paper's maximum
is far above 1.
"""
# Deviation: for Tables 1 and 2 we use the Cooling factor 1, a full correction; the
# paper does not state the factor.
LAST_LAYER = where(mode="last_layer", factor=1.0).called("last layer Cooling")
ANY_FACTOR = where(mode="last_layer")
FACTOR_UP_TO_1 = where(mode="last_layer", factor=at_most(1)).called(
    "last layer Cooling with a factor up to 1"
)
FACTOR_BELOW_1 = where(mode="last_layer", factor=less_than(1)).called(
    "last layer Cooling with a factor below 1"
)
FACTOR_ABOVE_1 = where(mode="last_layer", factor=more_than(1)).called(
    "last layer Cooling with a factor above 1"
)
SLOW_FACTOR = 0.75
SLOW = where(mode="last_layer", factor=SLOW_FACTOR).called(
    f"last layer Cooling with factor {SLOW_FACTOR}"
)
"""The arm on the left of Figure 2."""
COOLING_MODES = {
    "distributed": DISTRIBUTED,
    "periodic": PERIODIC,
    "last_layer": LAST_LAYER,
}
"""Predicates that select the runs with each of the paper's modes of Cooling."""

NO_SCHEDULE = where(schedule="none").called("no schedule")
PIECEWISE = where(schedule="piecewise").called("the piecewise constant schedule")
SMOOTH_SCHEDULES = ("cosine", "exponential_fast", "exponential_slow", "linear")
SMOOTH = where(schedule=SMOOTH_SCHEDULES).called("smooth schedules")
SCHEDULES = (*SMOOTH_SCHEDULES, "none", "piecewise")
"""The schedules of Table 1."""
CRELU = where(activation="crelu").called("CReLU")
RELU = where(activation="relu").called("ReLU")
ON_CIFAR100 = dataset_in(("cifar100",)).called("CIFAR-100")

COOLING_AS_PRINTED = NO_COOLING | where(
    refit="whole", period="epoch", optimizer_state="keep"
)
"""Selects runs without Cooling, and runs with Cooling as we understand the paper.

This Cooling corrects the whole temperature after every epoch and keeps the optimizer's
state. The paper does not say what happens to this state.
"""
EACH_BATCH = where(
    mode="last_layer", factor=1.0, change="Cooling after each batch"
).called("last layer Cooling after each batch")
CROSS_ENTROPY = where(loss="cross_entropy")

# Roles. -------------------------------------------------------------------------------

CLASSIFICATION = where(task="classification")
SEGMENTATION = where(task="segmentation").called("segmentation")
MAIN = CLASSIFICATION & CROSS_ENTROPY & COOLING_AS_PRINTED
"""Selects classifiers trained with cross-entropy, without Cooling or with the paper's.

The two sides of a comparison share the study's recipe, which may differ from the
paper's.
"""
TABLE_1 = (where(role="table_1") & MAIN).called("Table 1")
TABLES_1_AND_2 = (where(role=("table_1", "table_2")) & MAIN).called("Tables 1 and 2")
TABLE_2 = (TABLES_1_AND_2 & NO_SCHEDULE).called("Table 2")
EVERY_MAIN_RUN = (
    where(role=("table_1", "table_2", "figure_1", "figure_2")) & MAIN
).called("the tables and figures")
# Deviation: Figure 1 shows our runs without a schedule. The paper does not state the
# schedule of the figure, but the figure's baseline and best gain (4.6 points) match
# those in Table 1 without a schedule.
FIGURE_1_RUNS = (where(role=("figure_1", "table_1")) & MAIN & NO_SCHEDULE).called(
    "Figure 1"
)
ABLATIONS = (where(role="ablation") & MAIN & NO_SCHEDULE).called("the ablations")
"""The runs with a changed recipe, with and without Cooling."""
CHANGES = {
    "Adam": where(optimizer="adam"),
    "warm-up": where(warmup=more_than(0)),
    "weight decay": where(weight_decay=more_than(0)),
    "augmentation": where(crop_padding=more_than(0)) | where(flip=True),
}
"""The changes to the recipe that Appendix B tests, according to section 4."""
PERIODS = (
    TABLE_1 | where(role="ablation") & CLASSIFICATION & CROSS_ENTROPY & EACH_BATCH
).called("the Cooling periods") & NO_SCHEDULE
"""Selects the runs with Cooling after each batch and the runs of Table 1, in both cases
only those without a schedule.
"""
FIGURE_2_RUNS = (
    where(role=("figure_2", "figure_1", "table_1")) & MAIN & NO_SCHEDULE
).called("Figure 2")


def _varies_the_factor(table: pd.DataFrame) -> pd.Series[bool]:
    setting = ["dataset", "network"]
    runs = (FIGURE_1_RUNS & ANY_FACTOR).select(table)
    varied = runs[runs["factor"] != 1.0]
    varied_settings = pd.MultiIndex.from_frame(varied[setting])
    settings = pd.MultiIndex.from_frame(table[setting])
    return pd.Series(settings.isin(varied_settings), index=table.index)


FIGURE_1 = FIGURE_1_RUNS & Where("a varied Cooling factor", _varies_the_factor)
"""The runs of Figure 1 whose data set and network also have runs with a factor other
than 1.
"""

OVERFLOWED = "overflowed"
"""Column: whether a loss, a logit, a weight or another number of a run became infinite
or NaN.
"""
DIVERGED = where(diverged=True)
FINITE = where(overflowed=False)
TRAINED = where(diverged=False, stuck=False)
NOT_REDISTRIBUTED = where(never_redistributed=True)
"""Selects runs with periodic Cooling that did not exceed the maximum temperature in any
epoch before the last.

Such a run equals the run with last layer Cooling, number for number. A comparison of
the two runs would mistake equal numbers for an effect of 0.
"""

# Metrics.
# ------------------------------------------------------------------------------

GUESSING = "guessing"
"""Column: the accuracy of guessing, which counts as the accuracy of a lost run."""
ACCURACY = Metric("accuracy", epochs=mean_of_last_epochs, lost=GUESSING)
LAST_ACCURACY = Metric("accuracy", epochs=last_epoch, lost=GUESSING)
ECE = Metric("ece", epochs=mean_of_last_epochs, label="ECE")
MEAN_IOU = Metric("mean_iou", epochs=mean_of_last_epochs, label="mean IoU", lost=0.0)
PIXEL_ACCURACY = Metric(
    "pixel_accuracy",
    epochs=mean_of_last_epochs,
    label="pixel accuracy",
    lost=GUESSING,
)
ACCURACY_OF_FINISHED = replace(ACCURACY, lost=None)
LAST_ACCURACY_OF_FINISHED = replace(LAST_ACCURACY, lost=None)
MEAN_IOU_OF_FINISHED = replace(MEAN_IOU, lost=None)
PIXEL_ACCURACY_OF_FINISHED = replace(PIXEL_ACCURACY, lost=None)
"""The four metrics `..._OF_FINISHED` are for tables and figures. Their values are
missing for lost runs.
"""


def read(folder: Path) -> Runs:
    """Read the runs in `folder`, `results/<study>/cooling`, and derive further columns.

    The derived columns are `own` (whether the data set counts as the paper's),
    `is_printed` (whether the run has the paper's own setting and data), `guessing` (the
    accuracy of guessing), `change` (the change from the main recipe, in words),
    `overflowed` (whether a number was no longer finite; the file calls this column
    `diverged`), `diverged` (whether the run overflowed, collapsed, or ended near the
    NLL of guessing), `stuck`, `lost` (whether the run diverged or got stuck),
    `never_redistributed` and the label `arm`.
    """
    runs = read_runs(folder, MEASURED_TABLES)
    table = runs.table.rename(columns={"diverged": OVERFLOWED})
    return tidied(replace(runs, table=table))


def tidied(runs: Runs) -> Runs:
    """Return `runs` with the columns that are derived from factors and values."""
    table = runs.table.astype({"printed_model": object})
    table = table.fillna({"printed_model": ""})
    # A smaller network is not the paper's, even if the parameters say that its runs
    # belong beside the printed model.
    ran = table["network"].map(network_in_words)
    is_printed = ran == table["printed_model"].map(printed_network)
    is_printed &= table["train_images"] >= WHOLE
    table = table.assign(**_outcomes(runs))
    table = table.assign(
        own=[is_part(name, DATA) for name in table["dataset"]],
        is_printed=is_printed.astype(bool),
        guessing=1 / table["classes"],
        change=changes(table, EVERY_MAIN_RUN.select(table)),
        lost=is_lost(table),
        never_redistributed=_never_redistributed(runs),
    )
    return replace(runs, table=add_labels(table, cooling_label))


def printed_network(model: str) -> str:
    """The network in the name of a printed model: "small VGG" in "small VGG, CReLU"."""
    return re.sub(r" \(.*|,.*", "", model)


def network_in_words(name: str) -> str:
    """A network in words, without its activation, which the tables show separately."""
    label = network_label(name)
    for activation in ACTIVATIONS.values():
        label = label.replace(f" with {activation}", "")
    return label


def _outcomes(runs: Runs) -> pd.DataFrame:
    """Compute the columns `diverged` and `stuck` of all runs with `outcome`."""
    learned = runs.measured("accuracy", split="train").sort_values("epoch")
    accuracies = learned.groupby("run")["value"].agg(list)
    tested = runs.measured("nll", split="test").sort_values("epoch")
    last_nll = tested.groupby("run")["value"].last()
    facts = runs.table[["classes", OVERFLOWED]]
    outcomes = [
        outcome(
            accuracies.get(run, []),
            classes,
            nll=float(last_nll.get(run, math.nan)),
            is_finite=not overflowed,
        )
        for run, classes, overflowed in facts.itertuples(name=None)
    ]
    return pd.DataFrame(outcomes, index=runs.table.index)


def _never_redistributed(runs: Runs) -> pd.Series[bool]:
    """Whether each run used periodic Cooling but never redistributed.

    The last epoch does not count, because Cooling after it changes no prediction. Only
    the last Cooling step within an epoch is recorded.
    """
    totals = runs.measured("temperature", split="validation")
    early = totals["epoch"] < totals.groupby("run")["epoch"].transform("max")
    hottest = totals[early].groupby("run")["value"].max()
    table = runs.table
    exceeds = hottest.reindex(table.index) > table["max_temperature"]
    return (table["mode"] == "periodic") & ~exceeds


def growth(runs: Runs) -> pd.DataFrame:
    """The last layer's temperature in the runs of Figure 2, including lost runs.

    Returns:
        One row per run and epoch, with the run's factors. `limit` is the maximum
        temperature of the periodic runs on the same data set and network, or `LIMIT` if
        there are none. `reached` is the last layer's temperature after the correction
        by Cooling, and `kept` the temperature that stays in the last layer; `reset` is
        true if the two differ. `total` is the product of all corrections so far.
    """
    chosen = runs.select(FIGURE_2_RUNS)
    setting = ["dataset", "network"]
    periodic = PERIODIC_ANYWHERE.select(chosen)
    limits = periodic.groupby(setting)["max_temperature"].first().rename("limit")
    table = pd.concat([SLOW.select(chosen), periodic])
    table = table.drop_duplicates([*setting, "mode", "seed"])
    table = table.join(limits, on=setting).fillna({"limit": LIMIT})
    names = {"applied_temperature": "applied", "temperature": "total"}
    coolings = runs.wide("coolings", *names, split="validation").rename(columns=names)
    coolings = coolings.dropna(subset="applied")
    rows = table.reset_index().merge(coolings, on="run")
    heats = [_heating(run) for _, run in rows.groupby("run", sort=False)]
    rows = rows.join(pd.concat(heats)) if heats else rows.assign(reached=[], kept=[])
    return rows.assign(reset=rows["reached"] != rows["kept"])


def _heating(run: pd.DataFrame) -> pd.DataFrame:
    """The last layer's temperatures `reached` and `kept` at a run's Cooling steps."""
    reached = []
    kept = []
    before = 1.0
    for _, row in run.iterrows():
        hot = before * row["applied"]  # Definition 3.4
        resets = row["mode"] == "periodic" and hot > row["max_temperature"]
        before = row["reset_temperature"] if resets else hot
        reached.append(hot)
        kept.append(before)
    return run[[]].assign(reached=reached, kept=kept)


def experiments(runs: Runs) -> pd.DataFrame:
    """The table of experiments for readers: data set, network, role and sizes.

    The column `factors` lists the experiment's factors of Cooling.
    """
    columns = [
        "experiment",
        "dataset",
        "network",
        "parameters",
        "role",
        "change",
        "train_images",
        "validation_images",
        "test_images",
        "epochs",
        "planned_epochs",
    ]
    rows = runs.select(CLASSIFICATION)
    cells = [name.rsplit("/", 2)[0] for name in cell_names(rows)]
    factors = rows.groupby("experiment")["factor"].agg(_listed)
    table = rows[columns].assign(cells=cells)
    table.insert(
        columns.index("change") + 1, "factors", rows["experiment"].map(factors)
    )
    return table.drop_duplicates("experiment").reset_index(drop=True)


def _listed(factors: pd.Series[float]) -> str:
    """The distinct factors in ascending order, as text."""
    return ", ".join(f"{factor:g}" for factor in sorted(factors.dropna().unique()))


def arms(runs: Runs) -> pd.DataFrame:
    """The table of arms for readers, with the settings of each distinct arm."""
    columns = [
        "arm",
        "mode",
        "factor",
        "max_temperature",
        "reset_temperature",
        "refit",
        "period",
        "optimizer_state",
        "loss",
        "gamma",
    ]
    rows = runs.select(CLASSIFICATION)[columns]
    return rows.drop_duplicates().reset_index(drop=True)

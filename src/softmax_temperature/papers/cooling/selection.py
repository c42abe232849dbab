"""The trainings that tables, figures and claims rest on, what became of them, and the words for both.

A training that diverged or got stuck is *lost*. Where numbers are shown it is in no mean; where gains are judged it
counts as guessing. What is lost is named beside the number either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import NamedTuple

import pandas as pd

from softmax_temperature.papers.cooling.records import Records
from softmax_temperature.papers.shared.sources import cell_of_each, cells_of
from softmax_temperature.stages.train_cooling import JUDGED

NO_COOLING, PERIODIC, SIMPLEST = "none", "periodic", "last_layer"
COOLED = ("distributed", PERIODIC, SIMPLEST)
MODES = MappingProxyType(
    {
        NO_COOLING: "No Cooling",
        "distributed": "Distributed",
        PERIODIC: "Periodically redistributed",
        SIMPLEST: "Last layer",
    }
)
"""The ways to cool, in the order of Table 1, with their printed names."""

NO_SCHEDULE, PIECEWISE = "none", "piecewise"
SMOOTH = ("cosine", "exponential_fast", "exponential_slow", "linear")
"""Schedules that change the learning rate after each batch (section 4.2)."""
SCHEDULES = MappingProxyType(
    {
        "cosine": "Cosine",
        "exponential_fast": "Exp Decay Fast",
        "exponential_slow": "Exp Decay Slow",
        "linear": "Linear",
        NO_SCHEDULE: "None",
        PIECEWISE: "Piecewise Const",
    }
)
"""The schedules in the order of Table 1, with their printed names."""

ACTIVATIONS = MappingProxyType({"crelu": "CReLU", "relu": "ReLU"})
CROSS_ENTROPY = "cross_entropy"
TABLE_1, TABLE_2, FIGURE_1, FIGURE_2, ABLATION, OURS = "table_1", "table_2", "figure_1", "figure_2", "ablation", "ours"
MAIN_ROLES = (TABLE_1, TABLE_2, FIGURE_1, FIGURE_2)
"""Experiments with the recipe of the paper's tables and figures."""

# Deviation: with which Cooling factor Tables 1 and 2 were made is not said; here it is 1, a full correction.
STANDARD_FACTOR = 1.0
WHOLE = 45_000  # Training images of CIFAR-10 from which on an experiment is the paper's.

RUN = ["experiment", "schedule", "arm", "seed"]
"""The names of a training."""
TRAINING, SEGMENTATION = "cooling/training", "cooling/segmentation"
"""The stages that the numbers come from, as the manifests of their cells name them."""
SETTING = ["dataset", "network", "activation"]
"""What is the same in experiments that differ only in their role."""

DIVERGED, STUCK = "diverged", "stuck"
# Deviation: the paper prints "divergence" and does not say how it is told (section 4.2, Table 2). Here a training has
# diverged when its loss, a logit, a weight, the norm of its gradients or a temperature is no longer finite, and also
# when its last accuracy on training images is at most so many times that of guessing although it was once above: the
# paper sets "diverged" against "converged". One that never was above, after any epoch, did not diverge from anything:
# it is called stuck.
CHANCE = 1.5


class Outcome(NamedTuple):
    """What became of one training; both false if it trained."""

    diverged: bool
    stuck: bool


def outcome(accuracies: Sequence[float], classes: int, *, is_finite: bool) -> Outcome:
    """What became of a training, from its accuracies on training images."""
    if not is_finite:
        return Outcome(diverged=True, stuck=False)
    limit = CHANCE / classes
    is_stuck = max(accuracies) <= limit
    return Outcome(diverged=accuracies[-1] <= limit and not is_stuck, stuck=is_stuck)


def experiments(records: Records) -> pd.DataFrame:
    """The experiments, in their order; texts that a CSV file lost, because they were empty, are empty again.

    `is_printed`: whether one is the paper's own, data and all.
    """
    table = records.experiments.copy()
    for column in ("change", "printed_model"):
        table[column] = table[column].astype(object).where(table[column].notna(), "")
    images = table.get("train_images", pd.Series(WHOLE, table.index))
    return table.assign(is_printed=(table["printed_model"] != "") & (images >= WHOLE))


def trainings(records: Records, *roles: str) -> pd.DataFrame:
    """The trainings of the experiments with some roles, lost ones too: columns of runs, experiments, arms, cells.

    `accuracy` and `ece` are means over the last epochs of the test split, missing in a lost training; `arm_place` is
    the arm's place among all arms. They are in the order of the roles, then of the experiments.
    """
    known = experiments(records)
    chosen = known[known["role"].isin(roles)]
    rank = chosen["role"].map({role: place for place, role in enumerate(roles)})
    chosen = chosen.iloc[rank.argsort(kind="stable")]
    arms = records.arms.assign(arm_place=range(len(records.arms)))
    rows = chosen.merge(records.runs, on="experiment").merge(arms, on="arm", how="left")
    rows = rows.astype({DIVERGED: bool, STUCK: bool}).join(_judged(records.history), on=RUN)
    rows.loc[is_lost(rows), ["accuracy", "ece"]] = None
    return rows.assign(cells=cell_of_each(TRAINING, rows, *RUN[:-1]))


def _judged(history: pd.DataFrame) -> pd.DataFrame:
    return last_epochs(history[history["split"] == "test"], RUN).groupby(RUN)[["accuracy", "ece"]].mean()


def last_epochs(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The last ten epochs of each training, or the last fifth of a shorter one: the last alone is twice as noisy."""
    last = rows.groupby(keys)["epoch"].transform("max")
    return rows[rows["epoch"] > last - (last // 5).clip(1, JUDGED)]


def is_lost(rows: pd.DataFrame) -> pd.Series[bool]:
    """Which trainings are lost."""
    lost: pd.Series[bool] = rows[DIVERGED] | rows[STUCK]
    return lost


def finished(rows: pd.DataFrame) -> pd.DataFrame:
    """The trainings that are not lost."""
    return rows[~is_lost(rows)]


def guessing(rows: pd.DataFrame, column: str = "accuracy") -> pd.Series[float]:
    """A column in which a lost training has the accuracy of guessing, 1 / classes."""
    values: pd.Series[float] = rows[column].where(~is_lost(rows), 1 / rows["classes"])
    return values


def joined(*notes: str) -> str:
    """The notes that say something, in one line."""
    return "; ".join(filter(None, notes))


def lost_by_mode(rows: pd.DataFrame, *modes: str) -> str:
    """How many trainings of some modes are lost, for instance "Last layer 1 of 3 diverged"; nothing if none is."""
    parts = []
    for mode in modes:
        some = rows[rows["mode"] == mode]
        counts = ((int(some[name].sum()), name) for name in (DIVERGED, STUCK))
        if lost := ", ".join(f"{count} of {len(some)} {name}" for count, name in counts if count):
            parts.append(f"{MODES[mode]} {lost}")
    return ", ".join(parts)


def guessing_note(rows: pd.DataFrame, *modes: str, counted: str = "guessing") -> str:
    """The same, for a number in which they count as guessing, or as what is said."""
    lost = lost_by_mode(rows, *modes)
    return f"counted as {counted}: {lost}" if lost else ""


def standard(rows: pd.DataFrame) -> pd.DataFrame:
    """The trainings that the tables are made from: no Cooling, and each mode with factor 1, once per epoch.

    They train with cross-entropy. Of several such arms of one mode in an experiment the first counts, and of several
    experiments that train the same the first.
    """
    return _one_each(rows[(rows["mode"] == NO_COOLING) | (rows["factor"] == STANDARD_FACTOR)])


def last_layer_factors(rows: pd.DataFrame) -> pd.DataFrame:
    """The trainings that Figure 1 is made from: last layer Cooling with any factor, chosen as by `standard`."""
    return _one_each(rows[rows["mode"] == SIMPLEST])


def _one_each(rows: pd.DataFrame) -> pd.DataFrame:
    per_epoch = (rows["mode"] == NO_COOLING) | (rows["period"].astype(str) == "epoch")
    rows = rows[per_epoch & (rows["loss"] == CROSS_ENTROPY)]
    first = rows.groupby(["experiment", "mode", "factor"], dropna=False)["arm_place"].transform("min")
    rows = rows[rows["arm_place"] == first]
    return rows.drop_duplicates([*SETTING, "schedule", "mode", "factor", "seed"]).reset_index(drop=True)


def figure_1_trainings(records: Records) -> pd.DataFrame:
    """The trainings of Figure 1: no Cooling, and last layer Cooling with every factor, where a factor beside 1 is."""
    rows = trainings(records, FIGURE_1, TABLE_1)
    # Deviation: the schedule of Figure 1 is not said. Its baseline and its best gain, 4.6 points, are those of Table 1
    # without a schedule.
    rows = rows[rows["schedule"] == NO_SCHEDULE]
    without, cooled = standard(rows[rows["mode"] == NO_COOLING]), last_layer_factors(rows)
    varied = cooled[cooled["factor"] != STANDARD_FACTOR][SETTING].drop_duplicates()
    return pd.concat([without, cooled]).merge(varied, on=SETTING)


def of_runs(table: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """The rows of a table of the records, for instance the history, that belong to some trainings."""
    return runs[[*RUN, "mode", *SETTING]].merge(table, on=RUN)


def cells_of_trainings(rows: pd.DataFrame) -> tuple[str, ...]:
    """The names of the cells of trainings; see `sources.cells_of`."""
    return cells_of(TRAINING, rows, *RUN[:-1])


def final_segmentation(records: Records) -> pd.DataFrame:
    """A row per U-Net: scores, means over its last epochs and, with `_last_epoch`, after the last; diverged, stuck.

    None counts as stuck: naming the most common class everywhere is no guess.
    """
    keys, scores = ["arm", "seed", "dataset", "classes"], ["mean_iou", "pixel_accuracy"]
    last = last_epochs(records.segmentation, keys[:2])
    rows = last.groupby(keys, sort=False)
    means = rows[scores].agg(_mean)
    ends = rows.tail(1).set_index(keys)[scores].add_suffix("_last_epoch")
    found = means.join(ends).reset_index()
    return found.assign(diverged=found["mean_iou"].isna(), stuck=False)


def _mean(values: pd.Series[float]) -> float:
    """Missing where one is: a training that diverged ends with such a row."""
    return float(values.mean(skipna=False))


def setting_title(setting: pd.Series[str]) -> str:
    """Data set and network as the project calls them."""
    return f"{setting['dataset']}, {setting['network']}"

"""The modes, schedules, arms and trainings that the tables, figures and claims rest on."""

from __future__ import annotations

from types import MappingProxyType

import pandas as pd

from softmax_temperature.papers.cooling.records import Records
from softmax_temperature.papers.shared.sources import cell_of_each, cells_of

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
PER_EPOCH = "epoch"  # The period of section 3.1.

RUN = ["experiment", "schedule", "arm", "seed"]
"""The names of a training."""
TRAINING, SEGMENTATION = "cooling/training", "cooling/segmentation"
"""The stages that the numbers come from, as the manifests of their cells name them."""
SETTING = ["dataset", "network", "activation"]
"""What is the same in experiments that differ only in their role."""

_TEXTS = ["change", "printed_model"]


def experiments(records: Records) -> pd.DataFrame:
    """The experiments, in their order; texts that a CSV file lost, because they were empty, are empty again."""
    table = records.experiments.copy()
    for column in _TEXTS:
        table[column] = table[column].astype(object).where(table[column].notna(), "")
    return table


def trainings(records: Records, *roles: str) -> pd.DataFrame:
    """The trainings of the experiments with some roles, lost ones too: columns of runs, experiments, arms, cells.

    They are in the order of the roles, then of the experiments. `arm_place` is the arm's place among all arms.
    """
    known = experiments(records)
    chosen = known[known["role"].isin(roles)]
    rank = chosen["role"].map({role: place for place, role in enumerate(roles)})
    chosen = chosen.iloc[rank.argsort(kind="stable")]
    arms = records.arms.assign(arm_place=range(len(records.arms)))
    rows = chosen.merge(records.runs, on="experiment").merge(arms, on="arm", how="left")
    rows = rows.astype({"diverged": bool, "stuck": bool})
    return rows.assign(cells=cell_of_each(TRAINING, rows, *RUN[:-1]))


def standard(rows: pd.DataFrame) -> pd.DataFrame:
    """The trainings that the tables are made from: no Cooling, and each mode with factor 1, once per epoch.

    They train with cross-entropy. Of several such arms of one mode in an experiment the first counts, and of several
    experiments that train the same the first.
    """
    return _one_each(rows[_is_plain(rows) & ((rows["mode"] == NO_COOLING) | (rows["factor"] == STANDARD_FACTOR))])


def last_layer_factors(rows: pd.DataFrame) -> pd.DataFrame:
    """The trainings that Figure 1 is made from: last layer Cooling with any factor, chosen as by `standard`."""
    return _one_each(rows[_is_plain(rows) & (rows["mode"] == SIMPLEST)])


def _is_plain(rows: pd.DataFrame) -> pd.Series[bool]:
    per_epoch = (rows["mode"] == NO_COOLING) | (rows["period"].astype(str) == PER_EPOCH)
    plain: pd.Series[bool] = per_epoch & (rows["loss"] == CROSS_ENTROPY)
    return plain


def _one_each(rows: pd.DataFrame) -> pd.DataFrame:
    first = rows.groupby(["experiment", "mode", "factor"], dropna=False)["arm_place"].transform("min")
    rows = rows[rows["arm_place"] == first]
    return rows.drop_duplicates([*SETTING, "schedule", "mode", "factor", "seed"]).reset_index(drop=True)


def of_runs(table: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """The rows of a table of the records, for instance the history, that belong to some trainings."""
    return runs[[*RUN, "mode", *SETTING]].merge(table, on=RUN)


def cells_of_trainings(rows: pd.DataFrame) -> tuple[str, ...]:
    """The names of the cells of trainings; see `sources.cells_of`."""
    return cells_of(TRAINING, rows, *RUN[:-1])


def final_segmentation(records: Records) -> pd.DataFrame:
    """The rows of `segmentation` after the last epoch of each training, with the columns `diverged` and `stuck`.

    None counts as stuck: naming the most common class everywhere is no guess.
    """
    table = records.segmentation
    last = table[table["epoch"] == table.groupby(["arm", "seed"])["epoch"].transform("max")]
    return last.assign(diverged=last["mean_iou"].isna(), stuck=False)


def setting_title(setting: pd.Series[str]) -> str:
    """Data set and network as the project calls them."""
    return f"{setting['dataset']}, {setting['network']}"

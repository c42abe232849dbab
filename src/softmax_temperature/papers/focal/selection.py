"""The arms, tasks and runs that the tables, figures and claims rest on."""

from __future__ import annotations

from types import MappingProxyType

import pandas as pd

from softmax_temperature.papers.focal.records import Records

REFERENCE = "CE"
MAIN_ARMS = (REFERENCE, "Brier", "MMCE", "LS-0.05", "FL-3", "FLSD-53")
"""The methods of Table 1, in its order."""
FIXED_FOCAL_ARMS = ("FL-1", "FL-2", "FL-3")
FOCAL_ARMS = (*FIXED_FOCAL_ARMS, "FLSc-531", "FLSc-532", "FLSD-532", "FLSD-53")
"""The methods of Tables F.3 to F.6, in their order."""
ARMS = (REFERENCE, "Brier", "MMCE", "LS-0.05", *FOCAL_ARMS)
"""Every method of the paper."""
WRITTEN_ARMS = MappingProxyType({"MMCE-written": "MMCE"})
"""Methods as the text has them, where the main ones follow the authors' code: they are in the ablation alone."""
SCALED = "ece"
"""The criterion of the temperature behind every number "after scaling": section 5 reports this one."""

RUN = ["task", "arm", "seed"]
"""The names of a training."""
TRAINING, EVALUATION, TRANSLATION = "focal/training", "focal/evaluation", "focal/translation"
"""The stages that the numbers come from, as the manifests of their cells name them."""
SOURCES = MappingProxyType({"runs": EVALUATION, "ood": EVALUATION, "early_stopping": TRAINING})
"""Which of them the tables of the records come from that the paper's are made of."""

_NEW = ("differs", "embeddings")
_MAY_BE_EMPTY = ("printed_dataset", "printed_network", "variant", "variant_of", *_NEW)


def other_arms(records: Records) -> list[str]:
    """Arms that the paper does not have: losses that a user added."""
    known = {*ARMS, *WRITTEN_ARMS}
    return [arm for arm in records.trainings["arm"].unique() if arm not in known]


def tasks(records: Records) -> pd.DataFrame:
    """The tasks, in their order; texts that a CSV file could not hold, because they are empty, are empty again.

    Results that are older than the tasks on texts lack the columns `differs` and `embeddings`: they are empty.
    """
    table = records.tasks.assign(**{name: records.tasks.get(name) for name in _NEW})
    for column in _MAY_BE_EMPTY:
        table[column] = table[column].astype(object).where(table[column].notna(), "")
    return table


def main_tasks(records: Records) -> pd.DataFrame:
    """The tasks with the main recipe."""
    table = tasks(records)
    return table[table["variant"] == ""].reset_index(drop=True)


def text_tasks(records: Records) -> pd.DataFrame:
    """The tasks on texts with the main recipe."""
    table = main_tasks(records)
    return table[table["embeddings"] != ""].reset_index(drop=True)


def finished(records: Records, name: str) -> pd.DataFrame:
    """The rows of one of the records' tables whose training did not diverge."""
    table: pd.DataFrame = getattr(records, name)
    trainings = records.trainings
    return table.merge(trainings.loc[~trainings["diverged"].astype(bool), RUN], on=RUN)


def of_task(table: pd.DataFrame, task: str, arms: tuple[str, ...]) -> pd.DataFrame:
    """The rows of some arms on one task."""
    return table[(table["task"] == task) & table["arm"].isin(arms)]

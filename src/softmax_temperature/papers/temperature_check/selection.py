"""The trainings that count for an inverse temperature: those with the learning rate that validation data prefer.

Where fresh seeds confirm that rate, they count, and those that it was chosen on do not.
"""

import numpy as np
import pandas as pd

from softmax_temperature.papers.shared.sources import cell_of_each
from softmax_temperature.papers.temperature_check.records import Records
from softmax_temperature.params.temperature_check import CONFIRMED, COOLED, PLAIN

GROUP = ["sweep", "start", "inverse_temperature"]
ACCURACIES = ("validation_accuracy", "test_accuracy")
UNTEMPERED = 1.0
TRAINING, CONFIRMATION = "temperature_check/training", "temperature_check/confirmation"
"""The stages that they come from, as the manifests of their cells name them."""


def trainings(records: Records) -> pd.DataFrame:
    """Every training with the facts about its sweep, and its cells; one that diverged is as accurate as guessing.

    `confirms` says whether it is a confirmation; `start` is that of the network.
    """
    table = records.runs.merge(records.sweeps, on="sweep").astype({"diverged": bool})
    for name in ACCURACIES:
        table[name] = table[name].where(~table["diverged"], 1 / table["classes"])
    start = table["start"].astype(str)
    table = table.assign(confirms=start.str.startswith(CONFIRMED), start=start.str.removeprefix(CONFIRMED))
    cells = cell_of_each(TRAINING, table, "sweep", "inverse_temperature", "learning_rate", "start")
    fresh = cell_of_each(CONFIRMATION, table, "sweep", "inverse_temperature", "start")
    return table.assign(cells=np.where(table["confirms"], fresh, cells))


def chosen(rows: pd.DataFrame) -> pd.DataFrame:
    """The trainings that count of each sweep, start and inverse temperature.

    They are the confirmations; without those, the trainings with the learning rate of the highest mean accuracy on
    validation data over its seeds, of equal ones the lowest. `interior` says whether it is inside the grid of rates.
    """
    tuned = rows[~rows["confirms"]].groupby([*GROUP, "learning_rate"], sort=False)
    means = tuned["validation_accuracy"].mean().reset_index()
    means = means.sort_values(["validation_accuracy", "learning_rate"], ascending=[False, True], kind="stable")
    rates = means.groupby(GROUP)["learning_rate"].agg(best="first", low="min", high="max")
    rows = rows.merge(rates.reset_index(), on=GROUP)
    rows["interior"] = (rows["learning_rate"] > rows["low"]) & (rows["learning_rate"] < rows["high"])
    is_confirmed = rows.groupby(GROUP)["confirms"].transform("any")
    counts = rows["confirms"].where(is_confirmed, rows["learning_rate"] == rows["best"])
    return rows[counts.astype(bool)].drop(columns=["best", "low", "high"])


def alone(records: Records, start: str = PLAIN) -> pd.DataFrame:
    """The chosen trainings of networks on their own: with their own start, and not cooled unless `start` says so."""
    rows = trainings(records)
    return chosen(rows[rows["start"] == start])


def several_norms(records: Records) -> pd.DataFrame:
    """The chosen trainings of the sweeps over norms of the logits at the start."""
    rows, counts = _with_a_norm(records)
    return chosen(rows[counts["start"] > 1])


def same_start(records: Records) -> pd.DataFrame:
    """The chosen trainings of the sweeps over inverse temperatures with one norm of the tempered logits at the start.

    Of one seed all of them start as the same function, whatever the inverse temperature.
    """
    rows, counts = _with_a_norm(records)
    return chosen(rows[(counts["start"] == 1) & (counts["inverse_temperature"] > 1)])


def _with_a_norm(records: Records) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The trainings whose start has a given norm, and how many values their sweep has."""
    rows = trainings(records)
    rows = rows[~rows["start"].isin([PLAIN, COOLED])]
    return rows, rows.groupby("sweep")[["start", "inverse_temperature"]].transform("nunique")


def by_sweep(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The rows of each sweep, after its title."""
    groups = [some for _, some in rows.groupby("sweep", sort=False)]
    return [(f"{some['architecture'].iloc[0]}, {some['dataset'].iloc[0]}", some) for some in groups]


def by_seed(rows: pd.DataFrame, column: str, across: str = "inverse_temperature") -> pd.DataFrame:
    """The numbers of a column by seed, and by inverse temperature or another name `across`."""
    return rows.pivot(index="seed", columns=across, values=column)

"""The trainings that count for an inverse temperature: those with the learning rate that validation data prefer.

Where fresh seeds confirm that rate, they count, and those that it was chosen on do not.
"""

from typing import NamedTuple

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


def tuned(rows: pd.DataFrame) -> pd.DataFrame:
    """The trainings that learning rates are chosen on."""
    some: pd.DataFrame = rows[~rows["confirms"]]
    return some


def chosen(rows: pd.DataFrame) -> pd.DataFrame:
    """The trainings that count of each sweep, start and inverse temperature.

    They are the confirmations; without those, the trainings with the learning rate of the highest mean accuracy on
    validation data over its seeds, of equal ones the lowest. `interior` says whether it is inside the grid of rates.
    """
    means = tuned(rows).groupby([*GROUP, "learning_rate"], sort=False)["validation_accuracy"].mean().reset_index()
    means = means.sort_values(["validation_accuracy", "learning_rate"], ascending=[False, True], kind="stable")
    rates = means.groupby(GROUP)["learning_rate"].agg(best="first", low="min", high="max")
    rows = rows.merge(rates.reset_index(), on=GROUP)
    rows["interior"] = (rows["learning_rate"] > rows["low"]) & (rows["learning_rate"] < rows["high"])
    is_confirmed = rows.groupby(GROUP)["confirms"].transform("any")
    counts = rows["confirms"].where(is_confirmed, rows["learning_rate"] == rows["best"])
    found: pd.DataFrame = rows[counts.astype(bool)].drop(columns=["best", "low", "high"])
    return found


def alone(records: Records) -> pd.DataFrame:
    """The chosen trainings of networks on their own: with their own start, and not cooled."""
    rows = trainings(records)
    return chosen(rows[rows["start"] == PLAIN])


def cooled(records: Records) -> pd.DataFrame:
    """The chosen trainings with Cooling."""
    rows = trainings(records)
    return chosen(rows[rows["start"] == COOLED])


def several_norms(records: Records) -> pd.DataFrame:
    """The chosen trainings of the sweeps over norms of the logits at the start."""
    rows = _with_a_norm(records)
    return chosen(rows[rows.groupby("sweep")["start"].transform("nunique") > 1])


def same_start(records: Records) -> pd.DataFrame:
    """The chosen trainings of the sweeps over inverse temperatures with one norm of the tempered logits at the start.

    Of one seed all of them start as the same function, whatever the inverse temperature.
    """
    rows = _with_a_norm(records)
    rows = rows[rows.groupby("sweep")["start"].transform("nunique") == 1]
    return chosen(rows[rows.groupby("sweep")["inverse_temperature"].transform("nunique") > 1])


def _with_a_norm(records: Records) -> pd.DataFrame:
    rows = trainings(records)
    some: pd.DataFrame = rows[~rows["start"].isin([PLAIN, COOLED])]
    return some


class Best(NamedTuple):
    """The inverse temperature that validation data prefer in a sweep, the ends of what is as good, and the worst."""

    sweep: str
    best: float
    low: float
    high: float
    worst: float


def best_temperatures(rows: pd.DataFrame) -> list[Best]:
    """The best inverse temperature of each sweep, by mean accuracy on validation data.

    As good are those that are at most one standard error of the difference below, paired by seed; with one seed, the
    best alone.

    Args:
        rows: as `alone` returns them.
    """
    found = []
    for sweep, some in rows.groupby("sweep", sort=False):
        table = some.pivot(index="seed", columns="inverse_temperature", values="validation_accuracy")
        temperatures, means = table.columns.to_numpy(float), table.mean().to_numpy()
        best = int(means.argmax())
        gaps = table.sub(table.iloc[:, best], axis=0)
        close = (gaps.mean() >= -gaps.sem().fillna(0.0)).to_numpy()  # The best has a gap of exactly 0.
        good, worst = temperatures[close], temperatures[means.argmin()]
        found.append(Best(str(sweep), float(temperatures[best]), float(good.min()), float(good.max()), float(worst)))
    return found


def at(rows: pd.DataFrame, sweep: str, inverse_temperature: float) -> pd.DataFrame:
    """The trainings of one sweep at one inverse temperature, by seed."""
    some = rows[(rows["sweep"] == sweep) & (rows["inverse_temperature"] == inverse_temperature)]
    return some.set_index("seed").sort_index()


def spreads(rows: pd.DataFrame) -> pd.DataFrame:
    """Standard deviation of test accuracy over `runs` seeds of each sweep and inverse temperature, as `spread`.

    There is none for a single seed, nor where all diverged: they agree because none of them learned.
    """
    groups = rows.groupby(["sweep", "inverse_temperature"], sort=False)
    found = groups.agg(spread=("test_accuracy", "std"), runs=("seed", "size"), lost=("diverged", "all")).reset_index()
    return found[~found["lost"]].dropna(subset="spread").drop(columns="lost")


def titles(rows: pd.DataFrame) -> dict[str, str]:
    """The name of each sweep for a reader."""
    named = rows.drop_duplicates("sweep")
    return {str(row.sweep): f"{row.architecture}, {row.dataset}" for row in named.itertuples()}

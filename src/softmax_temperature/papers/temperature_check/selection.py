"""The trainings that count for an inverse temperature: those with the learning rate that validation data prefer.

Where fresh seeds confirm that rate, they count, and those that it was chosen on do not.
"""

from functools import partial

import numpy as np
import pandas as pd

from softmax_temperature.papers.shared.sources import cell_of_each
from softmax_temperature.papers.shared.statistics import is_part
from softmax_temperature.papers.temperature_check.records import Records
from softmax_temperature.params.temperature_check import CONFIRMED, COOLED, PLAIN

GROUP = ["sweep", "start", "inverse_temperature"]
TRAINING = "temperature_check/training"  # The stage, as the manifests of its cells name it.
DATA = ("cifar10", "imagenet", "imagenet64", "imdb")
"""The paper's data sets; parts of them, as "cifar10-5000", count as the paper's too."""
NORMS, SAME_START = "norms", "same start"


def trainings(records: Records) -> pd.DataFrame:
    """Every training, with whether it `confirms`, and whether the paper has its data; a diverged one is guessing."""
    table = records.runs.merge(records.sweeps, on="sweep").astype({"diverged": bool})
    for name in ("validation_accuracy", "test_accuracy"):
        table[name] = table[name].where(~table["diverged"], 1 / table["classes"])
    start = table["start"].astype(str)
    table = table.assign(confirms=start.str.startswith(CONFIRMED), start=start.str.removeprefix(CONFIRMED))
    cells = cell_of_each(TRAINING, table, "sweep", "inverse_temperature", "learning_rate", "start")
    fresh = cell_of_each("temperature_check/confirmation", table, "sweep", "inverse_temperature", "start")
    own = table["dataset"].map(partial(is_part, of=DATA)).astype(bool)
    return table.assign(cells=np.where(table["confirms"], fresh, cells), own=own)


def chosen(records: Records, kind: str = PLAIN) -> pd.DataFrame:
    """The trainings that count of each sweep, start and inverse temperature.

    PLAIN and COOLED are networks with their own start, NORMS sweeps over norms of the logits at the start, SAME_START
    sweeps over inverse temperatures with one such norm. What counts are the confirmations; without those, the trainings
    with the rate that validation data prefer, of equal ones the lowest. `interior`: it is inside the grid of rates.
    """
    rows = trainings(records)
    of_sweep = rows.groupby("sweep")[["start", "inverse_temperature"]].transform("nunique")
    several, given = of_sweep["start"] > 1, ~rows["start"].isin([PLAIN, COOLED])
    kinds = {NORMS: given & several, SAME_START: given & ~several & (of_sweep["inverse_temperature"] > 1)}
    rows = rows[kinds.get(kind, rows["start"] == kind)]
    means = rows[~rows["confirms"]].groupby([*GROUP, "learning_rate"])["validation_accuracy"].mean().reset_index()
    means = means.sort_values(["validation_accuracy", "learning_rate"], ascending=[False, True], kind="stable")
    rates = means.groupby(GROUP)["learning_rate"].agg(best="first", low="min", high="max")
    rows = rows.merge(rates.reset_index(), on=GROUP)
    rows["interior"] = rows["learning_rate"].between(rows["low"], rows["high"], inclusive="neither")
    is_confirmed = rows.groupby(GROUP)["confirms"].transform("any")
    counts = rows["confirms"].where(is_confirmed, rows["learning_rate"] == rows["best"])
    return rows[counts.astype(bool)].drop(columns=["best", "low", "high"])


def by_sweep(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The rows of each sweep, after its title."""
    groups = rows.groupby("sweep", sort=False)
    return [(f"{some['architecture'].iloc[0]}, {some['dataset'].iloc[0]}", some) for _, some in groups]


def by_seed(rows: pd.DataFrame, column: str, across: str = "inverse_temperature") -> pd.DataFrame:
    """The numbers of a column by seed, and by inverse temperature or another name `across`."""
    return rows.pivot(index="seed", columns=across, values=column)

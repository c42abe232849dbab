"""The records of the paper in `results/<profile>/temperature_check/`, and the trainings
among them that count.

A sweep is a network on a data set; it is trained at several inverse temperatures with
several rescaled learning rates.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from softmax_temperature.papers.shared.records import read_records as read
from softmax_temperature.papers.shared.sources import cell_of_each
from softmax_temperature.papers.shared.statistics import is_part
from softmax_temperature.params.temperature_check import CONFIRMED, COOLED, PLAIN
from softmax_temperature.stages import CONFIRMATION, SWEEPS, label
from softmax_temperature.stages.choice import best_rate

SLUG = "temperature_check"
NAMES = ("sweep", "inverse_temperature", "learning_rate", "start", "seed")
"""What names a training (`params.temperature_check.Training`), in every table;
learning_rate is the rescaled one.
"""
GROUP = ["sweep", "start", "inverse_temperature"]
TRAINING = label(SWEEPS)
DATA = (
    "cifar10",
    "imagenet",
    "imagenet64",
    "imdb",
)  # Parts of them count as the paper's too.
NORMS, SAME_START = "norms", "same start"


@dataclass(frozen=True)
class Records:
    """The tables, by the name of their file, with what each row is about.

    runs: training: initial_logit_norm (mean over validation samples of the norm of the
        tempered logits before the first step), metrics (empty where it diverged),
        temperature (that post-hoc scaling finds for the tempered logits), scaled_nll
        and scaled_ece (at that temperature), cooled_temperature (Cooling's last),
        correlation (of a pair).
    sweeps: sweep. history: training × epoch (from 1) × split.
    heuristic: training at inverse temperature 1: what the heuristic of
        classifier_temperature predicts, and if inside.
    early_curves, early_norms: the theory of early learning, see `early_tables`.
    """

    runs: pd.DataFrame
    sweeps: pd.DataFrame
    history: pd.DataFrame
    heuristic: pd.DataFrame
    early_curves: pd.DataFrame
    early_norms: pd.DataFrame


read_records = partial(read, Records)
"""Reads the tables back from the paper's folder."""


def trainings(records: Records) -> pd.DataFrame:
    """Every training, with whether it `confirms`, and whether the paper has its data; a
    diverged one is guessing.
    """
    table = records.runs.merge(records.sweeps, on="sweep").astype({"diverged": bool})
    for name in ("validation_accuracy", "test_accuracy"):
        table[name] = table[name].where(~table["diverged"], 1 / table["classes"])
    start = table["start"].astype(str)
    table = table.assign(
        confirms=start.str.startswith(CONFIRMED),
        start=start.str.removeprefix(CONFIRMED),
    )
    cells = cell_of_each(
        TRAINING, table, "sweep", "inverse_temperature", "learning_rate", "start"
    )
    fresh = cell_of_each(
        label(CONFIRMATION), table, "sweep", "inverse_temperature", "start"
    )
    own = table["dataset"].map(partial(is_part, of=DATA)).astype(bool)
    return table.assign(cells=np.where(table["confirms"], fresh, cells), own=own)


def chosen(records: Records, kind: str = PLAIN) -> pd.DataFrame:
    """The trainings that count of each sweep, start and inverse temperature.

    PLAIN and COOLED are networks with their own start, NORMS sweeps over norms of the
    logits at the start, SAME_START sweeps over inverse temperatures with one such norm.
    What counts are the confirmations; without those, the trainings with the rate that
    validation data prefer, of equal ones the lowest. `interior`: it is inside the grid
    of rates.
    """
    rows = trainings(records)
    of_sweep = rows.groupby("sweep")[["start", "inverse_temperature"]].transform(
        "nunique"
    )
    several, given = of_sweep["start"] > 1, ~rows["start"].isin([PLAIN, COOLED])
    kinds = {
        NORMS: given & several,
        SAME_START: given & ~several & (of_sweep["inverse_temperature"] > 1),
    }
    rows = rows[kinds.get(kind, rows["start"] == kind)]
    tried = rows[~rows["confirms"]].groupby(GROUP)
    rates = tried["learning_rate"].agg(low="min", high="max")
    by_rate = (
        one.groupby("learning_rate")["validation_accuracy"].agg(list).to_dict()
        for _, one in tried
    )
    rates["best"] = [*map(best_rate, by_rate)]
    rows = rows.merge(rates.reset_index(), on=GROUP)
    rows["interior"] = rows["learning_rate"].between(
        rows["low"], rows["high"], inclusive="neither"
    )
    is_confirmed = rows.groupby(GROUP)["confirms"].transform("any")
    counts = rows["confirms"].where(is_confirmed, rows["learning_rate"] == rows["best"])
    return rows[counts.astype(bool)].drop(columns=["best", "low", "high"])


def by_sweep(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """The rows of each sweep, after its title."""
    groups = rows.groupby("sweep", sort=False)
    return [
        (f"{some['architecture'].iloc[0]}, {some['dataset'].iloc[0]}", some)
        for _, some in groups
    ]


def by_seed(
    rows: pd.DataFrame, column: str, across: str = "inverse_temperature"
) -> pd.DataFrame:
    """The numbers of a column by seed, and by inverse temperature or another name
    `across`.
    """
    return rows.pivot(index="seed", columns=across, values=column)

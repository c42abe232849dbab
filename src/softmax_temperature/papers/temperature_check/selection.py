"""Which trainings stand for an inverse temperature: those with the learning rate that validation data prefer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from softmax_temperature.params.temperature_check import COOLED, PLAIN

if TYPE_CHECKING:
    from softmax_temperature.papers.temperature_check.records import Records

GROUP = ["sweep", "start", "inverse_temperature"]
ACCURACIES = ("validation_accuracy", "test_accuracy")
UNTEMPERED = 1.0


def trainings(records: Records) -> pd.DataFrame:
    """Every training with the facts about its sweep; accuracies of one that diverged are those of guessing."""
    table = records.runs.merge(records.sweeps, on="sweep").astype({"diverged": bool})
    for name in ACCURACIES:
        table[name] = table[name].where(~table["diverged"], 1 / table["classes"])
    return table


def chosen(rows: pd.DataFrame) -> pd.DataFrame:
    """Of each sweep, start and inverse temperature the trainings with the best learning rate.

    The best has the highest mean accuracy on validation data over its seeds; of equal ones the lowest.

    Args:
        rows: as `trainings` returns them.
    """
    means = rows.groupby([*GROUP, "learning_rate"], sort=False)["validation_accuracy"].mean().reset_index()
    means = means.sort_values(["validation_accuracy", "learning_rate"], ascending=[False, True], kind="stable")
    return rows.merge(means.drop_duplicates(GROUP)[[*GROUP, "learning_rate"]], on=[*GROUP, "learning_rate"])


def alone(records: Records) -> pd.DataFrame:
    """The chosen trainings of networks on their own: neither pairs nor cooled ones."""
    rows = trainings(records)
    return chosen(rows[rows["start"] == PLAIN])


def cooled(records: Records) -> pd.DataFrame:
    """The chosen trainings with Cooling."""
    rows = trainings(records)
    return chosen(rows[rows["start"] == COOLED])


def pairs(records: Records) -> pd.DataFrame:
    """The chosen trainings of correlated pairs."""
    rows = trainings(records)
    return chosen(rows[rows["correlation"].notna()])


def best_temperatures(rows: pd.DataFrame) -> pd.DataFrame:
    """The best inverse temperature of each sweep, and those that are as good.

    The best has the highest mean accuracy on validation data. As good are those whose mean is at most one standard
    error of its difference below, seed by seed; with one seed, the best alone.

    Args:
        rows: as `alone` returns them.

    Returns:
        Columns sweep, best, low, high (the ends of what is as good), worst (the lowest mean on validation data).
    """
    found = []
    for sweep, some in rows.groupby("sweep", sort=False):
        table = some.pivot(index="seed", columns="inverse_temperature", values="validation_accuracy")
        means = table.mean()
        best = float(means.idxmax())
        gaps = table.sub(table[best], axis=0)
        close = (gaps.mean() >= -gaps.sem().fillna(0.0)) | (means == means[best])
        good = [float(value) for value in means.index[close]]
        worst = float(means.idxmin())
        found.append({"sweep": sweep, "best": best, "low": min(good), "high": max(good), "worst": worst})
    return pd.DataFrame(found, columns=["sweep", "best", "low", "high", "worst"])


def at(rows: pd.DataFrame, sweep: str, inverse_temperature: float) -> pd.DataFrame:
    """The trainings of one sweep at one inverse temperature, by seed."""
    some = rows[(rows["sweep"] == sweep) & (rows["inverse_temperature"] == inverse_temperature)]
    return some.set_index("seed").sort_index()


def titles(rows: pd.DataFrame) -> dict[str, str]:
    """What a reader calls each sweep."""
    named = rows.drop_duplicates("sweep")
    return {str(row.sweep): f"{row.architecture}, {row.dataset}" for row in named.itertuples()}

"""The tables of the paper's practical part; its own are not at hand, so there is nothing printed beside them."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from softmax_temperature.papers.shared.sources import together
from softmax_temperature.papers.temperature_check.selection import (
    UNTEMPERED,
    alone,
    at,
    best_temperatures,
    cooled,
    pairs,
    trainings,
)
from softmax_temperature.params.temperature_check import PLAIN

if TYPE_CHECKING:
    from softmax_temperature.papers.temperature_check.records import Records

PERCENT = 100
PLACE = ["sweep", "architecture", "dataset"]


def accuracies(records: Records) -> pd.DataFrame:
    """Accuracy at each inverse temperature, with the learning rate that validation data prefer.

    Columns sweep, architecture, dataset, inverse_temperature, learning_rate (rescaled), runs, diverged, validation and
    test (means), test_sd, test_best, gain (mean difference to inverse temperature 1, by seed), gain_sd, cells.
    """
    rows = alone(records)
    reference = rows[rows["inverse_temperature"] == UNTEMPERED].set_index(["sweep", "seed"])
    rows = rows.join(reference[["test_accuracy", "cells"]].add_suffix("_at_1"), on=["sweep", "seed"])
    rows["gain"] = rows["test_accuracy"] - rows["test_accuracy_at_1"]
    rows["cells"] = [together(cells.dropna()) for _, cells in rows[["cells", "cells_at_1"]].iterrows()]
    return _summary(rows, [*PLACE, "inverse_temperature", "learning_rate"])


def logit_norms(records: Records) -> pd.DataFrame:
    """Accuracy of correlated pairs: one inverse temperature, logits of different size at the start.

    Columns as those of `accuracies`, without gains, with correlation and initial_logit_norm (mean).
    """
    rows = pairs(records).assign(gain=np.nan)
    keys = [*PLACE, "inverse_temperature", "correlation", "learning_rate"]
    norms = rows.groupby(keys, sort=False)["initial_logit_norm"].mean().rename("initial_logit_norm")
    table = _summary(rows, keys).drop(columns=["gain", "gain_sd"])
    return table.merge(norms.reset_index(), on=keys) if len(table) else table.assign(initial_logit_norm=pd.Series())


def confidence(records: Records) -> pd.DataFrame:
    """Post-hoc temperature scaling of each chosen training: what of the differences is confidence.

    Columns sweep, architecture, dataset, inverse_temperature, temperature (geometric mean over the seeds that have
    one), at_bound (how many have none), confidence, test_accuracy, test_ece, scaled_ece, test_nll, scaled_nll (means),
    cells.
    """
    rows = alone(records)
    rows = rows[~rows["diverged"]]
    bound = rows["at_bound"].astype(bool)
    rows = rows.assign(at_bound=bound, logarithm=np.log(rows["temperature"].astype(float).where(~bound)))
    means = ["confidence", "test_accuracy", "test_ece", "scaled_ece", "test_nll", "scaled_nll"]
    grouped = rows.groupby([*PLACE, "inverse_temperature"], sort=False)
    table = grouped[means].mean()
    table.insert(0, "temperature", np.exp(grouped["logarithm"].mean()))
    table.insert(1, "at_bound", grouped["at_bound"].sum())
    return table.assign(cells=grouped["cells"].agg(together)).reset_index()


def learning_rates(records: Records) -> pd.DataFrame:
    """Accuracy on validation data over the whole grid.

    Columns sweep, architecture, dataset, inverse_temperature, learning_rate, runs, diverged, validation (mean), cells.
    """
    rows = trainings(records)
    rows = rows[rows["start"] == PLAIN]
    grouped = rows.groupby([*PLACE, "inverse_temperature", "learning_rate"], sort=False)
    return grouped.agg(
        runs=("seed", "size"),
        diverged=("diverged", "sum"),
        validation=("validation_accuracy", "mean"),
        cells=("cells", together),
    ).reset_index()


def three_temperatures(records: Records) -> pd.DataFrame:
    """Three inverse temperatures of one network, and a fourth that is predicted for its features.

    Columns sweep, architecture, dataset; training_best (with training_low and training_high, what is as good);
    post_hoc (the inverse of the temperature that scales the logits of a network trained at 1), cooling (likewise, what
    Cooling ends with), heuristic (prediction of classifier_temperature's heuristic), cells. Geometric means over seeds;
    empty where there is none.
    """
    rows, cold, predictions = alone(records), cooled(records), records.heuristic
    found = []
    for place in best_temperatures(rows):
        swept = rows[rows["sweep"] == place.sweep]
        own, own_cold = (at(each, place.sweep, UNTEMPERED) for each in (rows, cold))
        about = predictions.merge(own.reset_index()[["sweep", "learning_rate", "seed"]])
        found.append(
            {
                **swept.iloc[0][PLACE],
                "training_best": place.best,
                "training_low": place.low,
                "training_high": place.high,
                "post_hoc": 1 / _geometric(own.loc[~own["at_bound"].eq(True), "temperature"]),
                "cooling": 1 / _geometric(own_cold["cooled_temperature"]),
                "heuristic": _geometric(about["predicted"]),
                "cells": together([*swept["cells"], *own_cold["cells"]]),
            }
        )
    columns = [*PLACE, "training_best", "training_low", "training_high", "post_hoc", "cooling", "heuristic", "cells"]
    return pd.DataFrame(found, columns=columns)


TABLES: MappingProxyType[str, Callable[[Records], pd.DataFrame]] = MappingProxyType(
    {
        "accuracies": accuracies,
        "logit_norms": logit_norms,
        "confidence": confidence,
        "learning_rates": learning_rates,
        "three_temperatures": three_temperatures,
    }
)


def _summary(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    grouped = rows.groupby(keys, sort=False)
    return grouped.agg(
        runs=("seed", "size"),
        diverged=("diverged", "sum"),
        validation=("validation_accuracy", "mean"),
        test=("test_accuracy", "mean"),
        test_sd=("test_accuracy", "std"),
        test_best=("test_accuracy", "max"),
        gain=("gain", "mean"),
        gain_sd=("gain", "std"),
        cells=("cells", together),
    ).reset_index()


def _geometric(values: pd.Series[float]) -> float:
    """The geometric mean; nan of nothing."""
    known = values.dropna().to_numpy(float)
    return float(np.exp(np.log(known).mean())) if len(known) else float("nan")

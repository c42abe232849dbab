"""The tables of the paper's practical part; we do not have its own, so there is nothing
printed beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.shared.comparison import mean_and_sd
from softmax_temperature.papers.shared.sources import together
from softmax_temperature.papers.temperature_check.early_learning import early_slopes
from softmax_temperature.papers.temperature_check.records import (
    NORMS,
    SAME_START,
    Records,
    by_seed,
    chosen,
    trainings,
)
from softmax_temperature.params.temperature_check import COOLED, PLAIN

PLACE = ["sweep", "architecture", "dataset"]
_RUNS = {
    "runs": ("seed", "size"),
    "diverged": ("diverged", "sum"),
    "validation": ("validation_accuracy", "mean"),
}
_TEST = {**mean_and_sd("test", "test_accuracy"), "test_best": ("test_accuracy", "max")}
_CELLS = {"cells": ("cells", together)}
_MEANS = (
    "confidence",
    "test_accuracy",
    "test_ece",
    "scaled_ece",
    "test_nll",
    "scaled_nll",
)


def accuracies(records: Records) -> pd.DataFrame:
    """Accuracy at each inverse temperature, with the rate that validation data prefer;
    gains by seed over 1.
    """
    rows = pd.concat([chosen(records), chosen(records, SAME_START)], ignore_index=True)
    reference = rows[rows["inverse_temperature"] == 1].set_index(["sweep", "seed"])
    rows = rows.join(
        reference[["test_accuracy", "cells"]].add_suffix("_at_1"), on=["sweep", "seed"]
    )
    rows["gain"] = rows["test_accuracy"] - rows["test_accuracy_at_1"]
    rows["cells"] = [
        together(cells.dropna())
        for _, cells in rows[["cells", "cells_at_1"]].iterrows()
    ]
    return _grouped(
        rows, "learning_rate", **_RUNS, **_TEST, **mean_and_sd("gain"), **_CELLS
    )


def logit_norms(records: Records) -> pd.DataFrame:
    """Accuracy at one inverse temperature with logits of different size at the start,
    of pairs by correlation.
    """
    numbers: dict[str, Any] = {
        **_RUNS,
        **_TEST,
        **_CELLS,
        "initial_logit_norm": ("initial_logit_norm", "mean"),
    }
    rows = chosen(records, NORMS)
    return _grouped(rows, "correlation", "learning_rate", "start", **numbers).drop(
        columns="start"
    )


def confidence(records: Records) -> pd.DataFrame:
    """Post-hoc scaling of each chosen training; its temperature is the geometric mean
    over those not `at_bound`.
    """
    rows = chosen(records)
    rows = rows[~rows["diverged"]]
    bound = rows["at_bound"].astype(bool)
    rows = rows.assign(
        at_bound=bound,
        temperature=np.log(rows["temperature"].astype(float).where(~bound)),
    )
    numbers: dict[str, Any] = {
        "temperature": ("temperature", "mean"),
        "at_bound": ("at_bound", "sum"),
    }
    table = _grouped(
        rows, **numbers, **{name: (name, "mean") for name in _MEANS}, **_CELLS
    )
    return table.assign(temperature=np.exp(table["temperature"]))


def learning_rates(records: Records) -> pd.DataFrame:
    """Accuracy on validation data over the whole grid."""
    rows = trainings(records)
    return _grouped(
        rows[~rows["confirms"] & (rows["start"] == PLAIN)],
        "learning_rate",
        **_RUNS,
        **_CELLS,
    )


def _grouped(rows: pd.DataFrame, *keys: str, **numbers: Any) -> pd.DataFrame:
    groups = rows.groupby(
        [*PLACE, "inverse_temperature", *keys], sort=False, dropna=False
    )
    return pd.DataFrame(groups.agg(**numbers)).reset_index()


def three_temperatures(records: Records) -> pd.DataFrame:
    """Three inverse temperatures of one network, and a fourth that is predicted for its
    features; geometric means.

    training_best is by mean accuracy on validation data; from training_low to
    training_high others are as good, at most one standard error of the paired
    difference below. post_hoc and cooling are inverse, of a network trained at 1.
    """
    cooled, found = chosen(records, COOLED), []
    for sweep, rows in chosen(records).groupby("sweep", sort=False):
        table = by_seed(rows, "validation_accuracy")
        best = table.mean().idxmax()
        gaps = table.sub(table[best], axis=0)
        good = table.columns[
            gaps.mean() >= -gaps.sem().fillna(0.0)
        ]  # With one seed, the best alone.
        own, cold = (
            rows[rows["inverse_temperature"] == 1],
            cooled[cooled["sweep"] == sweep],
        )
        predicted = records.heuristic.merge(own[["sweep", "learning_rate", "seed"]])[
            "predicted"
        ]
        post_hoc = own.loc[~own["at_bound"].eq(True), "temperature"]
        means = (
            1 / _geometric(post_hoc),
            1 / _geometric(cold["cooled_temperature"]),
            _geometric(predicted),
        )
        cells = together([*rows["cells"], *cold["cells"]])
        found.append(
            (*rows[PLACE].iloc[0], best, good.min(), good.max(), *means, cells)
        )
    numbers = (
        "training_best",
        "training_low",
        "training_high",
        "post_hoc",
        "cooling",
        "heuristic",
    )
    return pd.DataFrame(found, columns=[*PLACE, *numbers, "cells"])


def _geometric(values: pd.Series[float]) -> float:
    return float(np.exp(np.log(values.astype(float)).mean()))


_MAKERS = (
    accuracies,
    logit_norms,
    confidence,
    learning_rates,
    three_temperatures,
    early_slopes,
)
TABLES: dict[str, Callable[[Records], pd.DataFrame]] = {
    make.__name__: make for make in _MAKERS
}

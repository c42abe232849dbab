"""The tables of the paper's practical part; we do not have its own, so there is nothing printed beside them.

Each begins with the columns sweep, architecture, dataset, and says its cells.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.shared.comparison import mean_and_sd
from softmax_temperature.papers.shared.sources import together
from softmax_temperature.papers.temperature_check.early_learning import early_slopes
from softmax_temperature.papers.temperature_check.records import Records
from softmax_temperature.papers.temperature_check.selection import (
    UNTEMPERED,
    alone,
    by_seed,
    same_start,
    several_norms,
    trainings,
)
from softmax_temperature.params.temperature_check import COOLED, PLAIN

PLACE = ["sweep", "architecture", "dataset"]
_RUNS = {"runs": ("seed", "size"), "diverged": ("diverged", "sum"), "validation": ("validation_accuracy", "mean")}
_TEST = {**mean_and_sd("test", "test_accuracy"), "test_best": ("test_accuracy", "max")}
_CELLS = {"cells": ("cells", together)}


def accuracies(records: Records) -> pd.DataFrame:
    """Accuracy at each inverse temperature, with the learning rate that validation data prefer; gains by seed over 1.

    Networks with their own start come first, then those that start as the same function at all inverse temperatures.
    """
    rows = pd.concat([alone(records), same_start(records)], ignore_index=True)
    reference = rows[rows["inverse_temperature"] == UNTEMPERED].set_index(["sweep", "seed"])
    rows = rows.join(reference[["test_accuracy", "cells"]].add_suffix("_at_1"), on=["sweep", "seed"])
    rows["gain"] = rows["test_accuracy"] - rows["test_accuracy_at_1"]
    rows["cells"] = [together(cells.dropna()) for _, cells in rows[["cells", "cells_at_1"]].iterrows()]
    groups = rows.groupby([*PLACE, "inverse_temperature", "learning_rate"], sort=False)
    return groups.agg(**_RUNS, **_TEST, **mean_and_sd("gain"), **_CELLS).reset_index()


def logit_norms(records: Records) -> pd.DataFrame:
    """Accuracy at one inverse temperature with logits of different size at the start, of pairs by correlation."""
    keys = [*PLACE, "inverse_temperature", "correlation", "learning_rate", "start"]
    groups = several_norms(records).groupby(keys, sort=False, dropna=False)
    table = groups.agg(**_RUNS, **_TEST, **_CELLS, initial_logit_norm=("initial_logit_norm", "mean")).reset_index()
    return table.drop(columns="start")


def confidence(records: Records) -> pd.DataFrame:
    """Post-hoc temperature scaling of each chosen training, which tells differences in confidence from others.

    temperature is the geometric mean over the seeds that have one, at_bound how many have none.
    """
    rows = alone(records)
    rows = rows[~rows["diverged"]]
    bound = rows["at_bound"].astype(bool)
    rows = rows.assign(at_bound=bound, temperature=np.log(rows["temperature"].astype(float).where(~bound)))
    means = ("confidence", "test_accuracy", "test_ece", "scaled_ece", "test_nll", "scaled_nll")
    numbers: dict[str, Any] = {
        "temperature": "mean",
        "at_bound": "sum",
        **dict.fromkeys(means, "mean"),
        "cells": together,
    }
    table = rows.groupby([*PLACE, "inverse_temperature"], sort=False).agg(numbers)
    return table.assign(temperature=np.exp(table["temperature"])).reset_index()


def learning_rates(records: Records) -> pd.DataFrame:
    """Accuracy on validation data over the whole grid."""
    rows = trainings(records)
    tuned = rows[~rows["confirms"] & (rows["start"] == PLAIN)]
    groups = tuned.groupby([*PLACE, "inverse_temperature", "learning_rate"], sort=False)
    return groups.agg(**_RUNS, **_CELLS).reset_index()


def three_temperatures(records: Records) -> pd.DataFrame:
    """Three inverse temperatures of one network, and a fourth that is predicted for its features; geometric means.

    training_best is by mean accuracy on validation data; between training_low and training_high others are as good, at
    most one standard error of the difference below, paired by seed. post_hoc is the inverse of the temperature that
    scales the logits of a network trained at 1, cooling that of Cooling's last, heuristic classifier_temperature's.
    """
    cooled = alone(records, COOLED)
    found = []
    for sweep, rows in alone(records).groupby("sweep", sort=False):
        table = by_seed(rows, "validation_accuracy")
        best = table.mean().idxmax()
        gaps = table.sub(table[best], axis=0)
        good = table.columns[gaps.mean() >= -gaps.sem().fillna(0.0)]  # With one seed, the best alone.
        own, cold = rows[rows["inverse_temperature"] == UNTEMPERED], cooled[cooled["sweep"] == sweep]
        about = records.heuristic.merge(own[["sweep", "learning_rate", "seed"]])
        found.append(
            {
                **rows.iloc[0][PLACE],
                "training_best": best,
                "training_low": good.min(),
                "training_high": good.max(),
                "post_hoc": 1 / _geometric(own.loc[~own["at_bound"].eq(True), "temperature"]),
                "cooling": 1 / _geometric(cold["cooled_temperature"]),
                "heuristic": _geometric(about["predicted"]),
                "cells": together([*rows["cells"], *cold["cells"]]),
            }
        )
    columns = [*PLACE, "training_best", "training_low", "training_high", "post_hoc", "cooling", "heuristic", "cells"]
    return pd.DataFrame(found, columns=columns)


def _geometric(values: pd.Series[float]) -> float:
    """The geometric mean; nan of nothing."""
    known = values.dropna().to_numpy(float)
    return float(np.exp(np.log(known).mean())) if len(known) else float("nan")


_MAKERS = (accuracies, logit_norms, confidence, learning_rates, three_temperatures, early_slopes)
TABLES: dict[str, Callable[[Records], pd.DataFrame]] = {make.__name__: make for make in _MAKERS}
"""Every table, by the name of its file."""

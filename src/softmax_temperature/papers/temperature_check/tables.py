"""The tables about training, and the table of the slopes that the theory predicts.

We have only the paper's abstract, so no table has printed values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.shared.runs import SEED, Runs
from softmax_temperature.papers.shared.sources import together
from softmax_temperature.papers.shared.tables import Made, Table, mean_and_sd
from softmax_temperature.papers.temperature_check.early_learning import early_slopes
from softmax_temperature.papers.temperature_check.study import (
    CHOSEN_RATE,
    COOLED,
    FLOW,
    NORMS,
    NORMS_AFTER_50,
    OWN_START,
    SAME_START,
    SET_START,
    TUNING,
    by_seed,
    numbers,
)

PLACE = ["sweep", "label", "dataset"]
"""The columns that distinguish sweeps; `label` is called `architecture` in the files.
"""
_RUNS = {
    "runs": (SEED, "size"),
    "diverged": ("diverged", "sum"),
    "validation": ("validation_accuracy", "mean"),
}
_TEST = {
    **mean_and_sd("test", "test_accuracy"),
    "test_best": ("test_accuracy", "max"),
}
_CELLS = {"cells": ("cells", together)}
_MEANS = (
    "confidence",
    "test_accuracy",
    "test_ece",
    "scaled_ece",
    "test_nll",
    "scaled_nll",
)


def _grouped(rows: pd.DataFrame, *keys: str, **aggregations: Any) -> pd.DataFrame:
    """Aggregate `rows` over seeds, by sweep, inverse temperature and `keys`."""
    names = [*PLACE, "inverse_temperature", *keys]
    groups = rows.groupby(names, sort=False, dropna=False)
    table = pd.DataFrame(groups.agg(**aggregations)).reset_index()
    return table.rename(columns={"label": "architecture"})


def accuracies(runs: Runs) -> pd.DataFrame:
    """The accuracy at each inverse temperature, with the learning rate chosen for it.

    The chosen rate has the best validation accuracy. The gain is relative to the run at
    inverse temperature 1 with the same seed in the same sweep, if there is one.
    """
    plain = numbers(runs, CHOSEN_RATE & OWN_START)
    rows = pd.concat([plain, numbers(runs, SAME_START)], ignore_index=True)
    reference = rows[rows["inverse_temperature"] == 1].set_index(["sweep", SEED])
    at_1 = reference[["test_accuracy", "cells"]].add_suffix("_at_1")
    rows = rows.join(at_1, on=["sweep", SEED])
    pairs = zip(rows["cells"], rows["cells_at_1"], strict=True)
    rows = rows.assign(
        gain=rows["test_accuracy"] - rows["test_accuracy_at_1"],
        cells=[together(cell for cell in pair if pd.notna(cell)) for pair in pairs],
    )
    gain = mean_and_sd("gain")
    return _grouped(rows, "learning_rate", **_RUNS, **_TEST, **gain, **_CELLS)


def logit_norms(runs: Runs) -> pd.DataFrame:
    """The accuracy at one inverse temperature, by the norm of the initial logits."""
    rows = numbers(runs, NORMS | NORMS_AFTER_50)
    norm: dict[str, Any] = {"initial_logit_norm": ("initial_logit_norm", "mean")}
    keys = ("correlation", "learning_rate", "start_value")
    table = _grouped(rows, *keys, **_RUNS, **_TEST, **_CELLS, **norm)
    return table.drop(columns="start_value")


def confidence(runs: Runs) -> pd.DataFrame:
    """The effect of temperature scaling, by sweep and inverse temperature.

    Means are over the judged runs that did not diverge.

    `temperature` is the geometric mean of the fitted temperatures that are not at a
    bound.
    """
    rows = numbers(runs, CHOSEN_RATE & OWN_START)
    rows = rows[~rows["diverged"].astype(bool)]
    at_bound = rows["at_bound"] == 1
    rows = rows.assign(
        at_bound=at_bound,
        temperature=np.log(rows["temperature"].astype(float).where(~at_bound)),
    )
    aggregations: dict[str, Any] = {
        "temperature": ("temperature", "mean"),
        "at_bound": ("at_bound", "sum"),
        **{name: (name, "mean") for name in _MEANS},
        **_CELLS,
    }
    table = _grouped(rows, **aggregations)
    return table.assign(temperature=np.exp(table["temperature"]))


def learning_rates(runs: Runs) -> pd.DataFrame:
    """The validation accuracy for each learning rate of the grid, not just the best."""
    rows = numbers(runs, TUNING & OWN_START)
    return _grouped(rows, "learning_rate", **_RUNS, **_CELLS)


def three_temperatures(runs: Runs) -> pd.DataFrame:
    """Three inverse temperatures for each network, and a fourth from the heuristic.

    Returns:
        One row per sweep. `training_best` is the inverse temperature with the highest
        mean accuracy on validation data. `training_low` and `training_high` are the
        lowest and the highest inverse temperatures that are as good: their mean
        accuracy is lower than the best by at most one standard error of the paired
        difference. The other
        columns are geometric means, over networks trained at 1, of the inverse
        temperatures that three methods give: temperature scaling (`post_hoc`, which
        leaves out fits at a bound), Cooling (`cooling`), and the heuristic applied to
        the features (`heuristic`).
    """
    judged = numbers(runs, CHOSEN_RATE & OWN_START)
    cooled = numbers(runs, CHOSEN_RATE & COOLED)
    lines = []
    for sweep, rows in judged.groupby("sweep", sort=False):
        low, best, high = _best_temperatures(rows)
        usual = rows[rows["inverse_temperature"] == 1]
        cold = cooled[cooled["sweep"] == sweep]
        fitted = usual.loc[usual["at_bound"] != 1, "temperature"]
        lines.append(
            {
                **rows[PLACE].iloc[0],
                "training_best": best,
                "training_low": low,
                "training_high": high,
                "post_hoc": 1 / _geometric_mean(fitted),
                "cooling": 1 / _geometric_mean(cold["cooled_temperature"]),
                "heuristic": _geometric_mean(usual["heuristic"]),
                "cells": together([*rows["cells"], *cold["cells"]]),
            }
        )
    columns = (
        "training_best",
        "training_low",
        "training_high",
        "post_hoc",
        "cooling",
        "heuristic",
        "cells",
    )
    table = pd.DataFrame(lines, columns=[*PLACE, *columns])
    return table.rename(columns={"label": "architecture"})


def _best_temperatures(rows: pd.DataFrame) -> tuple[float, float, float]:
    """The best inverse temperature, with the lowest and the highest that are as good.

    With one seed, only inverse temperatures that tie with the best are as good.
    """
    table = by_seed(rows, "validation_accuracy")
    best = table.columns[int(table.mean().argmax())]
    gaps = table.sub(table[best], axis=0)
    good = [float(value) for value in table.columns[gaps.mean() >= -_errors(gaps)]]
    return min(good), float(str(best)), max(good)


def _errors(values: pd.DataFrame) -> pd.Series[float]:
    """The standard error of each column's mean; 0 if there is only one seed."""
    return values.sem().fillna(0.0)


def _geometric_mean(values: pd.Series[float]) -> float:
    return float(np.exp(np.log(values.astype(float)).mean()))


_COLUMNS = {
    "inverse_temperature": "β",
    "learning_rate": "rescaled learning rate",
    "initial_logit_norm": "norm at the start",
    "test_sd": "test sd",
    "test_best": "best seed",
    "gain": "gain over β = 1",
    "gain_sd": "gain sd",
    "temperature": "fitted temperature",
    "at_bound": "fits at a bound",
    "test_accuracy": "accuracy",
    "test_ece": "ECE",
    "scaled_ece": "ECE after scaling",
    "test_nll": "NLL",
    "scaled_nll": "NLL after scaling",
    "training_best": "best to train with",
    "training_low": "as good from",
    "training_high": "to",
    "post_hoc": "temperature scaling",
    "cooling": "Cooling",
    "heuristic": "heuristic on the features",
}
_COLUMNS_OF_SLOPES = {
    "smooth": "kinks",
    "against": "over",
    "where": "fitted where",
    "low": "90 % from",
    "high": "to",
    "n": "seeds",
    "misfit": "largest miss",
}
_VALUES_OF_SLOPES: dict[str, dict[Any, str]] = {
    "smooth": {True: "no", False: "ReLU"},
    "against": {"inverse_temperature": "β", "logit_norm": "norm of βz"},
    "where": {
        "still": "kernel is still",
        "small": "logits are small",
        "large": "logits are large",
    },
}


def _in_words(table: pd.DataFrame) -> pd.DataFrame:
    """A table of sweeps with the columns renamed for readers."""
    return table.rename(columns=_COLUMNS)


def _slopes_in_words(table: pd.DataFrame) -> pd.DataFrame:
    """Put the columns and values of the table of slopes into words for readers."""
    return table.replace(_VALUES_OF_SLOPES).rename(columns=_COLUMNS_OF_SLOPES)


_SWEEP = ("sweep", "dataset")
ACCURACIES = Made(
    name="accuracies",
    by=accuracies,
    lay_out=_in_words,
    of=OWN_START,
    names=_SWEEP,
)
LOGIT_NORMS = Made(
    name="logit_norms",
    by=logit_norms,
    lay_out=_in_words,
    of=SET_START,
    names=_SWEEP,
)
CONFIDENCE = Made(
    name="confidence",
    by=confidence,
    lay_out=_in_words,
    of=OWN_START,
    names=_SWEEP,
)
LEARNING_RATES = Made(
    name="learning_rates",
    by=learning_rates,
    lay_out=_in_words,
    of=TUNING & OWN_START,
    names=_SWEEP,
)
THREE_TEMPERATURES = Made(
    name="three_temperatures",
    by=three_temperatures,
    lay_out=_in_words,
    of=OWN_START,
    names=_SWEEP,
)
EARLY_SLOPES = Made(
    name="early_slopes",
    by=early_slopes,
    lay_out=_slopes_in_words,
    of=FLOW,
    names=("network",),
)

TABLES: tuple[Table, ...] = (
    ACCURACIES,
    LOGIT_NORMS,
    CONFIDENCE,
    LEARNING_RATES,
    THREE_TEMPERATURES,
    EARLY_SLOPES,
)
"""All tables; those about training come first."""

"""Metrics computed from the curves and samples of training runs."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pandas as pd

from softmax_temperature.papers.focal.study import (
    ECE,
    WEIGHT_NORM,
    at_selected_epoch,
)
from softmax_temperature.papers.shared.metrics import Derived, Metric, is_lost
from softmax_temperature.papers.shared.runs import Runs

NEAR_BEST = 0.02
"""An epoch may be chosen if its validation accuracy is at most this far below the best.
"""
CRITERIA = {
    "last": "last epoch",
    "accuracy": "by accuracy",
    "nll": "by NLL",
    "ece": "by ECE",
}
"""Maps each criterion of early stopping in Table J.1 to its name for readers."""
OVERFITTED = 1.05
"""A run overfits if its final test NLL is at least this multiple of its lowest one."""
EARLY = 150 / 350
"""The epoch at which the learning rate first falls, as a share of all epochs. Section 4
calls the time before it "initially".
"""
SURE = 0.9
"""A mistake counts as confident if its confidence is above this (appendix C)."""


def stopped_early(metric: Metric, criterion: str) -> Derived:
    """The test metric `metric` at the epoch that the validation `criterion` chooses.

    The epoch is the best one among those whose validation accuracy is near the highest,
    because the lowest ECE of all epochs may belong to an untrained network.
    """

    def compute(runs: Runs, chosen: pd.DataFrame) -> pd.Series[float]:
        epochs = stopping_epochs(runs, chosen, criterion)
        return _at_epochs(metric, epochs, runs, chosen)

    return Derived(metric.unit, compute)


def stopped_at_any_epoch(metric: Metric, criterion: str) -> Derived:
    """The test metric `metric` at the epoch that `criterion` chooses among all epochs.

    Table J.1 uses this choice.
    """

    def compute(runs: Runs, chosen: pd.DataFrame) -> pd.Series[float]:
        epochs = stopping_epochs(runs, chosen, criterion, near=inf)
        return _at_epochs(metric, epochs, runs, chosen)

    return Derived(metric.unit, compute)


def _at_epochs(
    metric: Metric, epochs: pd.Series[float], runs: Runs, chosen: pd.DataFrame
) -> pd.Series[float]:
    """The metric of each run at the epoch that `epochs` gives for the run."""

    def value(values: pd.DataFrame, _: pd.DataFrame) -> pd.Series[float]:
        at = values["run"].map(epochs)
        return values[values["epoch"] == at].set_index("run")["value"]

    return replace(metric, epochs=value).of(runs, chosen)


def stopping_epochs(
    runs: Runs, chosen: pd.DataFrame, criterion: str, *, near: float = NEAR_BEST
) -> pd.Series[float]:
    """The epoch that `criterion` chooses on validation data for each finished run.

    An epoch qualifies only if its validation accuracy is at most `near` below the best.
    The criterion "last" always chooses the last epoch.
    """
    finished = chosen.index[~is_lost(chosen)]
    rows = runs.wide("accuracy", "nll", "ece", split="validation")
    rows = rows[rows["run"].isin(finished)]
    if criterion == "last":
        return rows.groupby("run")["epoch"].max()
    best = rows.groupby("run")["accuracy"].transform("max")
    good = rows[rows["accuracy"] >= best - near].dropna(subset=criterion)
    numbers = good.groupby("run")[criterion]
    places = numbers.idxmax() if criterion == "accuracy" else numbers.idxmin()
    return good.loc[places].set_index("run")["epoch"]


def change_where_overfitted(name: str, *, sign: int = 1) -> Derived:
    """The change in a test metric from the epoch of lowest test NLL to the last epoch.

    Only runs whose test NLL rises by enough (see `OVERFITTED`) have a value.

    Args:
        name: "nll_right" or "nll_wrong", the NLL of the correctly classified or of the
            misclassified samples.
        sign: -1 reverses the sign of the change.
    """

    def compute(runs: Runs, chosen: pd.DataFrame) -> pd.Series[float]:
        best, last = _best_and_last(runs, chosen)
        change = (last - best)[_overfitted(best, last)].dropna()
        return sign * change[name]

    label = f"a test NLL that ends at {OVERFITTED} times its minimum"
    return Derived(label, compute)


def overfitted_count(runs: Runs, chosen: pd.DataFrame) -> str:
    """A note on the number of runs that overfit."""
    best, last = _best_and_last(runs, chosen)
    overfitted = _overfitted(best, last)
    return f"{overfitted.sum()} of {len(overfitted)} runs overfit"


def _best_and_last(
    runs: Runs, chosen: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Each finished run's test NLLs at its epoch of lowest NLL, and at its last epoch.

    The columns are the NLL of all samples, of the correctly classified ones, and of the
    misclassified ones.
    """
    sides = ["nll", "nll_right", "nll_wrong"]
    rows = runs.wide(*sides, split="test")
    rows = rows[rows["run"].isin(chosen.index[~is_lost(chosen)])].dropna(subset="nll")
    by_run = rows.groupby("run")
    best = rows.loc[by_run["nll"].idxmin()].set_index("run")[sides]
    last = rows.loc[by_run["epoch"].idxmax()].set_index("run")[sides]
    return best, last


def _overfitted(best: pd.DataFrame, last: pd.DataFrame) -> pd.Series[bool]:
    return (last["nll"] >= OVERFITTED * best["nll"]).astype(bool)


def _mean_of_first_epochs(
    values: pd.DataFrame, chosen: pd.DataFrame
) -> pd.Series[float]:
    """Each run's mean value over the epochs before the learning rate first falls.

    The first epoch always counts.
    """
    last = values["run"].map(chosen["epochs_done"])
    early = values[values["epoch"] <= (EARLY * last).clip(lower=1)]
    return early.groupby("run")["value"].mean()


EARLY_WEIGHT_NORM = replace(WEIGHT_NORM, epochs=_mean_of_first_epochs)


def _rise(values: pd.DataFrame, chosen: pd.DataFrame) -> pd.Series[float]:
    """Each run's last value minus its first value once the learning rate has fallen."""
    last = values["run"].map(chosen["epochs_done"])
    late = values[values["epoch"] > EARLY * last].sort_values("epoch")
    by_run = late.groupby("run")["value"]
    return by_run.last() - by_run.first()


RISE_OF_ECE = replace(ECE, epochs=_rise)
RISE_OF_WRONG = Metric("nll_wrong", epochs=_rise, label="nats")
"""The rise of the NLL of the misclassified test samples."""


def _half_rise_of_wrong(runs: Runs, chosen: pd.DataFrame) -> pd.Series[float]:
    return RISE_OF_WRONG.of(runs, chosen) / 2


HALF_RISE_OF_WRONG = Derived("nats", _half_rise_of_wrong)


def _log_gradient_norm(runs: Runs, chosen: pd.DataFrame) -> pd.Series[float]:
    """The mean logarithm of each run's gradient norms, over samples and epochs.

    The first recorded epoch is left out; the others have equal weight. A sample's norm
    is taken to be the geometric centre of its bin.
    """
    bins = runs.tables["gradient_norms"]
    bins = bins[bins["run"].isin(chosen.index[~is_lost(chosen)])]
    bins = bins[bins["epoch"] > bins.groupby("run")["epoch"].transform("min")]
    centre = np.log(np.sqrt(bins["low"] * bins["high"]))
    bins = bins.assign(total=bins["count"] * centre)
    sums = bins.groupby(["run", "epoch"])[["total", "count"]].sum()
    return (sums["total"] / sums["count"]).groupby("run").mean()


LOG_GRADIENT_NORM = Derived("log gradient norm", _log_gradient_norm)


def _confident_mistakes(runs: Runs, _: pd.DataFrame) -> pd.Series[float]:
    mistakes = runs.tables["linear_mistakes"]
    is_sure = (mistakes["confidence"] > SURE).astype(float)
    return is_sure.groupby(mistakes["run"]).mean()


CONFIDENT_MISTAKES = Derived("of the mistakes", _confident_mistakes)
"""The share of a linear model's mistakes that are confident."""


def _direction(runs: Runs, chosen: pd.DataFrame) -> pd.Series[float]:
    first = Metric("weight_0").of(runs, chosen)
    second = Metric("weight_1").of(runs, chosen)
    angles = np.degrees(np.arctan2(second, first))
    return pd.Series(angles, chosen.index)


DIRECTION = Derived("degrees", _direction)
"""The direction of a linear model's two weights, from -180 to 180 degrees."""


def _bleu_points(runs: Runs, chosen: pd.DataFrame) -> pd.Series[float]:
    return 100 * at_selected_epoch(Metric("best_bleu")).of(runs, chosen)


BEST_BLEU = Derived("BLEU", _bleu_points)
"""The highest test BLEU over temperatures, on the scale from 0 to 100."""

"""What the regression says about data sets that it has not seen (section 4.3, Table 1)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import pandas as pd

from softmax_temperature.heuristic.regression import (
    SEARCHED_RANGE,
    Correlation,
    Floats,
    Method,
    Pairs,
    Selection,
    checked_pairs,
    floats,
    identities,
    is_constant,
    pearson,
    regress,
    selection_of,
    share_on_plateau,
)
from softmax_temperature.runner.errors import nearest


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """What the regression says about data sets it has not seen: a row of Table 1, and its evidence.

    `predictions` has a row per pair: the pair, its optimum, and out of fold `linear` (the regression's value) and
    `predicted` (clipped to the searched range). `folds` has a row per data set: `dataset`, `pairs`, `statistics`
    (chosen without it), `r` and `p` between optimum and `linear`, and `undefined`: why they are missing (NaN), or "".
    """

    predictions: pd.DataFrame
    folds: pd.DataFrame
    statistics: str
    method: Method
    undefined_folds: int  # Without an r. The next four are over the other folds, and None if too few are left.
    median_r: float | None
    mean_r: float | None
    sd_r: float | None
    mean_p: float | None
    pooled: Correlation | None  # Over all pairs at once; None where undefined.
    mean_absolute_error: float  # Of `predicted`, over pairs, in units of the inverse temperature.
    share_on_plateau: float | None  # Share of `predicted` on the pair's plateau; None without plateau columns.

    def summary(self) -> dict[str, Any]:
        """The scalars, for a row of a table: `pooled` as `pooled_r` and so on, and the numbers of pairs and folds."""
        scalars = {name: value for name, value in vars(self).items() if name not in ("predictions", "folds", "pooled")}
        pooled = self.pooled._asdict() if self.pooled else dict.fromkeys(Correlation._fields)
        sizes = {"pairs": len(self.predictions), "folds": len(self.folds)}
        return scalars | sizes | {f"pooled_{name}": value for name, value in pooled.items()}


def leave_one_dataset_out(
    pairs: Pairs, *, statistics: str | int | Sequence[str] = "best", method: Method = "least_squares"
) -> LeaveOneOut:
    """Predict the pairs of each data set from all other data sets (section 4.3, Table 1).

    A fold is one data set with all its backbones; its statistics are chosen, standardised and weighted without it.

    Args:
        pairs: See the package.
        statistics: "best", "four_best", "all", or how many: the most correlated ones, chosen anew in each fold; or a
            list of names, which inflates r if they come from a look at these same pairs.
        method: "least_squares" as in the paper, or "ridge" (ours), with the penalty that suits data sets left out.

    Raises:
        ValueError: Also if a statistic or method is unknown, or an optimum lies outside the searched range.
    """
    selection, table = prepared(pairs, statistics, method)
    linear, chosen = out_of_fold(table, selection, method)
    predicted = np.clip(linear, *SEARCHED_RANGE)
    predictions = identities(table).assign(linear=linear, predicted=predicted)
    folds = pd.DataFrame([_fold_row(str(name), fold, chosen) for name, fold in predictions.groupby("dataset")])
    optima = floats(table, "inverse_temperature")
    return LeaveOneOut(
        predictions=predictions,
        folds=folds,
        statistics=selection.label,
        method=method,
        undefined_folds=int(folds["r"].isna().sum()),
        median_r=_or_none(folds["r"].median()),
        mean_r=_or_none(folds["r"].mean()),
        # Deviation: the paper does not say which standard deviation it prints; ours is the sample's (n - 1).
        sd_r=_or_none(folds["r"].std(ddof=1)),
        # Deviation: the paper does not say how its p-values join the folds. The printed 0.014 beside r = 0.9563 fits a
        # mean over folds of nine pairs; 108 pooled pairs would give 2e-58. So it is read as that mean.
        mean_p=_or_none(folds["p"].mean()),
        pooled=pearson(optima, linear),
        mean_absolute_error=float(np.abs(optima - predicted).mean()),
        share_on_plateau=share_on_plateau(table, predicted),
    )


def prepared(pairs: Pairs, statistics: str | int | Sequence[str], method: str) -> tuple[Selection, pd.DataFrame]:
    """The checked arguments of a regression: its selection, and the pairs as a table in one order."""
    if method not in get_args(Method):
        raise ValueError(f"method {method!r} is unknown. {nearest(method, get_args(Method))}")
    selection = selection_of(statistics)
    table = checked_pairs(pairs, selection.candidates)
    if not (within := table["inverse_temperature"].between(*SEARCHED_RANGE)).all():
        wrong = table["inverse_temperature"][~within].iloc[0]
        raise ValueError(f"pairs must hold an inverse_temperature within {SEARCHED_RANGE}, got {wrong}")
    return selection, table


def out_of_fold(table: pd.DataFrame, selection: Selection, method: Method) -> tuple[Floats, dict[str, tuple[str, ...]]]:
    """The regression's value for each pair from the other data sets, and each fold's statistics."""
    linear, chosen = np.empty(len(table)), {}
    for dataset in table["dataset"].unique():
        held_out = (table["dataset"] == dataset).to_numpy()
        regression = regress(table[~held_out], selection, method)
        linear[held_out], chosen[dataset] = regression.predict(table[held_out]), regression.names
    return linear, chosen


def _fold_row(dataset: str, fold: pd.DataFrame, chosen: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    optima = floats(fold, "inverse_temperature")
    row = {"dataset": dataset, "pairs": len(fold), "statistics": ", ".join(chosen[dataset])}
    if found := pearson(optima, floats(fold, "linear")):
        return {**row, "r": found.r, "p": found.p, "undefined": ""}
    constant = "constant optimum" if is_constant(optima) else "constant prediction"
    return {**row, "r": math.nan, "p": math.nan, "undefined": constant if len(fold) >= 3 else "fewer than 3 pairs"}


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else float(value)

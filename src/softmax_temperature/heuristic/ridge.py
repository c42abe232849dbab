"""The heuristic that `suggest` asks (source: ours): ridge regression of the logarithm of the best inverse temperature.

The paper's least squares (`regression`) predicts the inverse temperature itself; but errors matter by ratio, and 23
correlated statistics of a hundred pairs want shrinkage. What `score_rules` scores on left-out data sets is what is
shipped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, PositiveFloat, PositiveInt

from softmax_temperature.dataset_statistics import STATISTICS
from softmax_temperature.heuristic.regression import KEYS, SEARCHED_RANGE, Floats

Rows = NDArray[np.intp]

PENALTIES = (1.0, 3.0, 10.0, 30.0, 100.0)  # Of the sum of squared coefficients of standardised statistics.
# What `score_rules` fits on the other data sets.
RULES = ("heuristic", "heuristic, backbone left out too", "best constant", "median of the study")


class Term(BaseModel):
    """One statistic: coefficient × (clamped value − mean) / sd, fitted on values in [low, high]."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    coefficient: FiniteFloat
    mean: FiniteFloat
    sd: Annotated[FiniteFloat, Field(gt=0)]
    low: FiniteFloat
    high: FiniteFloat


@dataclass(frozen=True)
class Estimate:
    """What the heuristic says of one set of embeddings."""

    inverse_temperature: float  # The value to use: the prediction inside the fitted range, the constant outside.
    predicted: float
    outside: tuple[str, ...]  # The statistics that lie outside the range of the fit.

    @property
    def inside(self) -> bool:
        """Whether every statistic lies in the range of the fit."""
        return not self.outside


class RidgeHeuristic(BaseModel):
    """A fitted heuristic; plain numbers, saved as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["softmax-temperature ridge heuristic"] = "softmax-temperature ridge heuristic"
    terms: dict[str, Term]  # By statistic.
    intercept: FiniteFloat  # The mean logarithm of the best inverse temperature.
    penalty: PositiveFloat
    constant: PositiveFloat  # The inverse temperature that costs least over all pairs of the fit.
    n_pairs: PositiveInt
    datasets: tuple[str, ...]
    # Accuracy that following each rule of `score_rules` cost on left-out data sets: mean, 90th percentile and worst.
    lost: dict[str, tuple[float, float, float]] = {}

    def predict(self, statistics: Mapping[str, float]) -> Estimate:
        """The inverse temperature for a data set's statistics, as `dataset_statistics.describe` returns them.

        Raises ValueError if a statistic is missing or not finite.
        """
        total, outside = self.intercept, []
        for name, term in self.terms.items():
            value = statistics.get(name, math.nan)
            if not math.isfinite(value):
                raise ValueError(f"statistics[{name!r}] must be a finite number, got {statistics.get(name)!r}")
            if not term.low <= value <= term.high:
                outside.append(name)
            total += term.coefficient * (min(max(value, term.low), term.high) - term.mean) / term.sd
        predicted = min(max(math.exp(total), SEARCHED_RANGE[0]), SEARCHED_RANGE[1])
        return Estimate(self.constant if outside else predicted, predicted, tuple(outside))


def fit_ridge(pairs: pd.DataFrame, accuracies: pd.DataFrame) -> RidgeHeuristic:
    """Fit on all pairs; the penalty is the one that loses least when each data set is left out in turn.

    `pairs` has one row for each data set and backbone: `dataset`, `backbone`, `inverse_temperature` (the best one) and
    the 23 statistics; `accuracies` one for each pair and inverse temperature of one grid, with `test_accuracy`. Raises
    ValueError if there are fewer than three data sets.
    """
    study = _Study.of(pairs, accuracies)
    fold = study.fitted(np.arange(len(pairs)), PENALTIES)
    columns = zip(STATISTICS, fold.coefficients, fold.mean, fold.sd, fold.low, fold.high, strict=True)
    fields = ("coefficient", "mean", "sd", "low", "high")
    return RidgeHeuristic(
        terms={name: Term(**dict(zip(fields, map(float, row), strict=True))) for name, *row in columns},
        intercept=float(fold.intercept),
        penalty=fold.penalty,
        constant=study.best_constant(np.arange(len(pairs))),
        n_pairs=len(pairs),
        datasets=tuple(pairs["dataset"].unique()),
    )


def score_rules(
    pairs: pd.DataFrame, accuracies: pd.DataFrame, *, penalties: Sequence[float] = PENALTIES
) -> pd.DataFrame:
    """What following each rule costs on data sets that it was not fitted on; `fit_ridge` is run on each fold.

    Rows `rule`, `dataset`, `backbone`, `inverse_temperature`, `lost` (fraction of accuracy below the pair's best). The
    rules are RULES, the square root of the dimension, and the search on validation data, where `pairs` has a column
    `inverse_temperature_validation`.
    """
    study = _Study.of(pairs, accuracies)
    everything, backbones = np.arange(len(pairs)), pairs["backbone"].to_numpy()
    values = {name: np.empty(len(pairs)) for name in RULES}
    for dataset in np.unique(study.datasets):
        own, others = (np.flatnonzero(study.datasets == dataset), np.flatnonzero(study.datasets != dataset))
        heuristic, without_backbone, constant, median = RULES
        values[heuristic][own] = study.fitted(others, penalties).predict(study.statistics[own])
        for row in own:
            rest = others[backbones[others] != backbones[row]]
            if len(rest):
                values[without_backbone][row] = study.fitted(rest, penalties).predict(study.statistics[[row]])[0]
        values[constant][own] = study.best_constant(others)
        values[median][own] = np.median(pairs["inverse_temperature"].to_numpy(np.float64)[others])
    if len(np.unique(backbones)) == 1:
        del values[RULES[1]]
    values["square root of dimension"] = np.sqrt(pairs["dim"].to_numpy(np.float64))
    if "inverse_temperature_validation" in pairs:
        values["search on validation data"] = pairs["inverse_temperature_validation"].to_numpy(np.float64)
    tables = [
        pairs[KEYS].assign(rule=rule, inverse_temperature=chosen, lost=study.lost(everything, chosen))
        for rule, chosen in values.items()
    ]
    return pd.concat(tables, ignore_index=True)[["rule", *KEYS, "inverse_temperature", "lost"]]


def fit_shipped(pairs: pd.DataFrame, accuracies: pd.DataFrame) -> RidgeHeuristic:
    """The heuristic with what it and other rules cost, as `suggest` ships it."""
    scores = score_rules(pairs, accuracies).groupby("rule", sort=False)["lost"]
    lost = {str(rule): (one.mean(), one.quantile(0.9), one.max()) for rule, one in scores}
    return fit_ridge(pairs, accuracies).model_copy(update={"lost": lost})


def shipped() -> RidgeHeuristic:
    """The heuristic that comes with the package, fitted on results/collection."""
    text = (files("softmax_temperature.heuristic") / "heuristic.json").read_text(encoding="utf-8")
    return RidgeHeuristic.model_validate_json(text)


@dataclass(frozen=True)
class _Study:
    """Pairs as arrays: statistics, logarithms of the best inverse temperatures, data sets, accuracies on the grid."""

    statistics: Floats
    target: Floats
    datasets: NDArray[Any]
    grid: Floats
    accuracies: Floats

    @classmethod
    def of(cls, pairs: pd.DataFrame, accuracies: pd.DataFrame) -> _Study:
        if pairs["dataset"].nunique() < 3:
            raise ValueError(f"pairs must hold at least 3 data sets, got {pairs['dataset'].nunique()}")
        curves = accuracies.pivot(index=KEYS, columns="inverse_temperature", values="test_accuracy")
        rows = curves.loc[pd.MultiIndex.from_frame(pairs[KEYS])].to_numpy(np.float64)
        return cls(
            pairs[list(STATISTICS)].to_numpy(np.float64),
            np.log(pairs["inverse_temperature"].to_numpy(np.float64)),
            pairs["dataset"].to_numpy(),
            curves.columns.to_numpy(np.float64),
            rows,
        )

    def fitted(self, rows: Rows, penalties: Sequence[float]) -> _Ridge:
        """The fit on some rows, with the penalty that loses least when each of their data sets is left out."""

        def left_out(penalty: float) -> float:
            losses = []
            for dataset in np.unique(self.datasets[rows]):
                own = rows[self.datasets[rows] == dataset]
                others = rows[self.datasets[rows] != dataset]
                fold = _Ridge.of(self.statistics[others], self.target[others], penalty)
                losses.append(self.lost(own, fold.predict(self.statistics[own])))
            return float(np.concatenate(losses).mean())

        penalty = min(penalties, key=left_out) if len(penalties) > 1 else penalties[0]
        return _Ridge.of(self.statistics[rows], self.target[rows], penalty)

    def lost(self, rows: Rows, inverse_temperatures: Floats) -> Floats:
        """Accuracy below the best of each row at its own inverse temperature, between the grid's by interpolation."""
        accuracies = self.accuracies[rows]
        right = np.searchsorted(self.grid, inverse_temperatures).clip(1, len(self.grid) - 1)
        span = self.grid[right] - self.grid[right - 1]
        share = ((inverse_temperatures - self.grid[right - 1]) / span).clip(0, 1)
        each = np.arange(len(rows))
        between = (1 - share) * accuracies[each, right - 1] + share * accuracies[each, right]
        found: Floats = accuracies.max(axis=1) - between
        return found

    def best_constant(self, rows: Rows) -> float:
        """The grid's value that costs least on average."""
        lost = self.accuracies[rows].max(axis=1, keepdims=True) - self.accuracies[rows]
        return float(self.grid[lost.mean(axis=0).argmin()])


@dataclass(frozen=True)
class _Ridge:
    coefficients: Floats
    intercept: float
    mean: Floats
    sd: Floats
    low: Floats
    high: Floats
    penalty: float

    @classmethod
    def of(cls, values: Floats, target: Floats, penalty: float) -> _Ridge:
        mean, sd = values.mean(0), values.std(0)
        sd = np.where(sd > 0, sd, 1.0)  # A constant statistic says nothing, and gets the coefficient 0.
        design = (values - mean) / sd
        gram = design.T @ design + penalty * np.eye(design.shape[1])
        coefficients = np.linalg.solve(gram, design.T @ (target - target.mean()))
        return cls(coefficients, target.mean(), mean, sd, values.min(0), values.max(0), penalty)

    def predict(self, values: Floats) -> Floats:
        clamped = (np.clip(values, self.low, self.high) - self.mean) / self.sd
        predicted: Floats = np.clip(np.exp(self.intercept + clamped @ self.coefficients), *SEARCHED_RANGE)
        return predicted

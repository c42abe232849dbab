"""The heuristic that `suggest` asks (source: ours): ridge regression of the logarithm of the best inverse temperature.

The paper predicts the inverse temperature itself by least squares (`regression`). Errors of that prediction matter by
ratio, not by difference, and 23 correlated statistics of a hundred pairs want shrinkage; hence the logarithm and the
ridge. What is scored with data sets left out (`score_rules`) is what is shipped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, PositiveFloat, PositiveInt

from softmax_temperature.dataset_statistics import STATISTICS

Floats = NDArray[np.float64]

SEARCHED_RANGE = (1.0, 250.0)
PENALTIES = (1.0, 3.0, 10.0, 30.0, 100.0)
"""Of the sum of squared coefficients, per standardised statistic; chosen inside the folds."""
KEYS = ["dataset", "backbone"]


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
    """What the heuristic says of one set of embeddings.

    Attributes:
        inverse_temperature: The value to use: the prediction inside the fitted range, the constant outside.
        predicted: The prediction, whether inside or not.
        outside: The statistics that lie outside the range of the fit.
    """

    inverse_temperature: float
    predicted: float
    outside: tuple[str, ...]

    @property
    def inside(self) -> bool:
        """Whether every statistic lies in the range of the fit."""
        return not self.outside


class RidgeHeuristic(BaseModel):
    """A fitted heuristic; plain numbers, saved as JSON.

    Attributes:
        terms: One for each statistic.
        intercept: The mean logarithm of the best inverse temperature.
        penalty: Of the ridge.
        constant: The inverse temperature that costs least over all pairs of the fit: the answer outside their range.
        n_pairs: How many pairs it was fitted on.
        datasets: Their data sets.
        lost: By rule, the accuracy that following it cost on data sets left out of the fit, as mean, 90th percentile
            and worst: fractions. The rules are those of `score_rules`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["softmax-temperature ridge heuristic"] = "softmax-temperature ridge heuristic"
    terms: dict[str, Term]
    intercept: FiniteFloat
    penalty: PositiveFloat
    constant: PositiveFloat
    n_pairs: PositiveInt
    datasets: tuple[str, ...]
    lost: dict[str, tuple[float, float, float]] = {}

    def predict(self, statistics: Mapping[str, float]) -> Estimate:
        """The inverse temperature for a data set's statistics, as `dataset_statistics.describe` returns them.

        Raises:
            ValueError: If a statistic is missing or not finite.
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


def fit_ridge(
    pairs: pd.DataFrame, accuracies: pd.DataFrame, *, penalties: Sequence[float] = PENALTIES
) -> RidgeHeuristic:
    """Fit on all pairs; the penalty is the one that loses least when each data set is left out in turn.

    Args:
        pairs: One row for each data set and backbone: `dataset`, `backbone`, `inverse_temperature` (the best one) and
            the 23 statistics.
        accuracies: One row for each pair and inverse temperature: `dataset`, `backbone`, `inverse_temperature`,
            `test_accuracy`.
        penalties: To choose from.

    Raises:
        ValueError: If there are fewer than three data sets.
    """
    if pairs["dataset"].nunique() < 3:
        raise ValueError(f"pairs must hold at least 3 data sets, got {pairs['dataset'].nunique()}")
    loss = Losses(pairs, accuracies)
    names = pairs["dataset"].unique()
    values = _matrix(pairs)
    target = np.log(pairs["inverse_temperature"].to_numpy(np.float64))

    def left_out(penalty: float) -> float:
        lost = []
        for name in names:
            out = (pairs["dataset"] == name).to_numpy()
            fold = _Ridge.of(values[~out], target[~out], penalty)
            lost.append(loss.of(np.flatnonzero(out), fold.predict(values[out])))
        return float(np.concatenate(lost).mean())

    penalty = min(penalties, key=left_out) if len(penalties) > 1 else penalties[0]
    ridge = _Ridge.of(values, target, penalty)
    columns = zip(STATISTICS, ridge.coefficients, ridge.mean, ridge.sd, ridge.low, ridge.high, strict=True)
    fields = ("coefficient", "mean", "sd", "low", "high")
    return RidgeHeuristic(
        terms={name: Term(**dict(zip(fields, map(float, row), strict=True))) for name, *row in columns},
        intercept=float(ridge.intercept),
        penalty=penalty,
        constant=loss.best_constant(),
        n_pairs=len(pairs),
        datasets=tuple(names),
    )


def score_rules(
    pairs: pd.DataFrame, accuracies: pd.DataFrame, *, penalties: Sequence[float] = PENALTIES
) -> pd.DataFrame:
    """What following each rule costs on data sets that it was not fitted on.

    Args:
        pairs: As in `fit_ridge`, which is run on each fold; a column `inverse_temperature_validation` is what a search
            on validation data finds.
        accuracies: As in `fit_ridge`.
        penalties: As in `fit_ridge`.

    Returns:
        Rows `rule`, `dataset`, `backbone`, `inverse_temperature`, `lost` (fraction of accuracy below the pair's best).
        The rules are "heuristic", the same with the pair's backbone left out of its fold too, the best constant and the
        median of the other data sets, the square root of the dimension, and the search on validation data.
    """
    values: dict[str, Floats] = {
        "heuristic": _left_out(pairs, accuracies, penalties),
        "heuristic, backbone left out too": _left_out(pairs, accuracies, penalties, backbone_too=True),
        "best constant": _by_fold(pairs, lambda train: Losses(train, accuracies).best_constant()),
        "median of the study": _by_fold(pairs, lambda train: float(train["inverse_temperature"].median())),
        "square root of dimension": np.sqrt(pairs["dim"].to_numpy(np.float64)),
    }
    if "inverse_temperature_validation" in pairs:
        values["search on validation data"] = pairs["inverse_temperature_validation"].to_numpy(np.float64)
    losses, rows = Losses(pairs, accuracies), np.arange(len(pairs))
    tables = [
        pairs[KEYS].assign(rule=rule, inverse_temperature=chosen, lost=losses.of(rows, chosen))
        for rule, chosen in values.items()
    ]
    return pd.concat(tables, ignore_index=True)[["rule", *KEYS, "inverse_temperature", "lost"]]


def fit_shipped(pairs: pd.DataFrame, accuracies: pd.DataFrame) -> RidgeHeuristic:
    """The heuristic with what it and other rules cost, as `suggest` ships it."""
    scores = score_rules(pairs, accuracies).groupby("rule", sort=False)["lost"]
    lost = {str(rule): (one.mean(), one.quantile(0.9), one.max()) for rule, one in scores}
    return fit_ridge(pairs, accuracies).model_copy(update={"lost": lost})


def _left_out(
    pairs: pd.DataFrame, accuracies: pd.DataFrame, penalties: Sequence[float], *, backbone_too: bool = False
) -> Floats:
    """The prediction for each pair by a fit without its data set, and perhaps without its backbone."""
    predicted = np.empty(len(pairs))
    for dataset in pairs["dataset"].unique():
        held = pairs["dataset"] == dataset
        for backbone in pairs.loc[held, "backbone"].unique() if backbone_too else [None]:
            test = held & (pairs["backbone"] == backbone) if backbone_too else held
            train = ~held & (pairs["backbone"] != backbone) if backbone_too else ~held
            fold = fit_ridge(pairs[train], accuracies, penalties=penalties)
            for number in np.flatnonzero(test.to_numpy()):
                statistics = dict(zip(STATISTICS, _matrix(pairs.iloc[[number]])[0], strict=True))
                predicted[number] = fold.predict(statistics).predicted
    return predicted


def _by_fold(pairs: pd.DataFrame, value: Callable[[pd.DataFrame], float]) -> Floats:
    of_dataset = {name: value(pairs[pairs["dataset"] != name]) for name in pairs["dataset"].unique()}
    return pairs["dataset"].map(of_dataset).to_numpy(np.float64)


class Losses:
    """Accuracy lost against a pair's best, between the grid's inverse temperatures by linear interpolation."""

    def __init__(self, pairs: pd.DataFrame, accuracies: pd.DataFrame) -> None:
        curves = dict(iter(accuracies.groupby(KEYS, sort=False)))
        self._curves = [
            (curve["inverse_temperature"].to_numpy(np.float64), curve["test_accuracy"].to_numpy(np.float64))
            for curve in (curves[key] for key in pairs[KEYS].itertuples(index=False, name=None))
        ]

    def of(self, rows: Sequence[int] | NDArray[np.intp], inverse_temperatures: Sequence[float] | Floats) -> Floats:
        """The loss of some pairs, each at its own inverse temperature: fractions, shape (rows,)."""
        found = []
        for row, value in zip(rows, inverse_temperatures, strict=True):
            grid, accuracy = self._curves[row]
            found.append(accuracy.max() - np.interp(value, grid, accuracy))
        return np.asarray(found)

    def best_constant(self) -> float:
        """The grid's value that costs least on average."""
        rows, grid = range(len(self._curves)), self._curves[0][0]
        return float(min(grid, key=lambda value: self.of(rows, [value] * len(self._curves)).mean()))


@dataclass(frozen=True)
class _Ridge:
    coefficients: Floats
    intercept: float
    mean: Floats
    sd: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, values: Floats, target: Floats, penalty: float) -> _Ridge:
        mean, sd = values.mean(0), values.std(0)
        sd = np.where(sd > 0, sd, 1.0)  # A constant statistic says nothing, and gets the coefficient 0.
        design = (values - mean) / sd
        gram = design.T @ design + penalty * np.eye(design.shape[1])
        coefficients = np.linalg.solve(gram, design.T @ (target - target.mean()))
        return cls(coefficients, target.mean(), mean, sd, values.min(0), values.max(0))

    def predict(self, values: Floats) -> Floats:
        clamped = (np.clip(values, self.low, self.high) - self.mean) / self.sd
        predicted: Floats = np.clip(np.exp(self.intercept + clamped @ self.coefficients), *SEARCHED_RANGE)
        return predicted


def _matrix(pairs: pd.DataFrame) -> Floats:
    return pairs[list(STATISTICS)].to_numpy(np.float64)

"""The heuristic that `suggest` asks (source: ours): ridge regression of the logarithm of the best inverse temperature.

The paper predicts the inverse temperature itself by least squares (`regression`). Errors of that prediction matter by
ratio, not by difference, and 23 correlated statistics of a hundred pairs want shrinkage; hence the logarithm and the
ridge. What is scored with data sets left out (`leave_one_out_loss`) is what is shipped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["softmax-temperature ridge heuristic"] = "softmax-temperature ridge heuristic"
    terms: dict[str, Term]
    intercept: FiniteFloat
    penalty: PositiveFloat
    constant: PositiveFloat
    n_pairs: PositiveInt
    datasets: tuple[str, ...]

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


def fit_ridge(pairs: pd.DataFrame, accuracies: pd.DataFrame, *, penalties: Sequence[float] = PENALTIES) -> RidgeHeuristic:
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


def leave_one_out_loss(
    pairs: pd.DataFrame,
    accuracies: pd.DataFrame,
    *,
    penalties: Sequence[float] = PENALTIES,
    backbone_too: bool = False,
) -> pd.DataFrame:
    """What following the heuristic costs on data sets that it was not fitted on.

    Args:
        pairs, accuracies, penalties: As in `fit_ridge`, which is run on each fold.
        backbone_too: Leave the pair's backbone out of its fold as well.

    Returns:
        One row for each pair: dataset, backbone, `predicted`, `lost` and `lost_by_constant` (fractions of accuracy
        below the pair's best).
    """
    loss, rows = Losses(pairs, accuracies), []
    for dataset in pairs["dataset"].unique():
        held = pairs["dataset"] == dataset
        for backbone in pairs.loc[held, "backbone"].unique() if backbone_too else [None]:
            test = held & (pairs["backbone"] == backbone) if backbone_too else held
            train = ~held & (pairs["backbone"] != backbone) if backbone_too else ~held
            fold = fit_ridge(pairs[train], accuracies, penalties=penalties)
            for number in np.flatnonzero(test.to_numpy()):
                row = pairs.iloc[number]
                predicted = fold.predict(row[list(STATISTICS)].astype(float).to_dict()).predicted
                lost, constant = (float(loss.of([number], [value])[0]) for value in (predicted, fold.constant))
                rows.append([row["dataset"], row["backbone"], predicted, lost, constant])
    return pd.DataFrame(rows, columns=[*KEYS, "predicted", "lost", "lost_by_constant"])


class Losses:
    """Accuracy lost against a pair's best, between the grid's inverse temperatures by linear interpolation."""

    def __init__(self, pairs: pd.DataFrame, accuracies: pd.DataFrame) -> None:
        curves = {key: group for key, group in accuracies.groupby(KEYS, sort=False)}
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

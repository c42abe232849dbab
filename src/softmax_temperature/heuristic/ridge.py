"""The heuristic that `suggest` asks (source: ours): ridge regression of the logarithm
of the best inverse temperature.

The paper's least squares predict the inverse temperature itself; but errors matter by
ratio, and 23 correlated statistics of a hundred pairs want shrinkage. What
`score_rules` scores on left-out data sets is what is shipped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    PositiveFloat,
    PositiveInt,
)

from softmax_temperature.dataset_statistics import STATISTICS
from softmax_temperature.heuristic.pairs import (
    KEYS,
    SEARCHED_RANGE,
    Floats,
    Regression,
    Rows,
    best_penalty,
    check_datasets,
    finite,
    floats,
    matrix,
    regress,
)

PENALTIES = (
    1.0,
    3.0,
    10.0,
    30.0,
    100.0,
)  # Of the sum of squared coefficients of standardised statistics.
HEURISTIC, WITHOUT_BACKBONE = "heuristic", "heuristic, backbone left out too"
CONSTANT, MEDIAN = "best constant", "median of the study"
SQUARE_ROOT, VALIDATION = "square root of dimension", "search on validation data"
"""The rules that `score_rules` scores."""


class Term(BaseModel):
    """One statistic: coefficient × (clamped value − mean) / sd, fitted on values in
    [low, high].
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    coefficient: FiniteFloat
    mean: FiniteFloat
    sd: Annotated[FiniteFloat, Field(gt=0)]
    low: FiniteFloat
    high: FiniteFloat


@dataclass(frozen=True)
class RidgeEstimate:
    """What the heuristic says of one set of embeddings."""

    # The value to use: the prediction inside the fitted range, the constant outside.
    inverse_temperature: float
    predicted: float
    outside: tuple[str, ...]  # The statistics that lie outside the range of the fit.

    @property
    def inside(self) -> bool:
        """Whether every statistic lies in the range of the fit."""
        return not self.outside


class RidgeHeuristic(BaseModel):
    """A fitted heuristic; plain numbers, saved as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["softmax-temperature ridge heuristic"] = (
        "softmax-temperature ridge heuristic"
    )
    terms: dict[str, Term]  # By statistic.
    intercept: FiniteFloat  # The mean logarithm of the best inverse temperature.
    penalty: PositiveFloat
    # The inverse temperature that costs least over all pairs of the fit.
    constant: PositiveFloat
    n_pairs: PositiveInt
    datasets: tuple[str, ...]
    # Accuracy that following each rule of `score_rules` cost on left-out data sets:
    # mean, 90th percentile and worst.
    lost: dict[str, tuple[float, float, float]] = {}

    def predict(self, statistics: Mapping[str, float]) -> RidgeEstimate:
        """The inverse temperature for statistics by name; ValueError if one is missing
        or not finite.
        """
        total, outside = self.intercept, []
        for (name, term), value in zip(
            self.terms.items(), finite(statistics, [*self.terms]).tolist(), strict=True
        ):
            if not term.low <= value <= term.high:
                outside.append(name)
            total += (
                term.coefficient
                * (min(max(value, term.low), term.high) - term.mean)
                / term.sd
            )
        predicted = min(max(math.exp(total), SEARCHED_RANGE[0]), SEARCHED_RANGE[1])
        return RidgeEstimate(
            self.constant if outside else predicted, predicted, tuple(outside)
        )


def fit_ridge(pairs: pd.DataFrame, accuracies: pd.DataFrame) -> RidgeHeuristic:
    """Fit on all pairs; the penalty is the one that loses least when each data set is
    left out in turn.

    `pairs` are as in the package, `accuracies` have `test_accuracy` for each pair and
    inverse temperature of one grid. A pair that was searched with several
    initialisations weighs 1 / (v + mean of v over pairs), scaled to mean 1, where v,
    `log_variance` in `pairs`, is the variance of the logarithm of its best inverse
    temperature over them; the mean is the floor that two initialisations which happen
    to agree need. Without such searches all pairs weigh the same.
    """
    study = Study.of(pairs, accuracies)
    everything = np.arange(len(pairs))
    fitted, penalty = study.fitted(everything)
    columns = zip(
        STATISTICS,
        fitted.coefficients,
        fitted.mean,
        fitted.scale,
        fitted.low,
        fitted.high,
        strict=True,
    )
    return RidgeHeuristic(
        terms={
            name: Term(**dict(zip(Term.model_fields, map(float, row), strict=True)))
            for name, *row in columns
        },
        intercept=fitted.intercept,
        penalty=penalty,
        constant=study.best_constant(everything),
        n_pairs=len(pairs),
        datasets=tuple(pairs["dataset"].unique()),
    )


def score_rules(pairs: pd.DataFrame, accuracies: pd.DataFrame) -> pd.DataFrame:
    """What following each rule costs on data sets that it was not fitted on;
    `fit_ridge` is run on each fold.

    Rows `rule`, `dataset`, `backbone`, `inverse_temperature`, `lost` (fraction of
    accuracy below the pair's best). The rules are fitted on the other data sets
    (HEURISTIC; WITHOUT_BACKBONE, of several backbones; CONSTANT; MEDIAN), or need no
    fit: SQUARE_ROOT, and VALIDATION where `pairs` has a column
    `inverse_temperature_validation`.
    """
    study, backbones = Study.of(pairs, accuracies), pairs["backbone"].to_numpy()
    several = len(np.unique(backbones)) > 1
    fitted = (HEURISTIC, *[WITHOUT_BACKBONE] * several, CONSTANT, MEDIAN)
    values = {name: np.empty(len(pairs)) for name in fitted}
    for dataset in np.unique(study.datasets):
        own, others = (
            np.flatnonzero(study.datasets == dataset),
            np.flatnonzero(study.datasets != dataset),
        )
        values[HEURISTIC][own] = predicted(
            study.fitted(others)[0], study.statistics[own]
        )
        for row in own if several else ():
            rest = others[backbones[others] != backbones[row]]
            if len(rest):
                values[WITHOUT_BACKBONE][row] = predicted(
                    study.fitted(rest)[0], study.statistics[[row]]
                )[0]
        values[CONSTANT][own] = study.best_constant(others)
        values[MEDIAN][own] = np.median(floats(pairs, "inverse_temperature")[others])
    values[SQUARE_ROOT] = np.sqrt(floats(pairs, "dim"))  # As in attention.
    if "inverse_temperature_validation" in pairs:
        values[VALIDATION] = floats(pairs, "inverse_temperature_validation")
    every = np.arange(len(pairs))
    tables = [
        pairs[KEYS].assign(
            rule=rule, inverse_temperature=chosen, lost=study.lost(every, chosen)
        )
        for rule, chosen in values.items()
    ]
    return pd.concat(tables, ignore_index=True)[
        ["rule", *KEYS, "inverse_temperature", "lost"]
    ]


def fit_shipped(
    pairs: pd.DataFrame, accuracies: pd.DataFrame, scores: pd.DataFrame
) -> RidgeHeuristic:
    """The heuristic with what it and other rules cost according to `score_rules`, as
    `suggest` ships it.
    """
    rules = scores.groupby("rule", sort=False)["lost"]
    lost = {
        str(rule): (one.mean(), one.quantile(0.9), one.max()) for rule, one in rules
    }
    return fit_ridge(pairs, accuracies).model_copy(update={"lost": lost})


def shipped() -> RidgeHeuristic:
    """The heuristic that comes with the package, fitted on results/collection."""
    text = (files("softmax_temperature.heuristic") / "heuristic.json").read_text(
        encoding="utf-8"
    )
    return RidgeHeuristic.model_validate_json(text)


def predicted(fitted: Regression, values: Floats) -> Floats:
    """Inverse temperatures for rows of statistics, which are clamped to the range of
    the fit.
    """
    return np.clip(
        np.exp(fitted.predict(np.clip(values, fitted.low, fitted.high))),
        *SEARCHED_RANGE,
    )


@dataclass(frozen=True)
class Study:
    """Pairs as arrays: statistics, logarithms of the best inverse temperatures, data
    sets, accuracies on the grid.
    """

    statistics: Floats
    target: Floats
    weights: Floats
    datasets: NDArray[Any]
    grid: Floats
    accuracies: Floats

    @classmethod
    def of(cls, pairs: pd.DataFrame, accuracies: pd.DataFrame) -> Study:
        """The arrays of a study, as `fit_ridge` takes it; ValueError for fewer than
        three data sets.
        """
        check_datasets(pairs)
        curves = accuracies.pivot(
            index=KEYS, columns="inverse_temperature", values="test_accuracy"
        )
        variance = pairs.get("log_variance", pd.Series(0.0, pairs.index)).to_numpy(
            np.float64
        )
        weights = (
            1 / (variance + variance.mean()) if variance.any() else np.ones(len(pairs))
        )
        target, datasets = (
            np.log(floats(pairs, "inverse_temperature")),
            pairs["dataset"].to_numpy(),
        )
        grid, rows = (
            curves.columns.to_numpy(np.float64),
            curves.loc[pd.MultiIndex.from_frame(pairs[KEYS])],
        )
        weights = weights / weights.mean()
        return cls(
            matrix(pairs, STATISTICS),
            target,
            weights,
            datasets,
            grid,
            rows.to_numpy(np.float64),
        )

    def fitted(self, rows: Rows) -> tuple[Regression, float]:
        """The fit on some rows, with the penalty that loses least when each of their
        data sets is left out.
        """

        def fit(some: Rows, penalty: float) -> Regression:
            return regress(
                self.statistics[some], self.target[some], penalty, self.weights[some]
            )

        def lost(own: Rows, others: Rows, penalty: float) -> Floats:
            return self.lost(
                rows[own],
                predicted(fit(rows[others], penalty), self.statistics[rows[own]]),
            )

        penalty = best_penalty(PENALTIES, self.datasets[rows], lost)
        return fit(rows, penalty), penalty

    def accuracy(self, rows: Rows, inverse_temperatures: Floats) -> Floats:
        """Accuracy of each row at its own inverse temperature, interpolated between the
        grid's.
        """
        each = zip(inverse_temperatures, self.accuracies[rows], strict=True)
        return np.array(
            [np.interp(value, self.grid, accuracies) for value, accuracies in each]
        )

    def lost(self, rows: Rows, inverse_temperatures: Floats) -> Floats:
        """The same below the best of the row."""
        return np.asarray(
            self.accuracies[rows].max(axis=1)
            - self.accuracy(rows, inverse_temperatures)
        )

    def best_constant(self, rows: Rows) -> float:
        """The grid's value that costs least on average."""
        lost = self.accuracies[rows].max(axis=1, keepdims=True) - self.accuracies[rows]
        return float(self.grid[lost.mean(axis=0).argmin()])

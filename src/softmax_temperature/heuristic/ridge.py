"""The heuristic behind `suggest`: ridge regression of a logarithm (source: ours).

The paper's least squares predicts the best inverse temperature itself. Ours predicts
its logarithm, because errors matter by ratio, and shrinks the coefficients, because the
23 statistics of about a hundred pairs are correlated. `score_rules` scores the shipped
rule itself, on left-out data sets.
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
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    PositiveFloat,
    PositiveInt,
)

from softmax_temperature.dataset_statistics import STATISTICS
from softmax_temperature.heuristic.linear_model import (
    Regression,
    best_penalty,
    leave_one_group_out,
    ridge_path,
)
from softmax_temperature.heuristic.pairs import (
    KEYS,
    SEARCHED_RANGE,
    Floats,
    Rows,
    check_datasets,
    finite,
    floats,
    matrix,
)

# The penalties multiply the sum of squared coefficients of the standardised statistics.
PENALTIES = (1.0, 3.0, 10.0, 30.0, 100.0)

# The rules that `score_rules` scores.
HEURISTIC = "heuristic"
WITHOUT_BACKBONE = "heuristic, backbone left out too"
CONSTANT = "best constant"
MEDIAN = "median of the study"
SQUARE_ROOT = "square root of dimension"
VALIDATION = "search on validation data"


class Term(BaseModel):
    """One statistic's contribution: coefficient × (clamped value − mean) / sd.

    The value is clamped to [low, high], the range of the fit.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    coefficient: FiniteFloat
    mean: FiniteFloat
    sd: Annotated[FiniteFloat, Field(gt=0)]
    low: FiniteFloat
    high: FiniteFloat


@dataclass(frozen=True)
class RidgeEstimate:
    """The heuristic's answer for one set of embeddings.

    Attributes:
        inverse_temperature: The value to use: `predicted` if all statistics lie in the
            range of the fit, otherwise the `constant` of the `RidgeHeuristic`.
        predicted: The prediction.
        outside: The statistics outside the range of the fit.
    """

    inverse_temperature: float
    predicted: float
    outside: tuple[str, ...]

    @property
    def inside(self) -> bool:
        """Whether every statistic lies in the range of the fit."""
        return not self.outside


class Lost(BaseModel):
    """Accuracy that each rule loses on the pairs inside the range, or on those outside.

    A pair is inside if each of its statistics lies in the range of that statistic over
    the pairs from all other data sets.

    Attributes:
        pairs: Number of pairs on this side.
        lost: Accuracy lost by each rule, as in `RidgeHeuristic`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    pairs: PositiveInt
    lost: dict[str, tuple[float, float, float]]


class RidgeHeuristic(BaseModel):
    """A fitted heuristic, which consists of plain numbers and is saved as JSON.

    Attributes:
        format: Identifies the file format.
        terms: Contribution of each statistic, keyed by the statistic's name.
        intercept: Mean logarithm of the best inverse temperature, weighted as in the
            fit.
        penalty: The chosen ridge penalty.
        constant: The inverse temperature that loses the least accuracy over all pairs
            of the fit.
        n_pairs: Number of pairs in the fit.
        datasets: Names of the data sets in the fit.
        lost: Accuracy that each rule of `score_rules` lost on left-out data sets: the
            mean, the 90th percentile and the maximum, as fractions.
        inside: The accuracy lost on pairs inside the range of the other data sets; None
            if there are no such pairs, or if the file lacks this field.
        outside: The accuracy lost on the other pairs, as in `inside`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["softmax-temperature ridge heuristic"] = (
        "softmax-temperature ridge heuristic"
    )
    terms: dict[str, Term]
    intercept: FiniteFloat
    penalty: PositiveFloat
    constant: PositiveFloat
    n_pairs: PositiveInt
    datasets: tuple[str, ...]
    lost: dict[str, tuple[float, float, float]] = {}
    inside: Lost | None = None
    outside: Lost | None = None

    def predict(self, statistics: Mapping[str, float]) -> RidgeEstimate:
        """Predict the best inverse temperature for one set of embeddings.

        Raises:
            ValueError: If a statistic is missing or not finite.
        """
        values = finite(statistics, list(self.terms)).tolist()
        logarithm = self.intercept
        outside = []
        for (name, term), value in zip(self.terms.items(), values, strict=True):
            if not term.low <= value <= term.high:
                outside.append(name)
            clamped = min(max(value, term.low), term.high)
            logarithm += term.coefficient * (clamped - term.mean) / term.sd
        lowest, highest = SEARCHED_RANGE
        predicted = min(max(math.exp(logarithm), lowest), highest)
        inverse_temperature = self.constant if outside else predicted
        return RidgeEstimate(inverse_temperature, predicted, tuple(outside))


def fit_ridge(pairs: pd.DataFrame, accuracies: pd.DataFrame) -> RidgeHeuristic:
    """Fit the heuristic on all pairs.

    The chosen penalty loses the least accuracy when each data set is left out in turn.
    If pairs were searched with several initialisations, a pair has weight 1 / (v + mean
    of v over pairs), scaled to mean 1. v, the column `log_variance`, is the variance
    over initialisations of the logarithm of the best inverse temperature. Adding the
    mean keeps a pair whose initialisations agree by chance from getting an excessive
    weight. If each pair was searched with one initialisation only, all pairs have the
    same weight.

    Args:
        pairs: Pairs as defined in the package's docstring.
        accuracies: One row per pair and inverse temperature, with columns `dataset`,
            `backbone`, `inverse_temperature` and `test_accuracy`. All pairs have the
            same grid.
    """
    study = Study.of(pairs, accuracies)
    all_rows = np.arange(len(pairs))
    regression, penalty = study.fitted(all_rows)
    terms = {}
    for index, name in enumerate(STATISTICS):
        terms[name] = Term(
            coefficient=float(regression.coefficients[index]),
            mean=float(regression.mean[index]),
            sd=float(regression.scale[index]),
            low=float(regression.low[index]),
            high=float(regression.high[index]),
        )
    return RidgeHeuristic(
        terms=terms,
        intercept=regression.intercept,
        penalty=penalty,
        constant=study.best_constant(all_rows),
        n_pairs=len(pairs),
        datasets=tuple(pairs["dataset"].unique()),
    )


def score_rules(pairs: pd.DataFrame, accuracies: pd.DataFrame) -> pd.DataFrame:
    """Compute the accuracy that each rule loses on data sets that it was not fitted on.

    The arguments are those of `fit_ridge`. HEURISTIC, CONSTANT and MEDIAN are fitted on
    the other data sets. For each pair, WITHOUT_BACKBONE is fitted on the pairs that
    share neither the data set nor the backbone; if some pair has no such pairs, this
    rule is not scored. SQUARE_ROOT needs no fit. VALIDATION is scored if `pairs` has
    the column `inverse_temperature_validation`.

    Returns:
        Columns `rule`, `dataset`, `backbone`, `inverse_temperature` (the rule's
        choice), and `lost`, the pair's highest accuracy minus its accuracy at that
        choice, as a fraction.
    """
    study = Study.of(pairs, accuracies)
    backbones = pairs["backbone"].to_numpy()
    optima = floats(pairs, "inverse_temperature")
    choices = {HEURISTIC: np.empty(len(pairs))}
    without_backbone = _without_dataset_and_backbone(study, backbones)
    if without_backbone is not None:
        choices[WITHOUT_BACKBONE] = without_backbone
    choices[CONSTANT] = np.empty(len(pairs))
    choices[MEDIAN] = np.empty(len(pairs))
    for train, test in leave_one_group_out(study.datasets):
        regression, _ = study.fitted(train)
        choices[HEURISTIC][test] = predicted(regression, study.statistics[test])
        choices[CONSTANT][test] = study.best_constant(train)
        choices[MEDIAN][test] = np.median(optima[train])
    # Attention divides products by sqrt(dim). For vectors of length sqrt(dim), the
    # quotient is their cosine times sqrt(dim).
    choices[SQUARE_ROOT] = np.sqrt(floats(pairs, "dim"))
    if "inverse_temperature_validation" in pairs:
        choices[VALIDATION] = floats(pairs, "inverse_temperature_validation")
    all_rows = np.arange(len(pairs))
    tables = []
    for rule, inverse_temperatures in choices.items():
        table = pairs[KEYS].assign(
            inverse_temperature=inverse_temperatures,
            lost=study.lost(all_rows, inverse_temperatures),
        )
        table.insert(0, "rule", rule)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def inside_range_of_others(pairs: pd.DataFrame) -> NDArray[np.bool_]:
    """Whether each pair is inside the range of the other data sets' pairs.

    A pair is inside if each of its statistics lies between the minimum and the maximum
    of that statistic over the pairs from all other data sets. The result has shape
    (pairs,).
    """
    check_datasets(pairs)
    statistics = matrix(pairs, STATISTICS)
    inside = np.empty(len(pairs), dtype=np.bool_)
    for others, own in leave_one_group_out(pairs["dataset"].to_numpy()):
        low = statistics[others].min(axis=0)
        high = statistics[others].max(axis=0)
        values = statistics[own]
        inside[own] = ((values >= low) & (values <= high)).all(axis=1)
    return inside


def _without_dataset_and_backbone(
    study: Study, backbones: NDArray[Any]
) -> Floats | None:
    """Predict each pair from the pairs that share neither data set nor backbone.

    The result is None if one of the pairs has no such pairs to fit on.
    """
    predictions = np.empty(len(backbones))
    for train, test in leave_one_group_out(study.datasets):
        for row in test:
            unrelated = train[backbones[train] != backbones[row]]
            if not len(unrelated):
                return None
            regression, _ = study.fitted(unrelated)
            predictions[[row]] = predicted(regression, study.statistics[[row]])
    return predictions


def fit_shipped(
    pairs: pd.DataFrame, accuracies: pd.DataFrame, scores: pd.DataFrame
) -> RidgeHeuristic:
    """Fit the heuristic that `suggest` uses, with the accuracy that each rule loses.

    The table `scores`, which `score_rules` returns, determines the heuristic's fields
    `lost`, `inside` and `outside`.
    """
    return fit_ridge(pairs, accuracies).model_copy(update=losses(pairs, scores))


def losses(pairs: pd.DataFrame, scores: pd.DataFrame) -> dict[str, Any]:
    """Compute the fields `lost`, `inside` and `outside` of a `RidgeHeuristic`.

    The table `scores` is the return value of `score_rules`.
    """
    is_inside = pd.Series(
        inside_range_of_others(pairs), index=pd.MultiIndex.from_frame(pairs[KEYS])
    )
    inside = is_inside[pd.MultiIndex.from_frame(scores[KEYS])].to_numpy()
    sides = {"inside": inside, "outside": ~inside}
    return {
        "lost": _lost(scores),
        **{name: _lost_on(scores[rows]) for name, rows in sides.items()},
    }


def _lost(scores: pd.DataFrame) -> dict[str, tuple[float, float, float]]:
    """Summarise the accuracy that each rule lost.

    The summary is the mean, the 90th percentile and the maximum.
    """
    lost = {}
    for rule, fractions in scores.groupby("rule", sort=False)["lost"]:
        spread = (fractions.mean(), fractions.quantile(0.9), fractions.max())
        mean, percentile, most = map(float, spread)
        lost[str(rule)] = (mean, percentile, most)
    return lost


def _lost_on(scores: pd.DataFrame) -> Lost | None:
    if scores.empty:
        return None
    return Lost(pairs=len(scores[KEYS].drop_duplicates()), lost=_lost(scores))


def shipped() -> RidgeHeuristic:
    """Load the heuristic that is shipped with the package.

    It was fitted on the study in results/collection.
    """
    file = files("softmax_temperature.heuristic") / "heuristic.json"
    return RidgeHeuristic.model_validate_json(file.read_text(encoding="utf-8"))


def predicted(regression: Regression, values: Floats) -> Floats:
    """Predict the best inverse temperature for each row of `values`.

    The values are clamped to the range of the fit, and the predictions to the searched
    range.
    """
    clamped = np.clip(values, regression.low, regression.high)
    return np.clip(np.exp(regression.predict(clamped)), *SEARCHED_RANGE)


@dataclass(frozen=True)
class Study:
    """The pairs of a study, with their statistics and accuracies as arrays.

    Attributes:
        statistics: Shape (pairs, statistics).
        target: Logarithm of the best inverse temperature, shape (pairs,).
        weights: Weight of each pair in the regression, with mean 1; see `fit_ridge`.
        datasets: Data set of each pair.
        grid: The searched inverse temperatures, ascending.
        accuracies: Accuracy of each pair at each value of `grid`, shape (pairs, grid).
    """

    statistics: Floats
    target: Floats
    weights: Floats
    datasets: NDArray[Any]
    grid: Floats
    accuracies: Floats

    @classmethod
    def of(cls, pairs: pd.DataFrame, accuracies: pd.DataFrame) -> Study:
        """Build the arrays; raise ValueError if `pairs` has fewer than three data sets.

        The arguments are those of `fit_ridge`.
        """
        check_datasets(pairs)
        curves = accuracies.pivot(
            index=KEYS, columns="inverse_temperature", values="test_accuracy"
        )
        curves_of_pairs = curves.loc[pd.MultiIndex.from_frame(pairs[KEYS])]
        return cls(
            statistics=matrix(pairs, STATISTICS),
            target=np.log(floats(pairs, "inverse_temperature")),
            weights=_weights(pairs),
            datasets=pairs["dataset"].to_numpy(),
            grid=curves.columns.to_numpy(np.float64),
            accuracies=curves_of_pairs.to_numpy(np.float64),
        )

    def fitted(self, rows: Rows) -> tuple[Regression, float]:
        """Fit the regression to the given `rows`, and return it with its penalty.

        The chosen penalty loses the least accuracy when each data set among the rows is
        left out in turn.
        """

        def lost(train: Rows, test: Rows) -> Floats:
            test_rows = rows[test]
            losses = [
                self.lost(test_rows, predicted(regression, self.statistics[test_rows]))
                for regression in self._path(rows[train], PENALTIES)
            ]
            return np.array(losses)

        penalty = best_penalty(PENALTIES, self.datasets[rows], lost)
        (regression,) = self._path(rows, (penalty,))
        return regression, penalty

    def _path(self, rows: Rows, penalties: Sequence[float]) -> list[Regression]:
        """Fit the regression to the given `rows`, once with each of `penalties`."""
        return ridge_path(
            self.statistics[rows], self.target[rows], penalties, self.weights[rows]
        )

    def accuracy(self, rows: Rows, inverse_temperatures: Floats) -> Floats:
        """Interpolate each row's accuracy at its inverse temperature."""
        curves = self.accuracies[rows]
        interpolated = [
            np.interp(inverse_temperature, self.grid, curve)
            for inverse_temperature, curve in zip(
                inverse_temperatures, curves, strict=True
            )
        ]
        return np.array(interpolated)

    def lost(self, rows: Rows, inverse_temperatures: Floats) -> Floats:
        """Each row's best accuracy minus its accuracy at its inverse temperature."""
        best = self.accuracies[rows].max(axis=1)
        return np.asarray(best - self.accuracy(rows, inverse_temperatures))

    def best_constant(self, rows: Rows) -> float:
        """Choose the inverse temperature that loses the least accuracy over `rows`."""
        curves = self.accuracies[rows]
        lost = curves.max(axis=1, keepdims=True) - curves
        return float(self.grid[lost.mean(axis=0).argmin()])


def _weights(pairs: pd.DataFrame) -> Floats:
    """Compute the weight of each pair, with mean 1; see `fit_ridge`."""
    if "log_variance" not in pairs:
        return np.ones(len(pairs))
    variance = pairs["log_variance"].to_numpy(np.float64)
    if not variance.any():
        return np.ones(len(pairs))
    weights = 1 / (variance + variance.mean())
    return np.asarray(weights / weights.mean())

"""The linear regression on standardised statistics that the paper's rule and ours share."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softmax_temperature.heuristic.pairs import Floats, is_constant

Rows = NDArray[np.intp]


class Regression(NamedTuple):
    """A plane through standardised statistics, fitted on values in [low, high]; arrays of shape (statistics,)."""

    coefficients: Floats
    intercept: float
    mean: Floats
    scale: Floats
    low: Floats
    high: Floats

    def predict(self, values: Floats) -> Floats:
        """The plane's value for rows of statistics, shape (rows, statistics)."""
        return self.intercept + ((values - self.mean) / self.scale) @ self.coefficients


def regress(values: Floats, target: Floats, penalty: float | None, weights: Floats | None = None) -> Regression:
    """Fit by ridge regression or, without a penalty, by least squares, which ignores the weights (of mean 1).

    Values (rows, statistics): a constant one gets the coefficient 0. The penalty is on standardised statistics.
    """
    weights = np.ones(len(target)) if weights is None else weights
    mean, scale, design = standardised(values, weights)
    intercept = float(np.average(target, weights=weights))
    if penalty is None:
        # Deviation: with all 23 statistics the paper's least squares need not have one answer: some statistics follow
        # from others, some are the same for all pairs of a data set. Of the equally good answers this is the shortest;
        # directions below 1e-6 of the largest count as round-off, so that the answer is the same on every machine.
        coefficients = np.asarray(np.linalg.lstsq(design, target - intercept, rcond=1e-6)[0], dtype=np.float64)
    else:
        coefficients = ridge(design, target - intercept, penalty, weights)
    return Regression(coefficients, intercept, mean, scale, values.min(axis=0), values.max(axis=0))


def ridge(design: Floats, target: Floats, penalty: float, weights: Floats | float = 1.0) -> Floats:
    """Coefficients of ridge regression; design, shape (rows, statistics), and target are centred."""
    weighted = design.T * weights
    solution = np.linalg.solve(weighted @ design + penalty * np.eye(design.shape[1]), weighted @ target)
    return np.asarray(solution, dtype=np.float64)


def standardised(values: Floats, weights: Floats | None = None) -> tuple[Floats, Floats, Floats]:
    """Mean, scale and standardised values of each column; a constant column has scale 1 and becomes 0."""
    constant = np.array([is_constant(column) for column in values.T])
    mean = np.average(values, axis=0, weights=weights)
    scale = np.where(constant, 1.0, np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weights)))
    return mean, scale, np.where(constant, 0.0, (values - mean) / scale)


def best_penalty(
    penalties: Sequence[float], datasets: NDArray[Any], error: Callable[[Rows, Rows, float], Floats]
) -> float:
    """The penalty with the least mean error of left-out data sets, each of which counts as much as the next.

    `error` is that of the rows of one data set, from those of the others and a penalty.
    """
    rows = np.arange(len(datasets))
    folds = [(rows[datasets == name], rows[datasets != name]) for name in np.unique(datasets)]
    return min(penalties, key=lambda penalty: np.mean([error(own, others, penalty).mean() for own, others in folds]))

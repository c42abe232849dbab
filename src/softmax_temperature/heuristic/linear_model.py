"""Linear regression on standardised statistics by least squares or ridge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softmax_temperature.heuristic.pairs import Floats, Rows, is_constant

# Singular values below this fraction of the largest one count as round-off.
LEAST_SINGULAR_VALUE = 1e-6


class Regression(NamedTuple):
    """A linear function of standardised statistics.

    Attributes:
        coefficients: Coefficient of each statistic, shape (statistics,), which is also
            the shape of the four arrays below.
        intercept: The value at the mean of the statistics.
        mean: Mean of each statistic.
        scale: Standard deviation of each statistic; 1 if it is constant.
        low: Smallest value of each statistic in the fit.
        high: Largest value of each statistic in the fit.
    """

    coefficients: Floats
    intercept: float
    mean: Floats
    scale: Floats
    low: Floats
    high: Floats

    def predict(self, values: Floats) -> Floats:
        """Evaluate the function at each row of `values`, shape (rows, statistics)."""
        return self.intercept + ((values - self.mean) / self.scale) @ self.coefficients


def least_squares(values: Floats, target: Floats) -> Regression:
    """Regress `target` (rows,) on `values` (rows, statistics) by least squares."""
    mean, scale, design = standardised(values)
    intercept = float(np.average(target))
    # Deviation: among equally good solutions of the paper's least squares we take the
    # one with the smallest norm. With all 23 statistics the solution need not be
    # unique: some statistics follow from others, and some are equal for all pairs of a
    # data set. Small singular values count as round-off, so that the answer is the same
    # on every machine.
    solution = np.linalg.lstsq(design, target - intercept, rcond=LEAST_SINGULAR_VALUE)
    coefficients = np.asarray(solution[0], dtype=np.float64)
    low = values.min(axis=0)
    high = values.max(axis=0)
    return Regression(coefficients, intercept, mean, scale, low, high)


def ridge(
    values: Floats, target: Floats, penalty: float, weights: Floats | None = None
) -> Regression:
    """Regress `target` (rows,) on `values` (rows, statistics) by ridge regression.

    `penalty` multiplies the squared coefficients of the standardised statistics.
    `weights` (rows,) have mean 1, and are all 1 by default.
    """
    (regression,) = ridge_path(values, target, (penalty,), weights)
    return regression


def ridge_path(
    values: Floats,
    target: Floats,
    penalties: Sequence[float],
    weights: Floats | None = None,
) -> list[Regression]:
    """Fit a ridge regression for each of `penalties`; other arguments as in `ridge`."""
    if weights is None:
        weights = np.ones(len(target))
    mean, scale, design = standardised(values, weights)
    intercept = float(np.average(target, weights=weights))
    path = ridge_coefficients(design, target - intercept, penalties, weights)
    low = values.min(axis=0)
    high = values.max(axis=0)
    return [
        Regression(coefficients, intercept, mean, scale, low, high)
        for coefficients in path
    ]


def ridge_coefficients(
    design: Floats,
    target: Floats,
    penalties: Sequence[float],
    weights: Floats | None = None,
) -> Floats:
    """Compute the ridge coefficients of centred `design` and `target` for each penalty.

    Returns:
        Shape (penalties, statistics).
    """
    # Imported here because the import takes a second and the `plan` command does not
    # need it.
    from sklearn.linear_model import ridge_regression

    # Solve for all penalties in one call, each with a copy of the target:
    # scikit-learn's argument checks take longer than the solution.
    targets = np.tile(target[:, None], len(penalties))
    coefficients = ridge_regression(
        design,
        targets,
        alpha=np.array(penalties),
        sample_weight=weights,
        solver="cholesky",
    )
    # With a single penalty scikit-learn returns a one-dimensional array.
    return np.asarray(coefficients, dtype=np.float64).reshape(len(penalties), -1)


def standardised(
    values: Floats, weights: Floats | None = None
) -> tuple[Floats, Floats, Floats]:
    """Standardise `values`; return each column's mean and scale, and the new values.

    A constant column has scale 1 and becomes 0.
    """
    constant = np.array([is_constant(column) for column in values.T])
    mean = np.average(values, axis=0, weights=weights)
    variance = np.average((values - mean) ** 2, axis=0, weights=weights)
    scale = np.where(constant, 1.0, np.sqrt(variance))
    design = np.where(constant, 0.0, (values - mean) / scale)
    return mean, scale, design


def leave_one_group_out(groups: NDArray[Any]) -> Iterator[tuple[Rows, Rows]]:
    """Yield the rows outside and inside each group, in the order of group names."""
    # Imported here because the import takes a second and the `plan` command does not
    # need it.
    from sklearn.model_selection import LeaveOneGroupOut

    yield from LeaveOneGroupOut().split(groups, groups=groups)


def best_penalty(
    penalties: Sequence[float],
    groups: NDArray[Any],
    errors: Callable[[Rows, Rows], Floats],
) -> float:
    """Choose the penalty with the smallest error on left-out groups.

    Args:
        penalties: The candidates; among ties, the first one wins.
        groups: Data set of each row.
        errors: Function from training rows and test rows to the error of each test row
            with each penalty, shape (penalties, test rows). A penalty is judged by the
            mean over groups of its mean error in each group.
    """
    folds = leave_one_group_out(groups)
    fold_errors = [errors(train, test).mean(axis=1) for train, test in folds]
    return penalties[int(np.mean(fold_errors, axis=0).argmin())]

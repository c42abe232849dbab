"""Pairs, their correlations (section 4.3, Figure 3), and the regression that the
paper's rule and ours share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softmax_temperature.dataset_statistics import STATISTICS
from softmax_temperature.runner.errors import nearest

# Leaving one out leaves two, the fewest among which a ridge penalty can in turn leave
# one out.
MINIMUM_DATASETS = 3
SEARCHED = (1.0, *(float(value) for value in range(5, 255, 5)))  # section 4.3
SEARCHED_RANGE = (SEARCHED[0], SEARCHED[-1])

KEYS = ["dataset", "backbone"]
PLATEAU = ("plateau_low", "inverse_temperature", "plateau_high")
UNTRAINED = "untrained"  # What the names of backbones with random weights begin with.
LEVEL = 0.90  # of the intervals, as everywhere in this package
COLUMNS = [
    "statistic",
    "r",
    "absolute_r",
    "p",
    "low",
    "high",
    "absolute_low",
    "absolute_high",
    "constant",
]

Floats: TypeAlias = NDArray[np.float64]
Rows: TypeAlias = NDArray[np.intp]
Pairs: TypeAlias = pd.DataFrame | Iterable[dict[str, Any]]


def identified(
    pairs: Pairs, *, max_share: float = 0.5, grid: Sequence[float] = SEARCHED
) -> pd.DataFrame:
    """The pairs whose best inverse temperature is a number rather than a plateau, in
    the order given (source: ours).

    Where accuracy saturates, the best of many equally good values is an accident of
    ties. A plateau, ends included, may hold at most `max_share`, a fraction in (0, 1],
    of the searched `grid`. Raises ValueError also if a plateau does not hold its
    optimum.
    """
    if not 0 < max_share <= 1:
        raise ValueError(f"max_share must be in (0, 1], got {max_share}")
    table = pd.DataFrame(pairs)
    _check_plateaus(table)
    low, high = matrix(table, ("plateau_low", "plateau_high")).T[:, :, None]
    share = ((np.asarray(grid) >= low) & (np.asarray(grid) <= high)).mean(axis=1)
    return table.iloc[np.flatnonzero(share <= max_share)].reset_index(drop=True)


def is_trained(rows: pd.DataFrame) -> pd.Series[bool]:
    """Whether the backbone of each row is trained: the paper has no untrained
    extractor, and no claim rests on one.
    """
    return ~rows["backbone"].str.startswith(UNTRAINED)


def checked_pairs(pairs: Pairs) -> pd.DataFrame:
    """The pairs as a table in one order, with all statistics and enough data sets."""
    table = pd.DataFrame(pairs)
    _check_columns(table, (*KEYS, "inverse_temperature", *STATISTICS))
    repeated = table[table.duplicated(KEYS)]
    if len(repeated):
        raise ValueError(
            f"pairs holds {repeated['dataset'].iloc[0]} with {repeated['backbone'].iloc[0]} twice"
        )
    if {*PLATEAU} <= {*table.columns}:
        _check_plateaus(table)
    check_datasets(table)
    if not (within := table["inverse_temperature"].between(*SEARCHED_RANGE)).all():
        wrong = table["inverse_temperature"][~within].iloc[0]
        raise ValueError(
            f"pairs must hold an inverse_temperature within {SEARCHED_RANGE}, got {wrong}"
        )
    return table.sort_values(KEYS, ignore_index=True)


def check_datasets(table: pd.DataFrame) -> None:
    """ValueError for too few data sets."""
    if (count := table["dataset"].nunique()) < MINIMUM_DATASETS:
        raise ValueError(
            f"pairs must hold at least {MINIMUM_DATASETS} data sets, got {count}"
        )


def floats(table: pd.DataFrame, name: str) -> Floats:
    """A column as an array of shape (pairs,)."""
    return table[name].to_numpy(dtype=np.float64, na_value=np.nan)


def matrix(table: pd.DataFrame, names: Sequence[str]) -> Floats:
    """The named columns as an array of shape (pairs, names)."""
    return np.stack([floats(table, name) for name in names], axis=1)


def finite(statistics: Mapping[str, float], names: Sequence[str]) -> Floats:
    """The named statistics as an array; ValueError if one is missing or not finite."""
    values = np.array([statistics.get(name, np.nan) for name in names], np.float64)
    for name, value in zip(names, values, strict=True):
        if not np.isfinite(value):
            raise ValueError(
                f"statistics[{name!r}] must be a finite number, got {value}"
            )
    return values


def _check_plateaus(table: pd.DataFrame) -> None:
    _check_columns(table, PLATEAU)
    for low, optimum, high in matrix(table, PLATEAU):
        if not low <= optimum <= high:
            raise ValueError(
                f"pairs: plateau_low {low} and plateau_high {high} must enclose the optimum {optimum}"
            )


def _check_columns(table: pd.DataFrame, names: Iterable[str]) -> None:
    for name in names:
        if name not in table.columns:
            raise ValueError(
                f"pairs lacks the column {name!r}. {nearest(name, map(str, table.columns))}"
            )
        if name not in KEYS:
            wrong = table[name][
                ~np.isfinite(pd.to_numeric(table[name], errors="coerce"))
            ]
            if len(wrong):
                raise ValueError(
                    f"pairs[{name!r}] must hold finite numbers, got {wrong.iloc[0]}"
                )


class Correlation(NamedTuple):
    """Pearson's r, its two-sided p-value, and its 90 % interval by Fisher's z; both
    take points for independent.
    """

    r: float
    p: float
    low: float
    high: float


def pearson(first: Floats, second: Floats) -> Correlation | None:
    """Pearson correlation of two arrays of shape (n,); None for fewer than three points
    or a constant side.
    """
    if len(first) < 3 or is_constant(first) or is_constant(second):
        return None
    from scipy.stats import pearsonr  # A second, which `plan` need not wait for.

    result = pearsonr(first, second)
    # Fisher's z has no standard error at three points, where SciPy warns or gives NaN.
    low, high = result.confidence_interval(LEVEL) if len(first) > 3 else (-1.0, 1.0)
    return Correlation(
        float(result.statistic), float(result.pvalue), float(low), float(high)
    )


def correlations(pairs: Pairs) -> pd.DataFrame:
    """Correlation of each statistic with the best inverse temperature (Figure 3),
    strongest first.

    Columns `statistic`, `r`, `absolute_r`, `p`, `low`, `high` (90 % interval by
    Fisher's z), `absolute_low`, `absolute_high` (what it leaves of |r|) and `constant`:
    whether r is defined as 0, with p 1 and interval [-1, 1], because a side never
    varies. Pairs of one data set are not independent: the p-values and intervals are
    optimistic.
    """
    table = checked_pairs(pairs)
    optima, rows = floats(table, "inverse_temperature"), []
    for name in STATISTICS:
        found = pearson(floats(table, name), optima)
        shown = found or Correlation(r=0.0, p=1.0, low=-1.0, high=1.0)
        low, high = sorted((abs(shown.low), abs(shown.high)))
        low = 0.0 if shown.low < 0 < shown.high else low
        rows.append((name, shown.r, abs(shown.r), *shown[1:], low, high, found is None))
    frame = pd.DataFrame(rows, columns=COLUMNS)
    return frame.iloc[strongest_first(frame["absolute_r"].to_numpy())].reset_index(
        drop=True
    )


def strongest_first(absolute: Floats) -> NDArray[np.intp]:
    """The order of absolute correlations from the largest to the smallest; ties keep
    the order given.
    """
    # Rounded, so that statistics that tie, being multiples of each other, keep their
    # order on every machine.
    return np.argsort(-absolute.round(12), kind="stable")


def is_constant(values: Floats) -> bool:
    """Whether values of shape (n,) are equal up to round-off."""
    return bool(np.ptp(values) <= 1e-9 * np.abs(values).max())


class Regression(NamedTuple):
    """A plane through standardised statistics, fitted on values in [low, high]; arrays
    of shape (statistics,).
    """

    coefficients: Floats
    intercept: float
    mean: Floats
    scale: Floats
    low: Floats
    high: Floats

    def predict(self, values: Floats) -> Floats:
        """The plane's value for rows of statistics, shape (rows, statistics)."""
        return self.intercept + ((values - self.mean) / self.scale) @ self.coefficients


def regress(
    values: Floats, target: Floats, penalty: float | None, weights: Floats | None = None
) -> Regression:
    """Fit values (rows, statistics) by ridge regression, weights of mean 1, or with no
    penalty by least squares.
    """
    weights = np.ones(len(target)) if weights is None else weights
    mean, scale, design = standardised(values, weights)
    intercept = float(np.average(target, weights=weights))
    if penalty is None:
        # Deviation: with all 23 statistics the paper's least squares need not have one
        # answer: some statistics follow from others, some are the same for all pairs of
        # a data set. Of the equally good answers this is the shortest; directions below
        # 1e-6 of the largest count as round-off, so that the answer is the same on
        # every machine.
        coefficients = np.asarray(
            np.linalg.lstsq(design, target - intercept, rcond=1e-6)[0], dtype=np.float64
        )
    else:
        coefficients = ridge_coefficients(design, target - intercept, penalty, weights)
    return Regression(
        coefficients, intercept, mean, scale, values.min(axis=0), values.max(axis=0)
    )


def ridge_coefficients(
    design: Floats, target: Floats, penalty: float, weights: Floats | float = 1.0
) -> Floats:
    """Coefficients of ridge regression; design, shape (rows, statistics), and target
    are centred.
    """
    weighted = design.T * weights
    solution = np.linalg.solve(
        weighted @ design + penalty * np.eye(design.shape[1]), weighted @ target
    )
    return np.asarray(solution, dtype=np.float64)


def standardised(
    values: Floats, weights: Floats | None = None
) -> tuple[Floats, Floats, Floats]:
    """Mean, scale and standardised values of each column; a constant column has scale 1
    and becomes 0.
    """
    constant = np.array([is_constant(column) for column in values.T])
    mean = np.average(values, axis=0, weights=weights)
    scale = np.where(
        constant,
        1.0,
        np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weights)),
    )
    return mean, scale, np.where(constant, 0.0, (values - mean) / scale)


def best_penalty(
    penalties: Sequence[float],
    datasets: NDArray[Any],
    error: Callable[[Rows, Rows, float], Floats],
) -> float:
    """The penalty with the least mean of `error`(own rows, other rows, penalty) over
    data sets left out.
    """
    rows = np.arange(len(datasets))
    folds = [
        (rows[datasets == name], rows[datasets != name]) for name in np.unique(datasets)
    ]
    return min(
        penalties,
        key=lambda penalty: np.mean(
            [error(own, others, penalty).mean() for own, others in folds]
        ),
    )


def jackknife(
    groups: Sequence[Any], statistic: Callable[[Sequence[Any]], float]
) -> Floats:
    """Pseudo-values of a statistic, one per group (of at least 2), such as a data set,
    that is left out: (groups,).

    Their mean is the statistic without its bias of order 1/n.
    """
    n = len(groups)
    without = [statistic([*groups[:place], *groups[place + 1 :]]) for place in range(n)]
    return n * statistic(groups) - (n - 1) * np.array(without)

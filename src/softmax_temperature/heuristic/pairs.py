"""Pairs of data set and backbone: checks, and correlations (section 4.3, Figure 3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softmax_temperature.dataset_statistics import STATISTICS
from softmax_temperature.runner.errors import nearest

# Smallest number of data sets. When one is left out, two remain: the minimum for
# choosing a ridge penalty by leaving out each of them in turn.
MINIMUM_DATASETS = 3
# The inverse temperatures of the search (section 4.3).
SEARCHED = (1.0, *(float(value) for value in range(5, 255, 5)))
SEARCHED_RANGE = (SEARCHED[0], SEARCHED[-1])

KEYS = ["dataset", "backbone"]
PLATEAU = ("plateau_low", "inverse_temperature", "plateau_high")
# The entry of the column `weights` for a backbone with random weights.
UNTRAINED = "untrained"
# Confidence level of the intervals of correlations. The margin of a `Heuristic` is the
# quantile at this level.
LEVEL = 0.90
CORRELATION_COLUMNS = [
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
    """Select the pairs with a clear best inverse temperature (source: ours).

    Where accuracy saturates, ties decide which of many equally good values is best. A
    pair is identified if its plateau, ends included, covers at most the share
    `max_share` of the values in `grid`. The order of the pairs is kept.

    Args:
        pairs: Pairs as defined in the package's docstring; only the columns of the
            optimum and its plateau are read.
        max_share: Fraction in (0, 1].
        grid: The searched inverse temperatures.

    Raises:
        ValueError: If `max_share` is out of range, a column is missing or not finite,
            or a plateau does not enclose its optimum.
    """
    if not 0 < max_share <= 1:
        raise ValueError(f"max_share must be in (0, 1], got {max_share}")
    table = pd.DataFrame(pairs)
    _check_plateaus(table)
    searched = np.asarray(grid)
    low = floats(table, "plateau_low")[:, None]
    high = floats(table, "plateau_high")[:, None]
    on_plateau = (searched >= low) & (searched <= high)
    share = on_plateau.mean(axis=1)
    return table.iloc[np.flatnonzero(share <= max_share)].reset_index(drop=True)


def is_trained(rows: pd.DataFrame) -> pd.Series[bool]:
    """Whether the backbone of each row is trained, according to the column `weights`.

    The paper uses no untrained backbone, so no claim is tested on one. If the column is
    missing, all backbones count as trained.
    """
    if "weights" not in rows:
        return pd.Series(True, index=rows.index)
    return rows["weights"] != UNTRAINED


def checked_pairs(pairs: Pairs) -> pd.DataFrame:
    """Check `pairs`, and return them as a sorted table."""
    table = pd.DataFrame(pairs)
    _check_columns(table, (*KEYS, "inverse_temperature", *STATISTICS))
    repeated = table[table.duplicated(KEYS)]
    if len(repeated):
        dataset = repeated["dataset"].iloc[0]
        backbone = repeated["backbone"].iloc[0]
        raise ValueError(f"pairs has duplicate rows for {dataset} with {backbone}")
    if set(PLATEAU) <= set(table.columns):
        _check_plateaus(table)
    check_datasets(table)
    optima = table["inverse_temperature"]
    outside = optima[~optima.between(*SEARCHED_RANGE)]
    if len(outside):
        raise ValueError(
            f"pairs['inverse_temperature'] must be within {SEARCHED_RANGE}, got "
            f"{outside.iloc[0]}"
        )
    return table.sort_values(KEYS, ignore_index=True)


def check_datasets(table: pd.DataFrame) -> None:
    """Raise ValueError if there are fewer than `MINIMUM_DATASETS` data sets."""
    count = table["dataset"].nunique()
    if count < MINIMUM_DATASETS:
        raise ValueError(
            f"pairs must hold at least {MINIMUM_DATASETS} data sets, got {count}"
        )


def floats(table: pd.DataFrame, name: str) -> Floats:
    """Return the column `name` of `table` as an array, shape (pairs,)."""
    return table[name].to_numpy(dtype=np.float64, na_value=np.nan)


def matrix(table: pd.DataFrame, names: Sequence[str]) -> Floats:
    """Return the columns `names` of `table` as an array, shape (pairs, names)."""
    return np.stack([floats(table, name) for name in names], axis=1)


def finite(statistics: Mapping[str, float], names: Sequence[str]) -> Floats:
    """Return the named statistics as an array; refuse missing and non-finite values."""
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
                f"pairs: plateau_low {low} and plateau_high {high} must enclose the "
                f"optimum {optimum}"
            )


def _check_columns(table: pd.DataFrame, names: Iterable[str]) -> None:
    """Raise ValueError unless `table` has the columns `names`.

    All these columns except KEYS must contain finite numbers.
    """
    for name in names:
        if name not in table.columns:
            remedy = nearest(name, map(str, table.columns))
            raise ValueError(f"pairs lacks the column {name!r}. {remedy}")
        if name in KEYS:
            continue
        column = table[name]
        wrong = column[~np.isfinite(pd.to_numeric(column, errors="coerce"))]
        if len(wrong):
            raise ValueError(
                f"pairs[{name!r}] must hold finite numbers, got {wrong.iloc[0]}"
            )


class Correlation(NamedTuple):
    """Pearson's r, its two-sided p-value, and its 90 % interval from Fisher's z.

    The p-value and the interval assume that the n pairs of values are independent. For
    n = 3 the interval is [-1, 1].
    """

    r: float
    p: float
    low: float
    high: float


UNDEFINED_CORRELATION = Correlation(r=0.0, p=1.0, low=-1.0, high=1.0)


def pearson(first: Floats, second: Floats) -> Correlation | None:
    """Compute the Pearson correlation of `first` and `second`, arrays of shape (n,).

    Returns None if n is below 3, or one of the arrays is constant.
    """
    if len(first) < 3 or is_constant(first) or is_constant(second):
        return None
    # Imported here because the import takes a second and the `plan` command does not
    # need it.
    from scipy.stats import pearsonr

    result = pearsonr(first, second)
    low = -1.0
    high = 1.0
    if len(first) > 3:
        # For three values Fisher's z has no standard error, and SciPy warns or gives
        # NaN.
        low, high = result.confidence_interval(LEVEL)
    return Correlation(
        float(result.statistic), float(result.pvalue), float(low), float(high)
    )


def correlations(pairs: Pairs) -> pd.DataFrame:
    """Correlate each statistic with the best inverse temperature (Figure 3).

    Rows are sorted by |r|, largest first. Pairs of one data set are not independent, so
    the p-values and intervals are optimistic.

    Returns:
        Columns `statistic`, `r`, `absolute_r`, `p`, `low` and `high` (90 % interval
        from Fisher's z), `absolute_low` and `absolute_high` (the same interval for
        |r|), and `constant`. `constant` is true if the statistic or the optimum never
        varies; r is then 0, p is 1 and the interval is [-1, 1].
    """
    table = checked_pairs(pairs)
    optima = floats(table, "inverse_temperature")
    rows = []
    for name in STATISTICS:
        correlation = pearson(floats(table, name), optima)
        constant = correlation is None
        r, p, low, high = correlation or UNDEFINED_CORRELATION
        absolute_low, absolute_high = sorted((abs(low), abs(high)))
        if low < 0 < high:
            absolute_low = 0.0
        rows.append(
            (name, r, abs(r), p, low, high, absolute_low, absolute_high, constant)
        )
    frame = pd.DataFrame(rows, columns=CORRELATION_COLUMNS)
    order = strongest_first(frame["absolute_r"].to_numpy())
    return frame.iloc[order].reset_index(drop=True)


def strongest_first(absolute: Floats) -> Rows:
    """Indices that sort `absolute` from largest to smallest; ties stay in order."""
    # Round, so that tied statistics (multiples of each other) keep their order on every
    # machine.
    return np.argsort(-absolute.round(12), kind="stable")


def is_constant(values: Floats) -> bool:
    """Whether all entries of `values`, shape (n,), are equal up to round-off."""
    return bool(np.ptp(values) <= 1e-9 * np.abs(values).max())

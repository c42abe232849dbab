"""The table of pairs, its correlations (Figure 3) and the regression (section 4.3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import LeaveOneGroupOut

from softmax_temperature.dataset_statistics import STATISTICS
from softmax_temperature.runner.errors import nearest

# Leaving one out leaves two, the fewest among which the ridge penalty can in turn leave one out.
MINIMUM_DATASETS = 3
SEARCHED = (1.0, *(float(value) for value in range(5, 255, 5)))  # section 4.3
SEARCHED_RANGE = (SEARCHED[0], SEARCHED[-1])

KEYS = ["dataset", "backbone"]
PLATEAU = ("plateau_low", "inverse_temperature", "plateau_high")

Floats: TypeAlias = NDArray[np.float64]
Pairs: TypeAlias = pd.DataFrame | Iterable[dict[str, Any]]
COUNTS = {"best": 1, "four_best": 4, "all": len(STATISTICS)}  # the rows of Table 1
RIDGE_PENALTIES = tuple(10.0**exponent for exponent in range(-3, 5))
LEVEL = 0.90  # of the intervals, as everywhere in this package
COLUMNS = ["statistic", "r", "absolute_r", "p", "low", "high", "absolute_low", "absolute_high", "constant"]

Method: TypeAlias = Literal["least_squares", "ridge"]


def identified(pairs: Pairs, *, max_share: float = 0.5, grid: Sequence[float] = SEARCHED) -> pd.DataFrame:
    """The pairs whose best inverse temperature is a number rather than a plateau, in the order given (source: ours).

    Where accuracy saturates, the best of many equally good values is an accident of ties. A plateau, ends included, may
    hold at most `max_share`, a fraction in (0, 1], of the searched `grid`. Raises ValueError also if a plateau does not
    hold its optimum.
    """
    if not 0 < max_share <= 1:
        raise ValueError(f"max_share must be in (0, 1], got {max_share}")
    table = pd.DataFrame(pairs)
    _check_plateaus(table)
    low, high = matrix(table, ("plateau_low", "plateau_high")).T[:, :, None]
    share = ((np.asarray(grid) >= low) & (np.asarray(grid) <= high)).mean(axis=1)
    return table.iloc[np.flatnonzero(share <= max_share)].reset_index(drop=True)


def share_on_plateau(table: pd.DataFrame, predicted: Floats) -> float | None:
    """Share of the predictions, shape (pairs,), on their pair's plateau; None without plateau columns."""
    if not {*PLATEAU} <= {*table.columns}:
        return None
    on_plateau = (floats(table, "plateau_low") <= predicted) & (predicted <= floats(table, "plateau_high"))
    return float(on_plateau.mean())


def checked_pairs(pairs: Pairs, statistics: Sequence[str], *, datasets: int = MINIMUM_DATASETS) -> pd.DataFrame:
    """The pairs as a table in one order, with the named statistics and at least that many data sets."""
    table = pd.DataFrame(pairs)
    _check_columns(table, (*KEYS, "inverse_temperature", *statistics))
    repeated = table[table.duplicated(KEYS)]
    if len(repeated):
        raise ValueError(f"pairs holds {repeated['dataset'].iloc[0]} with {repeated['backbone'].iloc[0]} twice")
    if {*PLATEAU} <= {*table.columns}:
        _check_plateaus(table)
    names = sorted(table["dataset"].unique())
    if len(names) < datasets:
        raise ValueError(f"pairs must hold at least {datasets} data sets, got {len(names)}: {', '.join(names)}")
    return table.sort_values(KEYS, ignore_index=True)


def identities(table: pd.DataFrame) -> pd.DataFrame:
    """The columns that every table of predictions starts with: the pair and its optimum."""
    return table[[*KEYS, "inverse_temperature"]]


def floats(table: pd.DataFrame, name: str) -> Floats:
    """A column as an array of shape (pairs,)."""
    return table[name].to_numpy(dtype=np.float64, na_value=np.nan)


def matrix(table: pd.DataFrame, names: Sequence[str]) -> Floats:
    """The named columns as an array of shape (pairs, names)."""
    return np.stack([floats(table, name) for name in names], axis=1)


def _check_plateaus(table: pd.DataFrame) -> None:
    _check_columns(table, PLATEAU)
    for low, optimum, high in matrix(table, PLATEAU):
        if not low <= optimum <= high:
            raise ValueError(f"pairs: plateau_low {low} and plateau_high {high} must enclose the optimum {optimum}")


def _check_columns(table: pd.DataFrame, names: Iterable[str]) -> None:
    for name in names:
        if name not in table.columns:
            raise ValueError(f"pairs lacks the column {name!r}. {nearest(name, map(str, table.columns))}")
        if name not in KEYS:
            wrong = table[name][~np.isfinite(pd.to_numeric(table[name], errors="coerce"))]
            if len(wrong):
                raise ValueError(f"pairs[{name!r}] must hold finite numbers, got {wrong.iloc[0]}")


class Correlation(NamedTuple):
    """Pearson's r, its two-sided p-value, and its 90 % interval by Fisher's z; both take points for independent."""

    r: float
    p: float
    low: float
    high: float


def pearson(first: Floats, second: Floats) -> Correlation | None:
    """Pearson correlation of two arrays of shape (n,); None for fewer than three points or a constant side."""
    if len(first) < 3 or is_constant(first) or is_constant(second):
        return None
    result = stats.pearsonr(first, second)
    # Fisher's z has no standard error at three points, where SciPy warns or gives NaN.
    low, high = result.confidence_interval(LEVEL) if len(first) > 3 else (-1.0, 1.0)
    return Correlation(float(result.statistic), float(result.pvalue), float(low), float(high))


def correlations(pairs: Pairs) -> pd.DataFrame:
    """Correlation of each statistic with the best inverse temperature (Figure 3), strongest first.

    Columns `statistic`, `r`, `absolute_r`, `p`, `low`, `high` (90 % interval by Fisher's z), `absolute_low`,
    `absolute_high` (what it leaves of |r|) and `constant`: whether r is defined as 0, with p 1 and interval [-1, 1],
    because a side never varies. Pairs of one data set are not independent: the p-values and intervals are optimistic.
    """
    table = checked_pairs(pairs, STATISTICS)
    optima, rows = floats(table, "inverse_temperature"), []
    for name in STATISTICS:
        found = pearson(floats(table, name), optima)
        shown = found or Correlation(r=0.0, p=1.0, low=-1.0, high=1.0)
        ends = sorted((abs(shown.low), abs(shown.high)))
        absolute = {"absolute_r": abs(shown.r), "absolute_high": ends[1]}
        absolute["absolute_low"] = 0.0 if shown.low < 0 < shown.high else ends[0]
        rows.append({"statistic": name, **shown._asdict(), **absolute, "constant": found is None})
    frame = pd.DataFrame(rows)[COLUMNS]
    return frame.iloc[strongest_first(frame["absolute_r"].to_numpy())].reset_index(drop=True)


def strongest_first(absolute: Floats) -> NDArray[np.intp]:
    """The order of absolute correlations from the largest to the smallest; ties keep the order given."""
    # Rounded, so that statistics that tie, being multiples of each other, keep their order on every machine.
    return np.argsort(-absolute.round(12), kind="stable")


def is_constant(values: Floats) -> bool:
    """Whether values of shape (n,) are equal up to round-off."""
    return bool(np.ptp(values) <= 1e-9 * np.abs(values).max())


class Selection(NamedTuple):
    """The `size` most correlated candidates."""

    label: str
    candidates: tuple[str, ...]
    size: int


def selection_of(statistics: str | int | Sequence[str]) -> Selection:
    """What `statistics` of `leave_one_dataset_out` asks for; refuses what is not offered."""
    if isinstance(statistics, str):
        if statistics not in COUNTS:
            raise ValueError(f"statistics {statistics!r} is unknown. {nearest(statistics, COUNTS)}")
        return Selection(statistics, STATISTICS, COUNTS[statistics])
    if isinstance(statistics, int):
        if isinstance(statistics, bool) or not 1 <= statistics <= len(STATISTICS):
            raise ValueError(f"statistics must be 1 to {len(STATISTICS)} when a number, got {statistics}")
        return Selection(str(statistics), STATISTICS, statistics)
    names = tuple(statistics)
    for name in names:
        if name not in STATISTICS:
            raise ValueError(f"statistic {name!r} is unknown. {nearest(name, STATISTICS)}")
    if not names or len(set(names)) < len(names):
        raise ValueError(f"statistics must hold different names, got {list(names)}")
    return Selection(", ".join(names), names, len(names))


class Regression(NamedTuple):
    """A plane through standardised statistics."""

    names: tuple[str, ...]
    mean: Floats
    scale: Floats
    coefficients: Floats
    intercept: float

    def predict(self, table: pd.DataFrame) -> Floats:
        """The plane's value for each pair, shape (pairs,); not clipped."""
        return self.intercept + ((matrix(table, self.names) - self.mean) / self.scale) @ self.coefficients


def regress(table: pd.DataFrame, selection: Selection, method: Method) -> Regression:
    """Choose the statistics on these pairs, standardise and weigh them."""
    names = _choose(table, selection)
    mean, scale, standardised = _standardise(matrix(table, names))
    optima = floats(table, "inverse_temperature")
    centred = optima - optima.mean()
    if method == "ridge":
        coefficients = _ridge(standardised, centred, table["dataset"])
    else:
        # Deviation: with all 23 statistics the paper's least squares need not have one answer: some statistics follow
        # from others, some are the same for all pairs of a data set. Of the equally good answers this is the shortest;
        # directions below 1e-6 of the largest count as round-off, so that the answer is the same on every machine.
        coefficients = np.linalg.lstsq(standardised, centred, rcond=1e-6)[0]
    return Regression(names, mean, scale, coefficients, float(optima.mean()))


def _ridge(standardised: Floats, centred: Floats, datasets: pd.Series[str]) -> Floats:
    # By itself RidgeCV would leave out single pairs; the penalty must suit a new data set, like everything here.
    folds = list(LeaveOneGroupOut().split(standardised, groups=datasets))
    model = RidgeCV(alphas=RIDGE_PENALTIES, cv=folds, scoring="neg_mean_squared_error")
    return np.asarray(model.fit(standardised, centred).coef_, dtype=np.float64)


def _choose(table: pd.DataFrame, selection: Selection) -> tuple[str, ...]:
    if selection.size == len(selection.candidates):
        return selection.candidates
    _, _, values = _standardise(matrix(table, selection.candidates))
    _, _, optima = _standardise(matrix(table, ("inverse_temperature",)))
    strongest = strongest_first(np.abs(values.T @ optima[:, 0]) / len(table))
    return tuple(selection.candidates[index] for index in strongest[: selection.size])


def _standardise(values: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, scale and standardised values of each column; a constant column has scale 1 and becomes 0."""
    constant = np.array([is_constant(column) for column in values.T])
    mean, scale = values.mean(axis=0), np.where(constant, 1.0, values.std(axis=0))
    return mean, scale, np.where(constant, 0.0, (values - mean) / scale)

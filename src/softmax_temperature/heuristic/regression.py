"""The regression (section 4.3): which statistics, standardised how, and their weights by least squares or ridge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import LeaveOneGroupOut

from softmax_temperature.heuristic.correlation import is_constant, strongest_first
from softmax_temperature.heuristic.pairs import Floats, floats, matrix
from softmax_temperature.runner.errors import nearest
from softmax_temperature.statistic_names import STATISTICS

if TYPE_CHECKING:
    import pandas as pd

COUNTS = {"best": 1, "four_best": 4, "all": len(STATISTICS)}  # the rows of Table 1
RIDGE_PENALTIES = tuple(10.0**exponent for exponent in range(-3, 5))

Method: TypeAlias = Literal["least_squares", "ridge"]


class Selection(NamedTuple):
    """The most correlated of the candidates, as many as `size`."""

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
    check_names(names)
    return Selection(", ".join(names), names, len(names))


def check_names(names: Sequence[str]) -> None:
    """Refuse names that are unknown or repeated, or none at all."""
    for name in names:
        check_name(name)
    if not names or len(set(names)) < len(names):
        raise ValueError(f"statistics must be one or more different names, got {list(names)}")


def check_name(name: str) -> None:
    """Refuse a name that is not among `statistic_names.STATISTICS`."""
    if name not in STATISTICS:
        raise ValueError(f"statistic {name!r} is unknown. {nearest(name, STATISTICS)}")


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

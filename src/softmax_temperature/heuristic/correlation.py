"""How strongly statistics go with the best inverse temperature (Figure 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from softmax_temperature.heuristic.pairs import Floats, Pairs, checked_pairs, floats
from softmax_temperature.statistic_names import STATISTICS

if TYPE_CHECKING:
    from numpy.typing import NDArray


LEVEL = 0.90  # of the intervals, as everywhere in this package
COLUMNS = ["statistic", "r", "absolute_r", "p", "low", "high", "absolute_low", "absolute_high", "constant"]


class Correlation(NamedTuple):
    """Pearson's r, its two-sided p-value, and its 90 % interval by Fisher's z; both take points for independent."""

    r: float
    p: float
    low: float
    high: float


def pearson(first: Floats, second: Floats) -> Correlation | None:
    """Pearson correlation of two arrays of shape (n,); None where it would say nothing.

    That is for fewer than three points (two always lie on a line) and where a side is constant up to round-off.
    """
    if len(first) < 3 or is_constant(first) or is_constant(second):
        return None
    result = stats.pearsonr(first, second)
    # Fisher's z has no standard error at three points, where SciPy warns or gives NaN.
    low, high = result.confidence_interval(LEVEL) if len(first) > 3 else (-1.0, 1.0)
    return Correlation(float(result.statistic), float(result.pvalue), float(low), float(high))


def correlations(pairs: Pairs) -> pd.DataFrame:
    """Correlation of each statistic with the best inverse temperature (Figure 3), strongest first.

    Pairs of one data set are not independent, so the p-values and intervals are optimistic.

    Returns:
        Columns `statistic`, `r`, `absolute_r`, `p`, `low`, `high` (90 % interval by Fisher's z), `absolute_low`,
        `absolute_high` (what it leaves of |r|) and `constant`: whether the statistic (or the optimum) never varies. Its
        r is then defined as 0, with p 1 and interval [-1, 1].
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

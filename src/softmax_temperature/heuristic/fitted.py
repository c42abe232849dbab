"""The final regression on all pairs (section 4.3, Figure 4): its predictions with intervals, saved as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, PositiveInt

from softmax_temperature.heuristic.leave_one_out import out_of_fold, prepared
from softmax_temperature.heuristic.regression import (
    LEVEL,
    SEARCHED_RANGE,
    Floats,
    Method,
    Pairs,
    checked_pairs,
    floats,
    identities,
    matrix,
    regress,
)

EPSILON = 1e-3  # Section 2 quotes the bound of Liu, Li and Xu 2017 with a loss of "10e - 4".


def square_root_of_dimension(dim: ArrayLike) -> Any:
    """An inverse temperature without a search: the square root of the embeddings' length, as in attention."""
    return np.sqrt(dim)


def lower_bound_from_classes(n_classes: Any) -> Any:
    """The least inverse temperature at which ideally placed embeddings have a loss of EPSILON, and at least 1."""
    return np.maximum(0.5 * np.log((n_classes - 1) / math.expm1(EPSILON)), 1.0)


@dataclass(frozen=True)
class Estimate:
    """A predicted best inverse temperature (multiplies the logits) and its interval, clipped to the searched range."""

    inverse_temperature: float
    low: float
    high: float
    linear: float  # The regression's own value, before clipping.
    outside: tuple[str, ...]  # Used statistics outside their fitted range; the interval then promises nothing.

    @property
    def inside(self) -> bool:
        """Whether every used statistic lies in the range it was fitted on."""
        return not self.outside


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Term(_Record):
    """One statistic of a regression: coefficient * (value - mean) / scale, fitted on values in [low, high]."""

    statistic: str
    coefficient: FiniteFloat
    mean: FiniteFloat
    scale: Annotated[FiniteFloat, Field(gt=0)]
    low: FiniteFloat
    high: FiniteFloat


class Heuristic(_Record):
    """A fitted regression from statistics to the best inverse temperature; plain numbers, saved as JSON.

    The interval is a hierarchical jackknife: the prediction, plus or minus `margin`, the `level` quantile of the
    absolute errors on data sets left out of the fit, each data set weighing as much as the next and as one imagined
    data set that is missed by any distance. With fewer than level / (1 - level) data sets (9 for 0.9) `margin` is None,
    and the interval the whole searched range. After Lee, Barber and Willett 2023 (arXiv 2306.06342), centred on the
    final model instead of those of the folds: it holds the prediction, but their bound on misses is given up.
    """

    format: Literal["softmax-temperature heuristic"]
    version: Literal[1]
    selection: str
    method: Method
    intercept: FiniteFloat  # The prediction at the mean of every statistic.
    terms: tuple[Term, ...]
    bounds: tuple[FiniteFloat, FiniteFloat]  # The searched range, to which predictions and intervals are clipped.
    level: Annotated[float, Field(gt=0, lt=1)]
    margin: Annotated[FiniteFloat, Field(ge=0)] | None
    n_pairs: PositiveInt
    datasets: tuple[str, ...]

    def predict(self, statistics: Mapping[str, float]) -> Estimate:
        """The inverse temperature to expect from statistics by name, as `dataset_statistics.describe` returns them.

        Raises ValueError if a used statistic is missing or not finite.
        """
        used = [(term, statistics.get(term.statistic, math.nan)) for term in self.terms]
        for term, value in used:
            if not math.isfinite(value):
                raise ValueError(f"statistics[{term.statistic!r}] must be a finite number, got {value}")
        linear = self.intercept + math.fsum(term.coefficient * (value - term.mean) / term.scale for term, value in used)
        lowest, highest = self.bounds
        margin = highest - lowest if self.margin is None else self.margin
        centre = min(max(linear, lowest), highest)
        return Estimate(
            inverse_temperature=centre,
            low=max(centre - margin, lowest),
            high=min(centre + margin, highest),
            linear=linear,
            outside=tuple(term.statistic for term, value in used if not term.low <= value <= term.high),
        )

    def predict_pairs(self, pairs: Pairs) -> pd.DataFrame:
        """The pairs, sorted, with `predicted`, `linear`, `low`, `high` and `inside`; for those of the fit, Figure 4."""
        names = [term.statistic for term in self.terms]
        table = checked_pairs(pairs, names, datasets=1)
        estimates = [self.predict(dict(zip(names, row, strict=True))) for row in matrix(table, names).tolist()]
        columns = {name: [getattr(each, name) for each in estimates] for name in ("linear", "low", "high", "inside")}
        return identities(table).assign(predicted=[each.inverse_temperature for each in estimates], **columns)

    def to_json(self) -> str:
        """The heuristic as JSON text, from which `from_json` makes an equal one, every number bit for bit."""
        return self.model_dump_json(indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The heuristic that `to_json` wrote; raises ValueError for any other text."""
        return cls.model_validate_json(text)


def fit(
    pairs: Pairs, *, statistics: str | int | Sequence[str] = "four_best", method: Method = "least_squares"
) -> Heuristic:
    """The final regression on all pairs (section 4.3, Figure 4); arguments and errors as in `leave_one_dataset_out`."""
    selection, table = prepared(pairs, statistics, method)
    linear, _ = out_of_fold(table, selection, method)
    errors = np.abs(floats(table, "inverse_temperature") - np.clip(linear, *SEARCHED_RANGE))
    regression = regress(table, selection, method)
    values = matrix(table, regression.names)
    columns = (regression.coefficients, regression.mean, regression.scale, values.min(axis=0), values.max(axis=0))
    fields = ("coefficient", "mean", "scale", "low", "high")
    rows = zip(regression.names, np.stack(columns, axis=1).tolist(), strict=True)
    return Heuristic(
        format="softmax-temperature heuristic",
        version=1,
        selection=selection.label,
        method=method,
        intercept=regression.intercept,
        terms=tuple(Term(statistic=name, **dict(zip(fields, row, strict=True))) for name, row in rows),
        bounds=SEARCHED_RANGE,
        level=LEVEL,
        margin=_margin(errors, table["dataset"]),
        n_pairs=len(table),
        datasets=tuple(table["dataset"].unique()),
    )


def _margin(errors: Floats, datasets: pd.Series[str]) -> float | None:
    """The smallest error up to which the errors weigh LEVEL; see Heuristic."""
    pairs_of_dataset = datasets.map(datasets.value_counts()).to_numpy(dtype=np.float64)
    weights = 1 / (pairs_of_dataset * (datasets.nunique() + 1))
    order = np.argsort(errors, kind="stable")
    enough = np.cumsum(weights[order]) >= LEVEL - 1e-12
    return float(errors[order][enough.argmax()]) if enough.any() else None

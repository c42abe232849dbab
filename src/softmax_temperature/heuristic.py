"""Predict the best inverse temperature of a cosine classifier from statistics of its embeddings.

classifier_temperature, sections 3.2 and 4.3. `pairs` holds a row per data set and backbone, as a DataFrame or mappings:
`dataset`, `backbone`, `inverse_temperature` (the best one found; multiplies the logits), the statistics named in
`dataset_statistics.STATISTICS`, and optionally `plateau_low` and `plateau_high`, the ends of the range that is as good.
No result depends on the order of the rows. All functions raise ValueError for a missing column, a value that is not a
finite number, a pair given twice, or fewer data sets than they need (three, unless said).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Self, TypeAlias, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, PositiveInt, model_validator
from scipy import stats
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import LeaveOneGroupOut

from softmax_temperature.dataset_statistics import STATISTICS
from softmax_temperature.errors import nearest

SEARCHED = (1.0, *(float(value) for value in range(5, 255, 5)))  # section 4.3
SEARCHED_RANGE = (SEARCHED[0], SEARCHED[-1])
COUNTS = {"best": 1, "four_best": 4, "all": len(STATISTICS)}  # the rows of Table 1
RIDGE_PENALTIES = tuple(10.0**exponent for exponent in range(-3, 5))

Floats: TypeAlias = NDArray[np.float64]
Pairs: TypeAlias = pd.DataFrame | Iterable[Mapping[str, Any]]
Method: TypeAlias = Literal["least_squares", "ridge"]


class Correlation(NamedTuple):
    """Pearson's r, its two-sided p-value, and its 95 % interval by Fisher's z; both take points for independent."""

    r: float
    p: float
    low: float
    high: float


def pearson(first: Floats, second: Floats) -> Correlation | None:
    """Pearson correlation of two arrays of shape (n,); None where it would say nothing.

    That is for fewer than three points (two always lie on a line) and where a side is constant up to round-off.
    """
    if len(first) < 3 or _is_constant(first) or _is_constant(second):
        return None
    result = stats.pearsonr(first, second)
    # Fisher's z has no standard error at three points, where SciPy warns or gives NaN.
    low, high = result.confidence_interval(0.95) if len(first) > 3 else (-1.0, 1.0)
    return Correlation(float(result.statistic), float(result.pvalue), float(low), float(high))


def correlations(pairs: Pairs) -> pd.DataFrame:
    """Correlation of each statistic with the best inverse temperature (Figure 3), strongest first.

    Pairs of one data set are not independent, so the p-values and intervals are optimistic.

    Returns:
        Columns `statistic`, `r`, `absolute_r`, `p`, `low`, `high` (95 % interval by Fisher's z) and `constant`: whether
        the statistic (or the optimum) never varies. Its r is then defined as 0, with p 1 and interval [-1, 1].
    """
    table = _checked(pairs, STATISTICS)
    optima, rows = _floats(table, "inverse_temperature"), []
    for name in STATISTICS:
        found = pearson(_floats(table, name), optima)
        shown = found or Correlation(r=0.0, p=1.0, low=-1.0, high=1.0)
        rows.append({"statistic": name, **shown._asdict(), "absolute_r": abs(shown.r), "constant": found is None})
    frame = pd.DataFrame(rows)[["statistic", "r", "absolute_r", "p", "low", "high", "constant"]]
    return frame.iloc[_strongest_first(frame["absolute_r"].to_numpy())].reset_index(drop=True)


def identified(pairs: Pairs, *, max_share: float = 0.5, grid: Sequence[float] = SEARCHED) -> pd.DataFrame:
    """The pairs whose best inverse temperature is a number rather than a plateau, in the order given. Source: ours.

    Where accuracy saturates, many values are equally good and the best of them is an accident of ties.

    Args:
        pairs: Pairs with `plateau_low` and `plateau_high`, ends included.
        max_share: Largest share of the grid that a plateau may hold, a fraction in (0, 1].
        grid: The inverse temperatures that were searched.

    Raises:
        ValueError: Also if a plateau does not hold its optimum.
    """
    if not 0 < max_share <= 1:
        raise ValueError(f"max_share must be in (0, 1], got {max_share}")
    if not len(grid):
        raise ValueError("grid must hold the inverse temperatures that were searched, got none")
    table = _table(pairs)
    _check_plateaus(table)
    low, high = _matrix(table, ("plateau_low", "plateau_high")).T[:, :, None]
    share = ((np.asarray(grid) >= low) & (np.asarray(grid) <= high)).mean(axis=1)
    return table.iloc[np.flatnonzero(share <= max_share)].reset_index(drop=True)


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """What the regression says about data sets it has not seen: a row of Table 1, and its evidence.

    Attributes:
        predictions: A row per pair: the pair, its optimum, and out of fold `linear` (the regression's value) and
            `predicted` (clipped to the searched range).
        folds: A row per data set: `dataset`, `pairs`, `statistics` (chosen without it), `r` and `p` between optimum and
            `linear`, and `undefined`: why r and p are missing (NaN), or "".
        statistics: As asked for.
        method: As asked for.
        undefined_folds: Folds without an r. The next four are over the other folds, and None if too few are left.
        median_r: Median of the folds' r.
        mean_r: Mean of the folds' r.
        sd_r: Standard deviation of the folds' r.
        mean_p: Mean of the folds' p-values.
        pooled: Correlation over all pairs at once; None where undefined.
        mean_absolute_error: Of `predicted`, over pairs, in units of the inverse temperature.
        share_on_plateau: Share of `predicted` on the pair's plateau; None without plateau columns.
    """

    predictions: pd.DataFrame
    folds: pd.DataFrame
    statistics: str
    method: Method
    undefined_folds: int
    median_r: float | None
    mean_r: float | None
    sd_r: float | None
    mean_p: float | None
    pooled: Correlation | None
    mean_absolute_error: float
    share_on_plateau: float | None

    def summary(self) -> dict[str, Any]:
        """The scalars, for a row of a table: `pooled` as `pooled_r` and so on, and the numbers of pairs and folds."""
        scalars = {name: value for name, value in vars(self).items() if name not in ("predictions", "folds", "pooled")}
        pooled = self.pooled._asdict() if self.pooled else dict.fromkeys(Correlation._fields)
        sizes = {"pairs": len(self.predictions), "folds": len(self.folds)}
        return scalars | sizes | {f"pooled_{name}": value for name, value in pooled.items()}


def leave_one_dataset_out(
    pairs: Pairs,
    *,
    statistics: str | int | Sequence[str] = "best",
    method: Method = "least_squares",
    bounds: tuple[float, float] = SEARCHED_RANGE,
) -> LeaveOneOut:
    """Predict the pairs of each data set from all other data sets (section 4.3, Table 1).

    A fold is one data set with all its backbones; its statistics are chosen, standardised and weighted without it.

    Args:
        pairs: See the module.
        statistics: "best", "four_best", "all", or how many: the most correlated ones, chosen anew in each fold. A list
            of names fixes them instead; names taken from a look at these same pairs inflate r.
        method: "least_squares" as in the paper, or "ridge" (ours), with the penalty that is best for data sets left out
            of the fold's training part.
        bounds: The searched range.

    Raises:
        ValueError: Also if a statistic or method is unknown, or an optimum lies outside `bounds`.
    """
    selection, table = _prepared(pairs, statistics, method, bounds)
    linear, chosen = _out_of_fold(table, selection, method)
    predicted = np.clip(linear, *bounds)
    predictions = _identities(table).assign(linear=linear, predicted=predicted)
    folds = pd.DataFrame([_fold_row(str(name), fold, chosen) for name, fold in predictions.groupby("dataset")])
    optima = _floats(table, "inverse_temperature")
    return LeaveOneOut(
        predictions=predictions,
        folds=folds,
        statistics=selection.label,
        method=method,
        undefined_folds=int(folds["r"].isna().sum()),
        median_r=_or_none(folds["r"].median()),
        mean_r=_or_none(folds["r"].mean()),
        # Deviation: the paper does not say which standard deviation it prints; ours is the sample's (n - 1).
        sd_r=_or_none(folds["r"].std(ddof=1)),
        # Deviation: the paper does not say how its p-values join the folds. The printed 0.014 beside r = 0.9563 fits a
        # mean over folds of nine pairs; 108 pooled pairs would give 2e-58. So it is read as that mean.
        mean_p=_or_none(folds["p"].mean()),
        pooled=pearson(optima, linear),
        mean_absolute_error=float(np.abs(optima - predicted).mean()),
        share_on_plateau=_share_on_plateau(table, predicted),
    )


@dataclass(frozen=True)
class Estimate:
    """A predicted best inverse temperature (multiplies the logits).

    Attributes:
        inverse_temperature: The prediction, clipped to the searched range.
        low: Lower end of the prediction interval, within the searched range.
        high: Upper end of it.
        linear: The regression's own value, before clipping.
        outside: Used statistics outside the range they were fitted on; the interval then promises nothing.
    """

    inverse_temperature: float
    low: float
    high: float
    linear: float
    outside: tuple[str, ...]

    @property
    def inside(self) -> bool:
        """Whether every used statistic lies in the range it was fitted on."""
        return not self.outside

    @property
    def clipped(self) -> bool:
        """Whether the regression's own value lay outside the searched range."""
        return self.linear != self.inverse_temperature


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
    absolute errors on data sets left out of the fit (choice of statistics included). Each data set weighs as much as
    the next, and as one imagined data set that is missed by any distance. So it speaks of a pair of a new data set,
    while the textbook formula of least squares takes the pairs of a data set for independent and the statistics for
    given. With fewer than level / (1 - level) data sets (9 for 0.9) nothing bounds the imagined one: `margin` is None,
    and the interval the whole searched range.

    After Lee, Barber and Willett 2023 (arXiv 2306.06342). Their jackknife+ centres on the models of the folds, which
    bounds the misses at twice the promised share whatever the data. Ours gives up that bound to centre on the final
    model: the interval holds its prediction, needs no other statistics, and covered as promised where we simulated it.

    Attributes:
        format: Of the saved text.
        version: Of the saved text; another one is refused.
        selection: How the statistics were chosen.
        method: How the coefficients were found.
        intercept: The prediction at the mean of every statistic.
        terms: The rest of the regression.
        bounds: The searched range, to which predictions and intervals are clipped.
        level: Share of new pairs that the intervals are to hold.
        margin: Half the width of an interval before clipping, in units of the inverse temperature.
        n_pairs: How many pairs it was fitted on.
        datasets: The data sets it was fitted on.
    """

    format: Literal["softmax-temperature heuristic"]
    version: Literal[1]
    selection: str
    method: Method
    intercept: FiniteFloat
    terms: tuple[Term, ...]
    bounds: tuple[FiniteFloat, FiniteFloat]
    level: Annotated[float, Field(gt=0, lt=1)]
    margin: Annotated[FiniteFloat, Field(ge=0)] | None
    n_pairs: PositiveInt
    datasets: tuple[str, ...]

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        _check_names([term.statistic for term in self.terms])
        _check_bounds(self.bounds)
        return self

    @property
    def n_datasets(self) -> int:
        """How many data sets it was fitted on."""
        return len(self.datasets)

    def predict(self, statistics: Mapping[str, float]) -> Estimate:
        """The inverse temperature to expect from a data set's statistics.

        Args:
            statistics: Finite numbers by name, as from `dataset_statistics.describe`; those of `terms` are used.

        Raises:
            ValueError: If a used statistic is missing or not finite, or a name is unknown.
        """
        for name in statistics:
            _check_name(name)
        used = [(term, _statistic(statistics, term.statistic)) for term in self.terms]
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
        """A row per pair, sorted: the pair, its optimum, `predicted`, `linear`, `low`, `high` and `inside`.

        On the pairs of the fit itself this is Figure 4, an in-sample fit as in the paper.
        """
        names = [term.statistic for term in self.terms]
        table = _checked(pairs, names, datasets=1)
        estimates = [self.predict(dict(zip(names, row, strict=True))) for row in _matrix(table, names).tolist()]
        columns = {name: [getattr(each, name) for each in estimates] for name in ("linear", "low", "high", "inside")}
        return _identities(table).assign(predicted=[each.inverse_temperature for each in estimates], **columns)

    def to_json(self) -> str:
        """The heuristic as JSON text, from which `from_json` makes an equal one, every number bit for bit."""
        return self.model_dump_json(indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The heuristic that `to_json` wrote.

        Raises:
            ValueError: If the text is not JSON or of another format or version, or a field is missing, unknown or bad.
        """
        return cls.model_validate_json(text)


def fit(
    pairs: Pairs,
    *,
    statistics: str | int | Sequence[str] = "four_best",
    method: Method = "least_squares",
    level: float = 0.9,
    bounds: tuple[float, float] = SEARCHED_RANGE,
) -> Heuristic:
    """The final regression on all pairs (section 4.3, Figure 4), with prediction intervals (ours).

    Args:
        pairs: See the module.
        statistics: As in `leave_one_dataset_out`.
        method: As in `leave_one_dataset_out`.
        level: Share of new pairs that the intervals are to hold, a fraction in (0, 1).
        bounds: The searched range.

    Raises:
        ValueError: As in `leave_one_dataset_out`, and if `level` is out of range.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must be in (0, 1), got {level}")
    selection, table = _prepared(pairs, statistics, method, bounds)
    linear, _ = _out_of_fold(table, selection, method)
    errors = np.abs(_floats(table, "inverse_temperature") - np.clip(linear, *bounds))
    regression = _regress(table, selection, method)
    return Heuristic(
        format="softmax-temperature heuristic",
        version=1,
        selection=selection.label,
        method=method,
        intercept=regression.intercept,
        terms=_terms(regression, table),
        bounds=(float(bounds[0]), float(bounds[1])),
        level=float(level),
        margin=_margin(errors, table["dataset"], level),
        n_pairs=len(table),
        datasets=tuple(table["dataset"].unique()),
    )


class _Selection(NamedTuple):
    """The most correlated of the candidates, as many as `size`."""

    label: str
    candidates: tuple[str, ...]
    size: int


class _Regression(NamedTuple):
    """A plane through standardised statistics."""

    names: tuple[str, ...]
    mean: Floats
    scale: Floats
    coefficients: Floats
    intercept: float

    def predict(self, table: pd.DataFrame) -> Floats:
        return self.intercept + ((_matrix(table, self.names) - self.mean) / self.scale) @ self.coefficients


def _out_of_fold(
    table: pd.DataFrame, selection: _Selection, method: Method
) -> tuple[Floats, dict[str, tuple[str, ...]]]:
    """The regression's value for each pair from the other data sets, and each fold's statistics."""
    linear, chosen = np.empty(len(table)), {}
    for dataset in table["dataset"].unique():
        held_out = (table["dataset"] == dataset).to_numpy()
        regression = _regress(table[~held_out], selection, method)
        linear[held_out], chosen[dataset] = regression.predict(table[held_out]), regression.names
    return linear, chosen


def _regress(table: pd.DataFrame, selection: _Selection, method: Method) -> _Regression:
    names = _choose(table, selection)
    mean, scale, standardised = _standardise(_matrix(table, names))
    optima = _floats(table, "inverse_temperature")
    centred = optima - optima.mean()
    if method == "ridge":
        coefficients = _ridge(standardised, centred, table["dataset"])
    else:
        # Deviation: with all 23 statistics the paper's least squares need not have one answer: some statistics follow
        # from others, some are the same for all pairs of a data set. Of the equally good answers this is the shortest;
        # directions below 1e-6 of the largest count as round-off, so that the answer is the same on every machine.
        coefficients = np.linalg.lstsq(standardised, centred, rcond=1e-6)[0]
    return _Regression(names, mean, scale, coefficients, float(optima.mean()))


def _ridge(standardised: Floats, centred: Floats, datasets: pd.Series[str]) -> Floats:
    # By itself RidgeCV would leave out single pairs; the penalty must suit a new data set, like everything here.
    folds = list(LeaveOneGroupOut().split(standardised, groups=datasets))
    model = RidgeCV(alphas=RIDGE_PENALTIES, cv=folds, scoring="neg_mean_squared_error")
    return np.asarray(model.fit(standardised, centred).coef_, dtype=np.float64)


def _choose(table: pd.DataFrame, selection: _Selection) -> tuple[str, ...]:
    if selection.size == len(selection.candidates):
        return selection.candidates
    _, _, values = _standardise(_matrix(table, selection.candidates))
    _, _, optima = _standardise(_matrix(table, ("inverse_temperature",)))
    strongest = _strongest_first(np.abs(values.T @ optima[:, 0]) / len(table))
    return tuple(selection.candidates[index] for index in strongest[: selection.size])


def _strongest_first(absolute: Floats) -> NDArray[np.intp]:
    # Rounded, so that statistics that tie, being multiples of each other, keep their order on every machine.
    return np.argsort(-absolute.round(12), kind="stable")


def _standardise(values: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, scale and standardised values of each column; a constant column has scale 1 and becomes 0."""
    constant = np.array([_is_constant(column) for column in values.T])
    mean, scale = values.mean(axis=0), np.where(constant, 1.0, values.std(axis=0))
    return mean, scale, np.where(constant, 0.0, (values - mean) / scale)


def _is_constant(values: Floats) -> bool:
    return bool(np.ptp(values) <= 1e-9 * np.abs(values).max())


def _terms(regression: _Regression, table: pd.DataFrame) -> tuple[Term, ...]:
    values = _matrix(table, regression.names)
    columns = (regression.coefficients, regression.mean, regression.scale, values.min(axis=0), values.max(axis=0))
    fields = ("coefficient", "mean", "scale", "low", "high")
    rows = zip(regression.names, np.stack(columns, axis=1).tolist(), strict=True)
    return tuple(Term(statistic=name, **dict(zip(fields, row, strict=True))) for name, row in rows)


def _margin(errors: Floats, datasets: pd.Series[str], level: float) -> float | None:
    """The smallest error up to which the errors weigh `level`; see Heuristic."""
    pairs_of_dataset = datasets.map(datasets.value_counts()).to_numpy(dtype=np.float64)
    weights = 1 / (pairs_of_dataset * (datasets.nunique() + 1))
    order = np.argsort(errors, kind="stable")
    enough = np.cumsum(weights[order]) >= level - 1e-12
    return float(errors[order][enough.argmax()]) if enough.any() else None


def _identities(table: pd.DataFrame) -> pd.DataFrame:
    return table[["dataset", "backbone", "inverse_temperature"]]


def _fold_row(dataset: str, fold: pd.DataFrame, chosen: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    optima = _floats(fold, "inverse_temperature")
    found = pearson(optima, _floats(fold, "linear"))
    r, p = (found.r, found.p) if found else (math.nan, math.nan)
    undefined = "" if found else _why_undefined(optima)
    shared = {"dataset": dataset, "pairs": len(fold), "statistics": ", ".join(chosen[dataset])}
    return {**shared, "r": r, "p": p, "undefined": undefined}


def _why_undefined(optima: Floats) -> str:
    if len(optima) < 3:
        return "fewer than 3 pairs"
    return "constant optimum" if _is_constant(optima) else "constant prediction"


def _share_on_plateau(table: pd.DataFrame, predicted: Floats) -> float | None:
    if not {"plateau_low", "plateau_high"} <= set(table.columns):
        return None
    on_plateau = (_floats(table, "plateau_low") <= predicted) & (predicted <= _floats(table, "plateau_high"))
    return float(on_plateau.mean())


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _prepared(
    pairs: Pairs, statistics: str | int | Sequence[str], method: str, bounds: tuple[float, float]
) -> tuple[_Selection, pd.DataFrame]:
    if method not in get_args(Method):
        raise ValueError(f"method {method!r} is unknown. {nearest(method, get_args(Method))}")
    _check_bounds(bounds)
    selection = _selection(statistics)
    table = _checked(pairs, selection.candidates, datasets=3)
    for optimum in table["inverse_temperature"]:
        if not bounds[0] <= optimum <= bounds[1]:
            raise ValueError(f"bounds are {bounds}, but pairs hold an inverse_temperature of {optimum}")
    return selection, table


def _selection(statistics: str | int | Sequence[str]) -> _Selection:
    if isinstance(statistics, str):
        if statistics not in COUNTS:
            raise ValueError(f"statistics {statistics!r} is unknown. {nearest(statistics, COUNTS)}")
        return _Selection(statistics, STATISTICS, COUNTS[statistics])
    if isinstance(statistics, int):
        if isinstance(statistics, bool) or not 1 <= statistics <= len(STATISTICS):
            raise ValueError(f"statistics must be 1 to {len(STATISTICS)} when a number, got {statistics}")
        return _Selection(str(statistics), STATISTICS, statistics)
    names = tuple(statistics)
    _check_names(names)
    return _Selection(", ".join(names), names, len(names))


def _check_name(name: str) -> None:
    if name not in STATISTICS:
        raise ValueError(f"statistic {name!r} is unknown. {nearest(name, STATISTICS)}")


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        _check_name(name)
    if not names or len(set(names)) < len(names):
        raise ValueError(f"statistics must be one or more different names, got {list(names)}")


def _check_bounds(bounds: tuple[float, float]) -> None:
    if not 0 < bounds[0] < bounds[1] < math.inf:
        raise ValueError(f"bounds must be two increasing positive numbers, got {bounds}")


def _statistic(statistics: Mapping[str, float], name: str) -> float:
    if name not in statistics:
        raise ValueError(f"statistics lacks {name!r}, which this heuristic uses; it has {sorted(statistics)}")
    value = float(statistics[name])
    if not math.isfinite(value):
        raise ValueError(f"statistics[{name!r}] must be finite, got {value}")
    return value


def _checked(pairs: Pairs, statistics: Sequence[str], *, datasets: int = 3) -> pd.DataFrame:
    """The pairs as a table in one order, with the named statistics and at least that many data sets."""
    table = _table(pairs)
    _check_identities(table)
    _check_numbers(table, ("inverse_temperature", *statistics))
    if {"plateau_low", "plateau_high"} <= set(table.columns):
        _check_plateaus(table)
    names = sorted(table["dataset"].unique())
    if len(names) < datasets:
        raise ValueError(f"pairs must hold at least {datasets} data sets, got {len(names)}: {', '.join(names)}")
    return table.sort_values(["dataset", "backbone"], ignore_index=True)


def _table(pairs: Pairs) -> pd.DataFrame:
    return pairs if isinstance(pairs, pd.DataFrame) else pd.DataFrame([dict(pair) for pair in pairs])


def _check_identities(table: pd.DataFrame) -> None:
    for name in ("dataset", "backbone"):
        _check_column(table, name)
        if not all(isinstance(value, str) for value in table[name]):
            raise ValueError(f"pairs[{name!r}] must hold names, got {table[name].tolist()}")
    repeated = table[table.duplicated(["dataset", "backbone"])]
    if len(repeated):
        raise ValueError(f"pairs holds {repeated['dataset'].iloc[0]} with {repeated['backbone'].iloc[0]} twice")


def _check_numbers(table: pd.DataFrame, names: Iterable[str]) -> None:
    for name in names:
        _check_column(table, name)
        if not pd.api.types.is_numeric_dtype(table[name]):
            raise ValueError(f"pairs[{name!r}] must hold numbers, got {table[name].tolist()}")
        values = _floats(table, name)
        if not np.isfinite(values).all():
            raise ValueError(f"pairs[{name!r}] must hold finite numbers, got {values[~np.isfinite(values)][0]}")


def _check_column(table: pd.DataFrame, name: str) -> None:
    if name not in table.columns:
        raise ValueError(f"pairs lacks the column {name!r}. {nearest(name, map(str, table.columns))}")


def _check_plateaus(table: pd.DataFrame) -> None:
    names = ("plateau_low", "inverse_temperature", "plateau_high")
    _check_numbers(table, names)
    for low, optimum, high in _matrix(table, names):
        if not low <= optimum <= high:
            raise ValueError(f"pairs: plateau_low {low} and plateau_high {high} must enclose the optimum {optimum}")


def _floats(table: pd.DataFrame, name: str) -> Floats:
    return table[name].to_numpy(dtype=np.float64, na_value=np.nan)


def _matrix(table: pd.DataFrame, names: Sequence[str]) -> Floats:
    return np.stack([_floats(table, name) for name in names], axis=1)

"""What the claims of the abstract are judged by: values by sweep and seed, from the records.

Whatever is chosen among several (an inverse temperature, the best and the worst of them) is chosen on the validation
data of the other seeds and compared on the test data of the one that is left out: choosing makes nothing look better.
Only inverse temperatures whose chosen learning rate lies inside its grid are compared: at the end of a grid of rates, a
gain of the inverse temperature may be one of the rate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.shared.claims import Measurement, NotTested
from softmax_temperature.papers.shared.statistics import Drawn, Fitted, OverTasks, Task, Values
from softmax_temperature.papers.temperature_check.early_learning import LINE, Prediction, early_slopes
from softmax_temperature.papers.temperature_check.records import Records
from softmax_temperature.papers.temperature_check.selection import (
    ACCURACIES,
    UNTEMPERED,
    alone,
    several_norms,
    titles,
)

DATA = ("cifar10", "imagenet", "imagenet64", "imdb")
"""The paper's data sets; parts of them, as "cifar10-5000", count as the paper's too."""
NORMS = (1.0, 10.0)  # Norms of the logits must range from below the one to above the other: their limits in theory.
DRAWS, SEED = 4000, 0
_AT_END = "the chosen learning rate is at the end of its grid"
_NO_SWEEP = NotTested("no sweep of this profile has several inverse temperatures")

Sweeps = Mapping[str, tuple[pd.DataFrame, bool]]
Gaps = Callable[[pd.DataFrame, pd.DataFrame], "pd.Series[float]"]
"""Validation and test numbers by seed and inverse temperature to one value per seed."""


def dependence(
    records: Records,
    *,
    metric: str = "test_accuracy",
    unit: str = "accuracy",
    sign: int = 1,
    rows: Callable[[Records], pd.DataFrame] = alone,
) -> Measurement | NotTested:
    """A number at the best inverse temperature minus that at the worst, of each sweep."""
    return _by_sweep(rows(records), lambda validation, test: sign * _best_over_worst(validation, test), unit, metric)


def tuning(records: Records) -> Measurement | NotTested:
    """Accuracy at the best inverse temperature minus that at 1, of each sweep."""

    def gaps(validation: pd.DataFrame, test: pd.DataFrame) -> pd.Series[float]:
        if UNTEMPERED not in test:
            return pd.Series(dtype=float)
        return _left_out(validation, test, pd.Series.idxmax) - test[UNTEMPERED]

    return _by_sweep(alone(records), gaps, "accuracy")


def small_over_large(records: Records) -> Measurement | NotTested:
    """Accuracy at the best inverse temperature below 1 minus that at the best of 1 and above, of each sweep."""

    def gaps(validation: pd.DataFrame, test: pd.DataFrame) -> pd.Series[float]:
        small, large = (test.columns[(test.columns.to_numpy(float) < UNTEMPERED) == side] for side in (True, False))
        if not len(small) or not len(large):
            return pd.Series(dtype=float)
        best = (_left_out(validation[some], test[some], pd.Series.idxmax) for some in (small, large))
        return next(best) - next(best)

    return _by_sweep(alone(records), gaps, "accuracy")


def norm_against_temperature(records: Records) -> Measurement | NotTested:
    """What the norm of the logits changes, minus half of what the inverse temperature changes in the same network."""
    ranges = dependence(records)
    found = ranges.parts if isinstance(ranges, Measurement) else {}
    rows, parts, missing = several_norms(records), {}, {}
    for sweep, some in rows.groupby("sweep", sort=False):
        name = titles(some)[str(sweep)]
        norms = some.groupby("start")["initial_logit_norm"].mean()
        whole = found.get(name)
        if norms.min() > NORMS[0] or norms.max() < NORMS[1]:
            missing[name] = f"norms from {norms.min():.2g} to {norms.max():.2g} cannot show more than one regime"
        elif not isinstance(whole, OverTasks) or some["seed"].nunique() < 2:
            missing[name] = "no sweep of inverse temperatures to compare with, or one seed only"
        else:
            tables = (some.pivot(index="seed", columns="start", values=column) for column in ACCURACIES)
            gaps, (task,) = _best_over_worst(*tables).tolist(), whole.tasks
            both = (gaps, task.values)  # noqa: PD011  # Not pandas'.
            parts[name] = _minus_half(*(np.array(values, np.float64) for values in both))
    if not parts:
        return NotTested("; ".join(f"{name}: {why}" for name, why in missing.items()) or "no sweep over several norms")
    return Measurement(parts, "accuracy", missing=missing, cells=tuple(dict.fromkeys(rows["cells"])))


def _minus_half(gaps: Values, whole: Values) -> Fitted:
    """One mean minus half of another, of independent seeds; the degrees of freedom are Welch's.

    Both are of values that lean on each other, whose variance is corrected as `OverTasks` does.
    """
    counts = np.array([len(gaps), len(whole)])
    squares = np.array([gaps.var(ddof=1), whole.var(ddof=1) / 4]) * (1 / counts + 1 / (counts - 1))
    below = (squares**2 / (counts - 1)).sum()
    degrees = squares.sum() ** 2 / below if below else counts.min() - 1
    return Fitted(gaps.mean() - whole.mean() / 2, float(np.sqrt(squares.sum())), int(degrees), len(gaps))


def places_of_the_best(records: Records) -> Measurement | NotTested:
    """Decades between the best inverse temperatures of two architectures, with a bootstrap of the argmax."""
    sweeps, missing = _sweeps(alone(records)), {}
    best: dict[str, Values] = {}
    for name, rows in _own_or_all(sweeps).items():
        table = _interior(rows).pivot(index="seed", columns="inverse_temperature", values="test_accuracy")
        tried = sorted(rows["inverse_temperature"].unique())
        place = tried.index(table.mean().idxmax()) if table.shape[1] else 0
        if len(table) < 2 or not set(tried[max(0, place - 1) : place + 2]) <= set(table.columns):
            missing[name] = f"{_AT_END} next to the best inverse temperature"
        elif place in (0, len(tried) - 1):
            missing[name] = "the best inverse temperature is at the end of its grid"
        else:
            best[name] = argmax_draws(table)
    if len(best) < 2:
        return NotTested("; ".join(f"{name}: {why}" for name, why in missing.items()) or "one architecture only")
    parts = {
        # The first draw is the estimate. Both orders are parts: which one is larger is seen in the data.
        f"{one} over {other}": Drawn(float(draws[0]), tuple(draws[1:].tolist()), records.runs["seed"].nunique())
        for one, other in permutations(best, 2)
        if (draws := best[one] - best[other]) is not None
    }
    note = ", ".join(f"{name}: {10 ** draws[0]:g}" for name, draws in best.items())
    absent = "; ".join(f"{name} left out: {why}" for name, why in missing.items())
    return Measurement(parts, "decades", "; ".join(filter(None, (note, absent))), cells=_cells(sweeps))


def argmax_draws(table: pd.DataFrame) -> Values:
    """The common logarithm of the inverse temperature of the highest mean, and then draws of it.

    The means are drawn around the measured ones by Student's t, with the residual standard deviation over seeds and
    inverse temperatures: three seeds are too few to be drawn from.

    Args:
        table: accuracies, by seed (at least 2) and inverse temperature (at least 2).
    """
    values, places = table.to_numpy(float), np.log10(table.columns.to_numpy(float))
    seeds, count = values.shape
    residuals = values - values.mean(axis=0) - values.mean(axis=1, keepdims=True) + values.mean()
    degrees = (seeds - 1) * (count - 1)
    error = np.sqrt((residuals**2).sum() / degrees / seeds)
    generator = np.random.default_rng(SEED)
    scale = error * np.sqrt(degrees / generator.chisquare(degrees, DRAWS))
    means = values.mean(axis=0) + scale[:, None] * generator.normal(size=(DRAWS, count))
    drawn: Values = places[np.concatenate([[values.mean(axis=0).argmax()], means.argmax(axis=1)])]
    return drawn


def stability(records: Records) -> Measurement | NotTested:
    """The slope of the logarithm of the spread over seeds in that of the inverse temperature, over all sweeps."""
    rows = []
    for name, some in _own_or_all(_sweeps(alone(records))).items():
        spreads = (
            _interior(some[~some["diverged"]]).groupby("inverse_temperature")["test_accuracy"].agg(["std", "count"])
        )
        for place, row in spreads[(spreads["count"] > 1) & (spreads["std"] > 0)].iterrows():
            rows.append({"sweep": name, "x": np.log10(float(str(place))), "y": np.log(row["std"])})
    table = pd.DataFrame(rows, columns=["sweep", "x", "y"])
    table = table[table.groupby("sweep")["x"].transform("size") > 1]
    degrees = len(table) - table["sweep"].nunique() - 1
    if degrees < 1:
        return NotTested("too few spreads over seeds where the chosen learning rate is inside its grid")
    slope, error = common_slope(table)
    seeds, note = int(records.runs["seed"].nunique()), f"{len(table)} spreads in {table['sweep'].nunique()} sweeps"
    return Measurement({"slope": Fitted(slope, error, degrees, seeds)}, "log spread per decade", note)


def common_slope(table: pd.DataFrame) -> tuple[float, float]:
    """Slope of y in x with an intercept for each sweep, and its standard error.

    Args:
        table: with the columns sweep, x, y.
    """
    x, y = (table[name] - table.groupby("sweep")[name].transform("mean") for name in ("x", "y"))
    square = float((x**2).sum())
    slope = float((x * y).sum()) / square
    degrees = len(table) - table["sweep"].nunique() - 1
    return slope, float(np.sqrt(((y - slope * x) ** 2).sum() / degrees / square))


def early(
    records: Records, *, predictions: tuple[Prediction, ...], smooth: bool | None = None
) -> Measurement | NotTested:
    """Slopes minus the predicted ones, of each network; where points are off any line, a slope alone shows nothing."""
    table = early_slopes(records)
    keys = [(each.quantity, each.where, each.against) for each in predictions]
    asked = pd.MultiIndex.from_frame(table[["quantity", "where", "against"]]).isin(keys)
    rows = table[asked if smooth is None else asked & (table["smooth"] == smooth)]
    if rows.empty:
        return NotTested("no network of this profile has two points where the prediction speaks")
    parts, missing = {}, {}
    for row in rows.to_dict("records"):
        name = row["network"] if len(predictions) == 1 else f"{row['network']}, {row['quantity']}"
        error = None if pd.isna(row["sd"]) else row["sd"] / row["n"] ** 0.5
        parts[name] = Fitted(row["slope"] - row["predicted"], error, row["n"] - 1, row["n"])
        if row["misfit"] > LINE:
            missing[f"{name}, as a line"] = f"points miss it by a factor of {row['misfit']:.2f}"
    return Measurement(parts, "slope minus predicted", missing=missing, cells=tuple(dict.fromkeys(rows["cells"])))


def is_own(dataset: str) -> bool:
    """Whether the paper has a data set, or one that this is a part of."""
    return dataset.partition("-")[0] in DATA


def _by_sweep(chosen: pd.DataFrame, gaps: Gaps, unit: str, metric: str = "test_accuracy") -> Measurement | NotTested:
    parts, missing, sweeps = {}, {}, _sweeps(chosen)
    asked = _own_or_all(sweeps)
    for name, (rows, own) in sweeps.items():
        inside = _interior(rows)
        tables = [
            inside.pivot(index="seed", columns="inverse_temperature", values=column)
            for column in ("validation_accuracy", metric)
        ]
        values = gaps(*tables).dropna() if tables[0].shape[1] > 1 and len(tables[0]) > 1 else pd.Series(dtype=float)
        if len(values):
            parts[name] = OverTasks((Task(name, tuple(values.tolist()), own),), left_out=True)
        elif name in asked:
            left = ", ".join(f"{place:g}" for place in tables[0].columns)
            missing[name] = f"{_AT_END}, but for {left or 'none'}" if len(inside) < len(rows) else "too few trainings"
    if not sweeps:
        return _NO_SWEEP
    if not parts:
        return NotTested("; ".join(f"{name}: {why}" for name, why in missing.items()))
    return Measurement(parts, unit, missing=missing, cells=_cells(sweeps))


def _sweeps(rows: pd.DataFrame) -> Sweeps:
    """By title, the chosen trainings of each sweep with several inverse temperatures, and whether the paper has it."""
    return {
        titles(some)[str(sweep)]: (some, is_own(str(some["dataset"].iloc[0])))
        for sweep, some in rows.groupby("sweep", sort=False)
        if len(set(some["inverse_temperature"])) > 1
    }


def _own_or_all(sweeps: Sweeps) -> dict[str, pd.DataFrame]:
    """The trainings of the sweeps that the paper has, or, where it has none of them, of all."""
    own = {name: rows for name, (rows, is_theirs) in sweeps.items() if is_theirs}
    return own or {name: rows for name, (rows, _) in sweeps.items()}


def _interior(rows: pd.DataFrame) -> pd.DataFrame:
    inside: pd.DataFrame = rows[rows["interior"]]
    return inside


def _left_out(
    validation: pd.DataFrame, test: pd.DataFrame, choose: Callable[[pd.Series[float]], Any]
) -> pd.Series[float]:
    """Of each seed the test number at the place that the other seeds' validation numbers choose."""
    places = {seed: choose(validation.drop(index=seed).mean()) for seed in test.index}
    return pd.Series({seed: test.loc[seed, place] for seed, place in places.items()}, dtype=float)


def _best_over_worst(validation: pd.DataFrame, test: pd.DataFrame) -> pd.Series[float]:
    return _left_out(validation, test, pd.Series.idxmax) - _left_out(validation, test, pd.Series.idxmin)


def _cells(sweeps: Sweeps) -> tuple[str, ...]:
    return tuple(dict.fromkeys(cell for rows, _ in sweeps.values() for cell in rows["cells"]))

"""What the claims of the abstract are judged by: values by sweep and seed, from the records.

Whatever is chosen among several (an inverse temperature, the best and the worst of them) is chosen on the validation
data of the other seeds and compared on the test data of the one that is left out: choosing makes nothing look better.
Only inverse temperatures whose chosen learning rate lies inside its grid are compared: at the end of a grid of rates, a
gain of the inverse temperature may be one of the rate.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.shared.claims import Measurement, NotTested
from softmax_temperature.papers.shared.statistics import Drawn, Fitted, OverTasks, Quantity, Task, Values, is_part
from softmax_temperature.papers.temperature_check.early_learning import LINE, Prediction, early_slopes
from softmax_temperature.papers.temperature_check.records import Records
from softmax_temperature.papers.temperature_check.selection import ACCURACIES, alone, by_seed, by_sweep, several_norms

DATA = ("cifar10", "imagenet", "imagenet64", "imdb")
"""The paper's data sets; parts of them, as "cifar10-5000", count as the paper's too."""
NORMS = (1.0, 10.0)  # Norms of the logits must range from below the one to above the other: their limits in theory.
DRAWS, SEED = 4000, 0
_AT_END = "the chosen learning rate is at the end of its grid"

Chosen = tuple[Callable[[Any], bool], str]
"""Among which inverse temperatures (or starts) one is chosen, and by which method of the validation means."""
BEST: Chosen = (lambda _: True, "idxmax")
WORST: Chosen = (lambda _: True, "idxmin")
BEST_BELOW_1: Chosen = (lambda place: place < 1, "idxmax")
BEST_FROM_1: Chosen = (lambda place: place >= 1, "idxmax")
AT_1: Chosen = (lambda place: place == 1, "idxmax")


def gap(
    records: Records,
    one: Chosen = BEST,
    other: Chosen = WORST,
    *,
    metric: str = "test_accuracy",
    unit: str = "accuracy",
    rows: Callable[[Records], pd.DataFrame] = alone,
) -> Measurement | NotTested:
    """A number at one chosen inverse temperature minus that at another, of each sweep."""
    sweeps = _sweeps(rows(records))
    asked, parts, missing = _own_or_all(sweeps), {}, {}
    for name, some in sweeps.items():
        inside = some[some["interior"]]
        validation, test = by_seed(inside, "validation_accuracy"), by_seed(inside, metric)
        values = _gaps(validation, test, one, other) if min(test.shape) > 1 else []
        if values:
            parts[name] = OverTasks((Task(name, tuple(values), _is_own(some)),), left_out=True)
        elif name in asked:
            left = ", ".join(f"{place:g}" for place in test.columns)
            missing[name] = f"{_AT_END}, but for {left or 'none'}" if len(inside) < len(some) else "too few trainings"
    nothing = "no sweep of this profile has several inverse temperatures"
    return _measured(parts, unit, missing, nothing, sweeps.values())


def norm_against_temperature(records: Records) -> Measurement | NotTested:
    """What the norm of the logits changes, minus half of what the inverse temperature changes in the same network."""
    ranges, rows, parts, missing = gap(records), several_norms(records), {}, {}
    found = ranges.parts if isinstance(ranges, Measurement) else {}
    for name, some in by_sweep(rows):
        norms, whole = some.groupby("start")["initial_logit_norm"].mean(), found.get(name)
        if norms.min() > NORMS[0] or norms.max() < NORMS[1]:
            missing[name] = f"norms from {norms.min():.2g} to {norms.max():.2g} cannot show more than one regime"
        elif not isinstance(whole, OverTasks) or some["seed"].nunique() < 2:
            missing[name] = "no sweep of inverse temperatures to compare with, or one seed only"
        else:
            validation, test = (by_seed(some, column, "start") for column in ACCURACIES)
            parts[name] = _minus_half(np.array(_gaps(validation, test, BEST, WORST)), np.array(whole.tasks[0].values))
    return _measured(parts, "accuracy", missing, "no sweep over several norms", [rows])


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
        table = by_seed(rows[rows["interior"]], "test_accuracy")
        tried = sorted(rows["inverse_temperature"].unique())
        place = tried.index(table.mean().idxmax()) if table.shape[1] else 0
        if len(table) < 2 or not set(tried[max(0, place - 1) : place + 2]) <= set(table.columns):
            missing[name] = f"{_AT_END} next to the best inverse temperature"
        elif place in (0, len(tried) - 1):
            missing[name] = "the best inverse temperature is at the end of its grid"
        else:
            best[name] = argmax_draws(table)
    parts = {
        # The first draw is the estimate. Both orders are parts: which one is larger is seen in the data.
        f"{one} over {other}": Drawn(float(draws[0]), tuple(draws[1:].tolist()), records.runs["seed"].nunique())
        for one, other in permutations(best, 2)
        for draws in [best[one] - best[other]]
    }
    if not parts:
        return _measured(parts, "decades", missing, "one architecture only")
    note = ", ".join(f"{name}: {10 ** draws[0]:g}" for name, draws in best.items())
    left_out = [f"{name} left out: {why}" for name, why in missing.items()]
    return _measured(parts, "decades", {}, "", sweeps.values(), note="; ".join([note, *left_out]))


def argmax_draws(table: pd.DataFrame) -> Values:
    """The common logarithm of the inverse temperature of the highest mean, and then draws of it.

    The means are drawn around the measured ones by Student's t, with the residual standard deviation over seeds and
    inverse temperatures: three seeds are too few to be drawn from. `table` has accuracies by seed and inverse
    temperature, at least 2 of each.
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
    points: list[Any] = []
    for name, rows in _own_or_all(_sweeps(alone(records))).items():
        inside = rows[rows["interior"] & ~rows["diverged"]]
        sds = inside.groupby("inverse_temperature")["test_accuracy"].std()
        sds = sds[sds > 0]
        points += zip([name] * len(sds), np.log10(sds.index.to_numpy(float)), np.log(sds), strict=True)
    table = pd.DataFrame(points, columns=["sweep", "x", "y"])
    table = table[table.groupby("sweep")["x"].transform("size") > 1]
    degrees = len(table) - table["sweep"].nunique() - 1
    if degrees < 1:
        return NotTested("too few spreads over seeds where the chosen learning rate is inside its grid")
    seeds, note = int(records.runs["seed"].nunique()), f"{len(table)} spreads in {table['sweep'].nunique()} sweeps"
    return Measurement({"slope": Fitted(*common_slope(table), degrees, seeds)}, "log spread per decade", note)


def common_slope(table: pd.DataFrame) -> tuple[float, float]:
    """Slope of the column y in x with an intercept for each sweep, and its standard error."""
    x, y = (table[name] - table.groupby("sweep")[name].transform("mean") for name in ("x", "y"))
    square = float((x**2).sum())
    slope = float((x * y).sum()) / square
    degrees = len(table) - table["sweep"].nunique() - 1
    return slope, float(np.sqrt(((y - slope * x) ** 2).sum() / degrees / square))


def early(
    records: Records, *, predictions: tuple[Prediction, ...], smooth: bool | None = None
) -> Measurement | NotTested:
    """Slopes minus the predicted ones, of each network; where points are off any line, a slope alone shows nothing."""
    table, names = early_slopes(records), ["quantity", "where", "against"]
    keys = [(each.quantity, each.where, each.against) for each in predictions]
    rows = table[pd.MultiIndex.from_frame(table[names]).isin(keys)]
    if smooth is not None:
        rows = rows[rows["smooth"] == smooth]
    parts, missing = {}, {}
    for row in rows.to_dict("records"):
        name = row["network"] if len(predictions) == 1 else f"{row['network']}, {row['quantity']}"
        error = None if pd.isna(row["sd"]) else row["sd"] / row["n"] ** 0.5
        parts[name] = Fitted(row["slope"] - row["predicted"], error, row["n"] - 1, row["n"])
        if row["misfit"] > LINE:
            missing[f"{name}, as a line"] = f"points miss it by a factor of {row['misfit']:.2f}"
    nothing = "no network of this profile has two points where the prediction speaks"
    return _measured(parts, "slope minus predicted", missing, nothing, [rows])


def _measured(
    parts: Mapping[str, Quantity],
    unit: str,
    missing: Mapping[str, str],
    otherwise: str,
    rows: Iterable[pd.DataFrame] = (),
    note: str = "",
) -> Measurement | NotTested:
    """The parts with the cells of their rows; without parts, what each misses, or what they miss together."""
    if not parts:
        return NotTested("; ".join(f"{name}: {why}" for name, why in missing.items()) or otherwise)
    cells = dict.fromkeys(cell for some in rows for cell in some["cells"])
    return Measurement(parts, unit, note, missing, tuple(cells))


def _sweeps(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """By title, the trainings of each sweep with several inverse temperatures."""
    return {name: some for name, some in by_sweep(rows) if len(set(some["inverse_temperature"])) > 1}


def _is_own(rows: pd.DataFrame) -> bool:
    """Whether the paper has the data set of a sweep, or one that this is a part of."""
    return is_part(str(rows["dataset"].iloc[0]), DATA)


def _own_or_all(sweeps: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The sweeps that the paper has, or, where it has none of them, all."""
    return {name: rows for name, rows in sweeps.items() if _is_own(rows)} or sweeps


def _gaps(validation: pd.DataFrame, test: pd.DataFrame, *chosen: Chosen) -> list[float]:
    """By seed, its test number at the first choice minus that at the second, by the other seeds' validation numbers."""
    found = []
    for among, choose in chosen:
        places = [place for place in test.columns if among(place)]
        means = {seed: validation[places].drop(index=seed).mean() for seed in test.index if places}
        values = {seed: test.loc[seed, getattr(mean, choose)()] for seed, mean in means.items()}
        found.append(pd.Series(values, dtype=float))
    return (found[0] - found[1]).dropna().tolist()

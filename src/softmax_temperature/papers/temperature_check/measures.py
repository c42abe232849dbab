"""What the claims of the abstract are judged by: values by sweep and seed, from the
records.

What is chosen is chosen on the validation data of the other seeds: choosing makes
    nothing look better. At the end of a
grid of learning rates a gain of the inverse temperature may be one of the rate: only
    those inside are compared.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.shared.claims import Measurement, not_tested
from softmax_temperature.papers.shared.statistics import (
    Drawn,
    Fitted,
    OverTasks,
    Quantity,
    Task,
    Values,
)
from softmax_temperature.papers.temperature_check.early_learning import (
    LINE,
    Prediction,
    early_slopes,
)
from softmax_temperature.papers.temperature_check.records import (
    NORMS,
    Records,
    by_seed,
    by_sweep,
    chosen,
)
from softmax_temperature.params.temperature_check import PLAIN

LIMITS = (
    1.0,
    10.0,
)  # Norms of the logits must range from below the one to above the other: their limits in theory.
DRAWS, SEED = 4000, 0

Choice = tuple[Callable[[Any], bool], str]
"""Among which inverse temperatures (or starts) one is chosen, and by which method of
the validation means.
"""
BEST: Choice = (lambda _: True, "idxmax")
WORST: Choice = (lambda _: True, "idxmin")
BEST_BELOW_1: Choice = (lambda place: place < 1, "idxmax")
BEST_FROM_1: Choice = (lambda place: place >= 1, "idxmax")
AT_1: Choice = (lambda place: place == 1, "idxmax")


def gap(
    records: Records,
    one: Choice = BEST,
    other: Choice = WORST,
    *,
    metric: str = "test_accuracy",
    kind: str = PLAIN,
) -> Measurement:
    """A number at one chosen inverse temperature minus that at another, of each sweep."""
    sweeps, found = _sweeps(records, kind), dict[str, Quantity | str]()
    for name, rows in by_sweep(sweeps):
        inside, own = rows[rows["interior"]], bool(rows["own"].iloc[0])
        if values := _gaps(inside, metric, one, other):
            found[name] = OverTasks((Task(name, tuple(values), own),), left_out=True)
        elif own or not sweeps["own"].any():
            left = ", ".join(
                f"{place:g}" for place in sorted(inside["inverse_temperature"].unique())
            )
            said = f"the chosen learning rate is inside its grid {f'only at β = {left}' if left else 'at no β'}"
            found[name] = said if len(inside) < len(rows) else "too few trainings"
    unit = "nats" if "nll" in metric else "accuracy"
    return _measured(
        found, unit, sweeps, "no sweep of this profile has several inverse temperatures"
    )


def _gaps(
    rows: pd.DataFrame,
    metric: str,
    *chosen: Choice,
    across: str = "inverse_temperature",
) -> list[float]:
    """By seed, its test number at the first choice minus that at the second, by the
    other seeds' validation numbers.
    """
    validation, test = (
        by_seed(rows, column, across) for column in ("validation_accuracy", metric)
    )
    places = [[place for place in test.columns if among(place)] for among, _ in chosen]
    if min(test.shape) < 2 or not all(places):
        return []
    gaps = []
    for seed in test.index:
        others = validation.drop(index=seed).mean()
        one, other = (
            getattr(others[some], choose)()
            for some, (_, choose) in zip(places, chosen, strict=True)
        )
        gaps.append(float(test.loc[seed, one] - test.loc[seed, other]))
    return [gap for gap in gaps if pd.notna(gap)]


def norm_against_temperature(records: Records) -> Measurement:
    """What the norm of the logits changes, minus half of what the inverse temperature
    changes in the same network.
    """
    ranges, rows, found = (
        gap(records),
        chosen(records, NORMS),
        dict[str, Quantity | str](),
    )
    for name, some in by_sweep(rows):
        norms = some.groupby("start")["initial_logit_norm"].mean()
        whole = ranges.parts.get(name)
        if norms.min() > LIMITS[0] or norms.max() < LIMITS[1]:
            found[name] = (
                f"norms from {norms.min():.2g} to {norms.max():.2g} cannot show more than one regime"
            )
        elif not isinstance(whole, OverTasks) or some["seed"].nunique() < 2:
            found[name] = (
                "no sweep of inverse temperatures to compare with, or one seed only"
            )
        else:
            gaps = _gaps(some, "test_accuracy", BEST, WORST, across="start")
            found[name] = _minus_half(np.array(gaps), np.array(whole.tasks[0].values))
    return _measured(found, "accuracy", rows, "no sweep over several norms")


def _minus_half(gaps: Values, whole: Values) -> Fitted:
    """One mean minus half of another, by Welch; both are of values left out, corrected
    as `OverTasks` does.
    """
    counts = np.array([len(gaps), len(whole)])
    squares = np.array([gaps.var(ddof=1), whole.var(ddof=1) / 4]) * (
        1 / counts + 1 / (counts - 1)
    )
    below = (squares**2 / (counts - 1)).sum()
    degrees = squares.sum() ** 2 / below if below else counts.min() - 1
    return Fitted(
        gaps.mean() - whole.mean() / 2,
        float(np.sqrt(squares.sum())),
        int(degrees),
        len(gaps),
    )


def places_of_the_best(records: Records) -> Measurement:
    """Decades between the best inverse temperatures of two architectures, with a
    bootstrap of the argmax.
    """
    sweeps, draws, missing = _sweeps(records), dict[str, Values](), dict[str, str]()
    for name, rows in by_sweep(_asked(sweeps)):
        table = by_seed(rows[rows["interior"]], "test_accuracy")
        tried = sorted(rows["inverse_temperature"].unique())
        place = tried.index(table.mean().idxmax()) if table.shape[1] else 0
        if len(table) < 2 or not set(tried[max(0, place - 1) : place + 2]) <= set(
            table.columns
        ):
            missing[name] = (
                "the chosen learning rate is at the end of its grid next to the best inverse temperature"
            )
        elif place in (0, len(tried) - 1):
            missing[name] = "the best inverse temperature is at the end of its grid"
        else:
            draws[name] = argmax_draws(table)
    parts = {
        # The first draw is the estimate. Both orders are parts: which one is larger is
        # seen in the data.
        f"{one} over {other}": Drawn(
            float(apart[0]), tuple(apart[1:].tolist()), sweeps["seed"].nunique()
        )
        for one, other in permutations(draws, 2)
        for apart in [draws[one] - draws[other]]
    }
    places = ", ".join(f"{name}: {10 ** some[0]:g}" for name, some in draws.items())
    note = "; ".join(
        [places, *(f"{name} left out: {why}" for name, why in missing.items())]
    )
    return _measured(parts or missing, "decades", sweeps, "one architecture only", note)


def argmax_draws(table: pd.DataFrame) -> Values:
    """The common logarithm of the inverse temperature of the highest mean in a table by
    seed, and then draws of it.

    Means are drawn by Student's t with the residual sd over both: three seeds are too
    few to be drawn from.
    """
    values, places = table.to_numpy(float), np.log10(table.columns.to_numpy(float))
    seeds, count = values.shape
    residuals = (
        values
        - values.mean(axis=0)
        - values.mean(axis=1, keepdims=True)
        + values.mean()
    )
    degrees = (seeds - 1) * (count - 1)
    error = np.sqrt((residuals**2).sum() / degrees / seeds)
    generator = np.random.default_rng(SEED)
    scale = error * np.sqrt(degrees / generator.chisquare(degrees, DRAWS))
    means = values.mean(axis=0) + scale[:, None] * generator.normal(size=(DRAWS, count))
    drawn: Values = places[
        np.concatenate([[values.mean(axis=0).argmax()], means.argmax(axis=1)])
    ]
    return drawn


def stability(records: Records) -> Measurement:
    """The slope of the logarithm of the spread over seeds in that of the inverse
    temperature, over all sweeps.
    """
    rows = _asked(_sweeps(records))
    learned = rows[rows["interior"] & ~rows["diverged"]].groupby(
        ["sweep", "inverse_temperature"], sort=False
    )
    table = learned["test_accuracy"].std().reset_index(name="sd").query("sd > 0")
    table = table[table.groupby("sweep")["sd"].transform("size") > 1]
    table = table.assign(
        x=np.log10(table["inverse_temperature"]), y=np.log(table["sd"])
    )
    count = table["sweep"].nunique()
    if len(table) < count + 2:
        return not_tested(
            "too few spreads over seeds where the chosen learning rate is inside its grid"
        )
    slope = Fitted(*common_slope(table), n=rows["seed"].nunique())
    return Measurement(
        {"slope": slope},
        "log spread per decade",
        f"{len(table)} spreads in {count} sweeps",
    )


def common_slope(table: pd.DataFrame) -> tuple[float, float, int]:
    """Slope of the column y in x with an intercept for each sweep, its standard error,
    and the degrees of freedom.
    """
    x, y = (
        table[name] - table.groupby("sweep")[name].transform("mean")
        for name in ("x", "y")
    )
    square, degrees = float((x**2).sum()), len(table) - table["sweep"].nunique() - 1
    slope = float((x * y).sum()) / square
    return (
        slope,
        float(np.sqrt(((y - slope * x) ** 2).sum() / degrees / square)),
        degrees,
    )


def early(
    records: Records, predictions: Sequence[Prediction], smooth: bool | None = None
) -> Measurement:
    """Slopes minus the predicted ones, of each network."""
    rows, found = early_slopes(records, predictions), dict[str, Quantity | str]()
    rows = rows if smooth is None else rows[rows["smooth"] == smooth]
    for row in rows.to_dict("records"):
        name = (
            row["network"]
            if len(predictions) == 1
            else f"{row['network']}, {row['quantity']}"
        )
        error = None if pd.isna(row["sd"]) else row["sd"] / row["n"] ** 0.5
        found[name] = Fitted(
            row["slope"] - row["predicted"], error, row["n"] - 1, row["n"]
        )
        if row["misfit"] > LINE:
            found[f"{name}, as a line"] = (
                f"points miss it by a factor of {row['misfit']:.2f}"
            )
    nothing = "no network of this profile has two points where the prediction speaks"
    return _measured(found, "slope minus predicted", rows, nothing)


def _measured(
    found: Mapping[str, Quantity | str],
    unit: str,
    rows: pd.DataFrame,
    otherwise: str,
    note: str = "",
) -> Measurement:
    """The quantities found, and why others are missing, with the cells of the rows;
    `otherwise` if neither.
    """
    parts = {name: part for name, part in found.items() if not isinstance(part, str)}
    missing = {name: why for name, why in found.items() if isinstance(why, str)}
    if not parts:
        return not_tested("; ".join(map(": ".join, missing.items())) or otherwise)
    return Measurement(parts, unit, note, missing, tuple(dict.fromkeys(rows["cells"])))


def _sweeps(records: Records, kind: str = PLAIN) -> pd.DataFrame:
    rows = chosen(records, kind)
    return rows[rows.groupby("sweep")["inverse_temperature"].transform("nunique") > 1]


def _asked(rows: pd.DataFrame) -> pd.DataFrame:
    """The sweeps that the paper has, or, where it has none of them, all."""
    return rows[rows["own"]] if rows["own"].any() else rows

"""The theory of early learning: its measurements as tables, and its predicted slopes beside those of networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from softmax_temperature.early_learning.flows import FIT, LEARNED, TENTH, UNIT, WHOLE
from softmax_temperature.papers.shared.statistics import OverTasks, Task
from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.stages.early_learning import CURVES, NORMS, courses, early_learning

if TYPE_CHECKING:
    from softmax_temperature.papers.temperature_check.records import Records

REAL, LINEARISED = "real", "linearised"
STILL = 0.02
"""Predictions over the inverse temperature are about a kernel that keeps still: this relative drift is the most.

What they leave out is of the drift's own size: a point at 0.1 bends a slope by half a percent, more than seeds differ.
It was 0.2, and was chosen anew having seen the slopes at 0.2, 0.05 and 0.02.
"""
SMALL, LARGE = 0.35, 20.0
"""Norms of the tempered logits of one image, root mean square, at which a softmax of ten classes is all but uniform
and all but certain: those on the way belong to neither limit."""
LINE = 1.5
"""The largest factor by which a point may miss its line: otherwise there is no power law, whatever its slope."""
_NAMES = ("network", "seed", "smooth", "parameters", "images", "classes", "kernel_norm", "kernel_norm_error")
_CURVES = (
    *(*_NAMES, "inverse_temperature", "ending", "unit_time", "drift_rate"),
    *("moment", "time", "loss", "change", "drift", "drift_error", "distance"),
)
_NORMS = (
    *(*_NAMES, "inverse_temperature", "wanted_norm", "logit_norm", "correlation", "unit_time", "logit_time"),
    *("dynamics", UNIT, TENTH, WHOLE, FIT, LEARNED, "ending"),
)
_SLOPES = (
    *("network", "smooth", "quantity", "against", "where", "predicted", "slope", "sd", "low", "high", "n"),
    *("points", "misfit", "cells"),
)


def early_tables(params: Params) -> dict[str, pd.DataFrame]:
    """The measurements of the stage early_learning for the declared cells; no rows where it is left out.

    Times are rescaled ones, norms those over all images and classes. Each row names network and seed, and says whether
    the network is smooth, how many parameters, images and classes the problem has, and how large its kernel is.

    early_curves: one row per moment ("time", or an event) of a course from logits of 0. inverse_temperature (empty:
    linearised), ending of the course, unit_time (predicted), drift_rate (predicted drift of the kernel in a unit of
    time, times the inverse temperature); time, loss (mean, nats), change (of the tempered logits), drift (of the
    kernel, relative) with its standard error, distance (to the linearised logits).

    early_norms: one row per start and its two dynamics ("real", "linearised"). inverse_temperature, wanted_norm,
    logit_norm (reached), correlation of the pair, unit_time and logit_time (predicted), the times of the events (empty
    where one did not happen), ending.
    """
    curves: list[dict[str, Any]] = []
    norms: list[dict[str, Any]] = []
    for network, question, seed in courses(params.temperature_check.early_learning):
        artifact = open_artifact(early_learning.output / network / question / str(seed))
        about = {"network": network, "seed": seed, **artifact.json("record.json")}
        if question == CURVES:
            curves += [about | course | row for course in artifact.json("courses.json") for row in course["rows"]]
        else:
            starts = artifact.json("starts.json")
            norms += [about | one | {"dynamics": each} | one[each] for one in starts for each in (REAL, LINEARISED)]
    return {
        "early_curves": pd.DataFrame(curves, columns=list(_CURVES)),
        "early_norms": pd.DataFrame(norms, columns=list(_NORMS)),
    }


class Prediction(NamedTuple):
    """A predicted slope: of a column, called `quantity` for a reader, against another, in the regime `where`."""

    quantity: str
    against: Literal["inverse_temperature", "logit_norm"]
    where: Literal["still", "small", "large"]
    column: str
    slope: float


_BY_1, _BY_TENTH = (f"time in which the logits change by {what}" for what in ("1", "a tenth of their norm"))
_TO_HALF = "time to half of the loss"
DRIFT = Prediction("drift of the kernel when the logits have changed by 1", "inverse_temperature", "still", "drift", -1)
COLLAPSE = Prediction(_BY_1, "inverse_temperature", "still", "time", 0)
UNIT_SMALL = Prediction(_BY_1, "logit_norm", "small", UNIT, 0)
FIT_SMALL = Prediction(_TO_HALF, "logit_norm", "small", FIT, 0)
TENTH_SMALL = Prediction(_BY_TENTH, "logit_norm", "small", TENTH, 1)
TENTH_LARGE = Prediction(_BY_TENTH, "logit_norm", "large", TENTH, 1)
FIT_LARGE = Prediction(_TO_HALF, "logit_norm", "large", FIT, 1)
PREDICTIONS = (DRIFT, COLLAPSE, UNIT_SMALL, FIT_SMALL, TENTH_SMALL, TENTH_LARGE, FIT_LARGE)


def early_slopes(records: Records) -> pd.DataFrame:
    """Each predicted slope beside the one that least squares fit to each network.

    Logarithms are fitted seed by seed, to the points of the regime that the prediction is about: inverse temperatures
    at which the kernel drifts by at most STILL (geometric mean over seeds), norms of at most SMALL or at least LARGE.
    A row for each prediction and network with at least two such points: slope is the mean over n seeds, with its sd and
    90 % interval by Student's t (empty for one seed); points those of each seed; misfit the largest factor by which one
    misses its seed's line: what is far above 1 is no power law, whatever its slope.
    """
    moments, starts = unit_moments(records), real_starts(records)
    logarithms = moments.assign(drift=np.log(moments["drift"].astype(float)))
    means = logarithms.groupby(["network", "inverse_temperature"])["drift"].transform("mean")
    points = {"still": moments[means <= np.log(STILL)]}
    points |= {"small": starts[starts["size"] <= SMALL], "large": starts[starts["size"] >= LARGE]}
    found = []
    for quantity, against, where, column, predicted in PREDICTIONS:
        place, question = (against, CURVES) if where == "still" else ("wanted_norm", NORMS)
        for network, some in points[where].groupby("network", sort=False):
            known = some.dropna(subset=[column]).groupby("seed")
            fits = [_fit(rows[against], rows[column]) for _, rows in known if len(rows) > 1]
            if not fits:
                continue
            effect = OverTasks((Task(str(network), tuple(slope for slope, _ in fits)),)).estimate()
            about = (network, bool(some["smooth"].iloc[0]), quantity, against, where, predicted)
            slope = (effect.value, effect.sd, effect.low, effect.high, effect.n)
            misfit, cells = max(misfit for _, misfit in fits), f"temperature_check/early_learning/{network}/{question}"
            found.append((*about, *slope, some[place].nunique(), misfit, cells))
    return pd.DataFrame(found, columns=list(_SLOPES))


def unit_moments(records: Records) -> pd.DataFrame:
    """The moments of `early_curves` at which the tempered logits of a network have changed by 1."""
    curves = records.early_curves
    return curves[(curves["moment"] == UNIT) & curves["inverse_temperature"].notna()]


def real_starts(records: Records) -> pd.DataFrame:
    """The rows of `early_norms` of real networks, with the column `size`: the root mean square norm of an image."""
    rows = records.early_norms[records.early_norms["dynamics"] == REAL]
    return rows.assign(size=rows["logit_norm"] / rows["images"] ** 0.5)


def _fit(x: pd.Series[float], y: pd.Series[float]) -> tuple[float, float]:
    """The slope of logarithms, and the largest factor by which a point misses the line."""
    across, up = np.log(x.to_numpy(float)), np.log(y.to_numpy(float))
    line = np.polyfit(across, up, 1)
    return float(line[0]), float(np.exp(np.abs(up - np.polyval(line, across)).max()))

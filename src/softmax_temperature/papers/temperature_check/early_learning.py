"""The theory of early learning: its predicted slopes, beside those of networks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd

from softmax_temperature.early_learning.flows import FIT, TENTH, UNIT
from softmax_temperature.papers.shared.statistics import OverTasks, Task
from softmax_temperature.papers.temperature_check.records import Records
from softmax_temperature.params.temperature_check import CURVES, NORMS
from softmax_temperature.stages import EARLY_LEARNING, label

# The most relative drift of a kernel that keeps still: 0.1 bends a slope by half a
# percent, more than seeds differ. It was 0.2, and was chosen anew having seen the
# slopes at 0.2, 0.05 and 0.02.
STILL = 0.02
# Norms of the tempered logits of one image at which a softmax of ten classes is all but
# uniform and all but certain.
SMALL, LARGE = 0.35, 20.0
# The largest factor by which a point may miss its line: otherwise there is no power
# law.
LINE = 1.5


class Prediction(NamedTuple):
    """A predicted slope of a column, called `quantity` for a reader, where drifts are
    "still", or norms "small".
    """

    quantity: str
    against: str
    where: str
    column: str
    slope: float


_BY_1, _BY_TENTH = (
    f"time in which the logits change by {what}"
    for what in ("1", "a tenth of their norm")
)
_TO_HALF = "time to half of the loss"
DRIFT = Prediction(
    "drift of the kernel when the logits have changed by 1",
    "inverse_temperature",
    "still",
    "drift",
    -1,
)
COLLAPSE = Prediction(_BY_1, "inverse_temperature", "still", "time", 0)
UNIT_SMALL = Prediction(_BY_1, "logit_norm", "small", UNIT, 0)
FIT_SMALL = Prediction(_TO_HALF, "logit_norm", "small", FIT, 0)
TENTH_SMALL = Prediction(_BY_TENTH, "logit_norm", "small", TENTH, 1)
TENTH_LARGE = Prediction(_BY_TENTH, "logit_norm", "large", TENTH, 1)
FIT_LARGE = Prediction(_TO_HALF, "logit_norm", "large", FIT, 1)
TO_HALF = (FIT_SMALL, FIT_LARGE)
PREDICTIONS = (
    DRIFT,
    COLLAPSE,
    UNIT_SMALL,
    FIT_SMALL,
    TENTH_SMALL,
    TENTH_LARGE,
    FIT_LARGE,
)


def early_slopes(
    records: Records, predictions: Iterable[Prediction] = PREDICTIONS
) -> pd.DataFrame:
    """Each predicted slope beside that of logarithms, fitted seed by seed, in each
    network with two points.

    slope is the mean over n seeds, with its 90 % interval by Student's t (empty for one
    seed), misfit the largest factor by which a point misses its seed's line.
    """
    moments, starts, found = unit_moments(records), real_starts(records), []
    logarithms = moments.assign(drift=np.log(moments["drift"].astype(float)))
    means = logarithms.groupby(["network", "inverse_temperature"])["drift"].transform(
        "mean"
    )
    regimes = {"still": moments[means <= np.log(STILL)]}
    regimes |= {
        "small": starts[starts["size"] <= SMALL],
        "large": starts[starts["size"] >= LARGE],
    }
    for quantity, against, where, column, predicted in predictions:
        place, question = (
            (against, CURVES) if where == "still" else ("wanted_norm", NORMS)
        )
        for network, some in regimes[where].groupby("network", sort=False):
            known = some.dropna(subset=[column]).groupby("seed")
            fits = [
                _fit(rows[against], rows[column]) for _, rows in known if len(rows) > 1
            ]
            if fits:
                slopes, misfits = zip(*fits, strict=True)
                one = OverTasks((Task(str(network), slopes),)).estimate()
                about = (
                    network,
                    bool(some["smooth"].iloc[0]),
                    quantity,
                    against,
                    where,
                    predicted,
                )
                cells = f"{label(EARLY_LEARNING)}/{network}/{question}"
                row = (
                    *about,
                    one.value,
                    one.sd,
                    one.low,
                    one.high,
                    one.n,
                    some[place].nunique(),
                    max(misfits),
                    cells,
                )
                found.append(row)
    names = (
        "network",
        "smooth",
        "quantity",
        "against",
        "where",
        "predicted",
        "slope",
        "sd",
        "low",
        "high",
        "n",
    )
    return pd.DataFrame(found, columns=[*names, "points", "misfit", "cells"])


def slope_text(records: Records, network: object, prediction: Prediction) -> str:
    """The fitted slope of a network with its interval, and the predicted one."""
    slopes = early_slopes(records, [prediction]).set_index("network")[
        ["slope", "low", "high"]
    ]
    slope, low, high = (
        f"{value:z.3f}" for value in slopes.astype(float).reindex([network]).iloc[0]
    )
    interval = "" if low == "nan" else f" [{low}, {high}]"
    return (
        "no slope"
        if slope == "nan"
        else f"{slope}{interval}, predicted {prediction.slope:g}"
    )


def unit_moments(records: Records) -> pd.DataFrame:
    """The moments of `early_curves` at which the tempered logits of a network have
    changed by 1.
    """
    curves = records.early_curves
    return curves[(curves["moment"] == UNIT) & curves["inverse_temperature"].notna()]


def real_starts(records: Records) -> pd.DataFrame:
    """The rows of `early_norms` of real networks, with the column `size`: the root mean
    square norm of an image.
    """
    rows = records.early_norms.query("dynamics == 'real'")
    return rows.assign(size=rows["logit_norm"] / rows["images"] ** 0.5)


def _fit(x: pd.Series[float], y: pd.Series[float]) -> tuple[float, float]:
    """The slope of logarithms, and the largest factor by which a point misses the line."""
    across, up = np.log(x.to_numpy(float)), np.log(y.to_numpy(float))
    line = np.polyfit(across, up, 1)
    return float(line[0]), float(np.exp(np.abs(up - np.polyval(line, across)).max()))

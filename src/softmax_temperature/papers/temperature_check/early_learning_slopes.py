"""Slopes on logarithmic axes: those that the theory of early learning predicts, and those that networks have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from softmax_temperature.early_learning.flows import FIT, TENTH, UNIT
from softmax_temperature.papers.shared.effects import Effect
from softmax_temperature.papers.temperature_check.early_learning_tables import REAL

if TYPE_CHECKING:
    from softmax_temperature.papers.temperature_check.records import Records

STILL = 0.02
"""Predictions over the inverse temperature are about a kernel that keeps still: this relative drift is the most.

What they leave out is of the drift's own size: a point at 0.1 bends a slope by half a percent, more than seeds differ.
It was 0.2, and was chosen anew having seen the slopes at 0.2, 0.05 and 0.02.
"""
SMALL, LARGE = 0.35, 20.0
"""Norms of the tempered logits of one image, root mean square, at which a softmax of ten classes is all but uniform
and all but certain: those on the way belong to neither limit."""

COLUMNS = (
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
    "points",
    "misfit",
    "cells",
)
STAGE = "temperature_check/early_learning"
"""That the slopes come from: the inverse temperatures of its curves, the norms of its starts."""
_QUESTIONS = {"inverse_temperature": "curves", "logit_norm": "norms"}


@dataclass(frozen=True)
class Prediction:
    """A slope that the theory predicts.

    Attributes:
        quantity: what stands on the vertical axis, for a reader.
        against: what on the horizontal one: a column.
        where: "still", "small" or "large".
        column: of the quantity.
        slope: the predicted one.
    """

    quantity: str
    against: Literal["inverse_temperature", "logit_norm"]
    where: Literal["still", "small", "large"]
    column: str
    slope: float


DRIFT = Prediction("drift of the kernel when the logits have changed by 1", "inverse_temperature", "still", "drift", -1)
COLLAPSE = Prediction("time in which the logits change by 1", "inverse_temperature", "still", "time", 0)
UNIT_SMALL = Prediction("time in which the logits change by 1", "logit_norm", "small", UNIT, 0)
FIT_SMALL = Prediction("time to half of the loss", "logit_norm", "small", FIT, 0)
TENTH_SMALL = Prediction("time in which the logits change by a tenth of their norm", "logit_norm", "small", TENTH, 1)
TENTH_LARGE = Prediction("time in which the logits change by a tenth of their norm", "logit_norm", "large", TENTH, 1)
FIT_LARGE = Prediction("time to half of the loss", "logit_norm", "large", FIT, 1)
PREDICTIONS = (DRIFT, COLLAPSE, UNIT_SMALL, FIT_SMALL, TENTH_SMALL, TENTH_LARGE, FIT_LARGE)


def early_slopes(records: Records) -> pd.DataFrame:
    """Each predicted slope beside the one that least squares fit to each network.

    Logarithms are fitted seed by seed, to the points of the regime that the prediction is about: inverse temperatures
    at which the kernel drifts by at most STILL (geometric mean over seeds), norms of at most SMALL or at least LARGE.

    Returns:
        A row for each prediction and network with at least two such points: smooth (bool), quantity, against, where,
        predicted, slope (mean over seeds), its sd and 90 % interval by Student's t (empty for one seed), n (seeds),
        points (of each seed), misfit (the largest factor by which a point misses its seed's line: what is far above 1
        is no power law, whatever its slope), cells.
    """
    rows = [row for prediction in PREDICTIONS for row in _rows(records, prediction)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def unit_moments(records: Records) -> pd.DataFrame:
    """The moments of `early_curves` at which the tempered logits of a network have changed by 1."""
    curves = records.early_curves
    return curves[(curves["moment"] == UNIT) & curves["inverse_temperature"].notna()]


def real_starts(records: Records) -> pd.DataFrame:
    """The rows of `early_norms` of real networks, with the column `size`: the root mean square norm of an image."""
    norms = records.early_norms
    rows = norms[norms["dynamics"] == REAL]
    return rows.assign(size=rows["logit_norm"] / rows["images"] ** 0.5)


def _rows(records: Records, prediction: Prediction) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for network, some in _points(records, prediction).groupby("network", sort=False):
        fits = pd.DataFrame(
            {seed: _fit(points, prediction) for seed, points in some.groupby("seed")}, index=["slope", "misfit"]
        ).T.dropna()
        if fits.empty:
            continue
        effect = Effect.of(fits["slope"])
        found.append(
            {
                "network": network,
                "smooth": bool(some["smooth"].iloc[0]),
                "quantity": prediction.quantity,
                "against": prediction.against,
                "where": prediction.where,
                "predicted": prediction.slope,
                "slope": effect.value,
                "sd": effect.sd,
                "low": effect.low,
                "high": effect.high,
                "n": effect.n,
                "points": some[prediction.against if prediction.where == "still" else "wanted_norm"].nunique(),
                "misfit": float(fits["misfit"].max()),
                "cells": f"{STAGE}/{network}/{_QUESTIONS[prediction.against]}",
            }
        )
    return found


def _points(records: Records, prediction: Prediction) -> pd.DataFrame:
    """The rows of the regime that a prediction is about, of all networks."""
    if prediction.where == "still":
        moments = unit_moments(records)
        logarithms = moments.assign(drift=np.log(moments["drift"].astype(float)))
        means = logarithms.groupby(["network", "inverse_temperature"])["drift"].transform("mean")
        still: pd.DataFrame = moments[means <= np.log(STILL)]
        return still
    starts = real_starts(records)
    return starts[starts["size"] <= SMALL] if prediction.where == "small" else starts[starts["size"] >= LARGE]


def _fit(points: pd.DataFrame, prediction: Prediction) -> tuple[float, float]:
    """The slope of a seed and the largest factor by which a point misses the line; nan with fewer than two points."""
    known = points.dropna(subset=[prediction.column])
    if len(known) < 2:
        return np.nan, np.nan
    across, up = (np.log(known[name].to_numpy(float)) for name in (prediction.against, prediction.column))
    line = np.polyfit(across, up, 1)
    return float(line[0]), float(np.exp(np.abs(up - np.polyval(line, across)).max()))

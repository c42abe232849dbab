"""The slopes that the theory of early learning predicts, beside the measured slopes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from softmax_temperature.early_learning.flows import FIT, TENTH, UNIT
from softmax_temperature.papers.shared.contrasts import Parts, cells_of_runs
from softmax_temperature.papers.shared.factors import ALL, Where, where
from softmax_temperature.papers.shared.metrics import Measure
from softmax_temperature.papers.shared.runs import Runs
from softmax_temperature.papers.shared.sources import together
from softmax_temperature.papers.shared.statistics import OverTasks, Task
from softmax_temperature.papers.shared.sweeps import Slope
from softmax_temperature.papers.temperature_check.study import (
    DRIFT,
    INVERSE_TEMPERATURE,
    LARGE_LOGITS,
    NORM_AT_START,
    SMALL_LOGITS,
    STILL_KERNEL,
    time_to,
)

LINE = 1.5
"""The largest factor by which a point may miss the line of its power law."""
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


@dataclass(frozen=True)
class Prediction:
    """A predicted slope of the logarithm of one quantity against that of another.

    Attributes:
        quantity: The quantity in words.
        of: The quantity as a metric.
        regime: The regime in which the theory predicts the slope, a key of `REGIMES`.
        slope: The predicted slope.
    """

    quantity: str
    of: Measure
    regime: str
    slope: float

    @property
    def against(self) -> str:
        """The name of the independent variable: inverse temperature or logit norm."""
        return "inverse_temperature" if self.regime == "still" else "logit_norm"

    @property
    def points(self) -> str:
        """The column that distinguishes the points of the line."""
        return "inverse_temperature" if self.regime == "still" else "start_norm"

    def contrast(self, among: Where = ALL) -> Slope:
        """The slope fitted for each network minus the predicted slope."""
        along = INVERSE_TEMPERATURE if self.regime == "still" else NORM_AT_START
        return Slope(
            of=self.of,
            against=along,
            among=REGIMES[self.regime] & among,
            predicted=self.slope,
            straight=LINE,
            split_by="network_and_data",
        )


REGIMES = {"still": STILL_KERNEL, "small": SMALL_LOGITS, "large": LARGE_LOGITS}
_BY_1 = "time in which the logits change by 1"
_BY_A_TENTH = "time in which the logits change by a tenth of their norm"
_TO_HALF = "time to half of the loss"
_DRIFT_BY_1 = "drift of the kernel when the logits have changed by 1"

KERNEL_DRIFT = Prediction(_DRIFT_BY_1, DRIFT, "still", -1)
COLLAPSE = Prediction(_BY_1, time_to(UNIT), "still", 0)
UNIT_SMALL = Prediction(_BY_1, time_to(UNIT), "small", 0)
FIT_SMALL = Prediction(_TO_HALF, time_to(FIT), "small", 0)
TENTH_SMALL = Prediction(_BY_A_TENTH, time_to(TENTH), "small", 1)
TENTH_LARGE = Prediction(_BY_A_TENTH, time_to(TENTH), "large", 1)
FIT_LARGE = Prediction(_TO_HALF, time_to(FIT), "large", 1)
TO_HALF = (FIT_SMALL, FIT_LARGE)
PREDICTIONS = (
    KERNEL_DRIFT,
    COLLAPSE,
    UNIT_SMALL,
    FIT_SMALL,
    TENTH_SMALL,
    TENTH_LARGE,
    FIT_LARGE,
)


def slopes_of(predictions: Sequence[Prediction], among: Where = ALL) -> Parts:
    """The contrast of a claim about all `predictions`."""
    if len(predictions) == 1:
        return Parts({"": predictions[0].contrast(among)})
    return Parts({fit.quantity: fit.contrast(among) for fit in predictions})


def early_slopes(
    runs: Runs, predictions: Iterable[Prediction] = PREDICTIONS
) -> pd.DataFrame:
    """Predicted and fitted slopes, for each network with at least two points.

    Returns:
        A table with the columns `COLUMNS`. For each seed, a line is fitted to the
        logarithms. `slope` is the mean slope of these lines over `n` seeds; `low` and
        `high` are the ends of the mean's 90 % interval by Student's t, and are empty
        for one seed. `misfit` is the largest factor by which a point misses its seed's
        line.
    """
    rows = []
    for prediction in predictions:
        regime = runs.select(REGIMES[prediction.regime])
        for network, courses in regime.groupby("network", sort=False):
            contrast = prediction.contrast(where(network=network))
            slopes, misfit = contrast.slopes(runs)
            if not slopes:
                continue
            estimate = OverTasks((Task(str(network), tuple(slopes)),)).estimate()
            rows.append(
                {
                    "network": network,
                    "smooth": bool(courses["smooth"].iloc[0]),
                    "quantity": prediction.quantity,
                    "against": prediction.against,
                    "where": prediction.regime,
                    "predicted": prediction.slope,
                    "slope": estimate.value,
                    "sd": estimate.sd,
                    "low": estimate.low,
                    "high": estimate.high,
                    "n": estimate.n,
                    "points": courses[prediction.points].nunique(),
                    "misfit": misfit,
                    "cells": together(cells_of_runs(courses)),
                }
            )
    return pd.DataFrame(rows, columns=COLUMNS)


def slope_text(runs: Runs, network: str, prediction: Prediction) -> str:
    """Format the fitted slope of `network`, its interval, and the predicted slope."""
    slopes = early_slopes(runs, [prediction])
    slopes = slopes[slopes["network"] == network]
    if slopes.empty:
        return "no slope"
    fitted = slopes.iloc[0]
    interval = ""
    if pd.notna(fitted["low"]):
        interval = f" [{fitted['low']:z.3f}, {fitted['high']:z.3f}]"
    return f"{fitted['slope']:z.3f}{interval}, predicted {prediction.slope:g}"

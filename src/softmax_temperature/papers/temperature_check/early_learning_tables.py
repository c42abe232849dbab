"""The records of early learning as two tables."""

from __future__ import annotations

from typing import Any

import pandas as pd

from softmax_temperature.early_learning.flows import FIT, LEARNED, TENTH, UNIT, WHOLE
from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.stages.early_learning import CURVES, NORMS, OUTPUT, courses

REAL, LINEARISED = "real", "linearised"
EVENTS = (UNIT, TENTH, WHOLE, FIT, LEARNED)
_ABOUT = ("smooth", "parameters", "images", "classes", "kernel_norm", "kernel_norm_error")
_CURVES = (
    *("inverse_temperature", "ending", "unit_time", "drift_rate"),
    *("moment", "time", "loss", "change", "drift", "drift_error", "distance"),
)
_NORMS = (
    *("inverse_temperature", "wanted_norm", "logit_norm", "correlation", "unit_time", "logit_time", "dynamics"),
    *(*EVENTS, "ending"),
)


def early_tables(params: Params) -> dict[str, pd.DataFrame]:
    """The measurements of the stage early_learning for the declared cells.

    Times are rescaled ones, norms those over all images and classes.

    Returns:
        Two tables, both without rows where early learning is left out. Each row names network and seed, and says
        whether the network is smooth, how many parameters, images and classes the problem has, and how large its kernel
        is (kernel_norm with its standard error).

        early_curves: one row per moment of a course from logits of 0. inverse_temperature (empty: linearised), ending
        of the course, unit_time (predicted), drift_rate (predicted drift of the kernel in a unit of time, times the
        inverse temperature); moment ("time", or an event), time, loss (mean, nats), change (of the tempered logits),
        drift (of the kernel, relative) with its standard error, distance (to the linearised logits).

        early_norms: one row per start and its two dynamics ("real", "linearised"). inverse_temperature, wanted_norm,
        logit_norm (that was reached), correlation of the pair, unit_time and logit_time (predicted), the times of the
        events (empty where one did not happen), ending.
    """
    rows: dict[str, list[dict[str, Any]]] = {CURVES: [], NORMS: []}
    for network, question, seed in courses(params.temperature_check.early_learning):
        artifact = open_artifact(OUTPUT / network / question / str(seed))
        record = artifact.json("record.json")
        about = {"network": network, "seed": seed, **record}
        if question == CURVES:
            for course in artifact.json("courses.json"):
                shared = {name: course[name] for name in ("inverse_temperature", "ending")}
                rows[CURVES] += [{**about, **shared, **row} for row in course["rows"]]
        else:
            for start in artifact.json("starts.json"):
                rows[NORMS] += [{**about, **start, "dynamics": each, **start[each]} for each in (REAL, LINEARISED)]
    first = ("network", "seed", *_ABOUT)
    return {
        "early_curves": pd.DataFrame(rows[CURVES], columns=[*first, *_CURVES]),
        "early_norms": pd.DataFrame(rows[NORMS], columns=[*first, *_NORMS]),
    }

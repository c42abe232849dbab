"""The records of early learning as two tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from softmax_temperature.early_learning.flows import FIT, LEARNED, TENTH, UNIT, WHOLE
from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.stages.early_learning import CURVES, NORMS, OUTPUT, courses

if TYPE_CHECKING:
    from softmax_temperature.params import Params

REAL, LINEARISED = "real", "linearised"
EVENTS = (UNIT, TENTH, WHOLE, FIT, LEARNED)
_ABOUT = ("smooth", "parameters", "images", "classes", "kernel_norm", "kernel_norm_error")
_CURVES = ("inverse_temperature", "ending", "unit_time", "drift_rate")
_ROWS = ("moment", "time", "loss", "change", "drift", "drift_error", "distance")
_NORMS = ("inverse_temperature", "wanted_norm", "logit_norm", "correlation", "unit_time", "logit_time", "dynamics")


def early_tables(params: Params) -> dict[str, pd.DataFrame]:
    """Read what the stage early_learning measured.

    Times are rescaled ones, norms those over all images and classes.

    Args:
        params: declare the cells; a missing one is an error.

    Returns:
        Two tables, both without rows where early learning is left out. Each row names network and seed, and says of
        the network whether it is smooth, of the problem how many parameters, images and classes it has and how large
        its kernel is (kernel_norm with its standard error).

        early_curves: a row for each moment of a course from logits of 0. inverse_temperature (empty: linearised),
        ending of the course, unit_time (predicted), drift_rate (predicted: what the kernel drifts by in a unit of time,
        times the inverse temperature); moment ("time", or an event), time, loss (mean, nats), change (of the tempered
        logits), drift (of the kernel, relative) with its standard error, distance (to the linearised logits).

        early_norms: a row for each start and each of its two dynamics ("real", "linearised"). inverse_temperature,
        wanted_norm, logit_norm (that was reached), correlation of the pair, unit_time and logit_time (predicted), the
        times of the events (empty where one did not happen), ending.
    """
    rows: dict[str, list[dict[str, Any]]] = {CURVES: [], NORMS: []}
    for network, question, seed in courses(params.temperature_check.early_learning):
        artifact = open_artifact(OUTPUT / network / question / str(seed))
        record = artifact.json("record.json")
        about = {"network": network, "seed": seed, **{name: record[name] for name in _ABOUT}}
        if question == CURVES:
            shared = about | {name: record[name] for name in ("unit_time", "drift_rate")}
            rows[question] += [shared | row for row in _moments(artifact.json("courses.json"))]
        else:
            shared = about | {"inverse_temperature": record["inverse_temperature"]}
            rows[question] += [shared | row for row in _starts(artifact.json("starts.json"))]
    first = ("network", "seed", *_ABOUT)
    return {
        "early_curves": pd.DataFrame(rows[CURVES], columns=[*first, *_CURVES, *_ROWS]),
        "early_norms": pd.DataFrame(rows[NORMS], columns=[*first, *_NORMS, *EVENTS, "ending"]),
    }


def _moments(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"inverse_temperature": course["inverse_temperature"], "ending": course["ending"], **row}
        for course in found
        for row in course["rows"]
    ]


def _starts(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    for start in found:
        shared = {name: value for name, value in start.items() if name not in {REAL, LINEARISED}}
        rows += [{**shared, "dynamics": dynamics, **start[dynamics]} for dynamics in (REAL, LINEARISED)]
    return rows

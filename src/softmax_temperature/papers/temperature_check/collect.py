"""Gathering the paper's records in one folder: what the notebook, the report and a
reader without data start from.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from softmax_temperature.data.logits import read_logits
from softmax_temperature.data.splits import SPLITS
from softmax_temperature.early_learning.flows import FIT, LEARNED, TENTH, UNIT, WHOLE
from softmax_temperature.heuristic.ridge import RidgeHeuristic, shipped
from softmax_temperature.metrics import (
    expected_calibration_error,
    negative_log_likelihood,
)
from softmax_temperature.papers.shared.records import named_rows, write_results
from softmax_temperature.papers.temperature_check.records import NAMES, SLUG
from softmax_temperature.params import Params
from softmax_temperature.params.temperature_check import (
    CONFIRMED,
    CURVES,
    NORMS,
    Training,
    number_in,
)
from softmax_temperature.runner.artifacts import MANIFEST, Artifact, open_artifact
from softmax_temperature.scaling import apply_temperature, fit_temperature
from softmax_temperature.stages import HEURISTIC, LOGITS
from softmax_temperature.stages.early_learning import early_learning
from softmax_temperature.stages.fetch import fetch
from softmax_temperature.stages.temperature_check import (
    CHOICE,
    confirm_temperature_check,
    train_temperature_check,
)

STAGES = (fetch, train_temperature_check, confirm_temperature_check, early_learning)

# Deviation: how the paper tells divergence is not known. Here a training has diverged
# when its loss, a logit or a weight is no longer finite. One that guesses to the end is
# not one of them: its accuracy says what it is.

_RUN = (
    *(
        "correlation",
        "diverged",
        "epochs_done",
        "initial_logit_norm",
        "validation_accuracy",
        "test_accuracy",
    ),
    *(
        "test_nll",
        "test_ece",
        "confidence",
        "temperature",
        "at_bound",
        "scaled_nll",
        "scaled_ece",
    ),
)
_SWEEP = (
    "sweep",
    "dataset",
    "network",
    "architecture",
    "classes",
    "parameters",
    "epochs",
)
_ABOUT = (
    "network",
    "seed",
    "smooth",
    "parameters",
    "images",
    "classes",
    "kernel_norm",
    "kernel_norm_error",
)
_EARLY = {
    CURVES: (
        *(*_ABOUT, "inverse_temperature", "ending", "unit_time", "drift_rate"),
        *("moment", "time", "loss", "change", "drift", "drift_error", "distance"),
    ),
    NORMS: (
        *(
            *_ABOUT,
            "inverse_temperature",
            "wanted_norm",
            "logit_norm",
            "correlation",
            "unit_time",
            "logit_time",
        ),
        *("dynamics", UNIT, TENTH, WHOLE, FIT, LEARNED, "ending"),
    ),
}


def collect(params: Params, folder: Path) -> None:
    """Write records, tables, claims and metrics; a cell that the parameters declare and
    that is missing is an error.
    """
    section = params.temperature_check
    trainings = {
        training: train_temperature_check.result(training.cell)
        for training in section.trainings()
    }
    for confirmation in section.confirmations():
        sweep, inverse_temperature, start, seed = confirmation
        artifact = confirm_temperature_check.result(confirmation.cell)
        rate = artifact.json(CHOICE)["learning_rate"]
        trainings[
            Training(sweep, inverse_temperature, rate, CONFIRMED + start, seed)
        ] = artifact
    heuristic = shipped()  # Unless this profile fitted its own.
    if (HEURISTIC / MANIFEST).is_file():
        heuristic = RidgeHeuristic.model_validate(
            open_artifact(HEURISTIC).json("heuristic.json")
        )

    def table(
        rows: Callable[[Training, Artifact], Iterable[dict[str, Any]]], *columns: str
    ) -> pd.DataFrame:
        cells = (
            (training._asdict(), rows(training, one))
            for training, one in trainings.items()
        )
        return named_rows(cells, [*NAMES, *columns])

    def estimates(_: Training, one: Artifact) -> Iterable[dict[str, Any]]:
        statistics = one.json("statistics.json")
        found = [] if statistics is None else [heuristic.predict(statistics)]
        return [
            {"predicted": estimate.predicted, "inside": estimate.inside}
            for estimate in found
        ]

    sweeps = []
    for name, about in section.sweeps.items():
        record = next(
            one for training, one in trainings.items() if training.sweep == name
        ).json("record.json")
        own = about.model_dump(include={"dataset", "network", "architecture"}) | {
            "sweep": name
        }
        sweeps.append(
            record
            | own
            | {f"{split}_samples": count for split, count in record["samples"].items()}
        )
    made = {
        "runs": table(_run, *_RUN, "cooled_temperature"),
        "sweeps": pd.DataFrame(
            sweeps, columns=[*_SWEEP, *(f"{split}_samples" for split in SPLITS)]
        ),
        "history": table(
            lambda _, one: one.json("history.json"), "epoch", "split", "accuracy", "nll"
        ),
        "heuristic": table(estimates, "predicted", "inside"),
        **early_tables(params),
    }
    write_results(
        folder,
        SLUG,
        params.profile,
        made=made,
        code=[*(stage.module for stage in STAGES), __name__],
    )


def _run(training: Training, artifact: Artifact) -> list[dict[str, Any]]:
    record, temperatures = (
        artifact.json("record.json"),
        artifact.json("temperatures.json"),
    )
    last = temperatures[-1]["total"] if temperatures else None
    found = record | {
        "correlation": number_in(training.start, "pair-"),
        "cooled_temperature": last,
    }
    if record["diverged"]:
        return [found]
    scale = training.inverse_temperature
    stored = read_logits(artifact, LOGITS)
    validation_logits, labels = stored["validation"].for_fitting()
    test_logits, truth = stored["test"].for_evaluation()
    held_out = scale * validation_logits.double()
    own = scale * test_logits.double()
    fit = fit_temperature(held_out, labels)
    for name, logits in (
        ("test", own),
        ("scaled", apply_temperature(own, fit.temperature)),
    ):
        found[f"{name}_nll"] = negative_log_likelihood(logits, truth).item()
        found[f"{name}_ece"] = expected_calibration_error(
            torch.softmax(logits, dim=1), truth
        ).item()
    for name, logits, right in (("validation", held_out, labels), ("test", own, truth)):
        found[f"{name}_accuracy"] = (
            (logits.argmax(dim=1) == right).double().mean().item()
        )
    confidence = torch.softmax(own, dim=1).amax(dim=1).mean().item()
    return [
        found
        | {
            "confidence": confidence,
            "temperature": fit.temperature,
            "at_bound": fit.at_bound,
        }
    ]


def early_tables(params: Params) -> dict[str, pd.DataFrame]:
    """The measurements of the stage early_learning for the declared cells, in rescaled
    time.

    early_curves: one row per moment ("time", or an event) of a course from logits of 0,
    with the inverse temperature (empty: linearised), loss (mean, nats), change (of the
    tempered logits), drift (of the kernel, relative), distance (to the linearised
    logits). early_norms: one row per start and dynamics ("real", "linearised"), with
    the times of the events (empty where one did not happen). unit_time, logit_time and
    drift_rate are predictions.
    """
    section, rows = (
        params.temperature_check.early_learning,
        {question: list[Any]() for question in _EARLY},
    )
    for network, question, seed in section.courses() if section else ():
        artifact = early_learning.result(network, question, seed)
        about = {"network": network, "seed": seed, **artifact.json("record.json")}
        if question == CURVES:
            found = [
                course | row
                for course in artifact.json("courses.json")
                for row in course["rows"]
            ]
        else:
            starts = artifact.json("starts.json")
            found = [
                one | {"dynamics": each} | one[each]
                for one in starts
                for each in ("real", "linearised")
            ]
        rows[question] += [about | row for row in found]
    return {
        f"early_{question}": pd.DataFrame(rows[question], columns=_EARLY[question])
        for question in rows
    }

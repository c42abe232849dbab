"""Gathering the paper's records in one folder: what the notebook, the report and a reader without data start from."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from softmax_temperature.data.splits import SPLITS
from softmax_temperature.heuristic.ridge import RidgeHeuristic, shipped
from softmax_temperature.metrics import expected_calibration_error, negative_log_likelihood
from softmax_temperature.papers.shared.records import named_rows, write_results
from softmax_temperature.papers.temperature_check.early_learning import early_tables
from softmax_temperature.papers.temperature_check.records import NAMES, SLUG
from softmax_temperature.params import Params
from softmax_temperature.params.temperature_check import CONFIRMED, Training
from softmax_temperature.runner.artifacts import MANIFEST, Artifact, open_artifact
from softmax_temperature.runner.folders import HEURISTIC
from softmax_temperature.scaling import apply_temperature, fit_temperature
from softmax_temperature.stages.early_learning import early_learning
from softmax_temperature.stages.fetch import fetch
from softmax_temperature.stages.temperature_check import CHOICE, confirm_temperature_check, train_temperature_check

STAGES = (fetch, train_temperature_check, confirm_temperature_check, early_learning)
"""What the results rest on."""

# Deviation: how the paper tells divergence is not known. Here a training has diverged when its loss, a logit or a
# weight is no longer finite. One that guesses to the end is not one of them: its accuracy says what it is.

_METRICS = (
    *("validation_accuracy", "test_accuracy", "test_nll", "test_ece", "confidence", "temperature", "at_bound"),
    *("scaled_nll", "scaled_ece"),
)


def collect(params: Params, folder: Path) -> None:
    """Write records, tables, claims and metrics; a cell that the parameters declare and that is missing is an error."""
    trainings = {
        training: open_artifact(train_temperature_check.output / training.cell)
        for training in params.temperature_check.trainings()
    } | _confirmations(params)
    heuristic = _heuristic()
    histories = ((training._asdict(), one.json("history.json")) for training, one in trainings.items())
    estimates = ((training._asdict(), _estimates(heuristic, one)) for training, one in trainings.items())
    made = {
        "runs": pd.DataFrame([{**training._asdict(), **_run(training, one)} for training, one in trainings.items()]),
        "sweeps": _sweeps(params, trainings),
        "history": named_rows(histories, [*NAMES, "epoch", "split", "accuracy", "nll"]),
        "heuristic": named_rows(estimates, [*NAMES, "predicted", "inside"]),
        **early_tables(params),
    }
    code = [*(stage.module for stage in STAGES), __name__]
    write_results(folder, SLUG, params.profile, made=made, code=code)


def _confirmations(params: Params) -> dict[Training, Artifact]:
    """The confirmations, with the rates that they have chosen in their names."""
    found = {}
    for confirmation in params.temperature_check.confirmations():
        artifact = open_artifact(confirm_temperature_check.output / confirmation.cell)
        rate = artifact.json(CHOICE)["learning_rate"]
        sweep, inverse_temperature, start, seed = confirmation
        found[Training(sweep, inverse_temperature, rate, CONFIRMED + start, seed)] = artifact
    return found


def _run(training: Training, artifact: Artifact) -> dict[str, Any]:
    """The outcome of a training; a diverged one has no metrics."""
    record, temperatures = artifact.json("record.json"), artifact.json("temperatures.json")
    found = dict.fromkeys(_METRICS) if record["diverged"] else _metrics(artifact, training.inverse_temperature)
    own = {name: record[name] for name in ("diverged", "epochs_done", "initial_logit_norm")}
    last = temperatures[-1]["total"] if temperatures else None
    return {"correlation": training.correlation, **own, **found, "cooled_temperature": last}


def _metrics(artifact: Artifact, inverse_temperature: float) -> dict[str, Any]:
    tensors = artifact.tensors("logits.safetensors")
    labels, truth = tensors["validation.labels"], tensors["test.labels"]
    held_out, own = (inverse_temperature * tensors[f"{split}.logits"].double() for split in ("validation", "test"))
    fit = fit_temperature(held_out, labels)
    scaled = apply_temperature(own, fit.temperature)
    probs, scaled_probs = torch.softmax(own, dim=1), torch.softmax(scaled, dim=1)
    return {
        "validation_accuracy": (held_out.argmax(dim=1) == labels).double().mean().item(),
        "test_accuracy": (own.argmax(dim=1) == truth).double().mean().item(),
        "test_nll": negative_log_likelihood(own, truth).item(),
        "test_ece": expected_calibration_error(probs, truth).item(),
        "confidence": probs.amax(dim=1).mean().item(),
        "temperature": fit.temperature,
        "at_bound": fit.at_bound,
        "scaled_nll": negative_log_likelihood(scaled, truth).item(),
        "scaled_ece": expected_calibration_error(scaled_probs, truth).item(),
    }


def _heuristic() -> RidgeHeuristic:
    """The one that this profile fitted, or else the one that comes with the package."""
    if (HEURISTIC / MANIFEST).is_file():
        return RidgeHeuristic.model_validate(open_artifact(HEURISTIC).json("heuristic.json"))
    return shipped()


def _estimates(heuristic: RidgeHeuristic, training: Artifact) -> list[dict[str, Any]]:
    """What the heuristic says about the features of a training; nothing without those."""
    statistics = training.json("statistics.json")
    estimates = [] if statistics is None else [heuristic.predict(statistics)]
    return [{"predicted": estimate.predicted, "inside": estimate.inside} for estimate in estimates]


def _sweeps(params: Params, trainings: Mapping[Training, Artifact]) -> pd.DataFrame:
    """The facts about each sweep; those of its first training hold for all."""
    first = {training.sweep: one.json("record.json") for training, one in reversed(list(trainings.items()))}
    columns = ["sweep", "dataset", "network", "architecture", "classes", "parameters", "epochs"]
    rows = [
        {**first[name], **sweep.model_dump(include={"dataset", "network", "architecture"}), "sweep": name}
        | {f"{split}_samples": count for split, count in first[name]["samples"].items()}
        for name, sweep in params.temperature_check.sweeps.items()
    ]
    return pd.DataFrame(rows, columns=[*columns, *(f"{split}_samples" for split in SPLITS)])

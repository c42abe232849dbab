"""Gathering the paper's records in one folder: what the notebook, the report and a reader without data start from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import torch

from softmax_temperature.data.splits import SPLITS
from softmax_temperature.heuristic import Heuristic
from softmax_temperature.metrics import expected_calibration_error, negative_log_likelihood
from softmax_temperature.papers.shared.claims import judge_all
from softmax_temperature.papers.shared.deviations import deviations
from softmax_temperature.papers.shared.tables import write_csv
from softmax_temperature.papers.temperature_check.claims import CLAIMS
from softmax_temperature.papers.temperature_check.early_learning import early_slopes, early_tables
from softmax_temperature.papers.temperature_check.records import NAMES, SLUG, read_records
from softmax_temperature.papers.temperature_check.tables import TABLES
from softmax_temperature.runner.artifacts import MANIFEST, open_artifact, write_json
from softmax_temperature.runner.folders import HEURISTIC
from softmax_temperature.scaling import apply_temperature, fit_temperature
from softmax_temperature.stages import early_learning, fetch, train_temperature_check

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from softmax_temperature.params import Params
    from softmax_temperature.params.temperature_check import Training
    from softmax_temperature.runner.artifacts import Artifact
    from softmax_temperature.runner.jobs import Cell

STAGES = (fetch, train_temperature_check, early_learning)
"""What the results rest on."""

# Deviation: how the paper tells divergence is not known. Here a training has diverged when its loss, a logit or a
# weight is no longer finite. One that guesses to the end is not one of them: its accuracy says what it is.

_HISTORY = ("epoch", "split", "accuracy", "nll")
_METRICS = (
    "validation_accuracy",
    "test_accuracy",
    "test_nll",
    "test_ece",
    "confidence",
    "temperature",
    "at_bound",
    "scaled_nll",
    "scaled_ece",
)
_ESTIMATE = ("predicted", "low", "high", "inside")


def collect(params: Params, folder: Path) -> None:
    """Write records, tables, claims and metrics.

    Args:
        params: declare which cells are read; a missing one is an error, another one is not read.
        folder: `results/<profile>/temperature_check`.
    """
    trainings = {
        training: open_artifact(train_temperature_check.OUTPUT / training.cell)
        for training in params.temperature_check.trainings()
    }
    write_csv(folder / "runs.csv", _table(trainings, _run))
    made = {
        "sweeps": _sweeps(params, trainings),
        "history": _rows(trainings, _history, _HISTORY),
        "heuristic": _rows(trainings, _predictions(), _ESTIMATE),
        **early_tables(params),
    }
    for name, table in made.items():
        write_csv(folder / "tables" / f"{name}.csv", table)
    records = read_records(folder)
    for name, make in {**TABLES, "early_slopes": early_slopes}.items():
        write_csv(folder / "tables" / f"{name}.csv", make(records))
    code = [*train_temperature_check.cells(params), *early_learning.cells(params)]
    write_csv(folder / "tables" / "deviations.csv", deviations(_modules(code)))
    verdicts = judge_all(SLUG, CLAIMS, records, profile=params.profile)
    write_json(folder / "claims.json", verdicts)
    metrics = {row["id"]: {"value": row["value"], "verdict": row["verdict"]} for row in verdicts}
    write_json(folder / "metrics.json", metrics)


def _table(
    trainings: Mapping[Training, Artifact], describe: Callable[[Training, Artifact], dict[str, Any]]
) -> pd.DataFrame:
    return pd.DataFrame([{**training._asdict(), **describe(training, one)} for training, one in trainings.items()])


def _rows(
    trainings: Mapping[Training, Artifact], read: Callable[[Artifact], Iterable[dict[str, Any]]], columns: Sequence[str]
) -> pd.DataFrame:
    """Some columns of some rows of every training, each with the training's names."""
    rows = [
        {**training._asdict(), **{name: row[name] for name in columns}}
        for training, one in trainings.items()
        for row in read(one)
    ]
    return pd.DataFrame(rows, columns=[*NAMES, *columns])


def _history(training: Artifact) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = training.json("history.json")
    return rows


def _run(training: Training, artifact: Artifact) -> dict[str, Any]:
    """What a training came to; a diverged one has no metrics."""
    record, temperatures = artifact.json("record.json"), artifact.json("temperatures.json")
    found = dict.fromkeys(_METRICS) if record["diverged"] else _metrics(artifact, training.inverse_temperature)
    return {
        "correlation": training.correlation,
        "diverged": record["diverged"],
        "epochs_done": record["epochs_done"],
        "initial_logit_norm": record["initial_logit_norm"],
        **found,
        "cooled_temperature": temperatures[-1]["total"] if temperatures else None,
    }


def _metrics(artifact: Artifact, inverse_temperature: float) -> dict[str, Any]:
    tensors = artifact.tensors("logits.safetensors")
    labels = {split: tensors[f"{split}.labels"] for split in ("validation", "test")}
    logits = {split: inverse_temperature * tensors[f"{split}.logits"].double() for split in labels}
    fit = fit_temperature(logits["validation"], labels["validation"])
    scaled = apply_temperature(logits["test"], fit.temperature)
    probs, scaled_probs = torch.softmax(logits["test"], dim=1), torch.softmax(scaled, dim=1)
    right = {split: (logits[split].argmax(dim=1) == labels[split]).double().mean().item() for split in labels}
    return {
        "validation_accuracy": right["validation"],
        "test_accuracy": right["test"],
        "test_nll": negative_log_likelihood(logits["test"], labels["test"]).item(),
        "test_ece": expected_calibration_error(probs, labels["test"]).item(),
        "confidence": probs.amax(dim=1).mean().item(),
        "temperature": fit.temperature,
        "at_bound": fit.at_bound,
        "scaled_nll": negative_log_likelihood(scaled, labels["test"]).item(),
        "scaled_ece": expected_calibration_error(scaled_probs, labels["test"]).item(),
    }


def _predictions() -> Callable[[Artifact], list[dict[str, Any]]]:
    """What the heuristic says about the features of a training; nothing without those.

    It is the one that this profile fitted, or else the one that comes with the package.
    """
    if (HEURISTIC / MANIFEST).is_file():
        fitted = Heuristic.from_json(open_artifact(HEURISTIC).path("heuristic.json").read_text(encoding="utf-8"))
    else:
        from softmax_temperature.tools.suggest.study import shipped_study  # With it come torchvision and all backbones.

        fitted = shipped_study().heuristic

    def predict(training: Artifact) -> list[dict[str, Any]]:
        statistics = training.json("statistics.json")
        if statistics is None:
            return []
        estimate = fitted.predict(statistics)
        known = {"predicted": estimate.inverse_temperature, "low": estimate.low, "high": estimate.high}
        return [known | {"inside": estimate.inside}]

    return predict


def _sweeps(params: Params, trainings: Mapping[Training, Artifact]) -> pd.DataFrame:
    """The facts about each sweep; those of its first training hold for all."""
    first = {training.sweep: one.json("record.json") for training, one in reversed(list(trainings.items()))}
    rows = []
    for name, sweep in params.temperature_check.sweeps.items():
        record = first[name]
        row = {"sweep": name, "dataset": sweep.dataset, "network": sweep.network, "architecture": sweep.architecture}
        row |= {key: record[key] for key in ("classes", "parameters", "epochs")}
        row |= {f"{split}_samples": count for split, count in record["samples"].items()}
        rows.append(row)
    columns = ["sweep", "dataset", "network", "architecture", "classes", "parameters", "epochs"]
    columns += [f"{split}_samples" for split in SPLITS]
    return pd.DataFrame(rows, columns=columns)


def _modules(cells: Iterable[Cell]) -> list[str]:
    """The modules that the results rest on, those that cells choose by name included."""
    chosen = {module for cell in cells for module in cell.code}
    return [stage.__name__ for stage in STAGES] + sorted(chosen) + [__name__]

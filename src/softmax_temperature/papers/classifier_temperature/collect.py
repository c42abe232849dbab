"""Gathering the paper's records in one folder: what the notebook, the report and a reader without data start from."""

from pathlib import Path
from typing import Any

import pandas as pd

from softmax_temperature.papers.classifier_temperature.records import SLUG, Records
from softmax_temperature.papers.shared.records import table_names, write_results
from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import Artifact, open_artifact, write_text
from softmax_temperature.stages.backbones import embed, pretrain
from softmax_temperature.stages.classifier_temperature import describe, rescaling, search
from softmax_temperature.stages.fetch import fetch
from softmax_temperature.stages.heuristic import heuristic

STAGES = (fetch, pretrain, embed, describe, search, rescaling, heuristic)
"""What the results rest on."""


def collect(params: Params, folder: Path) -> None:
    """Write records, tables, claims and metrics; a cell that the parameters declare and that is missing is an error."""
    fitted = open_artifact(heuristic.output, kind="heuristic")
    made = {name: pd.read_csv(fitted.path(f"{name}.csv")) for name in table_names(Records) if name != "rescaling"}
    arms = [open_artifact(rescaling.output / cell.name, kind="rescaling") for cell in rescaling.cells(params)]
    made["rescaling"] = pd.DataFrame([row for arm in arms for row in _rescaling(arm)])
    write_text(folder / "heuristic.json", fitted.path("heuristic.json").read_text(encoding="utf-8"))
    write_results(folder, SLUG, params.profile, made=made, code=[stage.module for stage in STAGES])


def _rescaling(arm: Artifact) -> list[dict[str, Any]]:
    """Figure 2's runs: optimizer, loss, repeat, inverse temperature, best test accuracy over epochs."""
    record = arm.json("record.json")
    best = arm.tensors("curves.safetensors")["test"].double().amax(-1).round(decimals=6).tolist()
    names, tried = {name: record[name] for name in ("optimizer", "loss")}, record["inverse_temperatures"]
    return [
        {**names, "repeat": repeat, "inverse_temperature": inverse_temperature, "test_accuracy": accuracy}
        for repeat, accuracies in enumerate(best)
        for inverse_temperature, accuracy in zip(tried, accuracies, strict=True)
    ]

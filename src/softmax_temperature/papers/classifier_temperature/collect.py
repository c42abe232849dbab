"""Gathering the paper's records in one folder: what the notebook, the report and a reader without data start from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from softmax_temperature.papers.classifier_temperature import tables
from softmax_temperature.papers.classifier_temperature.claims import CLAIMS
from softmax_temperature.papers.classifier_temperature.records import SLUG, TABLES, read_records
from softmax_temperature.papers.shared.claims import judge_all
from softmax_temperature.papers.shared.deviations import deviations
from softmax_temperature.papers.shared.tables import write_csv
from softmax_temperature.runner.artifacts import Artifact, open_artifact, write_json, write_text
from softmax_temperature.stages import describe, embed, fetch, heuristic, pretrain, rescaling, search

if TYPE_CHECKING:
    from pathlib import Path

    from softmax_temperature.params import Params

STAGES = (fetch, pretrain, embed, describe, search, rescaling, heuristic)
"""What the results rest on."""


def collect(params: Params, folder: Path) -> None:
    """Write records, tables, claims and metrics.

    Args:
        params: declare which cells are read; a missing one is an error, another one is not read.
        folder: `results/<profile>/classifier_temperature`.
    """
    fitted = open_artifact(heuristic.OUTPUT, kind="heuristic")
    write_csv(folder / "runs.csv", pd.read_csv(fitted.path("runs.csv")))
    for name in TABLES:
        if name != "rescaling":
            write_text(folder / "tables" / f"{name}.csv", fitted.path(f"{name}.csv").read_text(encoding="utf-8"))
    write_csv(folder / "tables" / "rescaling.csv", _rescaling(params))
    write_text(folder / "heuristic.json", fitted.path("heuristic.json").read_text(encoding="utf-8"))
    records = read_records(folder)
    write_csv(folder / "tables" / "table_1.csv", tables.table_1(records))
    write_csv(folder / "tables" / "cost_of_rules.csv", tables.cost_of_rules(records))
    write_csv(folder / "tables" / "plateaus.csv", tables.plateaus(records))
    write_csv(folder / "tables" / "deviations.csv", deviations(stage.run.__module__ for stage in STAGES))
    rows = judge_all(SLUG, CLAIMS, records, profile=params.profile)
    write_json(folder / "claims.json", rows)
    write_json(folder / "metrics.json", {row["id"]: {"value": row["value"], "verdict": row["verdict"]} for row in rows})


def _rescaling(params: Params) -> pd.DataFrame:
    """Figure 2's runs: optimizer, loss, repeat, inverse temperature, best test accuracy over epochs."""
    cells = [cell.name for cell in rescaling.cells(params)]
    frames = [_arm(open_artifact(rescaling.OUTPUT / name, kind="rescaling")) for name in cells]
    return pd.concat(frames, ignore_index=True)


def _arm(artifact: Artifact) -> pd.DataFrame:
    record, curves = artifact.json("record.json"), artifact.tensors("curves.safetensors")["test"]
    best = curves.double().amax(-1)
    repeats, temperatures = best.shape
    return pd.DataFrame(
        {
            "optimizer": record["optimizer"],
            "loss": record["loss"],
            "repeat": [repeat for repeat in range(repeats) for _ in range(temperatures)],
            "inverse_temperature": record["inverse_temperatures"] * repeats,
            "test_accuracy": best.flatten().round(decimals=6).tolist(),
        }
    )

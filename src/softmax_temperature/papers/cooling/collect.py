"""Gathering the paper's records in one folder: what the notebook, the report and a reader without data start from."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.cooling import tables
from softmax_temperature.papers.cooling.claims import CLAIMS
from softmax_temperature.papers.cooling.cost import cost_of_cooling
from softmax_temperature.papers.cooling.outcomes import outcome
from softmax_temperature.papers.cooling.records import SLUG, read_records
from softmax_temperature.papers.cooling.segmentation import segmentation_pixels, segmentation_table
from softmax_temperature.papers.cooling.theory import theory_checks
from softmax_temperature.papers.shared.claims import judge_all
from softmax_temperature.papers.shared.deviations import deviations
from softmax_temperature.papers.shared.tables import write_csv
from softmax_temperature.runner.artifacts import atomic_file, open_artifact, write_json
from softmax_temperature.stages import fetch, train_cooling, train_segmentation

if TYPE_CHECKING:
    from pathlib import Path

    from softmax_temperature.params import Params
    from softmax_temperature.runner.artifacts import Artifact

STAGES = (fetch, train_cooling, train_segmentation)
"""What the results rest on."""

_NAMES = ("experiment", "schedule", "arm", "seed")
_COLUMNS = MappingProxyType(
    {
        "history": ("epoch", "split", "accuracy", "nll", "ece", "entropy", "loss", "weight_norm", "feature_norm"),
        "temperatures": ("cooling", "epoch", "applied", "total", "at_bound"),
        "norms": ("epoch", "logit_norm", "weight_norm", "gradient_norm"),
    }
)
_SETTINGS = ("factor", "max_temperature", "reset_temperature", "refit", "period", "optimizer_state")
_LIMITS = ("max_temperature", "reset_temperature")


def collect(params: Params, folder: Path) -> None:
    """Write records, tables, claims and metrics.

    Args:
        params: declare which cells are read; a missing one is an error, another one is not read.
        folder: `results/<profile>/cooling`.
    """
    trainings = {cell.name: open_artifact(train_cooling.OUTPUT / cell.name) for cell in train_cooling.cells(params)}
    rows = {name: _rows(trainings, name) for name in _COLUMNS}
    # A period of one batch makes ten thousands of Coolings; the last of each epoch tells how the temperature went.
    rows["temperatures"] = rows["temperatures"].drop_duplicates([*_NAMES, "epoch"], keep="last")
    write_csv(folder / "runs.csv", _runs(trainings))
    section = params.cooling.segmentation
    made = {
        "experiments": _experiments(params, trainings),
        "arms": _arms(params),
        **rows,
        "segmentation": segmentation_table(params).assign(
            dataset=section.dataset if section else None, classes=section.classes if section else None
        ),
        "theory_checks": theory_checks(),
        "cost": cost_of_cooling(),
    }
    for name, table in made.items():
        write_csv(folder / "tables" / f"{name}.csv", table)
    if pixels := segmentation_pixels(params):
        with atomic_file(folder / "tables" / "segmentation.npz") as file:
            np.savez_compressed(file, **pixels)  # type: ignore[arg-type]
    records = read_records(folder)
    for name in tables.SPECS:
        write_csv(folder / "tables" / f"{name}.csv", tables.table(records, name))
    write_csv(
        folder / "tables" / "deviations.csv",
        deviations(_modules()),
    )
    verdicts = judge_all(SLUG, CLAIMS, records, profile=params.profile)
    write_json(folder / "claims.json", verdicts)
    metrics = {row["id"]: {"value": row["value"], "verdict": row["verdict"]} for row in verdicts}
    write_json(folder / "metrics.json", metrics)


def _names(cell: str) -> dict[str, Any]:
    experiment, schedule, arm, seed = cell.split("/")
    return {"experiment": experiment, "schedule": schedule, "arm": arm, "seed": int(seed)}


def _rows(trainings: dict[str, Artifact], name: str) -> pd.DataFrame:
    """The rows of one file of every training, each with the training's names."""
    rows = [{**_names(cell), **row} for cell, one in trainings.items() for row in one.json(f"{name}.json")]
    return pd.DataFrame(rows, columns=[*_NAMES, *_COLUMNS[name]])


def _runs(trainings: dict[str, Artifact]) -> pd.DataFrame:
    return pd.DataFrame([{**_names(cell), **_run(training)} for cell, training in trainings.items()])


def _run(training: Artifact) -> dict[str, Any]:
    """What a training came to; a lost one has no metrics."""
    record, temperatures = training.json("record.json"), training.json("temperatures.json")
    history = training.json("history.json")
    learned = [row["accuracy"] for row in history if row["split"] == "train"]
    became = outcome(learned, record["classes"], is_finite=not record["diverged"])
    last = {row["split"]: row for row in history if row["epoch"] == record["epochs_done"]}
    metrics = {
        "test_accuracy": ("test", "accuracy"),
        "train_accuracy": ("train", "accuracy"),
        "test_nll": ("test", "nll"),
        "test_ece": ("test", "ece"),
    }
    return {
        **became._asdict(),
        "epochs_done": record["epochs_done"],
        **{name: None if any(became) else last[split][metric] for name, (split, metric) in metrics.items()},
        "temperature": temperatures[-1]["total"] if temperatures else 1.0,
    }


def _experiments(params: Params, trainings: dict[str, Artifact]) -> pd.DataFrame:
    rows = []
    for name, place in params.cooling.experiments.items():
        first = trainings[f"{name}/{place.schedules[0]}/{place.arms[0]}/0"].json("record.json")
        activation = params.networks[place.network].arguments.get("activation", "relu")
        row = {"experiment": name, "dataset": place.dataset, "network": place.network, "activation": activation}
        row |= {"role": place.role, "change": place.change, "printed_model": place.printed_model}
        row |= {"classes": first["classes"], "parameters": first["parameters"]}
        row |= {f"{split}_images": count for split, count in first["images"].items()}
        rows.append(row | {"epochs": first["epochs"], "planned_epochs": first["planned_epochs"]})
    return pd.DataFrame(rows)


def _arms(params: Params) -> pd.DataFrame:
    """The arms of some experiment, with the settings that mean something in their mode."""
    used = {arm for place in params.cooling.experiments.values() for arm in place.arms}
    rows = []
    for name, arm in params.cooling.arms.items():
        if name in used:
            settings = {key: getattr(arm, key) for key in _SETTINGS if arm.mode != train_cooling.NO_COOLING}
            if arm.mode != "periodic":
                settings = {key: value for key, value in settings.items() if key not in _LIMITS}
            rows.append({"arm": name, "mode": arm.mode, **settings, "loss": arm.loss})
    return pd.DataFrame(rows, columns=["arm", "mode", *_SETTINGS, "loss"])


def _modules() -> list[str]:
    """The modules that the results rest on."""
    return [stage.run.__module__ for stage in STAGES] + [__name__]

"""Gathering the paper's records in one folder: what the notebook, the report and a reader without data start from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from softmax_temperature.papers.cooling import tables
from softmax_temperature.papers.cooling.claims import CLAIMS
from softmax_temperature.papers.cooling.cost import cost_of_cooling
from softmax_temperature.papers.cooling.records import SLUG, Records
from softmax_temperature.papers.cooling.segmentation import segmentation_pixels, segmentation_table
from softmax_temperature.papers.cooling.selection import RUN, outcome
from softmax_temperature.papers.cooling.theory import theory_checks
from softmax_temperature.papers.shared.collect import named_rows, write_results
from softmax_temperature.papers.shared.records import write_pixels
from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import Artifact, open_artifact
from softmax_temperature.stages import fetch, train_cooling, train_segmentation

STAGES = (fetch, train_cooling, train_segmentation)
"""What the results rest on."""
_COLUMNS = MappingProxyType(
    {
        "history": ("epoch", "split", "accuracy", "nll", "ece", "entropy", "loss", "weight_norm", "feature_norm"),
        "temperatures": ("cooling", "epoch", "applied", "total", "at_bound"),
        "norms": ("epoch", "logit_norm", "weight_norm", "gradient_norm"),
    }
)
_SETTINGS = ("factor", "max_temperature", "reset_temperature", "refit", "period", "optimizer_state")
_LIMITS = ("max_temperature", "reset_temperature")
_METRICS = MappingProxyType(
    {
        "test_accuracy": ("test", "accuracy"),
        "train_accuracy": ("train", "accuracy"),
        "test_nll": ("test", "nll"),
        "test_ece": ("test", "ece"),
    }
)


def collect(params: Params, folder: Path) -> None:
    """Write records, tables, claims and metrics.

    Args:
        params: declare which cells are read; a missing one is an error, another one is not read.
        folder: `results/<profile>/cooling`.
    """
    trainings = {cell.name: open_artifact(train_cooling.OUTPUT / cell.name) for cell in train_cooling.cells(params)}
    rows = {name: _rows(trainings, name) for name in _COLUMNS}
    # A period of one batch makes tens of thousands of Coolings; the last of each epoch shows how the temperature went.
    rows["temperatures"] = rows["temperatures"].drop_duplicates([*RUN, "epoch"], keep="last")
    made = {
        "runs": pd.DataFrame([{**_names(cell), **_run(training)} for cell, training in trainings.items()]),
        "experiments": _experiments(params, trainings),
        "arms": _arms(params),
        **rows,
        "segmentation": segmentation_table(params),
        "theory_checks": theory_checks(),
        "cost": cost_of_cooling(),
    }
    write_pixels(folder / "tables" / "segmentation.safetensors", segmentation_pixels(params))
    write_results(
        folder, SLUG, params.profile, made=made, form=Records, tables=_tables, claims=CLAIMS,
        code=[*(stage.__name__ for stage in STAGES), __name__],
    )  # fmt: skip


def _tables(records: Records) -> dict[str, pd.DataFrame]:
    return {name: tables.table(records, name) for name in tables.SPECS}


def _names(cell: str) -> dict[str, Any]:
    experiment, schedule, arm, seed = cell.split("/")
    return {"experiment": experiment, "schedule": schedule, "arm": arm, "seed": int(seed)}


def _rows(trainings: Mapping[str, Artifact], name: str) -> pd.DataFrame:
    rows = ((_names(cell), training.json(f"{name}.json")) for cell, training in trainings.items())
    return named_rows(rows, [*RUN, *_COLUMNS[name]])


def _run(training: Artifact) -> dict[str, Any]:
    """The outcome of a training; a lost one has no metrics."""
    record, temperatures = training.json("record.json"), training.json("temperatures.json")
    history = training.json("history.json")
    learned = [row["accuracy"] for row in history if row["split"] == "train"]
    became = outcome(learned, record["classes"], is_finite=not record["diverged"])
    last = {row["split"]: row for row in history if row["epoch"] == record["epochs_done"]}
    return {
        **became._asdict(),
        "epochs_done": record["epochs_done"],
        **{name: None if any(became) else last[split][metric] for name, (split, metric) in _METRICS.items()},
        "temperature": temperatures[-1]["total"] if temperatures else 1.0,
    }


def _experiments(params: Params, trainings: Mapping[str, Artifact]) -> pd.DataFrame:
    rows = []
    for name, about in params.cooling.experiments.items():
        first = trainings[f"{name}/{about.schedules[0]}/{about.arms[0]}/0"].json("record.json")
        activation = params.networks[about.network].arguments.get("activation", "relu")
        row = {"experiment": name, "dataset": about.dataset, "network": about.network, "activation": activation}
        row |= {"role": about.role, "change": about.change, "printed_model": about.printed_model}
        row |= {"classes": first["classes"], "parameters": first["parameters"]}
        row |= {f"{split}_images": count for split, count in first["images"].items()}
        rows.append(row | {"epochs": first["epochs"], "planned_epochs": first["planned_epochs"]})
    return pd.DataFrame(rows)


def _arms(params: Params) -> pd.DataFrame:
    """The arms of some experiment, with the settings that mean something in their mode."""
    used = {arm for about in params.cooling.experiments.values() for arm in about.arms}
    rows = []
    for name, arm in params.cooling.arms.items():
        if name in used:
            settings = {key: getattr(arm, key) for key in _SETTINGS if arm.mode != train_cooling.NO_COOLING}
            if arm.mode != "periodic":
                settings = {key: value for key, value in settings.items() if key not in _LIMITS}
            rows.append({"arm": name, "mode": arm.mode, **settings, "loss": arm.loss})
    return pd.DataFrame(rows, columns=["arm", "mode", *_SETTINGS, "loss"])

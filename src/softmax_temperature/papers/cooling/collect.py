"""Gathering the paper's records in one folder: what the notebook, the report and a reader without data start from."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softmax_temperature.papers.cooling.claims import CLAIMS
from softmax_temperature.papers.cooling.records import SLUG, Records
from softmax_temperature.papers.cooling.selection import COOLED, RUN, outcome
from softmax_temperature.papers.cooling.tables import TABLES
from softmax_temperature.papers.cooling.theory import theory_checks
from softmax_temperature.papers.shared.records import named_rows, write_pixels, write_results
from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import Artifact, open_artifact
from softmax_temperature.stages import fetch, train_cooling, train_segmentation

STAGES = (fetch, train_cooling, train_segmentation)
"""What the results rest on."""
BENCHMARKS = Path("benchmarks/results.json")
_SEGMENTATION = ("arm", "seed", "epoch", "mean_iou", "pixel_accuracy", "temperature")
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
        folder, SLUG, params.profile, made=made, form=Records, tables=TABLES, claims=CLAIMS,
        code=[*(stage.__name__ for stage in STAGES), __name__],
    )  # fmt: skip


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


def segmentation_table(params: Params) -> pd.DataFrame:
    """Scores of the test images, one row per declared training and epoch, with the data set and its classes.

    A training that diverged ends with a row whose numbers are empty, for the epoch in which it did.
    """
    section = params.cooling.segmentation
    rows: list[dict[str, Any]] = []
    for arm, seed in train_segmentation.trainings(section):
        record = open_artifact(train_segmentation.OUTPUT / f"{arm}/{seed}").json("record.json")
        rows += [{"arm": arm, "seed": seed, **row} for row in record["history"]]
        if record["diverged"]:
            rows.append({"arm": arm, "seed": seed, "epoch": record["epochs_done"] + 1, "mean_iou": math.nan})
    about = {"dataset": section.dataset if section else None, "classes": section.classes if section else None}
    return pd.DataFrame(rows, columns=list(_SEGMENTATION)).assign(**about)


def segmentation_pixels(params: Params) -> dict[str, NDArray[np.uint8]]:
    """A few test images with the predictions of the first training of each arm.

    Returns:
        `images` (panels, height, width, 3), `labels` (panels, height, width), and predictions of this shape under the
        name of each arm; nothing where `cooling.segmentation.panels` is 0.
    """
    section = params.cooling.segmentation
    if section is None or not section.panels:
        return {}
    pictures: dict[str, NDArray[np.uint8]] = {}
    for arm in train_segmentation.ARMS:
        with np.load(
            open_artifact(train_segmentation.OUTPUT / f"{arm}/0").path("predictions.npz"), allow_pickle=False
        ) as file:
            pictures |= {name: file[name][: section.panels] for name in ("images", "labels")}
            pictures[arm] = file["predicted"][: section.panels]
    return pictures


def cost_of_cooling(path: Path = BENCHMARKS) -> pd.DataFrame:
    """The table `cost` of `Records`, from the file that `make bench` writes; empty where nothing was measured."""
    devices = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    steps = {device: found["results"].get("cooling_step") for device, found in devices.items()}
    rows = [
        {
            "device": device,
            "mode": mode,
            "seconds": step[f"{mode}_seconds"],
            "epoch_seconds": step["epoch_seconds"],
            "share": step[f"{mode}_share"],
            "rounds": step["rounds"],
            "size": step["size"],
        }
        for device, step in steps.items()
        if step
        for mode in COOLED
    ]
    return pd.DataFrame(rows, columns=["device", "mode", "seconds", "epoch_seconds", "share", "rounds", "size"])

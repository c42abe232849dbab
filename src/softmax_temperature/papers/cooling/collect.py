"""Collect the runs of the Cooling paper from its stages' cells."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from torch import nn

from softmax_temperature.cooling.theory import theory_checks
from softmax_temperature.networks.bottleneck_resnet import BottleneckResNet
from softmax_temperature.networks.densenet import DenseNet
from softmax_temperature.networks.vgg import SmallVGG
from softmax_temperature.networks.wide_resnet import WideResNet
from softmax_temperature.papers.cooling.study import SLUG
from softmax_temperature.papers.shared.collecting import (
    DeclaredRun,
    MeasuredRun,
    gather_study,
)
from softmax_temperature.papers.shared.records import (
    write_pixels,
    write_study,
)
from softmax_temperature.papers.shared.runs import gamma_text
from softmax_temperature.params import Params
from softmax_temperature.params.cooling import NO_COOLING, Arm
from softmax_temperature.params.recipe import Recipe, Schedule
from softmax_temperature.runner.artifacts import Artifact, ArtifactError
from softmax_temperature.stages.cooling import (
    PREDICTIONS,
    train_cooling,
    train_segmentation,
)
from softmax_temperature.stages.fetch import fetch

STAGES = (fetch, train_cooling, train_segmentation)
BENCHMARKS = Path("benchmarks/results.json")
_CLASSES = 10
_SIZE = 8
_SMALL: Any = {"widths": (8, 8, 16, 16), "dense": 16, "image_size": _SIZE}
_NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "VGG, ReLU": lambda: SmallVGG(_CLASSES, **_SMALL),
    "VGG, CReLU": lambda: SmallVGG(_CLASSES, "crelu", **_SMALL),
    "VGG, batch normalisation": lambda: SmallVGG(_CLASSES, batch_norm=True, **_SMALL),
    "ResNet of bottlenecks": lambda: BottleneckResNet((1, 2), _CLASSES, 4),
    "ResNet of bottlenecks, CReLU": lambda: BottleneckResNet(
        (1, 2), _CLASSES, 4, "crelu"
    ),
    "Wide-ResNet": lambda: WideResNet(8, 1, _CLASSES),
    "DenseNet": lambda: DenseNet((2, 2), growth=4, num_classes=_CLASSES),
}
"""The networks on which the theory is checked."""
_OF_EVERY_MODE = ("factor", "refit", "period", "optimizer_state")
_OF_PERIODIC = ("max_temperature", "reset_temperature")
_HISTORY = (
    "accuracy",
    "nll",
    "ece",
    "entropy",
    "loss",
    "weight_norm",
    "feature_norm",
)
_COST = ["device", "mode", "seconds", "epoch_seconds", "share", "rounds", "size"]
_DECAYS = {0.01: "exponential_slow", 0.001: "exponential_fast"}


def collect(params: Params, folder: Path) -> None:
    """Write runs, tables, claims and metrics of the study into the paper's folder.

    Raises:
        InputError: If the data of a declared run are available, but the run is neither
            in a cell on this machine nor recorded in the folder (`gather` makes one
            exception).
    """
    runs = gather_study(folder, SLUG, params, declared_runs, read_run)
    if runs is None:
        return
    pixels = segmentation_pixels(params)
    write_pixels(folder / "tables" / "segmentation.safetensors", pixels)
    write_study(
        folder,
        SLUG,
        params.profile,
        runs=runs,
        tables={
            "theory_checks": theory_checks(_NETWORKS, classes=_CLASSES, size=_SIZE),
            "cost": cost_of_cooling(),
        },
        code=[*(stage.module for stage in STAGES), __name__],
    )


def declared_runs(params: Params) -> Iterator[DeclaredRun]:
    """The runs that `params` declare; segmentation comes last."""
    section = params.cooling
    parameters = {cell.name: cell.parameters for cell in train_cooling.cells(params)}
    for name, schedule, arm, seed in section.trainings():
        experiment = section.experiments[name]
        network = params.networks[experiment.network]
        recipe = section.recipe_of(name, schedule)
        factors = {
            "task": "classification",
            "dataset": experiment.dataset,
            "network": experiment.network,
            "architecture": network.architecture,
            "activation": network.arguments.get("activation", "relu"),
            **cooling_factors(section.arms[arm]),
            **recipe_factors(recipe),
            "seed": seed,
            "experiment": name,
            "role": experiment.role,
            "printed_model": experiment.printed_model,
            "epochs": recipe.epochs,
            "planned_epochs": recipe.planned_epochs,
        }
        cell = f"{name}/{schedule}/{arm}/{seed}"
        yield DeclaredRun(train_cooling, cell, factors, parameters[cell])
    yield from _declared_segmentation(params)


def _declared_segmentation(params: Params) -> Iterator[DeclaredRun]:
    section = params.cooling.segmentation
    for mode, seed in section.trainings() if section else ():
        assert section, "only a section declares runs"
        arm = Arm.model_validate({"mode": mode, "factor": section.factor})
        factors = {
            "task": "segmentation",
            "dataset": section.dataset,
            "network": "u-net",
            "architecture": "unet",
            "activation": "relu",
            **cooling_factors(arm),
            **recipe_factors(section.recipe),
            "seed": seed,
            "experiment": "segmentation",
            "role": "section_4_4",
            "printed_model": None,
            "epochs": section.recipe.epochs,
            "planned_epochs": section.recipe.planned_epochs,
        }
        yield DeclaredRun(train_segmentation, f"{mode}/{seed}", factors)


def cooling_factors(arm: Arm) -> dict[str, Any]:
    """The factors that describe the loss and the Cooling of `arm`.

    Settings that the mode of Cooling does not use are None.
    """
    used: tuple[str, ...] = ()
    if arm.mode != NO_COOLING:
        used = _OF_EVERY_MODE
    if arm.mode == "periodic":
        used = (*used, *_OF_PERIODIC)
    names = ("factor", *_OF_PERIODIC, "refit", "period", "optimizer_state")
    return {
        "loss": arm.loss,
        "gamma": gamma_text(arm.options.get("gamma")),
        "mode": arm.mode,
        **{name: getattr(arm, name) if name in used else None for name in names},
    }


def recipe_factors(recipe: Recipe) -> dict[str, Any]:
    """The factors that `recipe` sets."""
    return {
        "schedule": schedule_factor(recipe.schedule),
        "warmup": recipe.schedule.warmup,
        "optimizer": recipe.optimizer,
        "learning_rate": recipe.lr,
        "weight_decay": recipe.weight_decay,
        "crop_padding": recipe.crop_padding,
        "flip": recipe.flip,
    }


def schedule_factor(schedule: Schedule) -> str:
    """The factor `schedule`: for the paper's schedules, a key of `display.SCHEDULES`.

    The name comes from the schedule's settings, not from its key in the parameters.
    """
    if schedule.name == "constant":
        return "none"
    if schedule.name == "steps":
        return "piecewise"
    if schedule.name == "exponential":
        return _DECAYS.get(schedule.factor, f"exponential-{schedule.factor:g}")
    return schedule.name


def read_run(run: DeclaredRun, artifact: Artifact) -> MeasuredRun:
    """Read the facts and the values of a run from its cell."""
    record = artifact.json("record.json")
    if run.stage is train_segmentation:
        return _segmentation_run(record)
    history = artifact.json("history.json")
    sizes = {f"{split}_images": count for split, count in record["images"].items()}
    facts = {
        "classes": record["classes"],
        "parameters": record["parameters"],
        **sizes,
        "diverged": record["diverged"],
        "epochs_done": record["epochs_done"],
    }
    return MeasuredRun(facts, _values(artifact, history))


def _values(artifact: Artifact, history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The values of a classifier: history, norms and each epoch's last Cooling step.

    If Cooling follows each batch, there are tens of thousands of Cooling steps. The
    last step of each epoch is enough to show how the temperature develops.
    """
    by_place: dict[tuple[str, int], dict[str, Any]] = {}

    def add(split: str, epoch: int, **metrics: Any) -> None:
        row = by_place.setdefault((split, epoch), {"split": split, "epoch": epoch})
        row |= metrics

    for row in history:
        metrics = {name: row[name] for name in _HISTORY if name in row}
        add(row["split"], row["epoch"], **metrics)
    for row in artifact.json("norms.json"):
        add("validation", row["epoch"], logit_norm=row["logit_norm"])
        add(
            "train",
            row["epoch"],
            all_weights_norm=row["weight_norm"],
            gradient_norm=row["gradient_norm"],
        )
    for row in artifact.json("temperatures.json"):
        add(
            "validation",
            row["epoch"],
            coolings=row["cooling"],
            applied_temperature=row["applied"],
            temperature=row["total"],
            at_bound=row["at_bound"],
        )
    return list(by_place.values())


def _segmentation_run(record: dict[str, Any]) -> MeasuredRun:
    values = []
    for row in record["history"]:
        scores = {name: row[name] for name in ("mean_iou", "pixel_accuracy")}
        values.append({"split": "test", "epoch": row["epoch"], **scores})
        temperature = {"temperature": row["temperature"]}
        values.append({"split": "validation", "epoch": row["epoch"], **temperature})
    facts = {
        "classes": record["classes"],
        "diverged": record["diverged"],
        "epochs_done": record["epochs_done"],
    }
    return MeasuredRun(facts, values)


def segmentation_pixels(params: Params) -> dict[str, NDArray[np.uint8]]:
    """The first seed's pictures for the figure; empty if they are not on this machine.

    Returns:
        The array `images`, of shape (panels, height, width, 3); the array `labels`; and
        for each mode an array of the predicted classes, keyed by the mode's name. The
        arrays of labels and of predicted classes have shape (panels, height, width).
        All arrays have dtype uint8.
    """
    section = params.cooling.segmentation
    if section is None or not section.panels:
        return {}
    pictures: dict[str, NDArray[np.uint8]] = {}
    for mode in section.arms:
        try:
            stored = train_segmentation.result(mode, 0).tensors(PREDICTIONS)
        except ArtifactError:
            return {}
        arrays = {"images": "images", "labels": "labels", mode: "predicted"}
        for name, array in arrays.items():
            pictures[name] = stored[array][: section.panels].numpy()
    return pictures


def cost_of_cooling(path: Path = BENCHMARKS) -> pd.DataFrame:
    """The times measured by `make bench`, with one row per device and mode of Cooling.

    The table is empty if there are no times at `path`.
    """
    devices = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    rows = []
    for device, measured in devices.items():
        step = measured["results"].get("cooling_step")
        for mode in ("distributed", "periodic", "last_layer") if step else ():
            times = {
                "device": device,
                "mode": mode,
                "seconds": step[f"{mode}_seconds"],
                "share": step[f"{mode}_share"],
            }
            rows.append(step | times)
    return pd.DataFrame(rows, columns=_COST)

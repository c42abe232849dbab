"""Gathering the paper's records in one folder: what the notebook, the report and a
reader without data start from.
"""

import json
from collections.abc import Callable, Mapping
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
from softmax_temperature.papers.cooling.records import SLUG
from softmax_temperature.papers.cooling.selection import COOLED, RUN, outcome
from softmax_temperature.papers.shared.records import (
    named_rows,
    names_of,
    write_pixels,
    write_results,
)
from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import Artifact
from softmax_temperature.stages.cooling import (
    PREDICTIONS,
    train_cooling,
    train_segmentation,
)
from softmax_temperature.stages.fetch import fetch

STAGES = (fetch, train_cooling, train_segmentation)
BENCHMARKS = Path("benchmarks/results.json")
_CLASSES, _SIZE = 10, 8
_SMALL: Any = {"widths": (8, 8, 16, 16), "dense": 16, "image_size": _SIZE}
_NETWORKS: dict[str, Callable[[], nn.Module]] = {  # On which the theory is checked.
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
_SETTINGS = (
    "factor",
    "max_temperature",
    "reset_temperature",
    "refit",
    "period",
    "optimizer_state",
)
_UNUSED = {
    "none": _SETTINGS,
    "periodic": (),
}  # What means nothing in a mode; in the others the two temperatures.


def collect(params: Params, folder: Path) -> None:
    """Write records, tables, claims and metrics; a cell that the parameters declare and
    that is missing is an error.
    """
    trainings = train_cooling.results(params)

    def rows(name: str, *columns: str) -> pd.DataFrame:
        read = (
            (names_of(cell, RUN), training.json(f"{name}.json"))
            for cell, training in trainings.items()
        )
        return named_rows(read, [*RUN, *columns])

    scores = (
        "accuracy",
        "nll",
        "ece",
        "entropy",
        "loss",
        "weight_norm",
        "feature_norm",
    )
    coolings = rows("temperatures", "cooling", "epoch", "applied", "total", "at_bound")
    made = {
        "runs": pd.DataFrame(
            [
                names_of(cell, RUN) | _run(training)
                for cell, training in trainings.items()
            ]
        ),
        "experiments": pd.DataFrame(
            [
                _experiment(params, name, trainings)
                for name in params.cooling.experiments
            ]
        ),
        "arms": _arms(params),
        "history": rows("history", "epoch", "split", *scores),
        # With a period of one batch there are tens of thousands; the last of each epoch
        # shows how the temperature went.
        "temperatures": coolings.drop_duplicates([*RUN, "epoch"], keep="last"),
        "norms": rows("norms", "epoch", "logit_norm", "weight_norm", "gradient_norm"),
        "segmentation": segmentation_table(params),
        "theory_checks": theory_checks(_NETWORKS, classes=_CLASSES, size=_SIZE),
        "cost": cost_of_cooling(),
    }
    write_pixels(
        folder / "tables" / "segmentation.safetensors", segmentation_pixels(params)
    )
    write_results(
        folder,
        SLUG,
        params.profile,
        made=made,
        code=[*(stage.module for stage in STAGES), __name__],
    )


def _run(training: Artifact) -> dict[str, Any]:
    record, history = training.json("record.json"), training.json("history.json")
    learned = [row["accuracy"] for row in history if row["split"] == "train"]
    became = outcome(learned, record["classes"], is_finite=not record["diverged"])
    last = [
        row
        for row in history
        if row["epoch"] == record["epochs_done"] and not any(became.values())
    ]
    metrics = {
        f"{row['split']}_{name}": value for row in last for name, value in row.items()
    }
    shown = {
        name: metrics.get(name)
        for name in ("test_accuracy", "train_accuracy", "test_nll", "test_ece")
    }
    totals = [1.0, *(row["total"] for row in training.json("temperatures.json"))]
    return {
        **became,
        "epochs_done": record["epochs_done"],
        **shown,
        "temperature": totals[-1],
    }


def _experiment(
    params: Params, name: str, trainings: Mapping[str, Artifact]
) -> dict[str, Any]:
    about = params.cooling.experiments[name]
    first = trainings[f"{name}/{about.schedules[0]}/{about.arms[0]}/0"].json(
        "record.json"
    )
    row = {"experiment": name, "dataset": about.dataset, "network": about.network}
    row |= {
        "activation": params.networks[about.network].arguments.get("activation", "relu")
    }
    row |= {each: getattr(about, each) for each in ("role", "change", "printed_model")}
    row |= {each: first[each] for each in ("classes", "parameters")}
    row |= {f"{split}_images": count for split, count in first["images"].items()}
    return row | {each: first[each] for each in ("epochs", "planned_epochs")}


def _arms(params: Params) -> pd.DataFrame:
    used = {arm for about in params.cooling.experiments.values() for arm in about.arms}
    rows = []
    for name, arm in params.cooling.arms.items():
        unused = _UNUSED.get(arm.mode, ("max_temperature", "reset_temperature"))
        settings = {key: getattr(arm, key) for key in _SETTINGS if key not in unused}
        rows += (
            [{"arm": name, "mode": arm.mode, **settings, "loss": arm.loss}]
            if name in used
            else []
        )
    return pd.DataFrame(rows, columns=["arm", "mode", *_SETTINGS, "loss"])


def segmentation_table(params: Params) -> pd.DataFrame:
    """Scores by training and epoch; one that diverged ends with an empty row, for the
    epoch in which it did.
    """
    section, cells = params.cooling.segmentation, []
    for arm, seed in section.trainings() if section else ():
        record = train_segmentation.result(arm, seed).json("record.json")
        ended = (
            [{"epoch": record["epochs_done"] + 1, "mean_iou": np.nan}]
            if record["diverged"]
            else []
        )
        cells.append(({"arm": arm, "seed": seed}, [*record["history"], *ended]))
    table = named_rows(
        cells, ["arm", "seed", "epoch", "mean_iou", "pixel_accuracy", "temperature"]
    )
    return table.assign(
        **{name: getattr(section, name, None) for name in ("dataset", "classes")}
    )


def segmentation_pixels(params: Params) -> dict[str, NDArray[np.uint8]]:
    """`images` (panels, height, width, 3), `labels` and, by arm, predictions (panels,
    height, width).
    """
    section, pictures = params.cooling.segmentation, dict[str, NDArray[np.uint8]]()
    panels, arms = (section.panels, section.arms) if section else (0, ())
    for arm in arms if panels else ():
        stored = train_segmentation.result(arm, 0).tensors(PREDICTIONS)
        shown = {"images": "images", "labels": "labels", arm: "predicted"}
        pictures |= {
            name: stored[array][:panels].numpy() for name, array in shown.items()
        }
    return pictures


def cost_of_cooling(path: Path = BENCHMARKS) -> pd.DataFrame:
    """What `make bench` measured."""
    devices = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    rows = [
        step
        | {
            "device": device,
            "mode": mode,
            "seconds": step[f"{mode}_seconds"],
            "share": step[f"{mode}_share"],
        }
        for device, found in devices.items()
        if (step := found["results"].get("cooling_step"))
        for mode in COOLED
    ]
    return pd.DataFrame(
        rows,
        columns=[
            "device",
            "mode",
            "seconds",
            "epoch_seconds",
            "share",
            "rounds",
            "size",
        ],
    )

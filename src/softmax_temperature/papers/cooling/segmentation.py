"""The rows and pictures of the paper's segmentation experiment (section 4.4)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.stages.train_segmentation import ARMS, OUTPUT, trainings

COLUMNS = ("arm", "seed", "epoch", "mean_iou", "pixel_accuracy", "temperature")


def segmentation_table(params: Params) -> pd.DataFrame:
    """Scores of the test images, one row per declared training and epoch: COLUMNS, the data set, its classes.

    A training that diverged ends with a row whose numbers are empty, for the epoch in which it did.
    """
    section = params.cooling.segmentation
    rows: list[dict[str, Any]] = []
    for arm, seed in trainings(section):
        record = open_artifact(OUTPUT / f"{arm}/{seed}").json("record.json")
        rows += [{"arm": arm, "seed": seed, **row} for row in record["history"]]
        if record["diverged"]:
            rows.append({"arm": arm, "seed": seed, "epoch": record["epochs_done"] + 1, "mean_iou": math.nan})
    about = {"dataset": section.dataset if section else None, "classes": section.classes if section else None}
    return pd.DataFrame(rows, columns=list(COLUMNS)).assign(**about)


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
    for arm in ARMS:
        with np.load(open_artifact(OUTPUT / f"{arm}/0").path("predictions.npz"), allow_pickle=False) as file:
            pictures |= {name: file[name][: section.panels] for name in ("images", "labels")}
            pictures[arm] = file["predicted"][: section.panels]
    return pictures

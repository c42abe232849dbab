"""A few test images with what each training says about them (Figure H.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import Artifact, open_artifact
from softmax_temperature.runner.folders import PREPARED
from softmax_temperature.scaling import fit_temperature
from softmax_temperature.stages.evaluate_focal import REFERENCE
from softmax_temperature.stages.training_sets import image_set

COLUMNS = ("task", "arm", "seed", "scaling", "image", "label", "predicted", "confidence", "true_probability")


def choose_panels(
    params: Params, trainings: Mapping[str, Artifact]
) -> tuple[pd.DataFrame, dict[str, NDArray[np.uint8]]]:
    """Predictions on images that the reference arm, unscaled, is wrongly confident about, and on some that it knows.

    Half of the `focal.evaluation.panels` images of a task are its most confident mistakes, half its right predictions
    of the least confidence, both by the first seed.

    Args:
        params: declare the tasks.
        trainings: by the name of their cell.

    Returns:
        The rows of `panels.csv`, for the first seed of every main task; and by task the pixels
        (images, height, width, channels) in the order of the images' first appearance.
    """
    rows: list[dict[str, Any]] = []
    pixels: dict[str, NDArray[np.uint8]] = {}
    for task, about in params.focal.tasks.items():
        logits = {arm: _finished_logits(trainings[f"{task}/{arm}/0"]) for arm in params.focal.arms_of(task)}
        reference = logits.get(REFERENCE)
        if about.variant_of or about.text or not params.focal.evaluation.panels or reference is None:
            continue
        images = _telling_images(reference, params.focal.evaluation.panels)
        for arm, known in logits.items():
            names = {"task": task, "arm": arm, "seed": 0}
            rows += [{**names, **row} for row in (_predictions(known, images) if known else [])]
        test = image_set(open_artifact(PREPARED / about.dataset), "test", params.data.root)
        pixels[task] = test.inputs[images].permute(0, 2, 3, 1).numpy()
    return pd.DataFrame(rows, columns=list(COLUMNS)), pixels


def _finished_logits(training: Artifact) -> dict[str, Tensor] | None:
    return None if training.json("record.json")["diverged"] else training.tensors("logits.safetensors")


def _telling_images(logits: dict[str, Tensor], count: int) -> list[int]:
    confidences, predicted = torch.softmax(logits["test.logits"].double(), dim=1).max(1)
    right = predicted == logits["test.labels"]
    order = confidences.argsort(stable=True)
    mistakes, knowledge = order[~right[order]].flip(0), order[right[order]]
    half = min(count // 2, len(knowledge))
    return [*mistakes[: count - half].tolist(), *knowledge[:half].tolist()]


def _predictions(logits: dict[str, Tensor], images: list[int]) -> list[dict[str, Any]]:
    fit = fit_temperature(logits["validation.logits"], logits["validation.labels"], criterion="ece")
    rows = []
    for scaling, temperature in (("none", 1.0), ("ece", fit.temperature)):
        probs = torch.softmax(logits["test.logits"][images].double() / temperature, dim=1)
        for image, row in zip(images, probs, strict=True):
            label = int(logits["test.labels"][image])
            found = {"scaling": scaling, "image": image, "label": label, "predicted": int(row.argmax())}
            rows.append({**found, "confidence": float(row.max()), "true_probability": float(row[label])})
    return rows

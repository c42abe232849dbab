"""A few test images with what each training says about them (Figure H.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.runner.folders import PREPARED
from softmax_temperature.stages.evaluate_focal import REFERENCE
from softmax_temperature.stages.training_sets import image_set

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from softmax_temperature.params import Params
    from softmax_temperature.runner.artifacts import Artifact

COLUMNS = ("task", "arm", "seed", "scaling", "image", "label", "predicted", "confidence", "true_probability")


def choose_panels(params: Params, trainings: dict[str, Artifact]) -> tuple[pd.DataFrame, dict[str, NDArray[np.uint8]]]:
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
    for task, place in params.focal.tasks.items():
        reference = trainings.get(f"{task}/{REFERENCE}/0")
        if place.variant_of or place.text or not params.focal.evaluation.panels:
            continue
        if reference is None or _diverged(reference):
            continue
        images = _telling_images(_tensors(reference), params.focal.evaluation.panels)
        for arm in params.focal.arms_of(task):
            training = trainings[f"{task}/{arm}/0"]
            if not _diverged(training):
                rows += [
                    {"task": task, "arm": arm, "seed": 0, **row} for row in _predictions(_tensors(training), images)
                ]
        pixels[task] = _pixels(params, task, images)
    return pd.DataFrame(rows, columns=list(COLUMNS)), pixels


def _diverged(training: Artifact) -> bool:
    return bool(training.json("record.json")["diverged"])


def _tensors(training: Artifact) -> dict[str, Tensor]:
    return training.tensors("logits.safetensors")


def _telling_images(logits: dict[str, Tensor], count: int) -> list[int]:
    import torch

    confidences, predicted = torch.softmax(logits["test.logits"].double(), dim=1).max(1)
    right = predicted == logits["test.labels"]
    order = confidences.argsort(stable=True)
    mistakes, knowledge = order[~right[order]].flip(0), order[right[order]]
    half = min(count // 2, len(knowledge))
    return [*mistakes[: count - half].tolist(), *knowledge[:half].tolist()]


def _predictions(logits: dict[str, Tensor], images: list[int]) -> list[dict[str, Any]]:
    import torch

    from softmax_temperature.scaling import fit_temperature

    fit = fit_temperature(logits["validation.logits"], logits["validation.labels"], criterion="ece")
    rows = []
    for scaling, temperature in (("none", 1.0), ("ece", fit.temperature)):
        probs = torch.softmax(logits["test.logits"][images].double() / temperature, dim=1)
        for image, row in zip(images, probs, strict=True):
            label = int(logits["test.labels"][image])
            found = {"scaling": scaling, "image": image, "label": label, "predicted": int(row.argmax())}
            rows.append({**found, "confidence": float(row.max()), "true_probability": float(row[label])})
    return rows


def _pixels(params: Params, task: str, images: list[int]) -> NDArray[np.uint8]:
    prepared = open_artifact(PREPARED / params.focal.tasks[task].dataset)
    test = image_set(prepared, "test", params.data.root)
    return test.inputs[images].permute(0, 2, 3, 1).numpy()

"""The test images of Figure H.1, and the predictions of its models for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file

from softmax_temperature.data.logits import LOGITS
from softmax_temperature.papers.focal.study import (
    MAIN,
    QUALITATIVE_LOSSES,
    TEMPERATURE,
    any_of,
    at_selected_epoch,
)
from softmax_temperature.papers.shared.factors import where
from softmax_temperature.papers.shared.runs import CELL, Runs
from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import Artifact, ArtifactError, open_artifact
from softmax_temperature.stages.fetch import fetch
from softmax_temperature.training.prepared_sets import image_set

PIXELS = "panels.safetensors"
Pictures = dict[str, NDArray[np.uint8]]


def with_panels(runs: Runs, params: Params, pixels: Path) -> tuple[Runs, Pictures]:
    """Return `runs` with the predictions for the images of Figure H.1, and the images.

    There are `focal.evaluation.panels` images. The models are those of the first seed,
    one for each loss of the figure. Half of the images are the first test images that
    all these models classify correctly, and the other half are the first that all of
    them misclassify. This choice favours no loss.

    Args:
        runs: The runs, with the predictions that were recorded earlier.
        params: The parameters.
        pixels: The file with the pictures that were recorded earlier. If an
            experiment's runs are not on this machine, its recorded pictures are kept.

    Returns:
        The runs with their table `panels`, and the pictures by experiment.
    """
    half = params.focal.evaluation.panels // 2
    recorded = runs.tables["panels"]
    recorded_pictures: Pictures = load_file(pixels) if pixels.is_file() else {}
    parts = []
    pictures: Pictures = {}
    for name in _experiments(runs, params) if half else ():
        rows = _shown_runs(runs, name)
        try:
            trained = {
                run: open_artifact(Path("data") / cell)
                for run, cell in rows[CELL].items()
            }
        except ArtifactError:
            trained = {}
        if trained:
            images, predictions = _chosen(runs, rows, trained, half)
            parts.append(predictions)
            data = fetch.result(params.focal.tasks[name].dataset)
            test = image_set(data, "test", params.data.root)
            pictures[name] = test.inputs[images].permute(0, 2, 3, 1).numpy()
        elif name in recorded_pictures:
            parts.append(recorded[recorded["run"].isin(rows.index)])
            pictures[name] = recorded_pictures[name]
    panels = pd.concat(parts, ignore_index=True) if parts else recorded[:0]
    return replace(runs, tables={**runs.tables, "panels": panels}), pictures


def _experiments(runs: Runs, params: Params) -> Iterator[str]:
    """Yield the image experiments that have finished runs with Figure H.1's losses."""
    for name in MAIN.select(runs.table)["experiment"].unique():
        if params.focal.tasks[name].text is None and len(_shown_runs(runs, name)):
            yield name


def _shown_runs(runs: Runs, experiment: str) -> pd.DataFrame:
    """The finished runs of seed 0 with Figure H.1's losses, in the figure's order."""
    shown = MAIN & where(experiment=experiment, seed=0, diverged=False)
    rows = (shown & any_of(QUALITATIVE_LOSSES)).select(runs.table)
    return pd.concat([loss.select(rows) for loss in QUALITATIVE_LOSSES.values()])


def _chosen(
    runs: Runs, rows: pd.DataFrame, trained: dict[Any, Artifact], half: int
) -> tuple[list[int], pd.DataFrame]:
    """Choose an experiment's images, and compute each run's predictions for them.

    Returns:
        The indices of the images in the test split; and the predictions before and
        after scaling, with one row per run, scaling and image.
    """
    stored = {run: artifact.tensors(LOGITS) for run, artifact in trained.items()}
    labels = next(iter(stored.values()))["test.labels"]
    right = torch.stack(
        [tensors["test.logits"].argmax(1) == labels for tensors in stored.values()]
    )
    images = []
    for kind in (right, ~right):
        images += kind.all(0).nonzero().flatten()[:half].tolist()
    temperatures = at_selected_epoch(TEMPERATURE).of(runs, rows)
    predictions = []
    for (run, tensors), scaling in product(stored.items(), ("none", "ece")):
        temperature = temperatures[run] if scaling == "ece" else 1.0
        logits = tensors["test.logits"][images].double() / temperature
        probs = torch.softmax(logits, dim=1)
        for image, row in zip(images, probs, strict=True):
            label = int(labels[image])
            predicted = int(row.argmax())
            predictions.append(
                {
                    "run": run,
                    "scaling": scaling,
                    "image": image,
                    "label": label,
                    "predicted": predicted,
                    "confidence": float(row[predicted]),
                    "true_probability": float(row[label]),
                }
            )
    return images, pd.DataFrame(predictions)

"""The records of the linear model (appendix C), gathered from the cells of stage focal-linear."""

from __future__ import annotations

from typing import Any

import pandas as pd
from numpy.typing import NDArray
from torch import Tensor

from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.stages import focal_linear

DIGITS = 6  # After the point: far below what a figure shows, and half the size of the files.


def linear_tables(params: Params) -> dict[str, pd.DataFrame]:
    """The four tables of the declared cells, by the name of their file.

    linear_history: loss, seed, epoch (from 1), weight_norm, logit_norm (mean over test points).
    linear_mistakes: loss, seed, confidence; one row per misclassified test point, after the last epoch.
    linear_boundary: loss, seed, weight_0, weight_1, test_accuracy; after the last epoch. There is no bias.
    linear_points: x_0, x_1, label; the test points of seed 0, which all losses share.
    """
    history, mistakes, boundary = [], [], []
    points: dict[str, NDArray[Any]] = {}
    for cell in focal_linear.cells(params):
        artifact = open_artifact(focal_linear.OUTPUT / cell.name, kind="focal_linear")
        tensors = artifact.tensors(focal_linear.TENSORS)
        loss, _, seed = cell.name.rpartition("/")
        names = {"loss": loss, "seed": int(seed)}
        norms = {name: _rounded(tensors[name]) for name in ("weight_norm", "logit_norm")}
        history.append(pd.DataFrame({**names, "epoch": range(1, len(norms["weight_norm"]) + 1), **norms}))
        mistakes.append(pd.DataFrame({**names, "confidence": _rounded(tensors["misclassified_confidence"])}))
        weights = {f"weight_{place}": weight for place, weight in enumerate(_rounded(tensors["weights"]))}
        boundary.append({**names, **weights, "test_accuracy": artifact.json("record.json")["accuracy"]["test"]})
        if not points and seed == "0":
            x = _rounded(tensors["test_points"])
            points = {"x_0": x[:, 0], "x_1": x[:, 1], "label": tensors["test_labels"].numpy()}
    return {
        "linear_history": pd.concat(history, ignore_index=True),
        "linear_mistakes": pd.concat(mistakes, ignore_index=True),
        "linear_boundary": pd.DataFrame(boundary),
        "linear_points": pd.DataFrame(points),
    }


def _rounded(tensor: Tensor) -> NDArray[Any]:
    return tensor.double().round(decimals=DIGITS).numpy()

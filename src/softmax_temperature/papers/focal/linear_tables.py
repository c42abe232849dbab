"""The tables of the linear model (appendix C), gathered from the cells of stage focal-linear."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.stages import focal_linear

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from softmax_temperature.params import Params

DIGITS = 6  # After the point: far below what a figure shows, and half the size of the files.


class _Run(NamedTuple):
    loss: str
    seed: int
    tensors: dict[str, Tensor]
    record: dict[str, Any]


def linear_tables(params: Params) -> dict[str, pd.DataFrame]:
    """The four tables, by the name of their file.

    linear_history: loss, seed, epoch (from 1), weight_norm, logit_norm (mean over test points).
    linear_mistakes: loss, seed, confidence; a row for each misclassified test point, after the last epoch.
    linear_boundary: loss, seed, weight_0, weight_1, test_accuracy; after the last epoch. There is no bias.
    linear_points: x_0, x_1, label; the test points of seed 0, which all losses share.

    Args:
        params: declare which cells are read; a missing one is an error, another one is not read.
    """
    runs = [_read(cell.name) for cell in focal_linear.cells(params)]
    first = next(run for run in runs if run.seed == 0)
    return {
        "linear_history": pd.concat([_history(run) for run in runs], ignore_index=True),
        "linear_mistakes": pd.concat([_mistakes(run) for run in runs], ignore_index=True),
        "linear_boundary": pd.DataFrame([_boundary(run) for run in runs]),
        "linear_points": _points(first),
    }


def _read(name: str) -> _Run:
    artifact = open_artifact(focal_linear.OUTPUT / name, kind="focal_linear")
    loss, _, seed = name.rpartition("/")
    return _Run(loss, int(seed), artifact.tensors(focal_linear.TENSORS), artifact.json("record.json"))


def _history(run: _Run) -> pd.DataFrame:
    weight_norm, logit_norm = (_rounded(run.tensors[name]) for name in ("weight_norm", "logit_norm"))
    epochs = range(1, len(weight_norm) + 1)
    columns = {"epoch": epochs, "weight_norm": weight_norm, "logit_norm": logit_norm}
    return pd.DataFrame({"loss": run.loss, "seed": run.seed, **columns})


def _mistakes(run: _Run) -> pd.DataFrame:
    confidence = _rounded(run.tensors["misclassified_confidence"])
    return pd.DataFrame({"loss": run.loss, "seed": run.seed, "confidence": confidence})


def _boundary(run: _Run) -> dict[str, Any]:
    weight_0, weight_1 = _rounded(run.tensors["weights"])
    accuracy = run.record["accuracy"]["test"]
    return {"loss": run.loss, "seed": run.seed, "weight_0": weight_0, "weight_1": weight_1, "test_accuracy": accuracy}


def _points(run: _Run) -> pd.DataFrame:
    points = _rounded(run.tensors["test_points"])
    return pd.DataFrame({"x_0": points[:, 0], "x_1": points[:, 1], "label": run.tensors["test_labels"].numpy()})


def _rounded(tensor: Tensor) -> NDArray[Any]:
    return tensor.double().round(decimals=DIGITS).numpy()

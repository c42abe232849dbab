"""Stage focal-linear: the focal paper's linear model, trained with cross-entropy and focal loss (appendix C)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.cells import Cell, Job, seed_of

if TYPE_CHECKING:
    from softmax_temperature.params import Params

OUTPUT = Path("data/focal/linear")
TENSORS = "linear.safetensors"


def cells(params: Params) -> list[Cell]:
    """One cell per loss and seed; the losses of one seed see the same data, so differences are paired."""
    linear = params.focal.linear
    shared = linear.model_dump(include={"train", "test", "epochs", "lr"})
    return [
        Cell(f"{name}/{seed}", run, {"gamma": gamma, "data_seed": _data_seed(params.seed, seed), **shared})
        for name, gamma in linear.gammas.items()
        for seed in range(linear.seeds)
    ]


def _data_seed(project: int, seed: int) -> int:
    return seed_of(project, "focal", "linear", str(seed))


def run(job: Job, *, gamma: float, data_seed: int, train: int, test: int, epochs: int, lr: float) -> None:
    """Train one loss on one draw of the data.

    Writes `linear.safetensors`: weight_norm and logit_norm (epochs,), the latter a mean over the test points; weights
    (2,) and misclassified_confidence (m,) at the end; test_points (test, 2) and test_labels (test,). Beside it
    `record.json`, the gamma and the accuracies at the end.
    """
    from safetensors.torch import save_file  # torch, which `--help` must not wait for

    from softmax_temperature.training.linear_model import (
        make_data,
        mean_logit_norms,
        misclassified_confidences,
        train_logistic,
    )

    fitted, held_out = make_data(train, test, seed=data_seed)
    # On the CPU wherever the others run: a step is four thousand products of pairs.
    path = train_logistic(*fitted.for_fitting(), gamma, epochs=epochs, lr=lr)
    points, labels = held_out.for_evaluation()
    weights = path[-1].clone()
    mistakes = misclassified_confidences(points, labels, weights)
    tensors = {
        "weight_norm": path.norm(dim=1),
        "logit_norm": mean_logit_norms(points, path),
        "weights": weights,
        "misclassified_confidence": mistakes,
        "test_points": points.contiguous(),
        "test_labels": labels.contiguous(),
    }
    save_file(tensors, job.output / TENSORS)
    missed = len(misclassified_confidences(*fitted.for_evaluation(), weights))
    accuracy = {"train": 1 - missed / train, "test": 1 - len(mistakes) / test}
    write_json(job.output / "record.json", {"gamma": gamma, "accuracy": accuracy})

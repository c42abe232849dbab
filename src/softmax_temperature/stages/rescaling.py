"""Stage rescaling: Figure 2, plain against rescaled cross-entropy, with SGD and with Adam."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.runner.folders import EMBEDDINGS

if TYPE_CHECKING:
    from softmax_temperature.params import Params

OUTPUT = Path("data/classifier_temperature/rescaling")
OPTIMIZERS = ("sgd", "adam")
LOSSES = ("plain", "rescaled")


def cells(params: Params) -> list[Cell]:
    """One cell per optimizer and loss; the repeats of a cell train side by side."""
    paper, figure = params.classifier_temperature, params.classifier_temperature.rescaling
    if not paper.rebuild:
        return []
    rates = {"sgd": figure.sgd_lr, "adam": figure.adam_lr}
    shared = {
        "inverse_temperatures": paper.search.inverse_temperatures,
        # One seed for the four arms: repeat i starts from the same weights in each, so differences are paired.
        "seed": params.seed,
        **figure.model_dump(include={"epochs", "batch_size", "momentum", "repeats", "precision"}),
    }
    inputs = {"embeddings": EMBEDDINGS / figure.dataset / figure.backbone}
    return [
        Cell(
            f"{optimizer}-{loss}", run, {"optimizer": optimizer, "loss": loss, "lr": rates[optimizer], **shared}, inputs
        )
        for optimizer in OPTIMIZERS
        for loss in LOSSES
    ]


def run(
    job: Job,
    *,
    optimizer: str,
    loss: str,
    lr: float,
    inverse_temperatures: list[float],
    seed: int,
    epochs: int,
    batch_size: int,
    momentum: float,
    repeats: int,
    precision: str,
) -> None:
    """Train one arm; writes `curves.safetensors`, test accuracy (repeats, temperatures, epochs), and `record.json`."""
    from safetensors.torch import save_file  # torch, which `--help` must not wait for

    from softmax_temperature.cosine_classifier import TemperatureGridTrainer
    from softmax_temperature.networks.embeddings import open_embeddings
    from softmax_temperature.stages.grid_training import train_with_curves

    parts = open_embeddings(job.inputs["embeddings"])
    test = parts["test"].for_evaluation()
    trainer = TemperatureGridTrainer(
        parts["train"].for_fitting(),
        inverse_temperatures,
        batch_size=batch_size,
        lr=lr,
        momentum=momentum,
        rescale=loss == "rescaled",
        optimizer=optimizer,
        repeats=repeats,
        seed=seed,
        device=job.device,
        precision=precision,
    )
    curves = train_with_curves(job, trainer, {"test": test}, epochs)
    save_file(curves, job.output / "curves.safetensors")
    record = {"optimizer": optimizer, "loss": loss, "inverse_temperatures": inverse_temperatures, "rows": len(test[1])}
    write_json(job.output / "record.json", record)

"""Stages describe, search and rescaling: what is measured on the embedded data sets
(classifier_temperature paper).
"""

from collections.abc import Iterator, Sequence
from itertools import product
from math import ceil
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from softmax_temperature import dataset_statistics
from softmax_temperature.cosine_classifier import TemperatureGridTrainer
from softmax_temperature.data.splits import Part, SplitName
from softmax_temperature.networks.embeddings import open_embeddings
from softmax_temperature.params import Params
from softmax_temperature.params.classifier_temperature import GridTraining, Share
from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.runner.machine import resolve_precision
from softmax_temperature.stages import (
    EMBEDDINGS,
    part_of,
    stage,
)

PAPER = "classifier_temperature"


@stage
def describe(params: Params) -> Iterator[Cell]:
    """One cell per data set and backbone."""
    for data, backbone in params.embedded_pairs():
        yield Cell(
            f"{data}/{backbone}",
            _describe,
            {},
            {"embeddings": EMBEDDINGS / data / backbone},
        )


def _describe(job: Job) -> None:
    """Write the 23 statistics of the training split."""
    embeddings, labels = open_embeddings(job.inputs["embeddings"])[
        "train"
    ].for_fitting()
    write_json(
        job.output / "statistics.json",
        dataset_statistics.describe(embeddings, labels, seed=job.seed),
    )


@stage
def search(params: Params) -> Iterator[Cell]:
    """One cell per data set and backbone: every inverse temperature of the grid at once
    (section 4.3).
    """
    # `select_on` decides what is read from the curves later, not how they are made.
    plan = {"grid": part_of(params.classifier_temperature.search, GridTraining)}
    for data, backbone in params.embedded_pairs():
        yield Cell(
            f"{data}/{backbone}",
            _search,
            plan,
            {"embeddings": EMBEDDINGS / data / backbone},
            gpu_share=1.0,
        )


def _search(job: Job, *, grid: GridTraining) -> None:
    """Write `record.json`, the grid and the rows of each split, and
    `curves.safetensors` (see `train_with_curves`).
    """
    parts = open_embeddings(job.inputs["embeddings"])
    curves = train_with_curves(job, grid, parts, ("test", "validation"), seed=job.seed)
    save_file(curves, job.output / "curves.safetensors")
    rows = {
        split: len(parts[split].labels) for split in ("train", "test", "validation")
    }
    write_json(
        job.output / "record.json",
        {"rows": rows, "inverse_temperatures": grid.inverse_temperatures},
    )


@stage
def rescaling(params: Params) -> Iterator[Cell]:
    """Figure 2: one cell per optimizer and loss; the repeats of a cell train side by
    side.
    """
    paper, figure = (
        params.classifier_temperature,
        params.classifier_temperature.rescaling,
    )
    shared = figure.model_dump(
        include={"epochs", "batch_size", "momentum", "repeats", "precision"}
    )
    shared["inverse_temperatures"] = paper.search.inverse_temperatures
    inputs = {"embeddings": EMBEDDINGS / figure.dataset / figure.backbone}
    for (optimizer, lr), loss in product(
        (("sgd", figure.sgd_lr), ("adam", figure.adam_lr)), ("plain", "rescaled")
    ):
        # One seed for the four arms: repeat i starts from the same weights in each, so
        # differences are paired.
        plan = {
            "optimizer": optimizer,
            "loss": loss,
            "grid": GridTraining(lr=lr, **shared),
            "seed": params.seed,
        }
        yield Cell(f"{optimizer}-{loss}", _rescaling, plan, inputs, gpu_share=1.0)


def _rescaling(
    job: Job, *, optimizer: str, loss: str, grid: GridTraining, seed: int
) -> None:
    """Train one arm; writes `curves.safetensors`, test accuracy (repeats, temperatures,
    epochs), and `record.json`.
    """
    parts = open_embeddings(job.inputs["embeddings"])
    arm = {"optimizer": optimizer, "rescale": loss == "rescaled", "seed": seed}
    curves = train_with_curves(job, grid, parts, ("test",), **arm)
    save_file(curves, job.output / "curves.safetensors")
    record = {
        "optimizer": optimizer,
        "loss": loss,
        "inverse_temperatures": grid.inverse_temperatures,
    }
    write_json(
        job.output / "record.json", {**record, "rows": len(parts["test"].labels)}
    )


def batch_of(size: int | Share, rows: int) -> int:
    """How many of so many training rows a batch has."""
    return max(size.least, ceil(size.share * rows)) if isinstance(size, Share) else size


def train_with_curves(
    job: Job,
    grid: GridTraining,
    parts: dict[SplitName, Part],
    splits: Sequence[SplitName],
    **settings: Any,
) -> dict[str, Tensor]:
    """By split, the accuracies (repeats, temperatures, epochs) float32 of cosine
    classifiers after each epoch.

    `settings` are other arguments of `TemperatureGridTrainer`.
    """
    train = parts["train"].for_fitting()
    how = settings | grid.model_dump(exclude={"inverse_temperatures", "epochs"})
    how |= {"precision": resolve_precision(grid.precision, job.device)}
    how |= {"batch_size": batch_of(grid.batch_size, len(train[0]))}
    trainer = TemperatureGridTrainer(
        train, grid.inverse_temperatures, **how, device=job.device
    )
    checkpointer = job.checkpointer()
    # One block for all epochs: many small tensors between large ones that come and go
    # would fragment the heap.
    curves = {
        str(split): torch.zeros(
            grid.repeats, len(grid.inverse_temperatures), grid.epochs
        )
        for split in splits
    }
    if (state := checkpointer.load()) is not None:
        trainer.load_state_dict(state["trainer"])
        curves = state["curves"]
    samples = {
        split: trainer.prepare_test(*parts[split].for_evaluation()) for split in splits
    }
    for epoch in range(trainer.completed_epochs, grid.epochs):
        trainer.epoch()
        for split in splits:
            curves[split][..., epoch] = trainer.evaluate(samples[split])
        checkpointer.save_if_due(
            lambda: {"trainer": trainer.state_dict(), "curves": curves}
        )
        job.progress(epoch + 1, grid.epochs)
    return curves

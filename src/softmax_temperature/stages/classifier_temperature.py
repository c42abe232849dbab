"""The stages `describe`, `search` and `rescaling`: measurements on embedded data.

Source: the classifier_temperature paper.
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
from softmax_temperature.runner.machine import denormals_as_zero, resolve_precision
from softmax_temperature.stages import (
    EMBEDDINGS,
    part_of,
    stage,
)

PAPER = "classifier_temperature"


@stage
def describe(params: Params) -> Iterator[Cell]:
    """Yield one cell per data set and backbone."""
    for data, backbone in params.embedded_pairs():
        inputs = {"embeddings": EMBEDDINGS / data / backbone}
        yield Cell(f"{data}/{backbone}", _describe, {}, inputs)


def _describe(job: Job) -> None:
    """Write the 23 statistics of the training split's embeddings."""
    parts = open_embeddings(job.inputs["embeddings"])
    embeddings, labels = parts["train"].for_fitting()
    statistics = dataset_statistics.describe(embeddings, labels, seed=job.seed)
    write_json(job.output / "statistics.json", statistics)


@stage
def search(params: Params) -> Iterator[Cell]:
    """Yield one cell per data set and backbone.

    Each cell covers the whole grid of inverse temperatures (section 4.3).
    """
    # The plan leaves out `select_on`, which affects how the curves are read later, not
    # how they are computed.
    plan = {"grid": part_of(params.classifier_temperature.search, GridTraining)}
    for data, backbone in params.embedded_pairs():
        inputs = {"embeddings": EMBEDDINGS / data / backbone}
        yield Cell(f"{data}/{backbone}", _search, plan, inputs, gpu_share=1.0)


def _search(job: Job, *, grid: GridTraining) -> None:
    """Write the grid, the number of rows of each split, and the curves.

    The files are `record.json` and `curves.safetensors` (see `train_with_curves`).
    """
    parts = open_embeddings(job.inputs["embeddings"])
    curves = train_with_curves(job, grid, parts, ("test", "validation"), seed=job.seed)
    save_file(curves, job.output / "curves.safetensors")
    rows = {split: len(part.labels) for split, part in parts.items()}
    record = {"rows": rows, "inverse_temperatures": grid.inverse_temperatures}
    write_json(job.output / "record.json", record)


@stage
def rescaling(params: Params) -> Iterator[Cell]:
    """Yield one cell per optimizer and loss of Figure 2.

    Each cell trains all repeats.
    """
    paper = params.classifier_temperature
    figure = paper.rescaling
    inputs = {"embeddings": EMBEDDINGS / figure.dataset / figure.backbone}
    if (figure.dataset, figure.backbone) not in params.embedded_pairs():
        return  # The pair's data or weights are missing.
    rates = {"sgd": figure.sgd_lr, "adam": figure.adam_lr}
    for optimizer, loss in product(rates, ("plain", "rescaled")):
        grid = GridTraining(
            lr=rates[optimizer],
            epochs=figure.epochs,
            batch_size=figure.batch_size,
            momentum=figure.momentum,
            repeats=figure.repeats,
            precision=figure.precision,
            inverse_temperatures=paper.search.inverse_temperatures,
        )
        # All four arms have the same seed: repeat i starts from the same weights in
        # each arm, so that differences between arms are paired.
        plan = {
            "optimizer": optimizer,
            "loss": loss,
            "grid": grid,
            "seed": params.seed,
        }
        yield Cell(f"{optimizer}-{loss}", _rescaling, plan, inputs, gpu_share=1.0)


def _rescaling(
    job: Job, *, optimizer: str, loss: str, grid: GridTraining, seed: int
) -> None:
    """Train one arm, and write `record.json` and the test accuracy after each epoch.

    `curves.safetensors` holds the accuracies, shape (repeats, temperatures, epochs).
    """
    parts = open_embeddings(job.inputs["embeddings"])
    rescale = loss == "rescaled"
    curves = train_with_curves(
        job, grid, parts, ("test",), optimizer=optimizer, rescale=rescale, seed=seed
    )
    save_file(curves, job.output / "curves.safetensors")
    record = {
        "optimizer": optimizer,
        "loss": loss,
        "inverse_temperatures": grid.inverse_temperatures,
        "rows": len(parts["test"].labels),
    }
    write_json(job.output / "record.json", record)


def batch_of(size: int | Share, rows: int) -> int:
    """The batch size for `rows` training rows."""
    if isinstance(size, Share):
        return max(size.least, ceil(size.share * rows))
    return size


@denormals_as_zero()
def train_with_curves(
    job: Job,
    grid: GridTraining,
    parts: dict[SplitName, Part],
    splits: Sequence[SplitName],
    **settings: Any,
) -> dict[str, Tensor]:
    """Train cosine classifiers, and return each epoch's accuracies, keyed by split.

    The accuracies are float32 and have the shape (repeats, temperatures, epochs).
    `settings` are further arguments of `TemperatureGridTrainer`.
    """
    embeddings, labels = parts["train"].for_fitting()
    settings |= grid.model_dump(exclude={"inverse_temperatures", "epochs"})
    settings["precision"] = resolve_precision(grid.precision, job.device)
    settings["batch_size"] = batch_of(grid.batch_size, len(embeddings))
    trainer = TemperatureGridTrainer(
        (embeddings, labels), grid.inverse_temperatures, **settings, device=job.device
    )
    checkpointer = job.checkpointer()
    # Allocate one block for all epochs, because many small tensors between large
    # temporaries would fragment the heap.
    shape = (grid.repeats, len(grid.inverse_temperatures), grid.epochs)
    curves = {str(split): torch.zeros(shape) for split in splits}

    def restore(state: dict[str, Any]) -> None:
        trainer.load_state_dict(state["trainer"])
        curves.update(state["curves"])

    checkpointer.resume(restore)
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

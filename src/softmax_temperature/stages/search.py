"""Stage search: every inverse temperature of the grid trained at once, for each embedded data set (section 4.3)."""

from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from softmax_temperature.cosine_classifier import TemperatureGridTrainer
from softmax_temperature.data.splits import Part, SplitName
from softmax_temperature.networks.embeddings import open_embeddings
from softmax_temperature.params import Params
from softmax_temperature.params.classifier_temperature import GridTraining, Share
from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.runner.folders import EMBEDDINGS
from softmax_temperature.runner.machine import resolve_precision

PAPER = "classifier_temperature"
OUTPUT = Path("data/classifier_temperature/search")


def cells(params: Params) -> list[Cell]:
    """One cell per data set and backbone."""
    # `select_on` decides what is read from the curves later, not how they are made.
    grid = GridTraining(**params.classifier_temperature.search.model_dump(exclude={"select_on"}))
    names = (f"{dataset}/{backbone}" for dataset, backbone in params.embedded_pairs())
    return [Cell(name, run, grid, {"embeddings": EMBEDDINGS / name}, gpu_share=1.0) for name in names]


def run(job: Job, grid: GridTraining) -> None:
    """Write `record.json`, the grid and the rows of each split, and `curves.safetensors` (see `train_with_curves`)."""
    parts = open_embeddings(job.inputs["embeddings"])
    curves = train_with_curves(job, grid, parts, ("test", "validation"), seed=job.seed)
    save_file(curves, job.output / "curves.safetensors")
    rows = {split: len(parts[split].labels) for split in ("train", "test", "validation")}
    write_json(job.output / "record.json", {"rows": rows, "inverse_temperatures": grid.inverse_temperatures})


def batch_of(size: int | Share, rows: int) -> int:
    """How many of so many training rows a batch has."""
    return max(size.least, ceil(size.share * rows)) if isinstance(size, Share) else size


def train_with_curves(
    job: Job, grid: GridTraining, parts: dict[SplitName, Part], splits: Sequence[SplitName], **settings: Any
) -> dict[str, Tensor]:
    """Train cosine classifiers with each inverse temperature, and measure their accuracies after each epoch.

    `settings` are other arguments of `TemperatureGridTrainer`. Returns (repeats, temperatures, epochs) float32 for each
    of `splits`. An interrupted training resumes from its last checkpoint, and gives the same bits on a CPU.
    """
    how = grid.model_dump(exclude={"inverse_temperatures", "epochs"})
    train = parts["train"].for_fitting()
    precision, batch = resolve_precision(grid.precision, job.device), batch_of(grid.batch_size, len(train[0]))
    how |= {"precision": precision, "batch_size": batch}
    trainer = TemperatureGridTrainer(train, grid.inverse_temperatures, **how, **settings, device=job.device)
    checkpointer = job.checkpointer()
    # One block for all epochs: many small tensors between large ones that come and go would fragment the heap.
    curves = {str(split): torch.zeros(grid.repeats, len(grid.inverse_temperatures), grid.epochs) for split in splits}
    if (state := checkpointer.load()) is not None:
        trainer.load_state_dict(state["trainer"])
        curves = state["curves"]
    samples = {split: trainer.prepare_test(*parts[split].for_evaluation()) for split in splits}
    for epoch in range(trainer.completed_epochs, grid.epochs):
        trainer.epoch()
        for split in splits:
            curves[split][..., epoch] = trainer.evaluate(samples[split])
        checkpointer.save_if_due(lambda: {"trainer": trainer.state_dict(), "curves": curves})
        job.progress(epoch + 1, grid.epochs)
    return curves

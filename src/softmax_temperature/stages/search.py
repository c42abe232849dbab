"""Stage search: every inverse temperature of the grid trained at once, for each embedded data set (section 4.3)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.runner.folders import EMBEDDINGS

if TYPE_CHECKING:
    from softmax_temperature.params import Params

OUTPUT = Path("data/classifier_temperature/search")


def cells(params: Params) -> list[Cell]:
    """One cell per data set and backbone."""
    paper = params.classifier_temperature
    # `select_on` decides what is read from the curves later, not how they are made.
    parameters = paper.search.model_dump(exclude={"select_on"})
    return [
        Cell(f"{dataset}/{backbone}", run, parameters, {"embeddings": EMBEDDINGS / dataset / backbone})
        for dataset in paper.datasets
        for backbone in paper.backbones
    ]


def run(
    job: Job,
    *,
    inverse_temperatures: list[float],
    epochs: int,
    batch_size: int,
    lr: float,
    momentum: float,
    repeats: int,
    precision: str,
) -> None:
    """Search one embedded data set.

    Writes `curves.safetensors`, accuracy (repeats, temperatures, epochs) on the splits "test" and "validation", and
    `record.json`, what was trained on how many rows.
    """
    from safetensors.torch import save_file  # torch, which `--help` must not wait for

    from softmax_temperature.cosine_classifier import TemperatureGridTrainer
    from softmax_temperature.networks.embeddings import open_embeddings
    from softmax_temperature.stages.grid_training import train_with_curves

    parts = open_embeddings(job.inputs["embeddings"])
    train = parts["train"].for_fitting()
    evaluations = {name: parts[name].for_evaluation() for name in ("test", "validation")}
    trainer = TemperatureGridTrainer(
        train,
        inverse_temperatures,
        batch_size=batch_size,
        lr=lr,
        momentum=momentum,
        repeats=repeats,
        seed=job.seed,
        device=job.device,
        precision=precision,
    )
    curves = train_with_curves(job, trainer, evaluations, epochs)
    save_file(curves, job.output / "curves.safetensors")
    record: dict[str, Any] = {name: len(labels) for name, (_, labels) in {"train": train, **evaluations}.items()}
    write_json(job.output / "record.json", {"rows": record, "inverse_temperatures": inverse_temperatures})

"""Stage rescaling: Figure 2, plain against rescaled cross-entropy, with SGD and with Adam."""

from itertools import product
from pathlib import Path
from typing import Literal

from safetensors.torch import save_file

from softmax_temperature.networks.embeddings import open_embeddings
from softmax_temperature.params import Params
from softmax_temperature.params.classifier_temperature import GridTraining
from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.runner.folders import EMBEDDINGS
from softmax_temperature.stages.search import train_with_curves

PAPER = "classifier_temperature"
OUTPUT = Path("data/classifier_temperature/rescaling")


class RescalingCell(GridTraining):
    """What a cell is given."""

    optimizer: Literal["sgd", "adam"]
    loss: Literal["plain", "rescaled"]
    seed: int


def cells(params: Params) -> list[Cell]:
    """One cell per optimizer and loss; the repeats of a cell train side by side."""
    paper, figure = params.classifier_temperature, params.classifier_temperature.rescaling
    shared = figure.model_dump(include={"epochs", "batch_size", "momentum", "repeats", "precision"})
    # One seed for the four arms: repeat i starts from the same weights in each, so differences are paired.
    shared |= {"inverse_temperatures": paper.search.inverse_temperatures, "seed": params.seed}
    inputs, found = {"embeddings": EMBEDDINGS / figure.dataset / figure.backbone}, []
    for (optimizer, lr), loss in product((("sgd", figure.sgd_lr), ("adam", figure.adam_lr)), ("plain", "rescaled")):
        plan = RescalingCell.model_validate({"optimizer": optimizer, "loss": loss, "lr": lr, **shared})
        found.append(Cell(f"{optimizer}-{loss}", run, plan, inputs, gpu_share=1.0))
    return found


def run(job: Job, plan: RescalingCell) -> None:
    """Train one arm; writes `curves.safetensors`, test accuracy (repeats, temperatures, epochs), and `record.json`."""
    parts = open_embeddings(job.inputs["embeddings"])
    grid = GridTraining(**plan.model_dump(include=set(GridTraining.model_fields)))
    arm = {"optimizer": plan.optimizer, "rescale": plan.loss == "rescaled", "seed": plan.seed}
    save_file(train_with_curves(job, grid, parts, ("test",), **arm), job.output / "curves.safetensors")
    record = plan.model_dump(include={"optimizer", "loss", "inverse_temperatures"})
    write_json(job.output / "record.json", {**record, "rows": len(parts["test"].labels)})

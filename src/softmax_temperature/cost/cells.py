"""What a cell costs: operations, calls of operators, memory of a GPU and disk, by the stage that it belongs to."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from softmax_temperature.cost.data_sizes import data_size
from softmax_temperature.cost.networks import embedding_cost, image_network_cost, state_bytes
from softmax_temperature.data.catalogue import CATALOGUE
from softmax_temperature.params.network import Network
from softmax_temperature.params.recipe import Recipe

if TYPE_CHECKING:
    from softmax_temperature.cost.data_sizes import DataSize
    from softmax_temperature.cost.networks import NetworkCost
    from softmax_temperature.cost.rates import Work
    from softmax_temperature.params import Params
    from softmax_temperature.runner.cells import Cell

FLOAT, ROW = 4, 16  # Bytes of a number, and of a label and a row's number.
INDEX_LINE = 110  # Bytes: a digest and a path.
HISTORY_ROW = 450  # Bytes of a row of JSON, one for each epoch and split.
RECORDS = 3_000  # Bytes of the manifest and of what is said of a training as a whole.
EVALUATION_BATCH = 500
OPTIMIZER_CALLS = 15  # Of its fused steps over all parameters, whatever the network.
GRID_CALLS = 20  # Of a step of the temperature grid.


@dataclass(frozen=True)
class CellCost:
    """What one cell costs.

    Attributes:
        operations: floating-point; None where they are not modelled.
        calls: of operators.
        precision: of most operations.
        gpu_bytes: at most at a time; None where not modelled.
        disk_bytes: of its artifact.
        work: what the operations are.
        kept_bytes: of all samples between their forward and backward passes, in float32.
    """

    operations: float | None
    calls: float
    precision: str
    gpu_bytes: int | None
    disk_bytes: int
    work: Work = "network"
    kept_bytes: float = 0


def cell_cost(stage: str, cell: Cell, params: Params) -> CellCost | None:
    """What a cell costs; None for a stage that is not modelled, or a data set of unknown size.

    Args:
        stage: its module below `softmax_temperature.stages`.
        cell: one of its cells.
        params: all parameters.
    """
    cost = _COSTS.get(stage)
    return cost(cell, params) if cost else None


def _fetch(cell: Cell, params: Params) -> CellCost | None:
    size, source = data_size(cell.parameters["dataset"], params), CATALOGUE.get(cell.parameters["source"])
    if size is None or (source and source.texts):
        return None
    each = INDEX_LINE if size.side is None else size.channels * size.side**2
    return CellCost(None, 0, "float32", None, size.samples * (each + ROW))


def _embed(cell: Cell, params: Params) -> CellCost | None:
    size, given = data_size(cell.inputs["images"].name, params), cell.parameters
    if size is None:
        return None
    backbone = params.backbones[given["backbone"]]
    operations, calls = embedding_cost(backbone)
    batches = math.ceil(size.samples / given["batch_size"])
    disk = size.samples * (backbone.embedding * FLOAT + ROW)
    return CellCost(size.samples * operations, batches * calls, given["precision"], None, disk)


def _grid(cell: Cell, params: Params) -> CellCost | None:
    place, given = cell.inputs["embeddings"], cell.parameters
    size = data_size(place.parent.name, params)
    if size is None:
        return None
    problems = given["repeats"] * len(given["inverse_temperatures"])
    weights = params.backbones[place.name].embedding * size.classes * problems
    splits = 2 if "optimizer" not in given else 1  # The search looks at validation data too.
    evaluated = size.test + size.validation * (splits - 1)
    steps = math.ceil(size.train / given["batch_size"])
    # Logits, and the gradient of the weights; none is needed of the embeddings.
    operations = given["epochs"] * weights * (4 * size.train + 2 * evaluated)
    memory = FLOAT * (3 * weights + size.samples * params.backbones[place.name].embedding)
    disk = FLOAT * problems * given["epochs"] * splits
    return CellCost(operations, given["epochs"] * steps * GRID_CALLS, given["precision"], memory, disk, "product")


def _training(
    cell: Cell,
    params: Params,
    *,
    data: str,
    watched: int,
    keeps_weights: bool,
    keeps_logits: bool,
    every: int = 1,
    frozen: bool = False,
) -> CellCost | None:
    """A training by `training.Trainer`.

    Args:
        cell: with `network` and `recipe` among its parameters.
        params: all parameters.
        data: the name of the input that is trained on.
        watched: training samples that are evaluated with validation and test.
        keeps_weights: whether the artifact has them.
        keeps_logits: whether it has logits of all that is not trained on.
        every: epochs from one evaluation to the next.
        frozen: whether each sample passes through a second network that is not trained.
    """
    size = data_size(cell.inputs[data].name, params)
    if size is None:
        return None
    spec, recipe = Network.model_validate(cell.parameters["network"]), Recipe.model_validate(cell.parameters["recipe"])
    disk = RECORDS + 3 * recipe.epochs * HISTORY_ROW // every
    disk += state_bytes(spec, classes=size.classes) * keeps_weights
    seen = [data_size(path.name, params) for name, path in cell.inputs.items() if name != data]
    rows = size.validation + size.test + sum(each.test for each in seen if each)
    disk += rows * (size.classes * FLOAT + ROW) * keeps_logits
    if size.side is None:
        return CellCost(None, 0, recipe.precision, None, disk)
    network = image_network_cost(spec, classes=size.classes, side=size.side)
    evaluated = (watched + size.validation + size.test) // every  # In an epoch, on average.
    return _image_training(network, recipe, size, evaluated, frozen=frozen, disk=disk)


def _image_training(
    network: NetworkCost, recipe: Recipe, size: DataSize, evaluated: int, *, frozen: bool, disk: int
) -> CellCost:
    assert size.side is not None, "the caller has looked"
    batch = min(recipe.batch_size, size.train)
    steps, batches = size.train // batch, math.ceil(evaluated / EVALUATION_BATCH)
    forward_calls = network.calls / 3
    operations = steps * batch * (network.training + frozen * network.forward) + evaluated * network.forward
    calls = steps * (network.calls + frozen * forward_calls + OPTIMIZER_CALLS) + batches * forward_calls
    return CellCost(
        recipe.epochs * operations,
        recipe.epochs * calls,
        recipe.precision,
        training_bytes(network, recipe, images=size.train, side=size.side),
        disk,
        kept_bytes=recipe.epochs * steps * batch * network.kept_bytes,
    )


def training_bytes(network: NetworkCost, recipe: Recipe, *, images: int, side: int) -> int:
    """The memory that a training needs at a time: its numbers, what a batch keeps, and the images.

    Args:
        network: what is trained.
        recipe: how.
        images: to train on; they stay on the device.
        side: pixels.
    """
    moments = 2 if recipe.optimizer == "adam" else 1
    # Weights, gradients and the optimizer's numbers; and the copy of an epoch's start, to which a divergence returns.
    state = FLOAT * network.parameters * (2 + moments + 1 + moments)
    kept = network.kept_bytes // (2 if recipe.precision == "bfloat16" else 1)
    return state + min(recipe.batch_size, images) * kept + images * 3 * side**2


def _focal(cell: Cell, params: Params) -> CellCost | None:
    watching = cell.parameters["watching"]
    watched, every = watching["train_images"] or 0, 1 if cell.parameters["select"] != "last" else watching["every"]
    return _training(cell, params, data="data", watched=watched, every=every, keeps_weights=True, keeps_logits=True)


def _cooling(cell: Cell, params: Params) -> CellCost | None:
    watched = cell.parameters["watching"]["train_images"] or 0
    return _training(cell, params, data="images", watched=watched, keeps_weights=True, keeps_logits=False)


def _temperature_check(cell: Cell, params: Params) -> CellCost | None:
    watched, frozen = cell.parameters["watch_images"], cell.parameters["correlation"] is not None
    return _training(cell, params, data="data", watched=watched, keeps_weights=False, keeps_logits=True, frozen=frozen)


_COSTS: dict[str, Callable[[Cell, Params], CellCost | None]] = {
    "fetch": _fetch,
    "embed": _embed,
    "search": _grid,
    "rescaling": _grid,
    "train_focal": _focal,
    "train_cooling": _cooling,
    "train_temperature_check": _temperature_check,
}

"""Stage train_temperature_check: every sweep of inverse temperatures and learning rates (temperature_check paper)."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softmax_temperature.params.network import Network
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.params.temperature_check import COOLED, PLAIN
from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.cells import Cell, Job, seed_of
from softmax_temperature.runner.folders import PREPARED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor, nn

    from softmax_temperature.data.splits import SplitName
    from softmax_temperature.params import Params
    from softmax_temperature.params.temperature_check import Training
    from softmax_temperature.training import Follower, Samples, Trainer

OUTPUT = Path("data/temperature_check/training")
OBJECTIVE = "softmax_temperature.losses.objectives.tempered_cross_entropy"
PAIR = "softmax_temperature.early_learning.pair"
COOLING = "softmax_temperature.cooling.follower"
STATISTICS = "softmax_temperature.dataset_statistics"
"""Imported by the cells that need them, so that a change of one makes no other training stale."""

HELD_OUT: tuple[SplitName, ...] = ("validation", "test")
BATCH = 500  # Samples whose features are computed together.

# Deviation: the text of the paper is not at hand, only its abstract. Optimizer, schedules, epochs, batch sizes, grids
# of learning rates and numbers of seeds are ours, each beside its value in the parameters. Weight decay is zero, so
# that the inverse temperature is the only thing that acts on the size of the logits.

# Trainings run side by side as cells in processes, not stacked in one batched step: on a CPU the latter is 0.6 times as
# fast for networks on images of 32×32 pixels, 1.6 times on 8×8 (benchmarks/side_by_side.py), and batch normalisation
# cannot be stacked.


def cells(params: Params) -> list[Cell]:
    """One cell per sweep, inverse temperature, learning rate, start and seed."""
    return [_cell(params, training) for training in params.temperature_check.trainings()]


def _cell(params: Params, training: Training) -> Cell:
    from softmax_temperature.training import check_network  # Imports torch; `--help` must not wait for it.

    paper = params.temperature_check
    sweep = paper.sweeps[training.sweep]
    check_network(params.networks[sweep.network])  # Before any training: an error of the parameters, not of a cell.
    cooled = training.start == COOLED
    describes = training.start == PLAIN and training.inverse_temperature == 1
    parameters = {
        "network": params.networks[sweep.network].model_dump(),
        "recipe": paper.recipe_of(training).model_dump(),
        "inverse_temperature": training.inverse_temperature,
        "correlation": training.correlation,
        "cooled": cooled,
        "describes": describes,
        "text": paper.text.model_dump(),
        "watch_images": paper.watch_images,
        "root": params.data.root,
        # The seed's alone: all temperatures, rates and pairs start from the same weights and see the same batches.
        "training_seed": seed_of(params.seed, "temperature_check", training.sweep, str(training.seed)),
    }
    return Cell(training.cell, run, parameters, {"data": PREPARED / sweep.dataset})


def run(
    job: Job,
    *,
    network: dict[str, Any],
    recipe: dict[str, Any],
    inverse_temperature: float,
    correlation: float | None,
    cooled: bool,
    describes: bool,
    text: dict[str, Any],
    watch_images: int,
    root: str,
    training_seed: int,
) -> None:
    """Train one network.

    Writes `history.json`, the rows of `training.Watch` with tempered logits; `logits.safetensors`, those of validation
    and test data, not yet tempered; `temperatures.json`, those of Cooling; `statistics.json`, the 23 statistics of the
    features that the last layer reads, or null; and `record.json`. A training that diverged is a result: its record
    says so, and there are no logits.

    Args:
        job: resumes from its checkpoint.
        network: a `Network`, as JSON.
        recipe: a `Recipe`, as JSON.
        inverse_temperature: of the softmax.
        correlation: of the pair of networks that is trained, or None for a single one.
        cooled: whether the temperature is corrected after each epoch.
        describes: whether the features are described at the end.
        text: `vocabulary`, `length` and `keep`, as in `params.temperature_check.text`; images have no use for it.
        watch_images: samples of the training part to look at after each epoch, and to describe.
        root: the folder of the raw data.
        training_seed: of weights, order and augmentation.
    """
    from safetensors.torch import save_file

    from softmax_temperature.stages.training_sets import training_sets
    from softmax_temperature.training import ClosePlaces, Trainer, Watch, count_parameters, train

    plan = Recipe.model_validate(recipe)
    sets, classes, _ = training_sets(job.inputs["data"], root, text)
    model = _network(Network.model_validate(network), classes, correlation, training_seed)
    objective = import_module(OBJECTIVE).make(inverse_temperature=inverse_temperature)
    trainer = Trainer(model, objective, sets["train"], plan, seed=training_seed, device=job.device)
    logit_norm = (inverse_temperature * _logits(trainer, sets["validation"].inputs)).double().norm(dim=1).mean().item()
    sample = sets["train"].sample(watch_images)
    splits = {"train": sample, "validation": sets["validation"], "test": sets["test"]}
    watch = Watch(splits, ClosePlaces(), inverse_temperature=inverse_temperature)
    followers: dict[str, Follower] = {"watch": watch}
    cooling = None
    if cooled:
        settings = {"period": "epoch", "optimizer_state": "keep", "mode": "last_layer"}
        cooling = import_module(COOLING).CoolingFollower(model, sets["validation"], **settings)
        followers = {"cooling": cooling, **followers}
    diverged = train(trainer, followers, job)
    found = None if diverged else _final_logits(trainer, sets)
    if found is not None:
        save_file(found, job.output / "logits.safetensors")

    write_json(job.output / "history.json", watch.history)
    write_json(job.output / "temperatures.json", cooling.temperatures if cooling else [])
    write_json(job.output / "statistics.json", _statistics(trainer, sample) if describes and found else None)
    record = {
        "epochs": plan.epochs,
        "epochs_done": trainer.epochs_done,
        "micro_batches": trainer.micro_batches,
        "diverged": found is None,
        "parameters": count_parameters(model),
        "classes": classes,
        "samples": {split: len(some) for split, some in sets.items()},
        "initial_logit_norm": logit_norm,
    }
    write_json(job.output / "record.json", record)


def _network(spec: Network, classes: int, correlation: float | None, seed: int) -> nn.Module:
    from softmax_temperature.training import build_network

    model = build_network(spec, classes=classes, seed=seed)
    if correlation is None:
        return model
    other = build_network(spec, classes=classes, seed=seed_of(seed, "other"))
    pair: nn.Module = import_module(PAIR).CorrelatedPair(model, other, correlation)
    return pair


def _final_logits(trainer: Trainer, sets: Mapping[SplitName, Samples]) -> dict[str, Tensor] | None:
    """Logits and labels of what the network was not trained on; None if a logit is not finite."""
    from softmax_temperature.training import Diverged

    found = {}
    for split in HELD_OUT:
        try:
            found[f"{split}.logits"] = _logits(trainer, sets[split].inputs)
        except Diverged:
            return None
        found[f"{split}.labels"] = sets[split].labels
    return found


def _logits(trainer: Trainer, inputs: Tensor) -> Tensor:
    return trainer.evaluate(inputs)[0]


def _statistics(trainer: Trainer, sample: Samples) -> dict[str, float] | None:
    """Of the features that the last layer reads of some training samples; None of those without a direction.

    Where too large a rate has put all units out, features are 0: a result, and nothing to describe.
    """
    import torch

    from softmax_temperature.training import last_layer_inputs

    trainer.network.eval()
    with torch.no_grad():
        batches = (
            trainer.samples.prepare(some.to(trainer.device), trainer.recipe) for some in sample.inputs.split(BATCH)
        )
        features = torch.cat([last_layer_inputs(trainer.network, batch)[1].cpu() for batch in batches])
    norms = features.norm(dim=1)
    if not (norms.isfinite() & (norms > 0)).all():
        return None
    described: dict[str, float] = import_module(STATISTICS).describe(features, sample.labels)
    return described

"""Stage train_temperature_check: every sweep of inverse temperatures and learning rates (temperature_check paper)."""

from pathlib import Path

import torch
from torch import nn

from softmax_temperature import dataset_statistics
from softmax_temperature.early_learning.pair import CorrelatedPair
from softmax_temperature.losses import make_objective
from softmax_temperature.params import Params
from softmax_temperature.params.shared import Text
from softmax_temperature.params.temperature_check import COOLED, PLAIN, Training
from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.cells import Cell, Job, seed_of
from softmax_temperature.runner.folders import PREPARED
from softmax_temperature.stages.training_cells import TrainingCell, check_networks, save_logits, save_record
from softmax_temperature.stages.training_sets import training_sets
from softmax_temperature.training import Callback, Samples, Trainer, Watch, build_network, train
from softmax_temperature.training.cooling import CoolingCallback

PAPER = "temperature_check"
OUTPUT = Path("data/temperature_check/training")

# Deviation: the text of the paper is not at hand, only its abstract. Optimizer, schedules, epochs, batch sizes, grids
# of learning rates and numbers of seeds are ours, each beside its value in the parameters. Weight decay is zero, so
# that the inverse temperature is the only thing that acts on the size of the logits.

# Trainings run side by side as cells in processes, not stacked in one batched step: on a CPU the latter is 0.6 times as
# fast for networks on images of 32×32 pixels, 1.6 times on 8×8 (benchmarks/side_by_side.py), and batch normalisation
# cannot be stacked.


class SweepCell(TrainingCell):
    """What a cell is given.

    `correlation` is that of the pair of networks that is trained, or None for a single one; `logit_norm` is the mean
    norm of the tempered logits at the start, or None for the network's own; `cooled` and `describes` say whether the
    temperature is corrected after each epoch, and whether the features are described at the end.
    """

    inverse_temperature: float
    correlation: float | None
    logit_norm: float | None
    cooled: bool
    describes: bool
    text: Text
    watch_images: int
    watch_every: int


def cells(params: Params) -> list[Cell]:
    """One cell per sweep, inverse temperature, learning rate, start and seed."""
    paper = params.temperature_check
    check_networks(params, [sweep.network for sweep in paper.sweeps.values()])
    plans = {training: plan_of(params, training) for training in paper.trainings()}
    inputs = {name: {"data": PREPARED / sweep.dataset} for name, sweep in paper.sweeps.items()}
    return [Cell(one.cell, run, plan, inputs[one.sweep], plan.network.gpu_share) for one, plan in plans.items()]


def plan_of(params: Params, training: Training) -> SweepCell:
    """What the cell of a training is given."""
    paper = params.temperature_check
    sweep = paper.sweeps[training.sweep]
    return SweepCell(
        network=params.networks[sweep.network],
        recipe=paper.recipe_of(training),
        inverse_temperature=training.inverse_temperature,
        correlation=training.correlation,
        logit_norm=training.logit_norm,
        cooled=training.start == COOLED,
        describes=training.start == PLAIN and training.inverse_temperature == 1,
        text=paper.text,
        watch_images=paper.watch_images,
        watch_every=paper.watch_every,
        root=params.data.root,
        # One for all temperatures, rates and pairs: they start from the same weights and see the same batches.
        training_seed=seed_of(params.seed, "temperature_check", training.sweep, str(training.seed)),
    )


def run(job: Job, plan: SweepCell) -> None:
    """Train one network.

    Writes `history.json`, the rows of `Watch` with tempered logits; `logits.safetensors`, those of validation and test
    data, not yet tempered; `temperatures.json`, those of Cooling; `statistics.json`, the 23 statistics of the features
    that the last layer reads, or null; and `record.json`. A training that diverged is a result: its record says so, and
    there are no logits.
    """
    sets, classes, _ = training_sets(job.inputs["data"], plan.root, plan.text.model_dump())
    model = _network(plan, classes)
    objective = make_objective("tempered_cross_entropy", {"inverse_temperature": plan.inverse_temperature})
    trainer = Trainer(model, objective, sets["train"], plan.recipe, seed=plan.training_seed, device=job.device)
    initial_norm = _initial_norm(trainer, sets["validation"], plan)
    sample = sets["train"].sample(plan.watch_images)
    watched = dict(sets) | {"train": sample}
    watch = Watch(watched, inverse_temperature=plan.inverse_temperature, every=plan.watch_every)
    callbacks: dict[str, Callback] = {"watch": watch}
    cooling = None
    if plan.cooled:
        settings = {"period": "epoch", "optimizer_state": "keep", "mode": "last_layer"}
        cooling = CoolingCallback(model, sets["validation"], **settings)
        callbacks = {"cooling": cooling, **callbacks}
    finite = not train(trainer, callbacks, job) and save_logits(job, trainer, sets)

    write_json(job.output / "history.json", watch.history)
    write_json(job.output / "temperatures.json", cooling.temperatures if cooling else [])
    write_json(job.output / "statistics.json", _statistics(trainer, sample) if plan.describes and finite else None)
    about = {"classes": classes, "samples": {split: len(some) for split, some in sets.items()}}
    save_record(job, trainer, diverged=not finite, recipe=plan.recipe, initial_logit_norm=initial_norm, **about)


def _network(plan: SweepCell, classes: int) -> nn.Module:
    model = build_network(plan.network, classes=classes, seed=plan.training_seed)
    if plan.logit_norm is not None:
        return CorrelatedPair(model, model, 1.0, share=0.0)
    if plan.correlation is None:
        return model
    other = build_network(plan.network, classes=classes, seed=seed_of(plan.training_seed, "other"))
    return CorrelatedPair(model, other, plan.correlation)


def _initial_norm(trainer: Trainer, held_out: Samples, plan: SweepCell) -> float:
    """The mean norm of the tempered logits before the first step, brought to the wanted one, if there is one."""

    def norm() -> float:
        logits, _ = trainer.evaluate(held_out.inputs)
        return float((plan.inverse_temperature * logits).double().norm(dim=1).mean())

    if isinstance(trainer.network, CorrelatedPair) and plan.logit_norm is not None:
        trainer.network.share = 1 - plan.logit_norm / norm()
    return norm()


def _statistics(trainer: Trainer, sample: Samples) -> dict[str, float] | None:
    """The statistics of the features that the last layer reads of some training samples.

    None where too large a rate has put all units out: features of 0 are a result, and have no direction to describe.
    """
    features = torch.cat([features for _, features in trainer.outputs(sample.inputs)]).cpu()
    norms = features.norm(dim=1)
    if not (norms.isfinite() & (norms > 0)).all():
        return None
    return dataset_statistics.describe(features, sample.labels)

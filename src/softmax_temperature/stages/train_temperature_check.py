"""Stage train_temperature_check: every sweep of inverse temperatures and learning rates (temperature_check paper)."""

from pathlib import Path

import torch
from torch import nn

from softmax_temperature import dataset_statistics
from softmax_temperature.data.seeds import seed_of
from softmax_temperature.early_learning.pair import CorrelatedPair
from softmax_temperature.losses import make_objective
from softmax_temperature.params import Params
from softmax_temperature.params.shared import Text
from softmax_temperature.params.temperature_check import COOLED, PLAIN, Training
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.runner.folders import PREPARED
from softmax_temperature.stages.trainings import HELD_OUT, NetworkCell, TrainingRun, check_networks, training_sets
from softmax_temperature.training import Samples, Trainer, Watch, build_network
from softmax_temperature.training.cooling import CoolingCallback

PAPER = "temperature_check"
OUTPUT = Path("data/temperature_check/training")

# Deviation: the text of the paper is not at hand, only its abstract. Optimizer, schedules, epochs, batch sizes, grids
# of learning rates and numbers of seeds are ours, each beside its value in the parameters. Weight decay is zero, so
# that the inverse temperature is the only thing that acts on the size of the logits.

# Trainings run side by side as cells in processes, not stacked in one batched step: on a CPU the latter is 0.6 times as
# fast for networks on images of 32×32 pixels, 1.6 times on 8×8 (benchmarks/side_by_side.py), and batch normalisation
# cannot be stacked.


class SweepCell(NetworkCell):
    """What a cell is given; only a training at inverse temperature 1, neither altered nor cooled, is described."""

    training: Training
    text: Text
    watch_images: int
    watch_every: int


def cells(params: Params) -> list[Cell]:
    """One cell per sweep, inverse temperature, learning rate, start and seed."""
    paper = params.temperature_check
    check_networks(params, paper.sweeps)
    plans = {training: plan_of(params, training) for training in paper.trainings()}
    inputs = {name: {"data": PREPARED / sweep.dataset} for name, sweep in paper.sweeps.items()}
    return [Cell(one.cell, run, plan, inputs[one.sweep], plan.network.gpu_share) for one, plan in plans.items()]


def plan_of(params: Params, training: Training) -> SweepCell:
    """What the cell of a training is given."""
    paper = params.temperature_check
    return SweepCell(
        network=params.networks[paper.sweeps[training.sweep].network],
        recipe=paper.recipe_of(training),
        training=training,
        **paper.model_dump(include={"text", "watch_images", "watch_every"}),
        root=params.data.root,
        # One for all temperatures, rates and pairs: they start from the same weights and see the same batches.
        training_seed=seed_of(params.seed, "temperature_check", training.sweep, str(training.seed)),
    )


def run(job: Job, plan: SweepCell) -> None:
    """Train one network; writes record, logits of held-out data, not yet tempered, and the rows of Cooling.

    Beside them `history.json`, the rows of `Watch` with tempered logits, and `statistics.json`, the 23 statistics of
    the features that the last layer reads, or null.
    """
    asked = plan.training
    data = training_sets(job.inputs["data"], plan.root, plan.text)
    sets, model = data.sets, _network(plan, data.classes)
    objective = make_objective("tempered_cross_entropy", {"inverse_temperature": asked.inverse_temperature})
    training = TrainingRun(job, plan, model, objective, sets["train"])
    initial_norm = _initial_norm(training.trainer, sets["validation"], plan)
    settings = {"period": "epoch", "optimizer_state": "keep", "mode": "last_layer"}
    cooling = CoolingCallback(model, sets["validation"], **settings) if asked.start == COOLED else None
    sample = sets["train"].sample(plan.watch_images)
    watch = Watch({**sets, "train": sample}, inverse_temperature=asked.inverse_temperature, every=plan.watch_every)
    training.run(cooling=cooling, watch=watch)

    training.save_logits({split: sets[split] for split in HELD_OUT})
    described = asked.start == PLAIN and asked.inverse_temperature == 1
    training.save_records(
        {"classes": data.classes, "samples": data.sizes, "initial_logit_norm": initial_norm},
        history=watch.history,
        temperatures=cooling.temperatures if cooling else [],
        statistics=_statistics(training.trainer, sample) if described and training.finite else None,
    )


def _network(plan: SweepCell, classes: int) -> nn.Module:
    model = build_network(plan.network, classes=classes, seed=plan.training_seed)
    if plan.training.logit_norm is not None:
        return CorrelatedPair(model, model, 1.0, share=0.0)
    if plan.training.correlation is None:
        return model
    other = build_network(plan.network, classes=classes, seed=seed_of(plan.training_seed, "other"))
    return CorrelatedPair(model, other, plan.training.correlation)


def _initial_norm(trainer: Trainer, held_out: Samples, plan: SweepCell) -> float:
    """The mean norm of the tempered logits before the first step, brought to the wanted one, if there is one."""

    def norm() -> float:
        logits, _ = trainer.evaluate(held_out.inputs)
        return float((plan.training.inverse_temperature * logits).double().norm(dim=1).mean())

    if isinstance(trainer.network, CorrelatedPair) and plan.training.logit_norm is not None:
        trainer.network.share = 1 - plan.training.logit_norm / norm()
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

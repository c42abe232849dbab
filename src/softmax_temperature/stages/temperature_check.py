"""Stages train_temperature_check and confirm_temperature_check: sweeps, and fresh seeds at the best rates."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from softmax_temperature import dataset_statistics
from softmax_temperature.data.seeds import seed_of
from softmax_temperature.early_learning.pair import CorrelatedPair
from softmax_temperature.losses import make_objective
from softmax_temperature.params import Params
from softmax_temperature.params.network import Network
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.params.shared import Text
from softmax_temperature.params.temperature_check import COOLED, PLAIN, Training, number_in
from softmax_temperature.runner.artifacts import Artifact, write_json
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.stages import PREPARED, stage
from softmax_temperature.stages.trainings import HELD_OUT, LOGITS, TrainingRun, check_networks, training_sets
from softmax_temperature.training import Samples, Trainer, Watch, build_network
from softmax_temperature.training.cooling import CoolingCallback

CHOICE = "choice.json"  # The file with the rescaled learning rate that a confirmation was trained with.

# Deviation: the text of the paper is not at hand, only its abstract. Optimizer, schedules, epochs, batch sizes, grids
# of learning rates and numbers of seeds are ours, each beside its value in the parameters. Weight decay is zero, so
# that the inverse temperature is the only thing that acts on the size of the logits.

# Trainings run side by side as cells in processes, not stacked in one batched step: on a CPU the latter is 0.6 times as
# fast for networks on images of 32×32 pixels, 1.6 times on 8×8 (benchmarks/side_by_side.py), and batch normalisation
# cannot be stacked.


@dataclass(frozen=True)
class Plan:
    """Everything of a training but its learning rate."""

    inverse_temperature: float
    start: str
    network: Network
    recipe: dict[str, Any]  # Without `lr`.
    training_seed: int
    root: str
    text: Text
    watch_images: int
    watch_every: int


@stage("temperature_check", "data/temperature_check/training")
def train_temperature_check(params: Params) -> Iterator[Cell]:
    """One cell per sweep, inverse temperature, learning rate, start and seed."""
    paper = params.temperature_check
    check_networks(params, paper.sweeps)
    for training in paper.trainings():
        name, at, rate, start, seed = training
        plan, inputs = plan_of(params, name, at, start, seed), {"data": PREPARED / paper.sweeps[name].dataset}
        yield Cell(training.cell, train, {"learning_rate": rate, "plan": plan}, inputs, plan.network.gpu_share)


@stage("temperature_check", "data/temperature_check/confirmation")
def confirm_temperature_check(params: Params) -> Iterator[Cell]:
    """One cell per sweep, inverse temperature, start and fresh seed; each reads the trainings that it chooses from."""
    paper = params.temperature_check
    for confirmation in paper.confirmations():
        name, at, start, _ = confirmation
        rates = {f"{rate:g}": rate for rate in paper.sweeps[name].rates(at)}
        inputs = {"data": PREPARED / paper.sweeps[name].dataset} | {
            f"{label}/{other}": train_temperature_check.output / Training(name, at, rate, start, other).cell
            for label, rate in rates.items()
            for other in range(paper.seeds_of(name))
        }
        plan = plan_of(params, *confirmation)
        yield Cell(confirmation.cell, confirm, {"rates": rates, "plan": plan}, inputs, plan.network.gpu_share)


def plan_of(params: Params, sweep: str, inverse_temperature: float, start: str, seed: int) -> Plan:
    """The plan of the trainings that differ in their learning rate alone."""
    paper = params.temperature_check
    network, recipe = params.networks[paper.sweeps[sweep].network], paper.recipe_of(sweep).model_dump(exclude={"lr"})
    own = seed_of(params.seed, "temperature_check", sweep, str(seed)), params.data.root
    return Plan(inverse_temperature, start, network, recipe, *own, paper.text, paper.watch_images, paper.watch_every)


def optimizer_rate(learning_rate: float, inverse_temperature: float) -> float:
    """What the optimizer gets for a learning rate of the sweep, so that equal ones mean equal early dynamics."""
    return learning_rate / inverse_temperature**2


def train(job: Job, *, learning_rate: float, plan: Plan) -> None:
    """Train one network; the logits that it writes are not yet tempered, those behind the rows of `Watch` are.

    The features of a training at inverse temperature 1, neither altered nor cooled, are described by 23 statistics.
    """
    at = plan.inverse_temperature
    recipe = Recipe(**plan.recipe, lr=optimizer_rate(learning_rate, at))
    data = training_sets(job.inputs["data"], plan.root, plan.text)
    sets, model = data.sets, _network(plan, data.classes)
    objective = make_objective("tempered_cross_entropy", {"inverse_temperature": at})
    training = TrainingRun(job, recipe, plan.training_seed, model, objective, sets["train"])
    initial_norm = _initial_norm(training.trainer, sets["validation"], plan)
    how: dict[str, Any] = {"period": "epoch", "optimizer_state": "keep", "mode": "last_layer"}
    cooling = CoolingCallback(model, sets["validation"], **how) if plan.start == COOLED else None
    sample = sets["train"].sample(plan.watch_images)
    watch = Watch({**sets, "train": sample}, inverse_temperature=at, every=plan.watch_every)
    training.run(cooling=cooling, watch=watch)
    training.save_logits({split: sets[split] for split in HELD_OUT})
    described = plan.start == PLAIN and at == 1 and training.finite
    training.save(
        {"classes": data.classes, "samples": data.sizes, "initial_logit_norm": initial_norm},
        weights=False,
        history=watch.history,
        temperatures=cooling.temperatures if cooling else [],
        statistics=_statistics(training.trainer, sample) if described else None,
    )


def confirm(job: Job, *, rates: dict[str, float], plan: Plan) -> None:
    """Train with the rate whose trainings have the highest mean validation accuracy; of equal ones, the lowest rate."""
    accuracies = {
        label: [_accuracy(one) for name, one in job.inputs.items() if name.startswith(f"{label}/")] for label in rates
    }
    best = max(sorted(rates, key=rates.__getitem__), key=lambda label: sum(accuracies[label]) / len(accuracies[label]))
    write_json(job.output / CHOICE, {"learning_rate": rates[best]})
    train(job, learning_rate=rates[best], plan=plan)


def _accuracy(training: Artifact) -> float:
    """On validation data; one that diverged is as accurate as guessing."""
    record = training.json("record.json")
    if record["diverged"]:
        return 1 / float(record["classes"])
    tensors = training.tensors(LOGITS)
    return (tensors["validation.logits"].argmax(dim=1) == tensors["validation.labels"]).double().mean().item()


def _network(plan: Plan, classes: int) -> nn.Module:
    model = build_network(plan.network, classes=classes, seed=plan.training_seed)
    if number_in(plan.start, "norm-") is not None:
        return CorrelatedPair(model, model, 1.0, share=0.0)
    if (correlation := number_in(plan.start, "pair-")) is None:
        return model
    other = build_network(plan.network, classes=classes, seed=seed_of(plan.training_seed, "other"))
    return CorrelatedPair(model, other, correlation)


def _initial_norm(trainer: Trainer, held_out: Samples, plan: Plan) -> float:
    """The mean norm of the tempered logits before the first step, brought to the wanted one, if there is one."""

    def norm() -> float:
        logits, _ = trainer.evaluate(held_out.inputs)
        return float((plan.inverse_temperature * logits).double().norm(dim=1).mean())

    if isinstance(trainer.network, CorrelatedPair) and (logit_norm := number_in(plan.start, "norm-")) is not None:
        trainer.network.share = 1 - logit_norm / norm()
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

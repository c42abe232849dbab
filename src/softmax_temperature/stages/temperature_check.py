"""Stages train_temperature_check and confirm_temperature_check: sweeps, and fresh seeds
at the best rates.
"""

from collections.abc import Iterator
from typing import Any

import torch

from softmax_temperature import dataset_statistics
from softmax_temperature.data.seeds import seed_of
from softmax_temperature.data.splits import HELD_OUT
from softmax_temperature.losses import make_objective
from softmax_temperature.networks.registry import check_networks
from softmax_temperature.params import Params
from softmax_temperature.params.network import Network
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.params.temperature_check import (
    COOLED,
    PLAIN,
    EvaluationSettings,
    Training,
)
from softmax_temperature.runner.artifacts import Artifact, write_json
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.stages import (
    CONFIRMATION,
    LOGITS,
    PREPARED,
    SWEEPS,
    part_of,
    stage,
)
from softmax_temperature.stages.choice import best_rate
from softmax_temperature.training import Samples, Trainer, Watch
from softmax_temperature.training.cooling import CoolingCallback
from softmax_temperature.training.pairs import build_start, start_norm
from softmax_temperature.training.prepared_sets import training_sets
from softmax_temperature.training.run import TrainingRun

# The file with the rescaled learning rate that a confirmation was trained with.
CHOICE = "choice.json"

# Deviation: the text of the paper is not at hand, only its abstract. Optimizer,
# schedules, epochs, batch sizes, grids of learning rates and numbers of seeds are ours,
# each beside its value in the parameters. Weight decay is zero, so that the inverse
# temperature is the only thing that acts on the size of the logits.

# Trainings run side by side as cells in processes, not stacked in one batched step: on
# a CPU the latter is 0.6 times as fast for networks on images of 32×32 pixels, 1.6
# times on 8×8 (benchmarks/side_by_side.py), and batch normalisation cannot be stacked.


@stage("temperature_check", SWEEPS)
def train_temperature_check(params: Params) -> Iterator[Cell]:
    """One cell per sweep, inverse temperature, learning rate, start and seed."""
    paper = params.temperature_check
    check_networks(params.networks, (sweep.network for sweep in paper.sweeps.values()))
    for training in paper.trainings():
        name, at, rate, start, seed = training
        plan, inputs = (
            plan_of(params, name, at, start, seed),
            {"data": PREPARED / paper.sweeps[name].dataset},
        )
        yield Cell(
            training.cell,
            train,
            plan | {"learning_rate": rate},
            inputs,
            plan["network"].gpu_share,
        )


@stage("temperature_check", CONFIRMATION)
def confirm_temperature_check(params: Params) -> Iterator[Cell]:
    """One cell per sweep, inverse temperature, start and fresh seed; each reads the
    trainings that it chooses from.
    """
    paper = params.temperature_check
    for confirmation in paper.confirmations():
        name, at, start, _ = confirmation
        rates = {f"{rate:g}": rate for rate in paper.sweeps[name].rates(at)}
        inputs = {"data": PREPARED / paper.sweeps[name].dataset} | {
            f"{key}/{other}": train_temperature_check.output
            / Training(name, at, rate, start, other).cell
            for key, rate in rates.items()
            for other in range(paper.seeds_of(name))
        }
        plan = plan_of(params, *confirmation)
        yield Cell(
            confirmation.cell,
            confirm,
            plan | {"rates": rates},
            inputs,
            plan["network"].gpu_share,
        )


def plan_of(
    params: Params, sweep: str, inverse_temperature: float, start: str, seed: int
) -> dict[str, Any]:
    """What `train` needs but a learning rate: the plan of the trainings that differ in
    that alone.
    """
    paper = params.temperature_check
    return {
        "inverse_temperature": inverse_temperature,
        "start": start,
        "network": params.networks[paper.sweeps[sweep].network],
        "recipe": paper.recipe_of(sweep).model_dump(exclude={"lr"}),
        "looks": part_of(paper, EvaluationSettings),
        "root": params.data.root,
        "training_seed": seed_of(params.seed, "temperature_check", sweep, str(seed)),
    }


def optimizer_rate(learning_rate: float, inverse_temperature: float) -> float:
    """What the optimizer gets for a learning rate of the sweep, so that equal ones mean
    equal early dynamics.
    """
    return learning_rate / inverse_temperature**2


def train(
    job: Job,
    *,
    learning_rate: float,
    inverse_temperature: float,
    start: str,
    network: Network,
    recipe: dict[str, Any],
    looks: EvaluationSettings,
    root: str,
    training_seed: int,
) -> None:
    """Train one network; the logits that it writes are not yet tempered, those behind
    the rows of `Watch` are.

    The features of a training at inverse temperature 1, neither altered nor cooled, are
    described by 23 statistics.
    """
    at = inverse_temperature
    data = training_sets(job.inputs["data"], root, looks.text)
    sets, model = (
        data.sets,
        build_start(network, start, classes=data.classes, seed=training_seed),
    )
    objective = make_objective("tempered_cross_entropy", {"inverse_temperature": at})
    whole = Recipe(**recipe, lr=optimizer_rate(learning_rate, at))
    training = TrainingRun(job, whole, training_seed, model, objective, sets["train"])
    initial_norm = start_norm(
        training.trainer, sets["validation"], start, inverse_temperature=at
    )
    how: dict[str, Any] = {
        "period": "epoch",
        "optimizer_state": "keep",
        "mode": "last_layer",
    }
    cooling = (
        CoolingCallback(model, sets["validation"], **how) if start == COOLED else None
    )
    sample = sets["train"].sample(looks.watch_images)
    watch = Watch(
        {**sets, "train": sample}, inverse_temperature=at, every=looks.watch_every
    )
    training.run(cooling=cooling, watch=watch)
    training.save_logits(LOGITS, {split: sets[split] for split in HELD_OUT})
    described = start == PLAIN and at == 1 and training.finite
    training.save(
        {
            "classes": data.classes,
            "samples": data.sizes,
            "initial_logit_norm": initial_norm,
        },
        weights=False,
        history=watch.history,
        temperatures=cooling.temperatures if cooling else [],
        statistics=_statistics(training.trainer, sample) if described else None,
    )


def confirm(job: Job, *, rates: dict[str, float], **plan: Any) -> None:
    """Train with the rate that the validation accuracies of the other trainings choose."""
    best = best_rate(
        {
            rate: [
                _accuracy(one)
                for name, one in job.inputs.items()
                if name.startswith(f"{key}/")
            ]
            for key, rate in rates.items()
        }
    )
    write_json(job.output / CHOICE, {"learning_rate": best})
    train(job, learning_rate=best, **plan)


def _accuracy(training: Artifact) -> float:
    """On validation data; one that diverged is as accurate as guessing."""
    record = training.json("record.json")
    if record["diverged"]:
        return 1 / float(record["classes"])
    tensors = training.tensors(LOGITS)
    return (
        (tensors["validation.logits"].argmax(dim=1) == tensors["validation.labels"])
        .double()
        .mean()
        .item()
    )


def _statistics(trainer: Trainer, sample: Samples) -> dict[str, float] | None:
    """The statistics of the features that the last layer reads of some training
    samples.

    None where too large a rate has put all units out: features of 0 are a result, and
        have no direction to describe.
    """
    features = torch.cat(
        [features for _, features in trainer.outputs(sample.inputs)]
    ).cpu()
    norms = features.norm(dim=1)
    if not (norms.isfinite() & (norms > 0)).all():
        return None
    return dataset_statistics.describe(features, sample.labels)

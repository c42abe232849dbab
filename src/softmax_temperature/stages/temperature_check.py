"""The stages `train_temperature_check` and `confirm_temperature_check`.

They train sweeps, and then fresh seeds at the best learning rates.
"""

from collections.abc import Iterator
from typing import Any

import torch

from softmax_temperature import dataset_statistics
from softmax_temperature.data.logits import LOGITS, read_logits
from softmax_temperature.data.seeds import seed_of
from softmax_temperature.data.splits import HELD_OUT
from softmax_temperature.losses.tempered_cross_entropy import (
    TemperedCrossEntropyLoss,
)
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
    PREPARED,
    part_of,
    stage,
)
from softmax_temperature.stages.choice import best_rate
from softmax_temperature.training import Samples, Trainer, Watch
from softmax_temperature.training.cooling import CoolingCallback
from softmax_temperature.training.pairs import build_start, start_norm
from softmax_temperature.training.prepared_sets import training_sets
from softmax_temperature.training.run import TrainingRun

CHOICE = "choice.json"
"""The file with the learning rate that a confirmation run took from the sweep."""

# Deviation: optimizer, schedules, epochs, batch sizes, grids of learning rates and
# numbers of seeds are ours, each explained next to its value in the parameters, because
# we have the abstract of the paper but not its text. Weight decay is zero, because it
# would affect the size of the logits as well.

# Networks are trained in parallel cells, not stacked into one batched step: on a CPU,
# stacking is 0.6 times as fast on images of 32×32 pixels and 1.6 times as fast on 8×8
# (benchmarks/side_by_side.py), and batch normalisation cannot be stacked.


@stage
def train_temperature_check(params: Params) -> Iterator[Cell]:
    """Yield a cell for each sweep, inverse temperature, rate, start and seed."""
    paper = params.temperature_check
    check_networks(params.networks, [sweep.network for sweep in paper.sweeps.values()])
    for training in paper.trainings():
        sweep, inverse_temperature, rate, start, seed = training
        plan = plan_of(params, sweep, inverse_temperature, start, seed)
        yield Cell(
            training.cell,
            train,
            plan | {"learning_rate": rate},
            {"data": PREPARED / paper.sweeps[sweep].dataset},
            plan["network"].gpu_share,
            places={"root": params.data.root},
        )


@stage
def confirm_temperature_check(params: Params) -> Iterator[Cell]:
    """Yield one cell per sweep, inverse temperature, start and fresh seed.

    Each cell reads the runs of the sweep that determine its learning rate.
    """
    paper = params.temperature_check
    for confirmation in paper.confirmations():
        sweep, inverse_temperature, start, _ = confirmation
        rates = {
            f"{rate:g}": rate for rate in paper.sweeps[sweep].rates(inverse_temperature)
        }
        inputs = {"data": PREPARED / paper.sweeps[sweep].dataset}
        for name, rate in rates.items():
            for seed in range(paper.seeds_of(sweep)):
                tried = Training(sweep, inverse_temperature, rate, start, seed)
                inputs[f"{name}/{seed}"] = train_temperature_check.output / tried.cell
        plan = plan_of(params, *confirmation)
        yield Cell(
            confirmation.cell,
            confirm,
            plan | {"rates": rates},
            inputs,
            plan["network"].gpu_share,
            places={"root": params.data.root},
        )


def plan_of(
    params: Params, sweep: str, inverse_temperature: float, start: str, seed: int
) -> dict[str, Any]:
    """Collect the arguments of `train`, except `learning_rate` and `root`."""
    paper = params.temperature_check
    return {
        "inverse_temperature": inverse_temperature,
        "start": start,
        "network": params.networks[paper.sweeps[sweep].network],
        "recipe": paper.recipe_of(sweep).model_dump(exclude={"lr"}),
        "looks": part_of(paper, EvaluationSettings),
        "training_seed": seed_of(params.seed, "temperature_check", sweep, str(seed)),
    }


def optimizer_rate(learning_rate: float, inverse_temperature: float) -> float:
    """Convert a learning rate of the sweep into the optimizer's learning rate.

    Equal rates of the sweep give equal early dynamics at all inverse temperatures.
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
    """Train one network.

    The stored logits are not multiplied by the inverse temperature, but the logits from
    which `Watch` computes its rows are. If the start is plain, the inverse temperature
    is 1 and training did not diverge, the 23 dataset statistics of the features of
    training samples are also stored.
    """
    data = training_sets(job.inputs["data"], root, looks.text)
    sets = data.sets
    model = build_start(network, start, classes=data.classes, seed=training_seed)
    loss = TemperedCrossEntropyLoss(inverse_temperature, ignore_index=None)
    lr = optimizer_rate(learning_rate, inverse_temperature)
    whole_recipe = Recipe(**recipe, lr=lr)
    training = TrainingRun(job, whole_recipe, training_seed, model, loss, sets["train"])
    initial_norm = start_norm(training.trainer, sets["validation"], start)
    cooling = None
    if start == COOLED:
        cooling = CoolingCallback(
            model,
            sets["validation"],
            period="epoch",
            optimizer_state="keep",
            mode="last_layer",
        )
    sample = sets["train"].sample(looks.watch_images)
    watch = Watch({**sets, "train": sample}, every=looks.watch_every)
    training.run(cooling=cooling, watch=watch)
    training.save_logits(LOGITS, {split: sets[split] for split in HELD_OUT})
    statistics = None
    if start == PLAIN and inverse_temperature == 1 and training.finite:
        statistics = _statistics(training.trainer, sample)
    training.save_json("history.json", watch.history)
    training.save_json("temperatures.json", cooling.temperatures if cooling else [])
    training.save_json("statistics.json", statistics)
    training.save_record(
        {
            "classes": data.classes,
            "samples": data.sizes,
            "initial_logit_norm": initial_norm,
        }
    )


def confirm(job: Job, *, rates: dict[str, float], **plan: Any) -> None:
    """Train with the learning rate that has the best mean validation accuracy."""
    accuracies: dict[float, list[float]] = {}
    for key, rate in rates.items():
        trainings = [
            training
            for name, training in job.inputs.items()
            if name.startswith(f"{key}/")
        ]
        accuracies[rate] = [_accuracy(training) for training in trainings]
    best = best_rate(accuracies)
    write_json(job.output / CHOICE, {"learning_rate": best})
    train(job, learning_rate=best, **plan)


def _accuracy(training: Artifact) -> float:
    """Return a run's validation accuracy; a diverged run counts as random guessing."""
    record = training.json("record.json")
    if record["diverged"]:
        return 1 / float(record["classes"])
    logits, labels = read_logits(training, LOGITS)["validation"].for_fitting()
    return (logits.argmax(dim=1) == labels).double().mean().item()


def _statistics(trainer: Trainer, sample: Samples) -> dict[str, float] | None:
    """Describe the last layer's inputs for the training samples in `sample`.

    Returns None if the features of a sample are all 0 or not finite. A learning rate
    that is too large can set all units to 0; such features are a valid result, but they
    have no direction to describe.
    """
    batches = [features for _, features in trainer.outputs(sample.inputs)]
    features = torch.cat(batches).cpu()
    norms = features.norm(dim=1)
    if not (norms.isfinite() & (norms > 0)).all():
        return None
    return dataset_statistics.describe(features, sample.labels)

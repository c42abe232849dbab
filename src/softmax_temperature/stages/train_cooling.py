"""Stage train_cooling: every experiment of the cooling paper, with each way to cool (cooling paper, section 4)."""

from pathlib import Path
from typing import Any

from softmax_temperature.losses import make_objective
from softmax_temperature.params import Params
from softmax_temperature.params.cooling import CoolingSettings, Watching
from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.cells import Cell, Job, seed_of
from softmax_temperature.runner.folders import PREPARED
from softmax_temperature.stages.training_cells import TrainingCell, check_networks, save_record, save_weights
from softmax_temperature.stages.training_sets import training_sets
from softmax_temperature.training import Callback, Norms, Trainer, Watch, build_network, train
from softmax_temperature.training.cooling import CoolingCallback

PAPER = "cooling"
OUTPUT = Path("data/cooling/training")
NO_COOLING = "none"
JUDGED = 10
"""Epochs at the end whose mean is the accuracy of a training."""

# Deviation: the paper names SGD with momentum and Adam, and does not say which one its tables and figures rest on
# (section 4.1). The recipe takes SGD, and an ablation Adam. Weight decay, augmentation and the normalisation of pixels
# are not stated either: the recipe has neither of the first two, ablations have them, and pixels are normalised.


class CoolingCell(TrainingCell):
    """What a cell is given; `cooling` is None for a network that is not cooled."""

    loss: str
    options: dict[str, Any]
    cooling: CoolingSettings | None
    watching: Watching


def cells(params: Params) -> list[Cell]:
    """One cell per experiment, schedule, arm and seed."""
    paper = params.cooling
    check_networks(params, [experiment.network for experiment in paper.experiments.values()])
    for arm in paper.arms.values():
        make_objective(arm.loss, arm.options)
    return [_cell(params, *names) for names in paper.trainings()]


def _cell(params: Params, experiment: str, schedule: str, arm: str, seed: int) -> Cell:
    paper = params.cooling
    task, chosen = paper.experiments[experiment], paper.arms[arm]
    settings = CoolingSettings(**chosen.model_dump(exclude={"loss", "options"}))
    plan = CoolingCell(
        network=params.networks[task.network],
        recipe=paper.recipe_of(experiment, schedule),
        loss=chosen.loss,
        options=chosen.options,
        cooling=None if chosen.mode == NO_COOLING else settings,
        watching=paper.watching,
        root=params.data.root,
        # One for all arms, schedules and variants of a recipe: they start from the same weights and see the same
        # batches, so that their differences are paired.
        training_seed=seed_of(params.seed, "cooling", str(seed)),
    )
    inputs = {"images": PREPARED / task.dataset}
    return Cell(f"{experiment}/{schedule}/{arm}/{seed}", run, plan, inputs, plan.network.gpu_share)


def run(job: Job, plan: CoolingCell) -> None:
    """Train one network.

    Writes `weights.safetensors`; `history.json`, the rows of `Watch`; `temperatures.json`, those of `CoolingCallback`,
    and `norms.json`, those of `Norms`; and `record.json`. All of them see the network of an epoch after the epoch's
    Cooling. A training that diverged is a result: its record says so, and its weights and rows end where they were last
    finite.
    """
    images, classes, _ = training_sets(job.inputs["images"], plan.root, None)
    model = build_network(plan.network, classes=classes, seed=plan.training_seed)
    objective = make_objective(plan.loss, plan.options)
    trainer = Trainer(model, objective, images["train"], plan.recipe, seed=plan.training_seed, device=job.device)
    sample = images["train"].sample(plan.watching.train_images)
    # Training images after each epoch: what diverged or got stuck is told from them.
    watch = Watch({"train": sample})
    held_out = Watch(
        {split: images[split] for split in ("validation", "test")}, every=plan.watching.every, final=JUDGED
    )
    norms = Norms(images["validation"].inputs)
    trainer.after_batch.append(norms.after_batch)
    callbacks: dict[str, Callback] = {"norms": norms, "watch": watch, "held_out": held_out}
    cooling = None
    if plan.cooling is not None:
        cooling = CoolingCallback(model, images["validation"], **plan.cooling.model_dump())
        trainer.after_batch.append(cooling.after_batch)
        callbacks = {"cooling": cooling, **callbacks}
    diverged = train(trainer, callbacks, job)

    save_weights(job, trainer.network)
    write_json(job.output / "history.json", sorted(watch.history + held_out.history, key=lambda row: row["epoch"]))
    write_json(job.output / "norms.json", norms.history)
    write_json(job.output / "temperatures.json", cooling.temperatures if cooling else [])
    sizes = {split: len(some) for split, some in images.items()}
    save_record(job, trainer, diverged=diverged, recipe=plan.recipe, classes=classes, images=sizes)

"""Stage train_cooling: every experiment of the cooling paper, with each way to cool (cooling paper, section 4)."""

from pathlib import Path

from softmax_temperature.data.seeds import seed_of
from softmax_temperature.losses import make_objective
from softmax_temperature.params import Params
from softmax_temperature.params.cooling import Arm, Watching
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.runner.folders import PREPARED
from softmax_temperature.stages.trainings import HELD_OUT, NetworkCell, TrainingRun, check_networks, training_sets
from softmax_temperature.training import Norms, Watch, build_network
from softmax_temperature.training.cooling import CoolingCallback

PAPER = "cooling"
OUTPUT = Path("data/cooling/training")
NO_COOLING = "none"
JUDGED = 10
"""Epochs at the end whose mean is the accuracy of a training."""

# Deviation: the paper names SGD with momentum and Adam, and does not say which one its tables and figures rest on
# (section 4.1). The recipe takes SGD, and an ablation Adam. Weight decay, augmentation and the normalisation of pixels
# are not stated either: the recipe has neither of the first two, ablations have them, and pixels are normalised.


class CoolingCell(NetworkCell):
    """What a cell is given."""

    arm: Arm
    watching: Watching


def cells(params: Params) -> list[Cell]:
    """One cell per experiment, schedule, arm and seed."""
    check_networks(params, params.cooling.experiments)
    for arm in params.cooling.arms.values():
        make_objective(arm.loss, arm.options)
    return [_cell(params, *names) for names in params.cooling.trainings()]


def _cell(params: Params, name: str, schedule: str, arm: str, seed: int) -> Cell:
    paper = params.cooling
    plan = CoolingCell(
        network=params.networks[paper.experiments[name].network],
        recipe=paper.recipe_of(name, schedule),
        arm=paper.arms[arm],
        watching=paper.watching,
        root=params.data.root,
        # One for all arms, schedules and variants of a recipe: they start from the same weights and see the same
        # batches, so that their differences are paired.
        training_seed=seed_of(params.seed, "cooling", str(seed)),
    )
    inputs = {"images": PREPARED / paper.experiments[name].dataset}
    return Cell(f"{name}/{schedule}/{arm}/{seed}", run, plan, inputs, plan.network.gpu_share)


def run(job: Job, plan: CoolingCell) -> None:
    """Train one network; writes weights, record, and the rows of `Watch`, `CoolingCallback` and `Norms`.

    All of them see the network of an epoch after the epoch's Cooling.
    """
    data = training_sets(job.inputs["images"], plan.root)
    images = data.sets
    model = build_network(plan.network, classes=data.classes, seed=plan.training_seed)
    objective = make_objective(plan.arm.loss, plan.arm.options)
    training = TrainingRun(job, plan, model, objective, images["train"])
    settings = plan.arm.model_dump(exclude={"loss", "options"})
    cooling = None if plan.arm.mode == NO_COOLING else CoolingCallback(model, images["validation"], **settings)
    # Training images after each epoch: what diverged or got stuck is told from them.
    watch = Watch({"train": images["train"].sample(plan.watching.train_images)})
    held_out = Watch({split: images[split] for split in HELD_OUT}, every=plan.watching.every, final=JUDGED)
    norms = Norms(images["validation"].inputs)
    training.run(cooling=cooling, norms=norms, watch=watch, held_out=held_out)

    training.save_weights()
    training.save_records(
        {"classes": data.classes, "images": data.sizes},
        history=sorted(watch.history + held_out.history, key=lambda row: row["epoch"]),
        norms=norms.history,
        temperatures=cooling.temperatures if cooling else [],
    )

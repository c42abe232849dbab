"""Stage train_cooling: every experiment of the cooling paper, with each way to cool (cooling paper, section 4)."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softmax_temperature.data.splits import SPLITS
from softmax_temperature.params.network import Network
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.folders import PREPARED
from softmax_temperature.runner.jobs import Cell, Job, seed_of
from softmax_temperature.stages.training_sets import image_set

if TYPE_CHECKING:
    from softmax_temperature.params import Params
    from softmax_temperature.training import Follower

OUTPUT = Path("data/cooling/training")
COOLING = "softmax_temperature.cooling.follower"
"""Imported by the cells that cool, so that a change of the method makes no uncooled training stale."""

NO_COOLING = "none"

# Deviation: the paper names SGD with momentum and Adam, and does not say which one its tables and figures rest on
# (section 4.1). The recipe takes SGD, and an ablation Adam. Weight decay, augmentation and the normalisation of pixels
# are not stated either: the recipe has neither of the first two, ablations have them, and pixels are normalised.


def cells(params: Params) -> list[Cell]:
    """One cell per experiment, schedule, arm and seed."""
    return [_cell(params, *names) for names in params.cooling.trainings()]


def _cell(params: Params, experiment: str, schedule: str, arm: str, seed: int) -> Cell:
    from softmax_temperature.losses import (  # Imports torch; `--help` must not.
        make_objective,
        objective_module,
    )
    from softmax_temperature.training import check_network

    paper = params.cooling
    place, chosen = paper.experiments[experiment], paper.arms[arm]
    # Before any training: what is wrong with these is an error of the parameters, not of a cell.
    make_objective(chosen.loss, chosen.options)
    check_network(params.networks[place.network])
    cools = chosen.mode != NO_COOLING
    parameters = {
        "network": params.networks[place.network].model_dump(),
        "recipe": paper.recipe_of(experiment, schedule).model_dump(),
        "loss": chosen.loss,
        "options": chosen.options,
        "cooling": chosen.model_dump(exclude={"loss", "options"}) if cools else None,
        "watching": paper.watching.model_dump(),
        "root": params.data.root,
        # The seed's alone: all arms, schedules and variants of a recipe start from the same weights and see the same
        # batches, so that their differences are paired.
        "training_seed": seed_of(params.seed, "cooling", str(seed)),
    }
    code = (params.networks[place.network].module, objective_module(chosen.loss)) + (COOLING,) * cools
    inputs = {"images": PREPARED / place.dataset}
    return Cell(f"{experiment}/{schedule}/{arm}/{seed}", run, parameters, inputs, code)


def run(
    job: Job,
    *,
    network: dict[str, Any],
    recipe: dict[str, Any],
    loss: str,
    options: dict[str, Any],
    cooling: dict[str, Any] | None,
    watching: dict[str, Any],
    root: str,
    training_seed: int,
) -> None:
    """Train one network.

    Writes `weights.safetensors`; `history.json`, the rows of `training.Watch`; `temperatures.json`, those of
    `CoolingFollower`, and `norms.json`, those of `Norms`; and `record.json`. All of them see the network of an epoch
    after the epoch's Cooling. A training that diverged is a result: its record says so, and its weights and rows end
    where they were last finite.

    Args:
        job: resumes from its checkpoint.
        network: a `Network`, as JSON.
        recipe: a `Recipe`, as JSON.
        loss: the name of the objective.
        options: of the objective.
        cooling: the settings of `CoolingFollower`, or None for a network that is not cooled.
        watching: `train_images`, as in `params.cooling.watching`.
        root: the folder of the raw data.
        training_seed: of weights, order and augmentation.
    """
    from safetensors.torch import save_file

    from softmax_temperature.data.prepared import open_prepared
    from softmax_temperature.losses import make_objective
    from softmax_temperature.training import ClosePlaces, Trainer, Watch, build_network, count_parameters, train
    from softmax_temperature.training.norms import Norms

    plan = Recipe.model_validate(recipe)
    classes = open_prepared(job.inputs["images"], root=Path(root)).classes
    images = {split: image_set(job.inputs["images"], split, root) for split in SPLITS}
    model = build_network(Network.model_validate(network), classes=classes, seed=training_seed)
    trainer = Trainer(
        model, make_objective(loss, options), images["train"], plan, seed=training_seed, device=job.device
    )
    sample = images["train"].sample(watching["train_images"])
    watch = Watch({"train": sample, "validation": images["validation"], "test": images["test"]}, ClosePlaces())
    norms = Norms(images["validation"].images)
    trainer.after_batch.append(norms.after_batch)
    followers: dict[str, Follower] = {"norms": norms, "watch": watch}
    if cooling is not None:
        cooled = import_module(COOLING).CoolingFollower(model, images["validation"], **cooling)
        trainer.after_batch.append(cooled.after_batch)
        followers = {"cooling": cooled, **followers}
    diverged = train(trainer, followers, job)

    weights = {name: value.cpu().contiguous() for name, value in trainer.network.state_dict().items()}
    save_file(weights, job.output / "weights.safetensors")
    write_json(job.output / "history.json", watch.history)
    write_json(job.output / "norms.json", norms.rows)
    write_json(job.output / "temperatures.json", [] if cooling is None else cooled.temperatures)
    record = {
        "epochs": plan.epochs,
        "planned_epochs": plan.planned_epochs,
        "epochs_done": trainer.epochs_done,
        "micro_batches": trainer.micro_batches,
        "diverged": diverged,
        "parameters": count_parameters(model),
        "classes": classes,
        "images": {split: len(some) for split, some in images.items()},
    }
    write_json(job.output / "record.json", record)

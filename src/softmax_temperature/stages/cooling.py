"""Stages train_cooling and train_segmentation: the cooling paper's classifiers and its
U-Net (section 4).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from softmax_temperature.data.seeds import seed_of
from softmax_temperature.data.segmentation import segmentation_digest
from softmax_temperature.data.splits import HELD_OUT
from softmax_temperature.losses import make_objective
from softmax_temperature.networks.layers import drawn_from
from softmax_temperature.networks.registry import build_network, check_networks
from softmax_temperature.networks.unet import UNet
from softmax_temperature.params import Params
from softmax_temperature.params.cooling import (
    JUDGED,
    NO_COOLING,
    Arm,
    SegmentationTask,
    Watching,
)
from softmax_temperature.params.network import Network
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.stages import (
    COOLING_TRAINING,
    PREPARED,
    SEGMENTATION,
    part_of,
    stage,
)
from softmax_temperature.training import Norms, Watch
from softmax_temperature.training.cooling import CoolingCallback, PixelCoolingCallback
from softmax_temperature.training.pixels import (
    PixelScores,
    pixel_cross_entropy,
    pixel_predictions,
)
from softmax_temperature.training.prepared_sets import segmentation_sets, training_sets
from softmax_temperature.training.run import TrainingRun

PREDICTIONS = "predictions.safetensors"
SHOWN = 8
"""Test images whose predictions are kept, at equal distances."""

# Deviation: the paper names SGD with momentum and Adam, and does not say which one its
# tables and figures rest on (section 4.1). The recipe takes SGD, and an ablation Adam.
# Weight decay, augmentation and the normalisation of pixels are not stated either: the
# recipe has neither of the first two, ablations have them, and pixels are normalised.


@stage("cooling", COOLING_TRAINING)
def train_cooling(params: Params) -> Iterator[Cell]:
    """One cell per experiment, schedule, arm and seed."""
    paper = params.cooling
    check_networks(
        params.networks,
        (experiment.network for experiment in paper.experiments.values()),
    )
    for arm in paper.arms.values():
        make_objective(arm.loss, arm.options)
    for name, schedule, chosen, seed in paper.trainings():
        network = params.networks[paper.experiments[name].network]
        plan = {
            "network": network,
            "recipe": paper.recipe_of(name, schedule),
            "arm": paper.arms[chosen],
            "watching": paper.watching,
            "judged": JUDGED,
            "root": params.data.root,
            "training_seed": seed_of(params.seed, "cooling", str(seed)),
        }
        inputs = {"images": PREPARED / paper.experiments[name].dataset}
        yield Cell(
            f"{name}/{schedule}/{chosen}/{seed}",
            _train,
            plan,
            inputs,
            network.gpu_share,
        )


def _train(
    job: Job,
    *,
    network: Network,
    recipe: Recipe,
    arm: Arm,
    watching: Watching,
    judged: int,
    root: str,
    training_seed: int,
) -> None:
    """Train one network; what is written of an epoch is of the network after the
    epoch's Cooling.
    """
    data = training_sets(job.inputs["images"], root)
    images = data.sets
    model = build_network(network, classes=data.classes, seed=training_seed)
    objective = make_objective(arm.loss, arm.options)
    training = TrainingRun(
        job, recipe, training_seed, model, objective, images["train"]
    )
    settings = arm.model_dump(exclude={"loss", "options"})
    cooling = (
        None
        if arm.mode == NO_COOLING
        else CoolingCallback(model, images["validation"], **settings)
    )
    # Training images after each epoch: what diverged or got stuck is told from them.
    watch = Watch({"train": images["train"].sample(watching.train_images)})
    held_out = Watch(
        {split: images[split] for split in HELD_OUT}, every=watching.every, final=judged
    )
    norms = Norms(images["validation"].inputs)
    training.run(cooling=cooling, norms=norms, watch=watch, held_out=held_out)
    training.save(
        {"classes": data.classes, "images": data.sizes},
        history=sorted(watch.history + held_out.history, key=lambda row: row["epoch"]),
        norms=norms.history,
        temperatures=cooling.temperatures if cooling else [],
    )


# Deviation: the paper sets images aside "when performing Cooling" and does not say
# whether its baseline trains on them. Here both arms leave out the same ones, so that
# they differ in nothing but Cooling.

# Deviation: section 4.4 states neither optimizer, learning rate, schedule, epochs and
# batch size, nor how images become 256×256. The former are parameters, those of section
# 4.2 where it has them; images are resized, whatever their shape.


@stage("cooling", SEGMENTATION)
def train_segmentation(params: Params) -> Iterator[Cell]:
    """One cell per arm and seed (section 4.4); a missing or incomplete data set raises
    InputError.
    """
    section, root = params.cooling.segmentation, params.data.root
    if section is None:
        return
    shared = {
        "task": part_of(section, SegmentationTask),
        "root": root,
        "data_seed": params.seed,
    }
    # A file that changed is noticed whenever the stage runs.
    shared["digest"] = segmentation_digest(section.dataset, root=Path(root))
    for arm, seed in section.trainings():
        own = {"factor": None if arm == NO_COOLING else section.factor}
        own |= {
            "training_seed": seed_of(params.seed, "cooling", "segmentation", str(seed))
        }
        yield Cell(f"{arm}/{seed}", _segment, shared | own, gpu_share=1.0)


def _segment(
    job: Job,
    *,
    task: SegmentationTask,
    factor: float | None,
    root: str,
    data_seed: int,
    training_seed: int,
    **_: Any,
) -> None:
    """Train one network; writes weights, record, and of a few test images the pixels
    with what is predicted.
    """
    images, void, cooling = (
        segmentation_sets(task, root, seed=data_seed),
        task.void,
        None,
    )
    with drawn_from(training_seed):
        model = UNet(task.classes, task.width)
    if factor is not None:
        cooling = PixelCoolingCallback(
            model, images["validation"], void=void, factor=factor, seed=data_seed
        )
    training = TrainingRun(
        job,
        task.recipe,
        training_seed,
        model,
        pixel_cross_entropy(void),
        images["train"],
    )
    scores = PixelScores(
        images["test"],
        void=void,
        temperature=lambda: cooling.temperature if cooling else 1.0,
    )
    training.run(cooling=cooling, scores=scores)
    shown = images["test"].sample(SHOWN)
    predicted = pixel_predictions(training.trainer, shown.inputs).to(torch.uint8)
    pixels = {
        "images": shown.inputs.permute(0, 2, 3, 1).contiguous(),
        "labels": shown.labels,
        "predicted": predicted,
    }
    save_file(pixels, job.output / PREDICTIONS)
    about = {
        "classes": task.classes,
        "images": {split: len(some) for split, some in images.items()},
        "sides": list(images["test"].inputs.shape[2:]),
        "cooling_pixels": cooling.pixels if cooling else 0,
        "history": scores.history,
    }
    training.save(about)

"""The stages `train_cooling` and `train_segmentation`.

They train the cooling paper's classifiers and its U-Net (section 4).
"""

from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from softmax_temperature.data.seeds import drawn_from, seed_of
from softmax_temperature.data.segmentation import segmentation_digest
from softmax_temperature.data.splits import HELD_OUT
from softmax_temperature.losses.registry import make_loss
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
    PREPARED,
    part_of,
    stage,
)
from softmax_temperature.training import Norms, Watch
from softmax_temperature.training.cooling import CoolingCallback, PixelCoolingCallback
from softmax_temperature.training.pixels import (
    PixelCrossEntropyLoss,
    PixelScores,
    pixel_predictions,
)
from softmax_temperature.training.prepared_sets import segmentation_sets, training_sets
from softmax_temperature.training.run import TrainingRun

PREDICTIONS = "predictions.safetensors"
SHOWN = 8
"""The number of equally spaced test images whose predictions are kept."""

# Deviation: our recipe uses SGD, and an ablation uses Adam; the paper names SGD with
# momentum and Adam but does not say which one its tables and figures use (section 4.1).
# Our recipe has neither weight decay nor augmentation (ablations have them), and pixels
# are normalised; the paper does not state any of the three.


@stage
def train_cooling(params: Params) -> Iterator[Cell]:
    """Yield one cell per experiment, schedule, arm and seed."""
    paper = params.cooling
    names = [experiment.network for experiment in paper.experiments.values()]
    check_networks(params.networks, names)
    for arm in paper.arms.values():
        make_loss(arm.loss, arm.options)
    for name, schedule, arm_name, seed in paper.trainings():
        experiment = paper.experiments[name]
        network = params.networks[experiment.network]
        plan = {
            "network": network,
            "recipe": paper.recipe_of(name, schedule),
            "arm": paper.arms[arm_name],
            "watching": paper.watching,
            "judged": JUDGED,
            "training_seed": seed_of(params.seed, "cooling", str(seed)),
        }
        yield Cell(
            f"{name}/{schedule}/{arm_name}/{seed}",
            _train,
            plan,
            {"images": PREPARED / experiment.dataset},
            network.gpu_share,
            places={"root": params.data.root},
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
    """Train one network, and measure it after each epoch's Cooling.

    Held-out images are evaluated after fewer epochs (see `params.cooling.Watching`).
    """
    data = training_sets(job.inputs["images"], root)
    images = data.sets
    model = build_network(network, classes=data.classes, seed=training_seed)
    loss = make_loss(arm.loss, arm.options)
    training = TrainingRun(job, recipe, training_seed, model, loss, images["train"])
    cooling = None
    if arm.mode != NO_COOLING:
        settings = arm.model_dump(exclude={"loss", "options"})
        cooling = CoolingCallback(model, images["validation"], **settings)
    # Evaluate training images after each epoch, because these metrics show whether the
    # run diverged or got stuck.
    watch = Watch({"train": images["train"].sample(watching.train_images)})
    held_out = Watch(
        {split: images[split] for split in HELD_OUT}, every=watching.every, final=judged
    )
    norms = Norms(images["validation"].inputs)
    training.run(cooling=cooling, norms=norms, watch=watch, held_out=held_out)
    history = sorted(watch.history + held_out.history, key=itemgetter("epoch"))
    training.save_json("history.json", history)
    training.save_json("norms.json", norms.history)
    training.save_json("temperatures.json", cooling.temperatures if cooling else [])
    training.save_record({"classes": data.classes, "images": data.sizes})
    training.save_weights()


# Deviation: we leave the same images out of both arms, so that the arms differ only in
# Cooling. The paper sets images aside "when performing Cooling" but does not say
# whether its baseline trains on them.

# Deviation: training settings are parameters, with the values of section 4.2 where it
# states them, and images of any shape are resized. Section 4.4 states no optimizer,
# learning rate, schedule, epochs or batch size, and does not say how images become
# 256×256.


@stage
def train_segmentation(params: Params) -> Iterator[Cell]:
    """Yield the cells of section 4.4, one per arm and seed.

    Raises:
        InputError: If the data set is missing or incomplete.
    """
    section = params.cooling.segmentation
    root = params.data.root
    if section is None:
        return
    # The digest is computed on every run, so that the stage notices a changed file.
    digest = segmentation_digest(section.dataset, root=Path(root))
    for arm, seed in section.trainings():
        plan = {
            "task": part_of(section, SegmentationTask),
            "data_seed": params.seed,
            "digest": digest,
            "factor": None if arm == NO_COOLING else section.factor,
            "training_seed": seed_of(params.seed, "cooling", "segmentation", str(seed)),
        }
        yield Cell(
            f"{arm}/{seed}", _segment, plan, gpu_share=1.0, places={"root": root}
        )


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
    """Train one network.

    Writes the weights, the record, and a few test images with their labels and
    predictions.
    """
    images = segmentation_sets(task, root, seed=data_seed)
    with drawn_from(training_seed):
        model = UNet(task.classes, task.width)
    cooling = None
    if factor is not None:
        cooling = PixelCoolingCallback(
            model, images["validation"], void=task.void, factor=factor, seed=data_seed
        )
    training = TrainingRun(
        job,
        task.recipe,
        training_seed,
        model,
        PixelCrossEntropyLoss(task.void),
        images["train"],
    )
    scores = PixelScores(
        images["test"],
        void=task.void,
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
    training.save_record(
        {
            "classes": task.classes,
            "images": {split: len(samples) for split, samples in images.items()},
            "sides": list(images["test"].inputs.shape[2:]),
            "cooling_pixels": cooling.pixels if cooling else 0,
            "history": scores.history,
        }
    )
    training.save_weights()

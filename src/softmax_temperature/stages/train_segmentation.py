"""Stage train_segmentation: a U-Net with and without last-layer Cooling, several times (cooling paper, section 4.4)."""

from pathlib import Path

import numpy as np
import torch

from softmax_temperature.data.sampling import limited
from softmax_temperature.data.segmentation import Form, read_segmentation, segmentation_digest, set_aside
from softmax_temperature.data.splits import SplitName
from softmax_temperature.networks.unet import UNet
from softmax_temperature.params import Params
from softmax_temperature.params.cooling import Segmentation, SegmentationTask
from softmax_temperature.runner.artifacts import atomic_file
from softmax_temperature.runner.cells import Cell, Job, seed_of
from softmax_temperature.stages.training_cells import save_record, save_weights
from softmax_temperature.training import Callback, ImageSet, Trainer, train
from softmax_temperature.training.cooling import PixelCoolingCallback
from softmax_temperature.training.pixels import PixelScores, pixel_cross_entropy, pixel_predictions

PAPER = "cooling"
OUTPUT = Path("data/cooling/segmentation")
ARMS = ("none", "last_layer")
SHOWN = 8
"""Test images whose predictions are kept, at equal distances."""


# Deviation: the paper sets images aside "when performing Cooling" and does not say whether its baseline trains on them.
# Here both arms leave out the same ones, so that they differ in nothing but Cooling.

# Deviation: section 4.4 states neither optimizer, learning rate, schedule, epochs and batch size, nor how images become
# 256×256. The former are parameters, those of section 4.2 where it has them; images are resized, whatever their shape.


class SegmentationCell(SegmentationTask):
    """What a cell is given.

    `factor` is None for no Cooling, `digest` is that of the data set's files, `data_seed` draws what is random about
    the data set, `training_seed` weights and order.
    """

    factor: float | None
    root: str
    digest: str | None
    data_seed: int
    training_seed: int


def trainings(section: Segmentation | None) -> list[tuple[str, int]]:
    """Arm and seed of every training; none where the section is left out."""
    return [] if section is None else [(arm, seed) for arm in ARMS for seed in range(section.seeds)]


def cells(params: Params) -> list[Cell]:
    """One cell per arm and seed.

    The digest of the data set's files is among its parameters: a file that changed is noticed whenever the stage runs.

    Raises:
        InputError: the data set is missing, or its folder is not complete.
    """
    section = params.cooling.segmentation
    if section is None:
        return []
    shared = section.model_dump(exclude={"seeds", "panels", "factor"})
    shared["digest"] = segmentation_digest(section.dataset, root=Path(params.data.root))
    plans = {
        f"{arm}/{seed}": SegmentationCell(
            **shared,
            root=params.data.root,
            data_seed=params.seed,
            factor=None if arm == "none" else section.factor,
            # One for both arms: they start from the same weights and see the same batches.
            training_seed=seed_of(params.seed, "cooling", "segmentation", str(seed)),
        )
        for arm, seed in trainings(section)
    }
    return [Cell(name, run, plan, gpu_share=1.0) for name, plan in plans.items()]


def run(job: Job, plan: SegmentationCell) -> None:
    """Train one network.

    Writes `weights.safetensors`; `predictions.npz` with images (k, height, width, 3), labels and predicted (k, height,
    width), uint8, of a few test images; and `record.json`, with a row for each epoch (`PixelScores`). A training that
    diverged is a result: its record says so, and its weights are the last finite ones.
    """
    images = _image_sets(plan)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(plan.training_seed)
        model = UNet(plan.classes, plan.width)
    callbacks: dict[str, Callback] = {}
    cooling = None
    if plan.factor is not None:
        cooling = PixelCoolingCallback(
            model, images["validation"], void=plan.void, factor=plan.factor, seed=plan.data_seed
        )
        callbacks["cooling"] = cooling
    loss = pixel_cross_entropy(plan.void)
    trainer = Trainer(model, loss, images["train"], plan.recipe, seed=plan.training_seed, device=job.device)
    scores = PixelScores(images["test"], void=plan.void, temperature=lambda: cooling.temperature if cooling else 1.0)
    diverged = train(trainer, {**callbacks, "scores": scores}, job)

    save_weights(job, trainer.network)
    _save_predictions(job, trainer, images["test"].sample(SHOWN))
    about = {
        "classes": plan.classes,
        "images": {split: len(some) for split, some in images.items()},
        "sides": list(images["test"].inputs.shape[2:]),
        "cooling_pixels": cooling.pixels if cooling else 0,
        "history": scores.history,
    }
    save_record(job, trainer, diverged=diverged, recipe=plan.recipe, **about)


def _image_sets(plan: SegmentationCell) -> dict[SplitName, ImageSet]:
    """The images to train on, to fit the temperature on ("validation"), and to report on."""
    form, seed = Form(plan.classes, plan.void, plan.crop, plan.size), plan.data_seed
    parts = read_segmentation(plan.dataset, form, root=Path(plan.root), seed=seed)
    used = parts | {"train": limited(parts["train"], plan.train_limit, seed=seed)}
    fitted = set_aside(used, plan.cooling_images, seed=seed)
    return {
        "train": ImageSet(*fitted["train"].for_fitting()),
        "validation": ImageSet(*fitted["validation"].for_fitting()),
        "test": ImageSet(*limited(parts["test"], plan.test_limit, seed=seed).for_evaluation()),
    }


def _save_predictions(job: Job, trainer: Trainer, shown: ImageSet) -> None:
    predicted = pixel_predictions(trainer, shown.inputs).to(torch.uint8)
    pixels = shown.inputs.permute(0, 2, 3, 1)
    with atomic_file(job.output / "predictions.npz") as file:
        np.savez_compressed(file, images=pixels.numpy(), labels=shown.labels.numpy(), predicted=predicted.numpy())

"""Stage train_segmentation: a U-Net with and without last-layer Cooling, several times (cooling paper, section 4.4)."""

from pathlib import Path

import numpy as np
import torch

from softmax_temperature.data.sampling import limited
from softmax_temperature.data.seeds import seed_of
from softmax_temperature.data.segmentation import Form, read_segmentation, segmentation_digest, set_aside
from softmax_temperature.data.splits import SplitName
from softmax_temperature.networks.unet import UNet
from softmax_temperature.params import Params
from softmax_temperature.params.cooling import Segmentation, SegmentationTask
from softmax_temperature.runner.artifacts import atomic_file
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.stages.trainings import TrainingCell, TrainingRun
from softmax_temperature.training import ImageSet
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


class SegmentationCell(SegmentationTask, TrainingCell):
    """What a cell is given; `factor` is None for no Cooling, `digest` that of the data set's files."""

    factor: float | None
    digest: str | None
    data_seed: int


def trainings(section: Segmentation | None) -> list[tuple[str, int]]:
    """Arm and seed of every training; none where the section is left out."""
    return [] if section is None else [(arm, seed) for arm in ARMS for seed in range(section.seeds)]


def cells(params: Params) -> list[Cell]:
    """One cell per arm and seed; a missing or incomplete data set raises InputError."""
    section, root = params.cooling.segmentation, params.data.root
    if section is None:
        return []
    shared = section.model_dump(include=set(SegmentationTask.model_fields)) | {"root": root, "data_seed": params.seed}
    # A file that changed is noticed whenever the stage runs.
    shared["digest"] = segmentation_digest(section.dataset, root=Path(root))
    found = []
    for arm, seed in trainings(section):
        # One for both arms: they start from the same weights and see the same batches.
        training_seed = seed_of(params.seed, "cooling", "segmentation", str(seed))
        factor = None if arm == "none" else section.factor
        plan = SegmentationCell(**shared, factor=factor, training_seed=training_seed)
        found.append(Cell(f"{arm}/{seed}", run, plan, gpu_share=1.0))
    return found


def run(job: Job, plan: SegmentationCell) -> None:
    """Train one network; writes weights and record, with a row for each epoch (`PixelScores`).

    Beside them `predictions.npz`, images (k, height, width, 3), labels and predicted (k, height, width), uint8, of a
    few test images.
    """
    images = _image_sets(plan)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(plan.training_seed)
        model = UNet(plan.classes, plan.width)
    cooling, void = None, plan.void
    if plan.factor is not None:
        fitted_on = images["validation"]
        cooling = PixelCoolingCallback(model, fitted_on, void=void, factor=plan.factor, seed=plan.data_seed)
    training = TrainingRun(job, plan, model, pixel_cross_entropy(void), images["train"])
    scores = PixelScores(images["test"], void=void, temperature=lambda: cooling.temperature if cooling else 1.0)
    training.run(cooling=cooling, scores=scores)

    training.save_weights()
    shown = images["test"].sample(SHOWN)
    predicted = pixel_predictions(training.trainer, shown.inputs).to(torch.uint8)
    pixels, labels = shown.inputs.permute(0, 2, 3, 1), shown.labels
    with atomic_file(job.output / "predictions.npz") as file:
        np.savez_compressed(file, images=pixels.numpy(), labels=labels.numpy(), predicted=predicted.numpy())
    about = {
        "classes": plan.classes,
        "images": {split: len(some) for split, some in images.items()},
        "sides": list(images["test"].inputs.shape[2:]),
        "cooling_pixels": cooling.pixels if cooling else 0,
        "history": scores.history,
    }
    training.save_records(about)


def _image_sets(plan: SegmentationCell) -> dict[SplitName, ImageSet]:
    """The images to train on, to fit the temperature on ("validation"), and to report on."""
    form, seed = Form(plan.classes, plan.void, plan.crop, plan.size), plan.data_seed
    parts = read_segmentation(plan.dataset, form, root=Path(plan.root), seed=seed)
    parts = parts | {"train": limited(parts["train"], plan.train_limit, seed=seed)}
    parts = set_aside(parts, plan.cooling_images, seed=seed)
    return {
        "train": ImageSet(*parts["train"].for_fitting()),
        "validation": ImageSet(*parts["validation"].for_fitting()),
        "test": ImageSet(*limited(parts["test"], plan.test_limit, seed=seed).for_evaluation()),
    }

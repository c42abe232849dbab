"""Stage train_segmentation: a U-Net with and without last-layer Cooling, several times (cooling paper, section 4.4)."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from softmax_temperature.params.recipe import Recipe
from softmax_temperature.runner.artifacts import atomic_file, write_json
from softmax_temperature.runner.cells import Cell, Job, seed_of

if TYPE_CHECKING:
    from torch import nn

    from softmax_temperature.data.segmentation import Form, Sides
    from softmax_temperature.data.splits import SplitName
    from softmax_temperature.params import Params
    from softmax_temperature.params.segmentation import Segmentation
    from softmax_temperature.training import ImageSet, Trainer

OUTPUT = Path("data/cooling/segmentation")
COOLING = "softmax_temperature.cooling.pixel_follower"
"""Imported by the cells that cool, so that a change of the method makes no uncooled training stale."""
ARMS = ("none", "last_layer")
SHOWN = 8
"""Test images whose predictions are kept, at equal distances."""


# Deviation: the paper sets images aside "when performing Cooling" and does not say whether its baseline trains on them.
# Here both arms leave out the same ones, so that they differ in nothing but Cooling.

# Deviation: section 4.4 states neither optimizer, learning rate, schedule, epochs and batch size, nor how images become
# 256×256. The former are parameters, those of section 4.2 where it has them; images are resized, whatever their shape.


def trainings(section: Segmentation | None) -> list[tuple[str, int]]:
    """Arm and seed of every training; none where the section is left out."""
    return [] if section is None else [(arm, seed) for arm in ARMS for seed in range(section.seeds)]


def cells(params: Params) -> list[Cell]:
    """One cell per arm and seed.

    The digest of the data set's files is among its parameters: a file that changed is noticed whenever the stage runs.

    Raises:
        InputError: the data set is not there, or its folder is not complete.
    """
    from softmax_temperature.data.segmentation import segmentation_digest  # Not on the way to `--help`.

    section = params.cooling.segmentation
    if section is None:
        return []
    digest = segmentation_digest(section.dataset, root=Path(params.data.root))
    shared = section.model_dump(exclude={"seeds", "panels", "factor"})
    shared |= {"root": params.data.root, "digest": digest, "data_seed": params.seed}
    return [_cell(params, section, shared, arm, seed) for arm, seed in trainings(section)]


def _cell(params: Params, section: Segmentation, shared: dict[str, Any], arm: str, seed: int) -> Cell:
    parameters = {
        **shared,
        "factor": None if arm == "none" else section.factor,
        # The seed's, not the cell's: both arms start from the same weights and see the same batches.
        "training_seed": seed_of(params.seed, "cooling", "segmentation", str(seed)),
    }
    return Cell(f"{arm}/{seed}", run, parameters)


def run(
    job: Job,
    *,
    dataset: str,
    root: str,
    digest: str | None,  # noqa: ARG001  # Only a part of the fingerprint.
    classes: int,
    void: int,
    crop: list[int] | None,
    size: list[int] | None,
    train_limit: int | None,
    test_limit: int | None,
    cooling_images: int | None,
    width: int,
    factor: float | None,
    recipe: dict[str, Any],
    data_seed: int,
    training_seed: int,
) -> None:
    """Train one network.

    Writes `weights.safetensors`; `predictions.npz` with images (k, height, width, 3), labels and predicted (k, height,
    width), uint8, of a few test images; and `record.json`, with a row for each epoch (`training.pixels.PixelScores`).
    A training that diverged is a result: its record says so, and its weights are the last finite ones.

    Args:
        job: resumes from its checkpoint.
        dataset: its name.
        root: the folder of the raw data.
        digest: of the data set's files.
        classes: how many.
        void: the label of pixels without a class.
        crop: height and width of the middle that is cut out, or None.
        size: height and width that images are brought to, or None.
        train_limit: images of the training part, those set aside included; None is all.
        test_limit: images of the test part; None is all.
        cooling_images: set aside from training; None for the data set's own validation part.
        width: channels of the U-Net at full size.
        factor: of Cooling; None for no Cooling.
        recipe: a `Recipe`, as JSON.
        data_seed: of what is drawn of the data set; the same for all cells.
        training_seed: of weights and order.
    """
    from safetensors.torch import save_file

    from softmax_temperature.data.segmentation import Form
    from softmax_temperature.training import Trainer, count_parameters, train
    from softmax_temperature.training.pixels import PixelScores, pixel_cross_entropy

    plan = Recipe.model_validate(recipe)
    form = Form(classes, void, _sides(crop), _sides(size))
    images = _image_sets(dataset, form, root, train_limit, test_limit, cooling_images, data_seed)
    model = _network(classes, width, training_seed)
    cooled = None
    if factor is not None:
        follower = import_module(COOLING).PixelCooling
        cooled = follower(model, images["validation"], void=void, factor=factor, seed=data_seed)
    trainer = Trainer(model, pixel_cross_entropy(void), images["train"], plan, seed=training_seed, device=job.device)
    scores = PixelScores(images["test"], void=void, temperature=lambda: cooled.temperature if cooled else 1.0)
    diverged = train(trainer, ({"cooling": cooled} if cooled else {}) | {"scores": scores}, job)

    weights = {name: value.cpu().contiguous() for name, value in trainer.network.state_dict().items()}
    save_file(weights, job.output / "weights.safetensors")
    with atomic_file(job.output / "predictions.npz") as file:
        _save_predictions(trainer, images["test"], file)
    record = {
        "epochs": plan.epochs,
        "planned_epochs": plan.planned_epochs,
        "epochs_done": trainer.epochs_done,
        "micro_batches": trainer.micro_batches,
        "diverged": diverged,
        "parameters": count_parameters(model),
        "classes": classes,
        "images": {split: len(some) for split, some in images.items()},
        "sides": list(images["test"].images.shape[2:]),
        "cooling_pixels": cooled.pixels if cooled else 0,
        "history": scores.history,
    }
    write_json(job.output / "record.json", record)


def _sides(sides: list[int] | None) -> Sides | None:
    return None if sides is None else (sides[0], sides[1])


def _image_sets(
    dataset: str,
    form: Form,
    root: str,
    train_limit: int | None,
    test_limit: int | None,
    cooling_images: int | None,
    seed: int,
) -> dict[SplitName, ImageSet]:
    """The images to train on, to fit the temperature on ("validation"), and to report on."""
    from softmax_temperature.data.segmentation import limited, read_segmentation, set_aside
    from softmax_temperature.training import ImageSet

    parts = read_segmentation(dataset, form, root=Path(root), seed=seed)
    used = parts | {"train": limited(parts["train"], train_limit, seed=seed)}
    fitted = set_aside(used, cooling_images, seed=seed)
    test = limited(parts["test"], test_limit, seed=seed)
    return {
        "train": ImageSet(*fitted["train"].for_fitting()),
        "validation": ImageSet(*fitted["validation"].for_fitting()),
        "test": ImageSet(*test.for_evaluation()),
    }


def _network(classes: int, width: int, seed: int) -> nn.Module:
    import torch

    from softmax_temperature.networks.unet import UNet

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return UNet(classes, width)


def _save_predictions(trainer: Trainer, test: ImageSet, file: BinaryIO) -> None:
    import numpy as np
    import torch

    from softmax_temperature.training.pixels import pixel_predictions

    shown = test.sample(SHOWN)
    predicted = pixel_predictions(trainer, shown.images).to(torch.uint8)
    pixels = shown.images.permute(0, 2, 3, 1)
    np.savez_compressed(file, images=pixels.numpy(), labels=shown.labels.numpy(), predicted=predicted.numpy())

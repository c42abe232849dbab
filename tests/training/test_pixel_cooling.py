"""Cooling a network that classifies pixels is Cooling of the table of its pixels."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

from softmax_temperature.cooling import Cooling
from softmax_temperature.networks.unet import UNet
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.training import Diverged, ImageSet, Trainer
from softmax_temperature.training.cooling import PixelCoolingCallback
from softmax_temperature.training.pixels import BATCH, pixel_cross_entropy, pixel_logits, pixel_predictions, pixel_table

CLASSES, VOID, COUNT = 3, 200, BATCH + 4
RECIPE = {
    "epochs": 3,
    "planned_epochs": 3,
    "batch_size": 4,
    "optimizer": "sgd",
    "lr": 0.05,
    "momentum": 0.9,
    "weight_decay": 0.0,
    "epsilon": 1e-8,
    "schedule": {"name": "constant"},
    "reduction": "mean",
    "clip_norm": None,
    "crop_padding": 0,
    "flip": False,
    "mean": [0.5, 0.5, 0.5],
    "std": [0.2, 0.2, 0.2],
    "precision": "float32",
}


def scenes() -> ImageSet:
    """Noise; a class is a third right, so that a temperature fits."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (COUNT, 3, 16, 16), generator=generator)
    labels = torch.where(torch.rand(COUNT, 16, 16, generator=generator) < 0.3, images.argmax(1), 0)
    labels[:, :2] = VOID
    return ImageSet(images.to(torch.uint8), labels.to(torch.uint8))


@pytest.fixture
def trained() -> tuple[nn.Module, Trainer]:
    torch.manual_seed(0)
    network = UNet(CLASSES, width=2)
    recipe = Recipe.model_validate(RECIPE)
    trainer = Trainer(network, pixel_cross_entropy(VOID), scenes(), recipe, seed=0, device="cpu")
    trainer.epoch()
    return network, trainer


def callback(network: nn.Module, **changes: Any) -> PixelCoolingCallback:
    return PixelCoolingCallback(network, scenes(), **{"void": VOID, "factor": 0.5, "seed": 0, **changes})


def test_it_cools_on_all_pixels_with_a_class(trained: tuple[nn.Module, Trainer]) -> None:
    network, trainer = trained
    before = torch.cat(list(pixel_logits(trainer, scenes().inputs)))
    labels = scenes().labels.flatten()
    cooling = Cooling(copy.deepcopy(network), factor=0.5)
    cooling.cool(pixel_table(before)[labels != VOID], labels[labels != VOID])
    cooled = callback(network)
    predictions = pixel_predictions(trainer, scenes().inputs)
    cooled.after_epoch(trainer)
    assert cooled.pixels == COUNT * 14 * 16
    assert cooled.temperature == cooling.temperature
    assert abs(cooled.temperature - 1) > 0.05
    # Every logit of every pixel is divided, and no prediction changes.
    after = torch.cat(list(pixel_logits(trainer, scenes().inputs)))
    torch.testing.assert_close(after, before / cooled.temperature)
    assert torch.equal(pixel_predictions(trainer, scenes().inputs), predictions)


def test_a_choice_of_pixels_depends_on_the_seed_alone_and_leaves_void_out(trained: tuple[nn.Module, Trainer]) -> None:
    network, trainer = trained
    found = []
    for seed in (0, 0, 1):
        cooled = callback(copy.deepcopy(network), most=500, seed=seed)
        assert cooled.pixels == 500
        assert not (scenes().labels.flatten()[cooled._rows] == VOID).any()
        logits = cooled._chosen_logits(trainer)
        whole = pixel_table(torch.cat(list(pixel_logits(trainer, scenes().inputs))))
        assert torch.equal(logits, whole[cooled._rows])
        found.append(cooled._rows.tolist())
    assert found[0] == found[1] != found[2]
    assert max(found[0]) >= BATCH * 256, "images of the second batch have their share"


def test_what_is_not_finite_is_divergence(trained: tuple[nn.Module, Trainer]) -> None:
    network, trainer = trained
    cooled = callback(network)
    with torch.no_grad():
        network.get_parameter("classifier.bias")[0] = torch.nan
    with pytest.raises(Diverged, match="logits are not finite after epoch 1"):
        cooled.after_epoch(trainer)
    assert cooled.temperature == 1


def test_images_without_a_class_are_refused(trained: tuple[nn.Module, Trainer]) -> None:
    network, _ = trained
    blank = ImageSet(scenes().inputs, torch.full_like(scenes().labels, VOID))
    with pytest.raises(ValueError, match="images must have a pixel with a class, got 5120 that are void"):
        PixelCoolingCallback(network, blank, void=VOID, factor=1.0, seed=0)

"""For pixel labels, loss, logits, scores and Cooling equal plain computations."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from sklearn.metrics import accuracy_score, jaccard_score
from torch import nn

from softmax_temperature.cooling import Cooling
from softmax_temperature.data.seeds import drawn_from
from softmax_temperature.networks.unet import UNet
from softmax_temperature.training import Diverged, ImageSet, Trainer
from softmax_temperature.training.cooling import PixelCoolingCallback
from softmax_temperature.training.pixels import (
    BATCH,
    PixelCrossEntropyLoss,
    PixelScores,
    pixel_logits,
    pixel_predictions,
    pixel_table,
)

CLASSES, VOID, COUNT = 3, 200, BATCH + 4
MakeTrainer = Callable[..., Trainer]


def scenes(count: int, seed: int = 0, *, right: float = 1.0) -> ImageSet:
    """Noise images of 16×16 pixels, with a tenth of the labels void.

    A share `right` of the pixels has the brightest channel as its label; the others
    have label 0.
    """
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (count, 16, 16), generator=generator)
    images = torch.randint(0, 120, (count, 3, 16, 16), generator=generator)
    images.scatter_add_(1, labels[:, None], torch.full_like(labels[:, None], 120))
    labels[torch.rand(labels.shape, generator=generator) > right] = 0
    labels[torch.rand(labels.shape, generator=generator) < 0.1] = VOID
    return ImageSet(images.to(torch.uint8), labels.to(torch.uint8), "train")


@pytest.fixture
def make_unet(make_trainer: MakeTrainer) -> MakeTrainer:
    """A function that makes a trainer for a narrow U-Net, with 8 scenes."""

    def make(width: int = 2, **changes: Any) -> Trainer:
        with drawn_from(0):
            network: nn.Module = UNet(CLASSES, width)
        given = {
            "objective": PixelCrossEntropyLoss(VOID),
            "images": scenes(8),
            "batch_size": 4,
            **changes,
        }
        return make_trainer(network, **given)

    return make


def test_the_loss_is_the_mean_over_labelled_pixels() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, CLASSES, 3, 5, generator=generator, dtype=torch.float64)
    labels = scenes(2).labels[:, :3, :5].contiguous()
    assert (labels == VOID).any()
    slow = [
        -torch.log_softmax(logits[image, :, row, column], 0)[
            labels[image, row, column].item()
        ].item()
        for image, row, column in (labels != VOID).nonzero().tolist()
    ]
    assert PixelCrossEntropyLoss(VOID)(logits, labels, 0.0).item() == pytest.approx(
        sum(slow) / len(slow)
    )


def test_a_batch_without_a_class_has_no_loss_and_no_gradient() -> None:
    logits = torch.randn(1, CLASSES, 2, 2, requires_grad=True)
    loss = PixelCrossEntropyLoss(VOID)(
        logits, torch.full((1, 2, 2), VOID, dtype=torch.uint8), 0.0
    )
    (gradient,) = torch.autograd.grad(loss, logits)
    assert (loss.item(), gradient.abs().max().item()) == (0, 0)


def test_logits_in_pieces_are_those_of_the_network(make_unet: MakeTrainer) -> None:
    trainer = make_unet()
    trainer.epoch()
    images = scenes(BATCH + 3).inputs
    pieces = list(pixel_logits(trainer, images))
    assert [len(piece) for piece in pieces] == [BATCH, 3]
    mean, std = (
        torch.tensor(values).view(1, 3, 1, 1)
        for values in (trainer.recipe.mean, trainer.recipe.std)
    )
    with torch.no_grad():
        plain = trainer.network.eval()((images / 255 - mean) / std)
    torch.testing.assert_close(torch.cat(pieces), plain, rtol=1e-4, atol=1e-5)
    assert torch.equal(pixel_predictions(trainer, images), torch.cat(pieces).argmax(1))
    for _ in pixel_logits(trainer, images):
        assert torch.is_grad_enabled(), "gradients off between pieces"


def test_a_unet_learns_pixels_and_scores_are_scikit_learns(
    make_unet: MakeTrainer,
) -> None:
    trainer, test = (
        make_unet(6, epochs=12, planned_epochs=12, lr=0.2, images=scenes(24)),
        scenes(BATCH + 3, seed=1),
    )
    scores = PixelScores(test, void=VOID, temperature=lambda: 1.5)
    for _ in range(12):
        trainer.epoch()
        scores.after_epoch(trainer)
    assert [row["epoch"] for row in scores.history] == list(range(1, 13))
    kept, row = test.labels != VOID, scores.history[-1]
    truth, predicted = test.labels[kept], pixel_predictions(trainer, test.inputs)[kept]
    assert row["mean_iou"] == pytest.approx(
        jaccard_score(truth, predicted, average="macro")
    )
    assert row["mean_iou"] > 0.7
    assert row["pixel_accuracy"] == pytest.approx(accuracy_score(truth, predicted))
    assert (row["temperature"], row["loss"]) == (1.5, trainer.loss)


# ---- Cooling


@pytest.fixture
def trained(make_unet: MakeTrainer) -> Trainer:
    trainer = make_unet(images=scenes(COUNT, right=0.3))
    trainer.epoch()
    return trainer


def callback(network: nn.Module, **changes: Any) -> PixelCoolingCallback:
    given = {"void": VOID, "factor": 0.5, "seed": 0, **changes}
    return PixelCoolingCallback(network, scenes(COUNT, right=0.3), **given)


def test_it_cools_on_all_pixels_with_a_class(trained: Trainer) -> None:
    images, labels = scenes(COUNT).inputs, scenes(COUNT, right=0.3).labels.flatten()
    before = torch.cat(list(pixel_logits(trained, images)))
    cooling = Cooling(copy.deepcopy(trained.network), factor=0.5)
    cooling.cool(pixel_table(before)[labels != VOID], labels[labels != VOID].long())
    cooled = callback(trained.network)
    cooled.after_epoch(trained)
    assert cooled.pixels == (labels != VOID).sum()
    assert cooled.temperature == cooling.temperature
    assert abs(cooled.temperature - 1) > 0.05
    after = torch.cat(list(pixel_logits(trained, images)))
    torch.testing.assert_close(after, before / cooled.temperature)


def test_a_choice_of_pixels_depends_on_the_seed_alone_and_leaves_void_out(
    trained: Trainer,
) -> None:
    labels, found = scenes(COUNT, right=0.3).labels.flatten(), []
    whole = pixel_table(torch.cat(list(pixel_logits(trained, scenes(COUNT).inputs))))
    for seed in (0, 0, 1):
        cooled = callback(copy.deepcopy(trained.network), most=500, seed=seed)
        assert cooled.pixels == 500
        assert not (labels[cooled._rows] == VOID).any()
        cooled.after_epoch(trained)
        expected = Cooling(copy.deepcopy(trained.network), factor=0.5)
        expected.cool(whole[cooled._rows], labels[cooled._rows].long())
        assert cooled.temperature == expected.temperature
        found.append(cooled._rows.tolist())
    assert found[0] == found[1] != found[2]
    assert max(found[0]) >= BATCH * 256, "no pixel is from the second batch"


def test_non_finite_values_are_divergence(trained: Trainer) -> None:
    cooled = callback(trained.network)
    scores = PixelScores(scenes(3), void=VOID, temperature=lambda: 1.0)
    with torch.no_grad():
        trained.network.get_parameter("classifier.bias")[0] = torch.nan
    for each in (cooled, scores):
        with pytest.raises(Diverged, match="logits are not finite"):
            each.after_epoch(trained)
    assert cooled.temperature == 1
    assert scores.history == []

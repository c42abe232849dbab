"""Labels for every pixel: the loss, the pieces of logits, and the scores equal slower ways to the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from sklearn.metrics import accuracy_score, jaccard_score
from torch import Tensor, nn

from softmax_temperature.networks.unet import UNet
from softmax_temperature.training import Diverged, ImageSet, Trainer
from softmax_temperature.training.pixels import (
    BATCH,
    PixelScores,
    pixel_cross_entropy,
    pixel_logits,
    pixel_predictions,
)

CLASSES, VOID = 3, 200
MakeTrainer = Callable[..., Trainer]


def scenes(count: int, seed: int = 0) -> ImageSet:
    """Noise of 16×16 pixels, whose brightest channel is the class; a tenth is void."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (count, 16, 16), generator=generator)
    images = torch.randint(0, 120, (count, 3, 16, 16), generator=generator)
    images.scatter_add_(1, labels[:, None], torch.full_like(labels[:, None], 120))
    labels[torch.rand(labels.shape, generator=generator) < 0.1] = VOID
    return ImageSet(images.to(torch.uint8), labels.to(torch.uint8))


@pytest.fixture
def make_unet(make_trainer: MakeTrainer) -> MakeTrainer:
    """A training of a narrow U-Net on 8 scenes."""

    def make(width: int = 2, **changes: Any) -> Trainer:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            network: nn.Module = UNet(CLASSES, width)
        given = {"objective": pixel_cross_entropy(VOID), "images": scenes(8), "batch_size": 4, **changes}
        return make_trainer(network, **given)

    return make


def test_the_loss_is_the_mean_over_labelled_pixels() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, CLASSES, 3, 5, generator=generator, dtype=torch.float64)
    labels = scenes(2).labels[:, :3, :5].contiguous()
    assert (labels == VOID).any()
    slow = [
        -torch.log_softmax(logits[image, :, row, column], 0)[labels[image, row, column].item()].item()
        for image, row, column in (labels != VOID).nonzero().tolist()
    ]
    loss = pixel_cross_entropy(VOID)
    assert loss(logits, labels, 0.0).item() == pytest.approx(sum(slow) / len(slow))
    changed = logits.clone()
    changed.movedim(1, -1)[labels == VOID] += 7
    assert loss(changed, labels, 0.0).item() == pytest.approx(loss(logits, labels, 0.0).item())


def test_a_batch_without_a_class_has_no_loss_and_no_gradient() -> None:
    logits = torch.randn(1, CLASSES, 2, 2, requires_grad=True)
    loss = pixel_cross_entropy(VOID)(logits, torch.full((1, 2, 2), VOID, dtype=torch.uint8), 0.0)
    loss.backward()
    assert loss.item() == 0
    assert logits.grad is not None
    assert logits.grad.abs().max() == 0


def test_logits_in_pieces_are_those_of_the_network(make_unet: MakeTrainer) -> None:
    trainer = make_unet()
    trainer.epoch()
    images = scenes(BATCH + 3).inputs
    pieces = list(pixel_logits(trainer, images))
    assert [len(piece) for piece in pieces] == [BATCH, 3]
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (trainer.recipe.mean, trainer.recipe.std))
    with torch.no_grad():
        plain = trainer.network.eval()((images / 255 - mean) / std)
    torch.testing.assert_close(torch.cat(pieces), plain, rtol=1e-4, atol=1e-5)
    assert torch.equal(pixel_predictions(trainer, images), torch.cat(pieces).argmax(1))
    assert not pieces[0].requires_grad
    # Torch's switch is back where it was, also between the pieces.
    for _ in pixel_logits(trainer, images):
        assert torch.is_grad_enabled()


def test_a_unet_learns_pixels(make_unet: MakeTrainer) -> None:
    trainer = make_unet(6, epochs=12, planned_epochs=12, lr=0.2, images=scenes(24))
    scores = PixelScores(scenes(20, seed=1), void=VOID, temperature=lambda: 1.5)
    for _ in range(12):
        trainer.epoch()
        scores.after_epoch(trainer)
    assert [row["epoch"] for row in scores.history] == list(range(1, 13))
    assert scores.history[-1]["mean_iou"] > 0.7
    assert scores.history[-1]["temperature"] == 1.5
    assert scores.history[-1]["loss"] == trainer.loss


def test_scores_are_scikit_learns(make_unet: MakeTrainer) -> None:
    trainer, test = make_unet(), scenes(BATCH + 3, seed=2)
    trainer.epoch()
    scores = PixelScores(test, void=VOID, temperature=lambda: 1.0)
    scores.after_epoch(trainer)
    kept = test.labels != VOID
    truth, predicted = test.labels[kept], pixel_predictions(trainer, test.inputs)[kept]
    [row] = scores.history
    present = sorted({*truth.tolist(), *predicted.tolist()})
    assert row["mean_iou"] == pytest.approx(jaccard_score(truth, predicted, labels=present, average="macro"))
    assert row["pixel_accuracy"] == pytest.approx(accuracy_score(truth, predicted))


def test_scores_of_a_network_that_is_not_finite_are_none(make_unet: MakeTrainer) -> None:
    trainer, scores = make_unet(), PixelScores(scenes(3), void=VOID, temperature=lambda: 1.0)
    with torch.no_grad():
        trainer.network.get_parameter("classifier.bias")[0] = torch.inf
    with pytest.raises(Diverged, match="logits are not finite"):
        scores.after_epoch(trainer)
    assert scores.history == []


@pytest.mark.parametrize("moves", [{"flip": True}, {"crop_padding": 2}])
def test_labels_would_not_move_with_augmented_images(make_unet: MakeTrainer, moves: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="recipe must not augment pixels with labels"):
        make_unet(**moves)


def test_labels_that_are_no_map_of_the_images_are_refused() -> None:
    images: Tensor = scenes(2).inputs
    with pytest.raises(ValueError, match=r"one for each pixel \(2, 16, 16\), got \(2, 16, 8\)"):
        ImageSet(images, torch.zeros(2, 16, 8, dtype=torch.uint8))

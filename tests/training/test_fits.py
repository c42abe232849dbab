"""Every fit during training refuses test data."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from softmax_temperature.data.splits import LeakError
from softmax_temperature.training import BestEpoch, Watch
from softmax_temperature.training.cooling import CoolingCallback, PixelCoolingCallback
from softmax_temperature.training.pairs import start_norm
from softmax_temperature.training.translation.scores import (
    TokenScores,
    best_temperature,
)
from softmax_temperature.training.translation.sentences import LengthBatches
from tests import small_trainings as small

REFUSED = "a fit must not use the test split"
TEST_IMAGES = small.images(12, split="test")


def fits(make_trainer: Callable[..., Any]) -> dict[str, Callable[[], Any]]:
    trainer = make_trainer()
    settings = {"period": "epoch", "optimizer_state": "keep"}
    pixels = {"void": small.VOID, "factor": 1.0, "seed": 0}
    batches = LengthBatches.of(small.pairs(9, split="test"), tokens=60, seed=1)
    scores = TokenScores(batches)
    scores.history.append({"nll": 1.0})
    row = {"split": "test", "temperature": 1.0, "ece": 0.1}
    return {
        "a network": lambda: make_trainer(
            images=small.images(21, size=6, split="test")
        ),
        "Cooling": lambda: CoolingCallback(trainer.network, TEST_IMAGES, **settings),
        "Cooling of pixels": lambda: PixelCoolingCallback(
            trainer.network, small.segmented(4, split="test"), **pixels
        ),
        "the norm of a start": lambda: start_norm(trainer, TEST_IMAGES, "plain"),
        "the best epoch": lambda: BestEpoch(scores).after_epoch(trainer),
        "a temperature of translations": lambda: best_temperature([row]),
    }


@pytest.mark.parametrize(
    "fit",
    [
        "a network",
        "Cooling",
        "Cooling of pixels",
        "the norm of a start",
        "the best epoch",
        "a temperature of translations",
    ],
)
def test_test_data_are_refused(fit: str, make_trainer: Callable[..., Any]) -> None:
    with pytest.raises(LeakError, match=REFUSED):
        fits(make_trainer)[fit]()


def test_samples_keep_their_split_when_rows_or_nodes_are_taken() -> None:
    assert TEST_IMAGES.sample(3).split == "test"
    assert TEST_IMAGES.to("cpu").split == "test"
    assert small.trees(4, split="test").labelled_nodes().split == "test"
    assert small.pairs(9, split="test").up_to(9).split == "test"


def test_samples_under_the_name_of_another_split_are_refused() -> None:
    with pytest.raises(ValueError, match="test data must not be named 'validation'"):
        Watch({"validation": TEST_IMAGES})


def test_the_best_epoch_reads_the_last_row_of_validation_data() -> None:
    watch = Watch({})
    splits = ("train", "validation", "test")
    watch.history = [
        {"split": split, "epoch": epoch} for epoch in (1, 2) for split in splits
    ]
    assert watch.validation_row() == {"split": "validation", "epoch": 2}
    assert torch.equal(TEST_IMAGES.labels, TEST_IMAGES.sample(None).labels)

"""The best epoch is chosen by validation data alone, and survives an interruption."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from softmax_temperature.runner.cells import Job
from softmax_temperature.runner.checkpoints import load_checkpoint, save_checkpoint
from softmax_temperature.training import BestEpoch, Trainer, Watch, train

MakeTrainer = Callable[..., Trainer]


class Told(Watch):
    """A watch that sees the accuracies that it is told."""

    def __init__(self, accuracies: dict[str, list[float]]) -> None:
        super().__init__({})
        self._accuracies = accuracies

    def after_epoch(self, trainer: Trainer) -> None:
        epoch = trainer.epochs_done
        for split, values in self._accuracies.items():
            self.history.append({"epoch": epoch, "split": split, "accuracy": values[epoch - 1]})


@pytest.mark.parametrize(
    ("validation", "best"), [([0.2, 0.6, 0.6, 0.4], 2), ([0.0, 0.0, 0.0, 0.0], 1), ([0.1, 0.2, 0.3, 0.4], 4)]
)
def test_the_first_of_the_best_epochs_by_validation_accuracy_is_kept(
    make_trainer: MakeTrainer, validation: list[float], best: int
) -> None:
    trainer = make_trainer(epochs=4, planned_epochs=4)
    watch = Told({"train": [0.9, 0.1, 0.1, 0.1], "validation": validation, "test": [0.1, 0.1, 0.9, 0.1]})
    chosen, weights = BestEpoch(watch), []
    for _ in range(4):
        trainer.epoch()
        watch.after_epoch(trainer)
        chosen.after_epoch(trainer)
        weights.append([value.clone() for value in trainer.network.state_dict().values()])
    assert chosen.epoch == best
    chosen.restore(trainer)
    assert all(map(torch.equal, trainer.network.state_dict().values(), weights[best - 1]))


def content(trainer: Trainer, best: BestEpoch) -> tuple[int, list[bytes]]:
    best.restore(trainer)
    return best.epoch, [value.numpy().tobytes() for value in trainer.network.state_dict().values()]


def begin(make_trainer: MakeTrainer, make_images: Any, epochs: int = 6) -> tuple[Trainer, Watch, BestEpoch]:
    trainer = make_trainer(epochs=6, planned_epochs=6, lr=0.2)
    trainer.recipe = trainer.recipe.changed({"epochs": epochs})
    watch = Watch({split: make_images(seed=number) for number, split in enumerate(("train", "validation"))})
    return trainer, watch, BestEpoch(watch)


def test_a_resumed_training_keeps_the_same_epoch_and_bits(
    make_trainer: MakeTrainer, make_images: Any, make_job: Callable[[Path], Job], tmp_path: Path
) -> None:
    whole, watch, best = begin(make_trainer, make_images)
    assert not train(whole, {"watch": watch, "best": best}, make_job(tmp_path / "whole"))
    parts = dict(zip(("trainer", "watch", "best"), begin(make_trainer, make_images), strict=True))
    for _ in range(4):
        for part in parts.values():
            part.epoch() if isinstance(part, Trainer) else part.after_epoch(parts["trainer"])  # type: ignore[arg-type, union-attr]
    job = make_job(tmp_path / "resumed")
    save_checkpoint(job.work / "checkpoint.pt", {name: part.state_dict() for name, part in parts.items()})
    assert load_checkpoint(job.work / "checkpoint.pt")
    resumed, seen, kept = begin(make_trainer, make_images)
    assert not train(resumed, {"watch": seen, "best": kept}, replace(job, checkpoint_seconds=0.0))
    assert seen.history == watch.history
    assert content(whole, best) == content(resumed, kept)

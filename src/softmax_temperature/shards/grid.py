"""The temperature grid, trained and tested on shards larger than memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from softmax_temperature.cosine_classifier import TemperatureGrid, TemperatureGridTrainer
from softmax_temperature.runner.errors import InputError
from softmax_temperature.shards.training_rows import BUFFER_BYTES, TrainingRows

if TYPE_CHECKING:
    from softmax_temperature.shards.reading import ShardedEmbeddings

TEST_ROWS = 4096  # At a time.


def train_grid_on_shards(
    shards: ShardedEmbeddings,
    inverse_temperatures: Sequence[float] | Tensor,
    *,
    epochs: int,
    buffer_bytes: int = BUFFER_BYTES,
    **options: Any,
) -> TemperatureGrid:
    """Test accuracy of a cosine classifier at each inverse temperature, all trained at once, from shards.

    `softmax_temperature.cosine_classifier.train_temperature_grid` for rows that fit in no memory.

    Args:
        shards: with rows to train on and rows to test on.
        inverse_temperatures: positive numbers that multiply the cosines, shape (temperatures,).
        epochs: passes over the training rows.
        buffer_bytes: of rows in memory at a time; see `TrainingRows`.
        options: `batch_size`, `lr` and the others of `TemperatureGridTrainer`.

    Raises:
        ValueError: an option is out of range; the message names it.
        InputError: a shard is damaged, or there is no row to test on.
    """
    if epochs < 1:
        raise ValueError(f"epochs must be at least 1, got {epochs}")
    trainer = TemperatureGridTrainer(TrainingRows(shards, buffer_bytes=buffer_bytes), inverse_temperatures, **options)
    curves = []
    for _ in range(epochs):
        trainer.epoch()
        curves.append(accuracy_on_shards(trainer, shards))
    return TemperatureGrid(trainer.inverse_temperatures, torch.stack(curves, dim=2), evaluated=shards.rows("test"))


def accuracy_on_shards(trainer: TemperatureGridTrainer, shards: ShardedEmbeddings) -> Tensor:
    """Accuracy of every problem on the rows to test on, as `TemperatureGridTrainer.evaluate` gives it.

    Raises:
        InputError: there is no such row.
    """
    if not shards.rows("test"):
        remedy = "Embed more images: one in ten is held out."
        raise InputError("there is no row to test on", where=str(shards.folder), remedy=remedy)
    return _accuracy(trainer, shards.batches("test", TEST_ROWS))


def _accuracy(trainer: TemperatureGridTrainer, batches: Iterable[tuple[Tensor, Tensor]]) -> Tensor:
    # Counts again, which add up without rounding.
    parts = [(torch.round(trainer.evaluate(*batch) * len(batch[1])), len(batch[1])) for batch in batches]
    return torch.stack([correct for correct, _ in parts]).sum(0) / sum(rows for _, rows in parts)

"""Rows to train on from shards larger than memory, a buffer of pieces from many shards at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch

from softmax_temperature.cosine_classifier.draws import BATCH_ORDER, PIECE_ORDER, generator
from softmax_temperature.cosine_classifier.inputs import normalise
from softmax_temperature.cosine_classifier.products import choose_products
from softmax_temperature.cosine_classifier.rows import Portion

if TYPE_CHECKING:
    from torch import Tensor

    from softmax_temperature.cosine_classifier.settings import Settings
    from softmax_temperature.shards.reading import Piece, ShardedEmbeddings

BUFFER_BYTES = 2**27
PIECES = 16
"""Of a buffer, each from another place: more would mix better, and read less at a time."""


class TrainingRows:
    """A source of rows for `TemperatureGridTrainer`.

    In each epoch the pieces of all shards come in another order; those that fill a buffer are read, and their rows are
    shuffled. Where one buffer holds all rows, the batches are those of the same rows in memory, to the last bit.

    Args:
        shards: what to train on.
        buffer_bytes: of rows in memory at a time, as float32. Training takes some six times as much, for copies in the
            form of its matrix products.

    Raises:
        ValueError: `buffer_bytes` is below 1.
    """

    def __init__(self, shards: ShardedEmbeddings, *, buffer_bytes: int = BUFFER_BYTES) -> None:
        if buffer_bytes < 1:
            raise ValueError(f"buffer_bytes must be at least 1, got {buffer_bytes}")
        self._shards, self._buffer_bytes = shards, buffer_bytes

    def prepared(self, settings: Settings, device: torch.device | str | None) -> PreparedShards:
        """The rows for a training with these settings; by default on the CPU."""
        rows = max(settings.batch_size, self._buffer_bytes // (torch.float32.itemsize * self._shards.dim))
        return PreparedShards(self._shards, settings, torch.device(device or "cpu"), rows)


class PreparedShards:
    """See `softmax_temperature.cosine_classifier.rows.PreparedRows`.

    Args:
        shards: what to train on.
        settings: of the training.
        device: where.
        buffer_rows: in memory at a time.
    """

    def __init__(self, shards: ShardedEmbeddings, settings: Settings, device: torch.device, buffer_rows: int) -> None:
        self.count, self.dim, self.classes = shards.rows("train"), shards.dim, len(shards.labels)
        self.device = device
        self._shards, self._settings, self._buffer_rows = shards, settings, buffer_rows
        self._dtype = choose_products(settings.precision, device).dtype

    def portions(self, epoch: int) -> Iterator[Portion]:
        """All rows once; what fills no batch at the end of a buffer goes to the next one."""
        seed, size = self._settings.seed, self._settings.batch_size
        order, left = generator(seed, BATCH_ORDER, epoch), None
        groups = self._groups(epoch)
        for number, group in enumerate(groups, start=1):
            embeddings, labels = self._read(group)
            if left is not None:
                embeddings, labels = torch.cat([left[0], embeddings]), torch.cat([left[1], labels])
            rows = torch.randperm(len(labels), generator=order).to(self.device)
            whole = len(rows) if number == len(groups) else len(rows) // size * size
            yield Portion(embeddings, labels, rows[:whole].split(size) if whole else ())
            left = embeddings[rows[whole:]], labels[rows[whole:]]

    def _groups(self, epoch: int) -> list[list[Piece]]:
        """The pieces of each buffer, within it in the order of the shards."""
        pieces = self._shards.pieces("train", max(1, self._buffer_rows // PIECES))
        order = torch.randperm(len(pieces), generator=generator(self._settings.seed, PIECE_ORDER, epoch))
        groups: list[list[Piece]] = []
        room = 0
        for piece in (pieces[number] for number in order.tolist()):
            if len(piece.rows) > room:
                groups.append([])
                room = self._buffer_rows
            groups[-1].append(piece)
            room -= len(piece.rows)
        return [sorted(group, key=lambda piece: (piece.shard, piece.rows.start)) for group in groups]

    def _read(self, pieces: list[Piece]) -> tuple[Tensor, Tensor]:
        embeddings, labels = self._shards.read("train", pieces)
        unit = normalise(embeddings.to(self.device, self._settings.wide_dtype), name="train embeddings")
        return unit.to(self._dtype), labels.to(self.device)

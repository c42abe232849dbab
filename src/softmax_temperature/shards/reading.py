"""Embeddings in shards, read in pieces: nothing here ever holds all rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from softmax_temperature.data.tensor_stream import read_rows
from softmax_temperature.networks.embeddings import EMBEDDINGS
from softmax_temperature.runner.errors import InputError
from softmax_temperature.shards.index import AGAIN, open_shards, read_index, remedied

if TYPE_CHECKING:
    from softmax_temperature.data.splits import SplitName
    from softmax_temperature.runner.artifacts import Artifact
    from softmax_temperature.shards.index import Entry


_Form = tuple[str | int, ...]


class Piece(NamedTuple):
    """Rows that follow each other in a shard.

    Attributes:
        shard: its number in the index.
        rows: of the part of the shard that belongs to a split.
    """

    shard: int
    rows: range


class ShardedEmbeddings:
    """What `softmax-temperature embed` has written, opened.

    Classes are numbered from 0 in the order of the labels that have rows to train on; rows of other labels are left out
    of the rows to test on.

    Args:
        folder: with the index.

    Attributes:
        folder: the same.
        index: what the shards hold together.
        dim: length of an embedding.
        labels: of the classes, ascending.

    Raises:
        InputError: the index or a shard is missing or damaged, or no row is there to train on.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.index = folder, read_index(folder)
        self.dim = self.index.dim
        self.labels = sorted(int(label) for label, rows in self.index.train.items() if rows)
        self._artifacts = open_shards(folder, self.index)
        self._numbers = torch.tensor(self.labels)
        if not self.labels:
            raise InputError("no shard has a row to train on", where=str(folder), remedy="Embed more images.")

    def rows(self, split: SplitName) -> int:
        """How many there are to train on, or to test on."""
        counts = self.index.train if split == "train" else self.index.test
        return sum(counts.get(str(label), 0) for label in self.labels)

    def pieces(self, split: SplitName, size: int) -> list[Piece]:
        """All rows of a split in pieces of at most so many rows, in the order of the shards.

        The first call, or the first of `read`, verifies the bytes of all shards.

        Raises:
            InputError: a shard is damaged.
        """
        assert len(self._files) == len(self.index.shards)
        return [
            Piece(number, range(start, min(start + size, rows)))
            for number, entry in enumerate(self.index.shards)
            for rows in [_rows_of(entry, split)]
            for start in range(0, rows, size)
        ]

    def read(self, split: SplitName, pieces: Sequence[Piece]) -> tuple[Tensor, Tensor]:
        """Read some pieces.

        Returns:
            Embeddings (n, dim) float32 and classes (n,) int64, in the order of the pieces.

        Raises:
            InputError: a shard is damaged.
        """
        count = sum(len(piece.rows) for piece in pieces)
        embeddings, labels, done = torch.empty(count, self.dim), torch.empty(count, dtype=torch.int64), 0
        for shard, rows in pieces:
            here = slice(done, done := done + len(rows))
            (embeddings[here],) = read_rows(self._files[shard], f"{split}.embeddings", [rows])
            (labels[here],) = read_rows(self._files[shard], f"{split}.labels", [rows])
        return self._of_known_classes(embeddings, labels)

    def batches(self, split: SplitName, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """All rows of a split once, in the order of the shards, at most so many at a time: as `read`."""
        for piece in self.pieces(split, size):
            embeddings, classes = self.read(split, [piece])
            if len(classes):
                yield embeddings, classes

    def sample(self, rows: Iterable[int], split: SplitName = "train") -> tuple[Tensor, Tensor]:
        """Read single rows of a split.

        Args:
            rows: their numbers, ascending, counted through all shards.
            split: of which part.

        Returns:
            As `read`.
        """
        starts = [0]
        for entry in self.index.shards:
            starts.append(starts[-1] + _rows_of(entry, split))
        places = torch.as_tensor(list(rows))
        shards = torch.searchsorted(torch.tensor(starts), places, right=True) - 1
        found = zip(shards.tolist(), places.tolist(), strict=True)
        return self.read(
            split, [Piece(shard, range(row - starts[shard], row - starts[shard] + 1)) for shard, row in found]
        )

    @cached_property
    def _files(self) -> list[Path]:
        """The files of embeddings, every byte of which has been compared with the manifest."""
        return [
            self._verified(artifact, entry) for artifact, entry in zip(self._artifacts, self.index.shards, strict=True)
        ]

    def _verified(self, artifact: Artifact, entry: Entry) -> Path:
        with remedied():
            path = artifact.path(EMBEDDINGS)
        try:
            with safe_open(path, framework="pt") as file:
                slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
                found = {name: (one.get_dtype(), *one.get_shape()) for name, one in slices.items()}
        except (SafetensorError, OSError) as error:
            _refuse(path, f"is not a whole safetensors file ({error})")
        for name, form in _expected(entry, self.dim).items():
            if found.get(name) != form:
                _refuse(path, f"{name} is {_shown(found.get(name))}, the index says {_shown(form)}")
        return path

    def _of_known_classes(self, embeddings: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        classes = torch.searchsorted(self._numbers, labels).clamp_(max=len(self._numbers) - 1)
        known = self._numbers[classes] == labels
        return (embeddings, classes) if known.all() else (embeddings[known], classes[known])


def open_embedded(folder: Path | str) -> ShardedEmbeddings:
    """Open a folder of shards.

    Raises:
        InputError: it is none, or damaged.
    """
    return ShardedEmbeddings(Path(folder))


def _rows_of(entry: Entry, split: SplitName) -> int:
    return entry.train if split == "train" else entry.test


def _expected(entry: Entry, dim: int) -> dict[str, _Form]:
    """By the names of tensors, their type and shape."""
    forms: dict[str, _Form] = {}
    for split, rows in (("train", entry.train), ("test", entry.test)):
        if rows:
            forms |= {f"{split}.embeddings": ("F32", rows, dim), f"{split}.labels": ("I64", rows)}
    return forms


def _shown(form: _Form | None) -> str:
    return "not there" if form is None else f"{form[0]} of shape {form[1:]}"


def _refuse(path: Path, what: str) -> NoReturn:
    raise InputError(what, where=str(path), remedy=AGAIN)

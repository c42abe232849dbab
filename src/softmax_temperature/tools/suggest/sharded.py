"""Embeddings in shards larger than memory: a sample of rows to describe, and all rows to search on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from softmax_temperature.data.sampling import generator_for
from softmax_temperature.shards import ShardedEmbeddings, TrainingRows, accuracy_on_shards
from softmax_temperature.shards.index import INDEX
from softmax_temperature.tools.suggest.embedded import embedded

if TYPE_CHECKING:
    from torch import Tensor

    from softmax_temperature.cosine_classifier import TemperatureGridTrainer

SAMPLE_ROWS = 50_000
SAMPLE_BYTES = 2**27
"""Of the rows that are described, as float32; the statistics take some four times as much."""
_FLOAT_BYTES = 4


@dataclass(frozen=True)
class Sharded:
    """As `embedded.Embedded`, for what stands in shards.

    Attributes:
        shards: all rows.
        described: embeddings, shape (k, dim), and classes, shape (k,), of the sample.
    """

    shards: ShardedEmbeddings
    described: tuple[Tensor, Tensor]

    @property
    def train(self) -> TrainingRows:
        """The rows to train on."""
        return TrainingRows(self.shards)

    @property
    def train_rows(self) -> int:
        """How many rows there are to train on."""
        return self.shards.rows("train")

    @property
    def test_rows(self) -> int:
        """How many rows there are to test on."""
        return self.shards.rows("test")

    @property
    def classes(self) -> int:
        """How many classes the rows to train on have."""
        return len(self.shards.labels)

    def with_test(self, seed: int) -> tuple[Sharded, bool]:  # noqa: ARG002 - as of `Embedded`
        """The same: what to test on was held out when the images were embedded."""
        return self, True

    def accuracy_of(self, trainer: TemperatureGridTrainer) -> Callable[[], Tensor]:
        """What says how good the trainer's classifiers are now, on the rows to test on."""
        return lambda: accuracy_on_shards(trainer, self.shards)


def is_sharded(folder: Path) -> bool:
    """Whether a folder is one that `embed` has written."""
    return (folder / INDEX).is_file()


def read_sharded(folder: Path, *, seed: int) -> Sharded:
    """Open a folder of shards and draw the rows to describe: at most SAMPLE_ROWS, and SAMPLE_BYTES of them.

    Raises:
        InputError: it is damaged, or has not two classes.
    """
    shards = ShardedEmbeddings(folder)
    total = shards.rows("train")
    rows = min(total, SAMPLE_ROWS, max(1, SAMPLE_BYTES // (_FLOAT_BYTES * shards.dim)))
    chosen = generator_for(seed, "suggest", "sample").choice(total, rows, replace=False, shuffle=False)
    embeddings, classes = shards.sample(sorted(chosen.tolist()))
    arrays = {"embeddings": embeddings.numpy(), "labels": classes.numpy()}
    return Sharded(shards, embedded(arrays, None, (folder, folder)).train)

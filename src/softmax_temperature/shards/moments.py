"""Mean and variance of every feature over rows that come in pieces."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from softmax_temperature.data.splits import SplitName
    from softmax_temperature.shards.reading import ShardedEmbeddings

ROWS = 4096  # At a time.


@dataclass(frozen=True)
class Moments:
    """Of some rows.

    Attributes:
        count: how many rows.
        mean: of each feature, shape (dim,), float64.
        squares: sum of squared differences from the mean, likewise.
    """

    count: int
    mean: Tensor
    squares: Tensor

    @property
    def standard_deviation(self) -> Tensor:
        """Of each feature, population form, shape (dim,), float64."""
        return (self.squares / self.count).sqrt()

    def merged(self, other: Moments) -> Moments:
        """Of the rows of both: Chan, Golub and LeVeque (1979), which loses no digits where means are large."""
        count = self.count + other.count
        apart = other.mean - self.mean
        mean = self.mean + apart * (other.count / count)
        squares = self.squares + other.squares + apart.square() * (self.count * other.count / count)
        return Moments(count, mean, squares)


def moments_of(pieces: Iterable[Tensor]) -> Moments:
    """The moments of rows, shape (n, dim), that come in pieces.

    Raises:
        ValueError: there is none.
    """
    found = (_of_piece(piece.double()) for piece in pieces if len(piece))
    first = next(found, None)
    if first is None:
        raise ValueError("pieces must hold at least one row, got none")
    return reduce(Moments.merged, found, first)


def feature_moments(shards: ShardedEmbeddings, split: SplitName = "train") -> Moments:
    """The moments of the features of all rows of a split, as the backbone gave them.

    Raises:
        InputError: a shard is damaged.
    """
    return moments_of(embeddings for embeddings, _ in shards.batches(split, ROWS))


def _of_piece(rows: Tensor) -> Moments:
    mean = rows.mean(0)
    return Moments(len(rows), mean, (rows - mean).square_().sum(0))

"""Splits of a data set: their permitted uses, and random draws of their rows.

Data always carry their split, so that a fit can refuse test data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softmax_temperature.data.seeds import generator_for

SplitName = Literal["train", "validation", "test"]
SPLITS: tuple[SplitName, ...] = ("train", "validation", "test")
HELD_OUT = SPLITS[1:]


class LeakError(Exception):
    """Raised if data are used for a purpose that their split does not permit."""


def refuse_test(split: SplitName, data: str) -> None:
    """Raise LeakError for the test split; `data` names the data in the message."""
    if split == "test":
        raise LeakError(f"{data}: a fit must not use the test split")


@dataclass(frozen=True)
class Part:
    """One split of one data set: n rows of data and labels.

    Attributes:
        dataset: The name of the data set.
        split: The split, which decides how the rows may be used.
        data: Images, embeddings, points or token IDs (n, ...), or a tuple of n texts or
            bracketed trees.
        labels: Classes, an int64 tensor of shape (n,); or label maps (n, height,
            width); or a tuple of n translations.
        index: Row indices in the source's part, an int64 tensor of shape (n,).
    """

    dataset: str
    split: SplitName
    data: Any
    labels: Any
    index: Tensor

    def __post_init__(self) -> None:
        rows = len(self.data)
        labels = len(self.labels)
        indices = len(self.index)
        if not rows == labels == indices:
            lengths = f"{rows} rows, {labels} labels, {indices} indices"
            raise ValueError(f"{self.dataset}/{self.split}: {lengths}")

    @classmethod
    def of_all(cls, dataset: str, split: SplitName, data: Any, labels: Any) -> Part:
        """Make a split with all rows of the source's part."""
        return cls(dataset, split, data, labels, torch.arange(len(data)))

    def take(self, rows: NDArray[np.int64], split: SplitName | None = None) -> Part:
        """Select the given `rows`; the split is the same unless `split` is given."""
        return Part(
            self.dataset,
            split or self.split,
            _rows_of(self.data, rows),
            _rows_of(self.labels, rows),
            self.index[rows],
        )

    def for_fitting(self) -> tuple[Any, Any]:
        """Return data and labels for a fit; raise LeakError for the test split."""
        refuse_test(self.split, self.dataset)
        return self.data, self.labels

    def for_evaluation(self) -> tuple[Any, Any]:
        """Return data and labels of any split, for a report."""
        return self.data, self.labels

    def for_vocabulary(self) -> Sequence[str]:
        """Return the texts and translations whose words may be counted.

        Any split except the training split raises LeakError.
        """
        if self.split != "train":
            raise LeakError(
                f"{self.dataset}: a vocabulary must not use the {self.split} split"
            )
        if isinstance(self.labels, Tensor):
            return tuple(self.data)
        return (*self.data, *self.labels)


def _rows_of(column: Any, rows: NDArray[np.int64]) -> Any:
    if isinstance(column, Tensor):
        return column[rows]
    return tuple(column[row] for row in rows.tolist())


def limited(part: Part, limit: int | None, *, seed: int) -> Part:
    """Draw at most `limit` rows of `part`, regardless of class; None keeps all rows."""
    size = len(part.labels)
    if limit is None or limit >= size:
        return part
    generator = generator_for(seed, part.dataset, f"{part.split} limit")
    order = generator.permutation(size)
    return part.take(np.sort(order[:limit]))


def balanced_subset(
    labels: NDArray[np.int64], limit: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Draw the rows of a class-balanced subset of min(limit, n) samples, ascending.

    From generators in the same state, a smaller subset is part of a larger one.
    """
    rank = _rank_within_class(labels, generator)
    class_order = generator.permutation(int(labels.max()) + 1)
    by_rank_then_class = np.lexsort((class_order[labels], rank))
    return np.sort(by_rank_then_class[:limit])


def stratified_holdout(
    labels: NDArray[np.int64], fraction: float, generator: np.random.Generator
) -> NDArray[np.bool_]:
    """Draw the mask (n,) of the rows to hold out, `fraction` of each class.

    The count per class is rounded to the nearest number, but is at least one and leaves
    at least one sample; a class with a single sample loses none. A network trained on
    the rest therefore sees every class, but a row's probability of being held out
    depends on the size of its class. `random_holdout` gives all rows the same
    probability.
    """
    sizes = np.bincount(labels)
    nearest = np.floor(sizes * fraction + 0.5)
    held_out = np.clip(nearest, 1, np.maximum(sizes - 1, 0))
    mask: NDArray[np.bool_] = _rank_within_class(labels, generator) < held_out[labels]
    return mask


def random_holdout(
    labels: NDArray[np.int64], fraction: float, generator: np.random.Generator
) -> NDArray[np.bool_]:
    """Draw the mask (n,) of the rows to hold out, stratified by class.

    Each row is held out with probability `fraction`, and each class loses this share as
    closely as whole rows allow. This is systematic sampling: classes and their rows are
    shuffled and counted from a random starting point, and a row is held out whenever
    the count passes another multiple of 1 / `fraction`. A class of s rows loses s *
    `fraction` rows, rounded up or down at random; rows added to one class by rounding
    are missing from another. The probability therefore depends neither on a row's class
    nor on the size of that class.
    """
    turn = generator.permutation(int(labels.max()) + 1)[labels]
    order = np.lexsort((generator.random(len(labels)), turn))
    passed = np.floor(fraction * np.arange(len(labels) + 1) + generator.random())
    held_out = np.empty(len(labels), dtype=np.bool_)
    held_out[order] = np.diff(passed) > 0
    return held_out


def _rank_within_class(
    labels: NDArray[np.int64], generator: np.random.Generator
) -> NDArray[np.int64]:
    """Draw the rank (n,) of each row in a random order of its class, from 0."""
    shuffled = generator.permutation(len(labels))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    sizes = np.bincount(labels)
    starts = np.cumsum(sizes) - sizes
    rank = np.empty(len(labels), dtype=np.int64)
    rank[by_class] = np.arange(len(labels)) - np.repeat(starts, sizes)
    return rank

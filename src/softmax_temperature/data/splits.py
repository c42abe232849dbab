"""The parts of a data set as its source has it, and the split ledger: test data cannot
reach a fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softmax_temperature.data.seeds import generator_for
from softmax_temperature.runner.errors import InputError

SplitName = Literal["train", "validation", "test"]
SPLITS: tuple[SplitName, ...] = ("train", "validation", "test")
HELD_OUT = SPLITS[1:]


class LeakError(Exception):
    """Test data were asked for to fit something."""


def refuse_test(split: SplitName, data: str) -> None:
    """Raise LeakError if data of the test split are asked for to fit something."""
    if split == "test":
        raise LeakError(f"{data}: the test split was asked for to fit something")


@dataclass(frozen=True)
class Part:
    """One split of one data set: n rows of data and labels, and what they may be used
    for.

    Data are images, embeddings, logits (n, ...) or a tuple of texts, labels (n,) int64
    or maps (n, height, width); or both are tuples, of sentences and their translations.
    `index` (n,) int64 are the rows of the original part.
    """

    dataset: str
    split: SplitName
    data: Any
    labels: Any
    index: Tensor

    def __post_init__(self) -> None:
        if not len(self.data) == len(self.labels) == len(self.index):
            lengths = f"{len(self.data)} rows, {len(self.labels)} labels, {len(self.index)} indices"
            raise ValueError(f"{self.dataset}/{self.split}: {lengths}")

    @classmethod
    def of_all(cls, dataset: str, split: SplitName, data: Any, labels: Any) -> Part:
        """All rows of the original part."""
        return cls(dataset, split, data, labels, torch.arange(len(data)))

    def take(self, rows: NDArray[np.int64], split: SplitName | None = None) -> Part:
        """Some rows, perhaps as another split."""
        data, labels = (
            side[rows]
            if isinstance(side, Tensor)
            else tuple(side[row] for row in rows.tolist())
            for side in (self.data, self.labels)
        )
        return Part(self.dataset, split or self.split, data, labels, self.index[rows])

    def for_fitting(self) -> tuple[Any, Any]:
        """Data and labels to fit parameters on; the test split raises LeakError."""
        refuse_test(self.split, self.dataset)
        return self.data, self.labels

    def for_evaluation(self) -> tuple[Any, Any]:
        """Data and labels to report on; any split."""
        return self.data, self.labels

    def for_vocabulary(self) -> Sequence[str]:
        """All texts, whose words may become a vocabulary; any split but train raises
        LeakError.
        """
        if self.split != "train":
            raise LeakError(
                f"{self.dataset}: the {self.split} split was asked for to make a vocabulary"
            )
        return (*self.data, *(() if isinstance(self.labels, Tensor) else self.labels))


@dataclass(frozen=True)
class RawPart:
    """Samples and labels (n,) int64 of one part."""

    samples: (
        NDArray[np.uint8] | tuple[str, ...]
    )  # (n, height, width, 1 or 3), or n image files, texts or trees.
    labels: NDArray[np.int64]


@dataclass(frozen=True)
class RawDataset:
    """A data set from any source; `train` is all of it when `test` is None,
    `validation` what the source sets aside.
    """

    name: str
    class_names: tuple[str, ...]
    train: RawPart
    test: RawPart | None
    source: Mapping[str, Any]
    split_rule: str = "the source's own train and test parts"
    validation: RawPart | None = None
    form: str = "images"  # Or "texts" or "trees".

    def pooled(self) -> RawDataset:
        """The same texts as one train part, without the source's own parts."""
        train = _end_to_end(
            [
                part
                for part in (self.train, self.validation, self.test)
                if part is not None
            ]
        )
        return replace(
            self,
            train=train,
            validation=None,
            test=None,
            source={**self.source, "pooled": True},
        )


def joined(parts: Sequence[RawDataset]) -> RawDataset:
    """Archives of images of one size, with the same class names, end to end under the
    name of the first.
    """
    first, *others = parts
    if not others:
        return first
    shapes = {part.class_names + np.shape(part.train.samples)[1:] for part in parts}
    if len(shapes) > 1 or any(
        part.test is None or not isinstance(part.train.samples, np.ndarray)
        for part in parts
    ):
        what = "cannot be joined: that takes arrays of images of one size, with the same class names"
        raise InputError(
            what,
            where=f"data sets {', '.join(part.name for part in parts)}",
            remedy="Use one of them.",
        )
    source = {
        **first.source,
        "file": ", ".join(str(part.source.get("file")) for part in parts),
    }
    train, test = (
        _end_to_end([part.train for part in parts]),
        _end_to_end([part.test for part in parts]),
    )
    return replace(first, train=train, test=test, source=source)


def _end_to_end(parts: Sequence[Any]) -> RawPart:
    samples = [part.samples for part in parts]
    joint = (
        sum(samples, ()) if isinstance(samples[0], tuple) else np.concatenate(samples)
    )
    return RawPart(joint, np.concatenate([part.labels for part in parts]))


def limited(part: Part, limit: int | None, *, seed: int) -> Part:
    """At most `limit` rows of a part, drawn at random without regard to classes; None
    keeps all.
    """
    if limit is None or limit >= len(part.labels):
        return part
    order = generator_for(seed, part.dataset, f"{part.split} limit").permutation(
        len(part.labels)
    )
    return part.take(np.sort(order[:limit]))


def balanced_subset(
    labels: NDArray[np.int64], limit: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """min(limit, n) rows, ascending, as many of each class as possible; a smaller
    subset is part of a larger one.
    """
    rank = _rank_within_class(labels, generator)
    turn = generator.permutation(int(labels.max()) + 1)[labels]
    return np.sort(np.lexsort((turn, rank))[:limit])


def stratified_holdout(
    labels: NDArray[np.int64], fraction: float, generator: np.random.Generator
) -> NDArray[np.bool_]:
    """Which rows are held out, (n,): of every class the number nearest to `fraction`,
    at least one, never all.
    """
    sizes = np.bincount(labels)
    held_out = np.clip(np.floor(sizes * fraction + 0.5), 1, np.maximum(sizes - 1, 0))
    rows: NDArray[np.bool_] = _rank_within_class(labels, generator) < held_out[labels]
    return rows


def _rank_within_class(
    labels: NDArray[np.int64], generator: np.random.Generator
) -> NDArray[np.int64]:
    shuffled = generator.permutation(len(labels))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    sizes = np.bincount(labels)
    rank = np.empty(len(labels), dtype=np.int64)
    rank[by_class] = np.arange(len(labels)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return rank

"""The split ledger: every array carries the split it came from, and test data cannot reach a fit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

SplitName = Literal["train", "validation", "test"]
SPLITS: tuple[SplitName, ...] = ("train", "validation", "test")


class LeakError(Exception):
    """Test data were asked for to fit something."""


@dataclass(frozen=True)
class Part:
    """One split of one data set: n rows of data and labels, and what they may be used for.

    Data are images, embeddings, logits (n, ...) or a tuple of texts, and labels are (n,) int64 or maps (n, height,
    width); or both are tuples, of sentences and their translations. `index` (n,) int64 holds the row numbers in the
    original train or test part; logits and labels that are joined must agree in it.
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
    def of_pairs(cls, dataset: str, split: SplitName, sources: tuple[str, ...], targets: tuple[str, ...]) -> "Part":
        """Sentences and their translations, all of them."""
        return cls(dataset, split, sources, targets, torch.arange(len(sources)))

    def take(self, rows: NDArray[np.int64], split: SplitName | None = None) -> "Part":
        """Some rows, perhaps as another split."""
        data, labels = (
            side[rows] if isinstance(side, Tensor) else tuple(side[row] for row in rows.tolist())
            for side in (self.data, self.labels)
        )
        return Part(self.dataset, split or self.split, data, labels, self.index[rows])

    def for_fitting(self) -> tuple[Any, Any]:
        """Data and labels to fit parameters on; the test split raises LeakError."""
        if self.split == "test":
            raise LeakError(f"{self.dataset}: the test split was asked for to fit something")
        return self.data, self.labels

    def for_evaluation(self) -> tuple[Any, Any]:
        """Data and labels to report on; any split."""
        return self.data, self.labels

    def for_vocabulary(self) -> Sequence[str]:
        """All texts, whose words may become a vocabulary; any split but train raises LeakError."""
        if self.split != "train":
            raise LeakError(f"{self.dataset}: the {self.split} split was asked for to make a vocabulary")
        return (*self.data, *(() if isinstance(self.labels, Tensor) else self.labels))

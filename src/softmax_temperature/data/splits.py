"""The split ledger: every array carries the split it came from, and test data cannot reach a fit.

Arrays travel through the pipeline as parts. A part gives its arrays away only for a stated purpose, and refuses what
its split does not allow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import Tensor

SplitName = Literal["train", "validation", "test"]
SPLITS: tuple[SplitName, ...] = ("train", "validation", "test")


class LeakError(Exception):
    """Test data were asked for to fit something."""


@dataclass(frozen=True)
class Part:
    """One split of one data set.

    Attributes:
        dataset: its name.
        split: which part of it this is.
        data: (n, ...) images, embeddings or logits.
        labels: (n,) int64.
        index: (n,) int64, the rows' numbers in the original train or test part; logits and labels that are to be
            joined must agree in it.
    """

    dataset: str
    split: SplitName
    data: Tensor
    labels: Tensor
    index: Tensor

    def __post_init__(self) -> None:
        if not len(self.data) == len(self.labels) == len(self.index):
            lengths = f"{len(self.data)} rows, {len(self.labels)} labels, {len(self.index)} indices"
            raise ValueError(f"{self.dataset}/{self.split}: {lengths}")

    def for_fitting(self) -> tuple[Tensor, Tensor]:
        """Data and labels to fit parameters on.

        Raises:
            LeakError: this is the test split.
        """
        if self.split == "test":
            raise LeakError(f"{self.dataset}: the test split was asked for to fit something")
        return self.data, self.labels

    def for_evaluation(self) -> tuple[Tensor, Tensor]:
        """Data and labels to report on; any split."""
        return self.data, self.labels

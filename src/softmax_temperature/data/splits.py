"""The split ledger: every array carries the split it came from, and test data cannot reach a fit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

SplitName = Literal["train", "validation", "test"]
SPLITS: tuple[SplitName, ...] = ("train", "validation", "test")


class LeakError(Exception):
    """Test data were asked for to fit something."""


@dataclass(frozen=True)
class _Ledger:
    """Which split of which data set something is, and therefore what it may be used for."""

    dataset: str
    split: SplitName

    def _check_fitting(self) -> None:
        if self.split == "test":
            raise LeakError(f"{self.dataset}: the test split was asked for to fit something")

    def _check_vocabulary(self) -> None:
        if self.split != "train":
            raise LeakError(f"{self.dataset}: the {self.split} split was asked for to make a vocabulary")


@dataclass(frozen=True)
class Part(_Ledger):
    """One split of one data set: (n, ...) images, embeddings or logits, (n,) int64 labels, and (n,) int64 `index`.

    The index holds the row numbers in the original train or test part; logits and labels that are joined must agree in
    it.
    """

    data: Tensor
    labels: Tensor
    index: Tensor

    def __post_init__(self) -> None:
        if not len(self.data) == len(self.labels) == len(self.index):
            lengths = f"{len(self.data)} rows, {len(self.labels)} labels, {len(self.index)} indices"
            raise ValueError(f"{self.dataset}/{self.split}: {lengths}")

    def for_fitting(self) -> tuple[Tensor, Tensor]:
        """Data and labels to fit parameters on; the test split raises LeakError."""
        self._check_fitting()
        return self.data, self.labels

    def for_evaluation(self) -> tuple[Tensor, Tensor]:
        """Data and labels to report on; any split."""
        return self.data, self.labels


@dataclass(frozen=True)
class TextPart(_Ledger):
    """One split of a data set of texts, before they become numbers: n texts, labels and index as in `Part`."""

    texts: Sequence[str]
    labels: Tensor
    index: Tensor

    def for_vocabulary(self) -> Sequence[str]:
        """Texts whose words may become a vocabulary; any split but train raises LeakError."""
        self._check_vocabulary()
        return self.texts


@dataclass(frozen=True)
class ParallelPart(_Ledger):
    """One split of a data set of sentences and their translations, as many of either."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.sources)

    def for_vocabulary(self) -> tuple[str, ...]:
        """Sentences of both languages; any split but train raises LeakError."""
        self._check_vocabulary()
        return self.sources + self.targets

    def for_fitting(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Sources and targets to fit parameters on; the test split raises LeakError."""
        self._check_fitting()
        return self.sources, self.targets

    def for_evaluation(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Sources and targets to report on; any split."""
        return self.sources, self.targets

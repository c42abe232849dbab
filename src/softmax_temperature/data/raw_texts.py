"""A data set of texts as it is found: its own parts, before any limit, split or storage."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray


class Texts(Protocol):
    """Texts in an order, in memory or not."""

    def __len__(self) -> int:
        """How many."""

    def read(self, rows: Iterable[int]) -> Iterator[str]:
        """Some of them, one at a time, in the order of `rows`."""


@dataclass(frozen=True)
class TextsInMemory:
    """Texts that were never in a file."""

    texts: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.texts)

    def read(self, rows: Iterable[int]) -> Iterator[str]:
        """Some of them, one at a time."""
        return (self.texts[row] for row in rows)


@dataclass(frozen=True)
class TextsTogether:
    """The texts of several parts, one part behind the other."""

    parts: tuple[Texts, ...]

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def read(self, rows: Iterable[int]) -> Iterator[str]:
        """Some of them, one at a time."""
        starts = [0, *accumulate(map(len, self.parts))]
        for number, some in groupby(rows, key=lambda row: bisect_right(starts, row) - 1):
            yield from self.parts[number].read(row - starts[number] for row in some)


@dataclass(frozen=True)
class RawTextPart:
    """The texts and labels of one part.

    Attributes:
        texts: n of them, none of them empty.
        labels: (n,) int64, below the number of classes.
    """

    texts: Texts
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        """Refuse a part whose texts and labels do not pair up."""
        if len(self.texts) != len(self.labels):
            raise ValueError(f"labels: {len(self.labels)}, must be as many as the {len(self.texts)} texts")


@dataclass(frozen=True)
class RawTextSet:
    """A data set of texts from any source.

    Attributes:
        name: its name.
        class_names: one for each label.
        train: what may be fitted on; the whole data set when there is no test part.
        validation: what the source itself sets aside from training; None when it has no such part.
        test: what may not be fitted on; None when the source has no such part.
        source: JSON values that say where it came from, for its card.
        split_rule: a sentence that says how the source tells its parts apart.
        trees: whether the texts are trees in brackets.
    """

    name: str
    class_names: tuple[str, ...]
    train: RawTextPart
    validation: RawTextPart | None
    test: RawTextPart | None
    source: Mapping[str, Any]
    split_rule: str = "the source's own train and test parts"
    trees: bool = False

    def pooled(self) -> RawTextSet:
        """The same texts without parts of the source's own: all of them are its train part."""
        parts = [part for part in (self.train, self.validation, self.test) if part is not None]
        together = RawTextPart(
            TextsTogether(tuple(part.texts for part in parts)), np.concatenate([part.labels for part in parts])
        )
        return replace(self, train=together, validation=None, test=None, source={**self.source, "pooled": True})

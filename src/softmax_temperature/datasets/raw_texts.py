"""A data set of texts as it is found: its own parts, before any limit, split or storage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import numpy as np
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
    """

    name: str
    class_names: tuple[str, ...]
    train: RawTextPart
    validation: RawTextPart | None
    test: RawTextPart | None
    source: Mapping[str, Any]
    split_rule: str = "the source's own train and test parts"

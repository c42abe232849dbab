"""A data set as it is found: its own train and test part, before any limit, split or storage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class RawPart:
    """The images and labels of one part.

    Attributes:
        images: (n, height, width, channels) uint8 with 1 or 3 channels, or n paths below data.root, with slashes.
        labels: (n,) int64, below the number of classes.
    """

    images: NDArray[np.uint8] | tuple[str, ...]
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        """Refuse a part whose images and labels do not pair up."""
        if len(self.images) != len(self.labels):
            raise ValueError(f"labels: {len(self.labels)}, must be as many as the {len(self.images)} images")


@dataclass(frozen=True)
class RawDataset:
    """A data set from any source.

    Attributes:
        name: its name.
        class_names: one for each label.
        train: what may be fitted on; the whole data set when there is no test part.
        test: what may not be fitted on; None when the source has no such part.
        source: JSON values that say where it came from, for its card.
        split_rule: a sentence that says how the source tells train from test.
    """

    name: str
    class_names: tuple[str, ...]
    train: RawPart
    test: RawPart | None
    source: Mapping[str, Any]
    split_rule: str = "the source's own train and test parts"

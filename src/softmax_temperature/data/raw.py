"""A data set as its source has it: its own parts, before any limit, split or storage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class RawPart:
    """The samples and labels of one part.

    Attributes:
        samples: (n, height, width, channels) uint8 with 1 or 3 channels; or n paths of image files below data.root,
            with slashes; or n texts or trees in brackets.
        labels: (n,) int64, below the number of classes.
    """

    samples: NDArray[np.uint8] | tuple[str, ...]
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        if len(self.samples) != len(self.labels):
            raise ValueError(f"labels: {len(self.labels)}, must be as many as the {len(self.samples)} samples")


@dataclass(frozen=True)
class RawDataset:
    """A data set from any source.

    Attributes:
        train: what may be fitted on; the whole data set when `test` is None.
        test: what may not be fitted on; None when the source has no such part.
        source: JSON values that say where it came from, for its card.
        split_rule: how the source tells train from test.
        validation: what the source itself sets aside from training; None when it has no such part.
        form: what the samples are.
    """

    name: str
    class_names: tuple[str, ...]
    train: RawPart
    test: RawPart | None
    source: Mapping[str, Any]
    split_rule: str = "the source's own train and test parts"
    validation: RawPart | None = None
    form: Literal["images", "texts", "trees"] = "images"

    def pooled(self) -> RawDataset:
        """The same texts as one train part, without the source's own parts."""
        parts = [part for part in (self.train, self.validation, self.test) if part is not None]
        texts = tuple(str(text) for part in parts for text in part.samples)
        train = RawPart(texts, np.concatenate([part.labels for part in parts]))
        return replace(self, train=train, validation=None, test=None, source={**self.source, "pooled": True})

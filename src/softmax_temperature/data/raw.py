"""A data set as its source has it: its own parts, before any limit, split or storage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmax_temperature.runner.errors import InputError


@dataclass(frozen=True)
class RawPart:
    """The samples and labels of one part.

    `samples`: (n, height, width, channels) uint8 with 1 or 3 channels; n paths of image files below data.root; or n
    texts or trees in brackets. `labels`: (n,) int64.
    """

    samples: NDArray[np.uint8] | tuple[str, ...]
    labels: NDArray[np.int64]


@dataclass(frozen=True)
class RawDataset:
    """A data set from any source; `train` is all of it when `test` is None, `validation` what the source sets aside."""

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
        train = _end_to_end([part for part in (self.train, self.validation, self.test) if part is not None])
        return replace(self, train=train, validation=None, test=None, source={**self.source, "pooled": True})


def joined(parts: Sequence[RawDataset]) -> RawDataset:
    """Archives of images of one size, with the same class names, end to end under the name of the first."""
    first, *others = parts
    if not others:
        return first
    shapes = {part.class_names + np.shape(part.train.samples)[1:] for part in parts}
    if len(shapes) > 1 or any(part.test is None or not isinstance(part.train.samples, np.ndarray) for part in parts):
        what = "cannot be joined: that takes arrays of images of one size, with the same class names"
        raise InputError(what, where=f"data sets {', '.join(part.name for part in parts)}", remedy="Use one of them.")
    source = {**first.source, "file": ", ".join(str(part.source.get("file")) for part in parts)}
    train, test = _end_to_end([part.train for part in parts]), _end_to_end([part.test for part in parts])
    return replace(first, train=train, test=test, source=source)


def _end_to_end(parts: Sequence[Any]) -> RawPart:
    samples = [part.samples for part in parts]
    joint = sum(samples, ()) if isinstance(samples[0], tuple) else np.concatenate(samples)
    return RawPart(joint, np.concatenate([part.labels for part in parts]))

"""Data sets as their source provides them: samples, labels and parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmax_temperature.runner.errors import InputError


@dataclass(frozen=True)
class RawPart:
    """Samples of one part, and their labels, an int64 array of shape (n,).

    The samples are either a uint8 array of n images, of shape (n, height, width, 1 or
    3), or a tuple of n paths of image files, n texts or n bracketed trees.
    """

    samples: NDArray[np.uint8] | tuple[str, ...]
    labels: NDArray[np.int64]


@dataclass(frozen=True)
class RawDataset:
    """A data set from any source.

    Attributes:
        name: Name of the data set.
        class_names: The class of label k is `class_names[k]`.
        train: The training part. If `test` is None, test samples are drawn from it.
        test: The test part, or None if the source has none.
        source: The origin of the data, for the card.
        split_rule: How the source divides its samples, for the card.
        validation: The source's own validation part, if it has one.
        form: "images", "texts" or "trees".
    """

    name: str
    class_names: tuple[str, ...]
    train: RawPart
    test: RawPart | None
    source: Mapping[str, Any]
    split_rule: str = "the source's own train and test parts"
    validation: RawPart | None = None
    form: str = "images"

    def pooled(self) -> RawDataset:
        """Return a copy in which all samples are in the training part."""
        parts = [self.train, self.validation, self.test]
        present = [part for part in parts if part is not None]
        return replace(
            self,
            train=_concatenated(present),
            validation=None,
            test=None,
            source={**self.source, "pooled": True},
        )


def joined(datasets: Sequence[RawDataset]) -> RawDataset:
    """Concatenate data sets of image arrays under the name of the first.

    A single data set is returned unchanged, whatever its form.

    Raises:
        InputError: If image sizes or class names differ, or a data set has no test part
            or no image arrays.
    """
    first = datasets[0]
    if len(datasets) == 1:
        return first
    tests = [dataset.test for dataset in datasets if dataset.test is not None]
    if len(tests) < len(datasets) or not _alike(datasets):
        names = ", ".join(dataset.name for dataset in datasets)
        raise InputError(
            "cannot be joined, because they are not image arrays of one size with the "
            "same class names",
            where=f"data sets {names}",
            remedy="Use one of them.",
        )
    files = ", ".join(str(dataset.source.get("file")) for dataset in datasets)
    return replace(
        first,
        train=_concatenated([dataset.train for dataset in datasets]),
        test=_concatenated(tests),
        source={**first.source, "file": files},
    )


def _alike(datasets: Sequence[RawDataset]) -> bool:
    """Whether all data sets are image arrays of one size with the same class names."""
    first = datasets[0]
    image_shape = np.shape(first.train.samples)[1:]
    return all(
        isinstance(dataset.train.samples, np.ndarray)
        and dataset.train.samples.shape[1:] == image_shape
        and dataset.class_names == first.class_names
        for dataset in datasets
    )


def _concatenated(parts: Sequence[RawPart]) -> RawPart:
    labels = np.concatenate([part.labels for part in parts])
    samples: Any = [part.samples for part in parts]
    if isinstance(samples[0], tuple):
        return RawPart(tuple(text for texts in samples for text in texts), labels)
    return RawPart(np.concatenate(samples), labels)

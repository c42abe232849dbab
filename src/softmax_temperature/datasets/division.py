"""Dividing a data set: which classes and images are used, and which split each goes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from softmax_temperature.datasets.sampling import balanced_subset, generator_for, stratified_holdout
from softmax_temperature.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from softmax_temperature.datasets.raw import RawDataset, RawPart
    from softmax_temperature.splits import SplitName

TEST_FRACTION = 0.25
"""The part of every class that goes to the test split when a data set has none of its own."""


@dataclass(frozen=True)
class Rules:
    """How much of a data set is used and how it is split.

    Attributes:
        train_limit: at most so many images of the train part, validation included; None is all.
        test_limit: at most so many images of the test part; None is all.
        class_limit: at most so many classes, a random choice of them; None is all.
        validation_fraction: the part of every class of the train part that is set aside.
        image_size_limit: image files are shrunk to this short side, in pixels, when they are read; None is never.
        seed: draws all of these, each with a generator of its own.
    """

    train_limit: int | None
    test_limit: int | None
    class_limit: int | None
    validation_fraction: float
    image_size_limit: int | None
    seed: int


@dataclass(frozen=True)
class Rows:
    """Some images of a part of the raw data.

    Attributes:
        part: the part.
        index: (n,) int64, which images of it, ascending.
        labels: (n,) int64, numbers among the classes in use.
    """

    part: RawPart
    index: NDArray[np.int64]
    labels: NDArray[np.int64]

    def keep(self, rows: NDArray[Any]) -> Rows:
        """The rows that a mask or a list of places selects."""
        return Rows(self.part, self.index[rows], self.labels[rows])


@dataclass(frozen=True)
class Division:
    """The outcome: the classes in use, and which images each split holds."""

    class_names: tuple[str, ...]
    splits: Mapping[SplitName, Rows]


def divide(raw: RawDataset, rules: Rules) -> Division:
    """Choose classes, then images, then set validation images aside; every choice is balanced over classes.

    Raises:
        InputError: a limit leaves a class without training images, or a split without any.
    """
    train, test = _own_parts(raw, rules)
    chosen = _chosen_classes(raw, rules)
    train, test = _of_classes(train, chosen), _of_classes(test, chosen)
    train = _limited(train, rules.train_limit, generator_for(rules.seed, raw.name, "train limit"))
    test = _limited(test, rules.test_limit, generator_for(rules.seed, raw.name, "test limit"))
    _check_cover(raw, train, test, len(chosen))
    generator = generator_for(rules.seed, raw.name, "validation")
    held_out = stratified_holdout(train.labels, rules.validation_fraction, generator)
    if not held_out.any():
        _refuse(raw, "train_limit", "no class has a second training image, to validate on", "Use more images.")
    names = tuple(raw.class_names[number] for number in chosen)
    return Division(names, {"train": train.keep(~held_out), "validation": train.keep(held_out), "test": test})


def split_rule(raw: RawDataset, rules: Rules) -> str:
    """A sentence for the card: how train, validation and test came apart."""
    own = f"{TEST_FRACTION:.0%} of each class drawn for test" if raw.test is None else raw.split_rule
    return f"{own}; of the rest of each class a fraction of {rules.validation_fraction:.4g} drawn for validation"


def _own_parts(raw: RawDataset, rules: Rules) -> tuple[Rows, Rows]:
    everything = _all_rows(raw.train)
    if raw.test is not None:
        return everything, _all_rows(raw.test)
    for_test = stratified_holdout(raw.train.labels, TEST_FRACTION, generator_for(rules.seed, raw.name, "test"))
    return everything.keep(~for_test), everything.keep(for_test)


def _all_rows(part: RawPart) -> Rows:
    return Rows(part, np.arange(len(part.labels)), part.labels)


def _chosen_classes(raw: RawDataset, rules: Rules) -> NDArray[np.int64]:
    """Class numbers, ascending; with one seed, a smaller choice is part of a larger one."""
    order = generator_for(rules.seed, raw.name, "classes").permutation(len(raw.class_names))
    chosen = np.sort(order[: rules.class_limit])
    if len(chosen) < 2:
        _refuse(raw, "class_limit", "leaves a single class", "Use at least 2 classes.")
    return chosen


def _of_classes(rows: Rows, chosen: NDArray[np.int64]) -> Rows:
    kept = rows.keep(np.isin(rows.labels, chosen))
    return Rows(kept.part, kept.index, np.searchsorted(chosen, kept.labels))


def _limited(rows: Rows, limit: int | None, generator: np.random.Generator) -> Rows:
    if limit is None or limit >= len(rows.labels):
        return rows
    return rows.keep(balanced_subset(rows.labels, limit, generator))


def _check_cover(raw: RawDataset, train: Rows, test: Rows, classes: int) -> None:
    missing = classes - len(np.unique(train.labels))
    if missing:
        what = f"leaves {missing} of {classes} classes without training images"
        _refuse(raw, "train_limit", what, f"Use at least {classes}, or set class_limit.")
    if len(test.labels) == 0:
        _refuse(raw, "class_limit", "leaves no test images", "Use more classes.")


def _refuse(raw: RawDataset, key: str, what: str, remedy: str) -> NoReturn:
    raise InputError(what, where=f"datasets.{raw.name}.{key}", remedy=remedy)

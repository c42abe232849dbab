"""Choice of classes and samples of a raw data set, and their division into splits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from softmax_temperature.data.raw import RawDataset, RawPart
from softmax_temperature.data.seeds import generator_for
from softmax_temperature.data.splits import (
    SplitName,
    balanced_subset,
    stratified_holdout,
)
from softmax_temperature.runner.errors import InputError

# Deviation: if a data set has no test part, we draw a quarter of each class for test,
# once, with the seed of the data. The classifier_temperature paper splits each data set
# into training and test but does not say how it does so in this case.
TEST_FRACTION = 0.25


@dataclass(frozen=True)
class Rules:
    """Limits on a data set, and the sizes of its splits; None means no limit.

    If the data set has a validation part of its own, all samples of that part in the
    chosen classes are used, and `validation_fraction` has no effect. Otherwise
    `train_limit` counts training and validation samples together.
    """

    train_limit: int | None
    test_limit: int | None
    class_limit: int | None
    validation_fraction: float
    image_size_limit: int | None
    seed: int


@dataclass(frozen=True)
class Rows:
    """Selected samples of a raw part.

    `index` (n,) holds the samples' row indices in ascending order. `labels` (n,) holds
    the position of each sample's class among the classes in use.
    """

    part: RawPart
    index: NDArray[np.int64]
    labels: NDArray[np.int64]

    def keep(self, rows: NDArray[Any]) -> "Rows":
        """Select rows by `rows`, a mask or an array of positions."""
        return Rows(self.part, self.index[rows], self.labels[rows])


class Division(NamedTuple):
    """The names of the classes in use, and the samples of each split."""

    class_names: tuple[str, ...]
    splits: Mapping[SplitName, Rows]


def divide(raw: RawDataset, rules: Rules) -> Division:
    """Choose the classes in use, and divide their samples into three splits.

    Subsets of `train_limit` and `test_limit` samples are balanced between classes. If
    the source has no test part, `TEST_FRACTION` of each class becomes the test split.
    If the source has no validation part, `validation_fraction` of the training samples
    of each class is held out.

    Raises:
        InputError: If the limits leave a single class, an empty split, or a class
            without training samples. A data set with test images only may have empty
            training and validation splits.
    """
    chosen = _choose_classes(raw, rules)
    train, test = _train_and_test(raw, rules, chosen)
    train = _limited(train, rules.train_limit, "train limit", raw, rules)
    test = _limited(test, rules.test_limit, "test limit", raw, rules)
    if raw.validation is not None:
        validation = _of_classes(raw.validation, chosen)
    else:
        held_out = stratified_holdout(
            train.labels,
            rules.validation_fraction,
            generator_for(rules.seed, raw.name, "validation"),
        )
        validation = train.keep(held_out)
        train = train.keep(~held_out)
    names = tuple(raw.class_names[number] for number in chosen)
    _check(raw, len(names), train, validation, test)
    return Division(names, {"train": train, "validation": validation, "test": test})


def _choose_classes(raw: RawDataset, rules: Rules) -> NDArray[np.int64]:
    # With the same seed, a smaller choice of classes is a subset of a larger one.
    generator = generator_for(rules.seed, raw.name, "classes")
    order = generator.permutation(len(raw.class_names))
    return np.sort(order[: rules.class_limit])


def _train_and_test(
    raw: RawDataset, rules: Rules, chosen: NDArray[np.int64]
) -> tuple[Rows, Rows]:
    train = _of_classes(raw.train, chosen)
    if raw.test is not None:
        return train, _of_classes(raw.test, chosen)
    # Draw the test images from all classes before classes are left out, so that a class
    # has the same test images whichever classes are chosen.
    generator = generator_for(rules.seed, raw.name, "test")
    for_test = stratified_holdout(raw.train.labels, TEST_FRACTION, generator)
    mask = for_test[train.index]
    return train.keep(~mask), train.keep(mask)


def _of_classes(part: RawPart, chosen: NDArray[np.int64]) -> Rows:
    index = np.flatnonzero(np.isin(part.labels, chosen))
    return Rows(part, index, np.searchsorted(chosen, part.labels[index]))


def _limited(
    rows: Rows, limit: int | None, purpose: str, raw: RawDataset, rules: Rules
) -> Rows:
    if limit is None or limit >= len(rows.labels):
        return rows
    generator = generator_for(rules.seed, raw.name, purpose)
    return rows.keep(balanced_subset(rows.labels, limit, generator))


def _check(
    raw: RawDataset, classes: int, train: Rows, validation: Rows, test: Rows
) -> None:
    def refuse(key: str, what: str, remedy: str) -> NoReturn:
        raise InputError(what, where=f"datasets.{raw.name}.{key}", remedy=remedy)

    if classes < 2:
        refuse(
            "class_limit", "leaves fewer than two classes", "Use at least 2 classes."
        )
    if not len(test.labels):
        refuse("class_limit", "leaves no test samples", "Use more classes.")
    if not len(raw.train.labels):  # The data set has only test images.
        return
    if missing := classes - len(np.unique(train.labels)):
        refuse(
            "train_limit",
            f"leaves {missing} of {classes} classes without training samples",
            f"Use at least {classes}, or set class_limit.",
        )
    if not len(validation.labels):
        key = "train_limit" if raw.validation is None else "class_limit"
        refuse(key, "leaves no validation samples", "Raise it.")

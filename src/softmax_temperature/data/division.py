"""Dividing a data set: which classes and samples are used, and which split each goes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from softmax_temperature.data.raw import RawDataset, RawPart
from softmax_temperature.data.sampling import balanced_subset, generator_for, stratified_holdout
from softmax_temperature.data.splits import SplitName
from softmax_temperature.runner.errors import InputError

TEST_FRACTION = 0.25
"""The fraction of every class that goes to the test split when a data set has none of its own."""


@dataclass(frozen=True)
class Rules:
    """How much of a data set is used and how it is split; `params.Dataset` and `params.Fetch` explain the fields.

    A limit of None takes all. `train_limit` includes validation samples. Image files are shrunk to a short side of
    `image_size_limit` pixels when they are read. `seed` draws every choice, each with its own generator.
    """

    train_limit: int | None
    test_limit: int | None
    class_limit: int | None
    validation_fraction: float
    image_size_limit: int | None
    seed: int


@dataclass(frozen=True)
class Rows:
    """Some samples of a raw part: their row numbers, ascending, and their labels among the classes in use."""

    part: RawPart
    index: NDArray[np.int64]
    labels: NDArray[np.int64]

    def keep(self, rows: NDArray[Any]) -> Rows:
        """The rows that a mask or an array of positions selects."""
        return Rows(self.part, self.index[rows], self.labels[rows])


class Division(NamedTuple):
    """The classes in use, and the samples of each split."""

    class_names: tuple[str, ...]
    splits: Mapping[SplitName, Rows]


def divide(raw: RawDataset, rules: Rules) -> Division:
    """Choose classes, then samples, then set validation samples aside; every choice is balanced over classes.

    A validation part of the source's own is kept whole, except for unused classes; then nothing is drawn for it. A data
    set without training images keeps its test images only.

    Raises:
        InputError: a limit leaves a class without training samples, or a split without any.
    """
    chosen = _chosen_classes(raw, rules)
    train, test = (_of_classes(rows, chosen) for rows in _own_parts(raw, rules))
    train = _limited(train, rules.train_limit, generator_for(rules.seed, raw.name, "train limit"))
    test = _limited(test, rules.test_limit, generator_for(rules.seed, raw.name, "test limit"))
    names = tuple(raw.class_names[number] for number in chosen)
    if len(test.labels) == 0:
        _refuse(raw, "class_limit", "leaves no test samples", "Use more classes.")
    if len(raw.train.labels) == 0:
        return Division(names, {"train": train, "validation": train, "test": test})
    if missing := len(chosen) - len(np.unique(train.labels)):
        what = f"leaves {missing} of {len(chosen)} classes without training samples"
        _refuse(raw, "train_limit", what, f"Use at least {len(chosen)}, or set class_limit.")
    if raw.validation is not None:
        validation = _of_classes(_all_rows(raw.validation), chosen)
        if len(validation.labels) == 0:
            _refuse(raw, "class_limit", "leaves no validation samples", "Use more classes.")
        return Division(names, {"train": train, "validation": validation, "test": test})
    held_out = stratified_holdout(
        train.labels, rules.validation_fraction, generator_for(rules.seed, raw.name, "validation")
    )
    if not held_out.any():
        _refuse(raw, "train_limit", "no class has a second training sample, to validate on", "Use more of them.")
    return Division(names, {"train": train.keep(~held_out), "validation": train.keep(held_out), "test": test})


def split_rule(raw: RawDataset, rules: Rules) -> str:
    """How train, validation and test came apart, for the card."""
    own = f"{TEST_FRACTION:.0%} of each class drawn for test" if raw.test is None else raw.split_rule
    if raw.validation is not None:
        return f"{own}; the source's own validation part"
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


def _refuse(raw: RawDataset, key: str, what: str, remedy: str) -> NoReturn:
    raise InputError(what, where=f"datasets.{raw.name}.{key}", remedy=remedy)

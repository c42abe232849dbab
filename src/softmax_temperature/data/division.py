"""Dividing a data set: which classes and samples are used, and which split each goes to; images and texts alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NoReturn, Protocol, TypeVar

import numpy as np

from softmax_temperature.data.sampling import balanced_subset, generator_for, stratified_holdout
from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from softmax_temperature.data.splits import SplitName

TEST_FRACTION = 0.25
"""The part of every class that goes to the test split when a data set has none of its own."""


class Labelled(Protocol):
    """A part of the raw data, of images or of texts."""

    @property
    def labels(self) -> NDArray[np.int64]:
        """(n,) int64, below the number of classes."""


PartT = TypeVar("PartT", bound=Labelled)
PartT_co = TypeVar("PartT_co", bound=Labelled, covariant=True)


class Divisible(Protocol[PartT_co]):
    """A data set as it is found: `RawDataset` or `RawTextSet`, whose attributes these are."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def class_names(self) -> tuple[str, ...]:
        """One for each label."""

    @property
    def train(self) -> PartT_co:
        """What may be fitted on."""

    @property
    def test(self) -> PartT_co | None:
        """What may not."""

    @property
    def source(self) -> Mapping[str, Any]:
        """Where it came from."""

    @property
    def split_rule(self) -> str:
        """How the source tells its parts apart."""


@dataclass(frozen=True)
class Rules:
    """How much of a data set is used and how it is split.

    Attributes:
        train_limit: at most so many samples of the train part, validation included; None is all.
        test_limit: at most so many samples of the test part; None is all.
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
class Rows(Generic[PartT]):
    """Some samples of a part of the raw data.

    Attributes:
        part: the part.
        index: (n,) int64, which samples of it, ascending.
        labels: (n,) int64, numbers among the classes in use.
    """

    part: PartT
    index: NDArray[np.int64]
    labels: NDArray[np.int64]

    def keep(self, rows: NDArray[Any]) -> Rows[PartT]:
        """The rows that a mask or a list of places selects."""
        return Rows(self.part, self.index[rows], self.labels[rows])


@dataclass(frozen=True)
class Division(Generic[PartT]):
    """The outcome: the classes in use, and which samples each split holds."""

    class_names: tuple[str, ...]
    splits: Mapping[SplitName, Rows[PartT]]


def divide(raw: Divisible[PartT], rules: Rules, *, validation: PartT | None = None) -> Division[PartT]:
    """Choose classes, then samples, then set validation samples aside; every choice is balanced over classes.

    Args:
        raw: the data set as found.
        rules: limits and splits.
        validation: what the source itself sets aside from training: then that is the validation split, as far as it is
            of the chosen classes, and nothing is taken from the train part.

    Raises:
        InputError: a limit leaves a class without training samples, or a split without any.
    """
    train, test = _own_parts(raw, rules)
    chosen = _chosen_classes(raw, rules)
    train, test = _of_classes(train, chosen), _of_classes(test, chosen)
    train = _limited(train, rules.train_limit, generator_for(rules.seed, raw.name, "train limit"))
    test = _limited(test, rules.test_limit, generator_for(rules.seed, raw.name, "test limit"))
    _check_cover(raw, train, test, len(chosen))
    if validation is None:
        train, held_out = _held_out(raw, train, rules)
    else:
        held_out = _of_classes(_all_rows(validation), chosen)
        if len(held_out.labels) == 0:
            _refuse(raw, "class_limit", "leaves no validation samples", "Use more classes.")
    names = tuple(raw.class_names[number] for number in chosen)
    return Division(names, {"train": train, "validation": held_out, "test": test})


def split_rule(raw: Divisible[Labelled], rules: Rules, *, own_validation: bool = False) -> str:
    """A sentence for the card: how train, validation and test came apart."""
    own = f"{TEST_FRACTION:.0%} of each class drawn for test" if raw.test is None else raw.split_rule
    if own_validation:
        return f"{own}; the source's own validation part"
    return f"{own}; of the rest of each class a fraction of {rules.validation_fraction:.4g} drawn for validation"


def _held_out(raw: Divisible[PartT], train: Rows[PartT], rules: Rules) -> tuple[Rows[PartT], Rows[PartT]]:
    """The train part without its validation samples, and these."""
    generator = generator_for(rules.seed, raw.name, "validation")
    held_out = stratified_holdout(train.labels, rules.validation_fraction, generator)
    if not held_out.any():
        _refuse(raw, "train_limit", "no class has a second training sample, to validate on", "Use more of them.")
    return train.keep(~held_out), train.keep(held_out)


def _own_parts(raw: Divisible[PartT], rules: Rules) -> tuple[Rows[PartT], Rows[PartT]]:
    everything = _all_rows(raw.train)
    if raw.test is not None:
        return everything, _all_rows(raw.test)
    for_test = stratified_holdout(raw.train.labels, TEST_FRACTION, generator_for(rules.seed, raw.name, "test"))
    return everything.keep(~for_test), everything.keep(for_test)


def _all_rows(part: PartT) -> Rows[PartT]:
    return Rows(part, np.arange(len(part.labels)), part.labels)


def _chosen_classes(raw: Divisible[Labelled], rules: Rules) -> NDArray[np.int64]:
    """Class numbers, ascending; with one seed, a smaller choice is part of a larger one."""
    order = generator_for(rules.seed, raw.name, "classes").permutation(len(raw.class_names))
    chosen = np.sort(order[: rules.class_limit])
    if len(chosen) < 2:
        _refuse(raw, "class_limit", "leaves a single class", "Use at least 2 classes.")
    return chosen


def _of_classes(rows: Rows[PartT], chosen: NDArray[np.int64]) -> Rows[PartT]:
    kept = rows.keep(np.isin(rows.labels, chosen))
    return Rows(kept.part, kept.index, np.searchsorted(chosen, kept.labels))


def _limited(rows: Rows[PartT], limit: int | None, generator: np.random.Generator) -> Rows[PartT]:
    if limit is None or limit >= len(rows.labels):
        return rows
    return rows.keep(balanced_subset(rows.labels, limit, generator))


def _check_cover(raw: Divisible[PartT], train: Rows[PartT], test: Rows[PartT], classes: int) -> None:
    missing = classes - len(np.unique(train.labels))
    if missing:
        what = f"leaves {missing} of {classes} classes without training samples"
        _refuse(raw, "train_limit", what, f"Use at least {classes}, or set class_limit.")
    if len(test.labels) == 0:
        _refuse(raw, "class_limit", "leaves no test samples", "Use more classes.")


def _refuse(raw: Divisible[Labelled], key: str, what: str, remedy: str) -> NoReturn:
    raise InputError(what, where=f"datasets.{raw.name}.{key}", remedy=remedy)

"""Predicates on the factors of runs: an arm is a setting of factors, not a name.

`where(mode="last_layer", factor=1.0)` selects the runs whose factors have these values.
Predicates combine: `a & b` selects the runs that both select, `a | b` the runs that at
least one selects, and `~a` the runs that `a` does not select.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import pandas as pd

Test = Callable[["pd.Series[Any]"], "pd.Series[bool]"]


@dataclass(frozen=True)
class Condition:
    """A test of one factor, with words that describe it."""

    text: str
    test: Test


@dataclass(frozen=True)
class Where:
    """A predicate on the factors of runs, with words that describe the selection."""

    text: str
    mask: Callable[[pd.DataFrame], pd.Series[bool]]

    def select(self, runs: pd.DataFrame) -> pd.DataFrame:
        """The rows of `runs` that the predicate selects, in their order."""
        return runs[self.mask(runs)]

    def called(self, text: str) -> Where:
        """The same predicate, described by `text`."""
        return Where(text, self.mask)

    def __and__(self, other: Where) -> Where:
        return Where(
            f"{self.text}, {other.text}",
            lambda runs: self.mask(runs) & other.mask(runs),
        )

    def __or__(self, other: Where) -> Where:
        return Where(
            f"{self.text} or {other.text}",
            lambda runs: self.mask(runs) | other.mask(runs),
        )

    def __invert__(self) -> Where:
        return Where(f"not ({self.text})", lambda runs: ~self.mask(runs))

    def __str__(self) -> str:
        return self.text


def where(**factors: Any) -> Where:
    """A predicate that selects the runs whose factors have the given values.

    Args:
        factors: For each factor a value that it must equal; None, if it must be empty;
            a list or tuple of allowed values; or a `Condition`, such as `at_most(1)`.

    Returns:
        The predicate, which raises ValueError if the table lacks one of the factors.
    """
    conditions = {name: _condition(asked) for name, asked in factors.items()}
    text = ", ".join(f"{name} {asked.text}" for name, asked in conditions.items())

    def mask(runs: pd.DataFrame) -> pd.Series[bool]:
        chosen = pd.Series(True, index=runs.index)
        for name, asked in conditions.items():
            if name not in runs:
                raise ValueError(f"{name} is not a factor of these runs ({text})")
            chosen &= asked.test(runs[name])
        return chosen

    return Where(text, mask)


ALL = Where("all runs", lambda runs: pd.Series(True, index=runs.index))
"""The predicate that selects every run."""


def more_than(bound: float) -> Condition:
    """The condition that a factor is above `bound`."""
    return Condition(f"above {bound:g}", lambda values: _numbers(values) > bound)


def at_least(bound: float) -> Condition:
    """The condition that a factor is at least `bound`."""
    return Condition(f"at least {bound:g}", lambda values: _numbers(values) >= bound)


def at_most(bound: float) -> Condition:
    """The condition that a factor is at most `bound`."""
    return Condition(f"at most {bound:g}", lambda values: _numbers(values) <= bound)


def less_than(bound: float) -> Condition:
    """The condition that a factor is below `bound`."""
    return Condition(f"below {bound:g}", lambda values: _numbers(values) < bound)


def between(low: float, high: float) -> Condition:
    """The condition that a factor is from `low` to `high`, both included."""
    return Condition(
        f"between {low:g} and {high:g}",
        lambda values: _numbers(values).between(low, high),
    )


def dataset_in(names: Collection[str]) -> Where:
    """The predicate that a data set is one of `names`, or a part or superset of one.

    For example, "cifar10-5000" is a part of "cifar10", and "newsgroups20_all" is a
    superset of "newsgroups20".
    """
    return Where(
        f"dataset in {', '.join(names)}",
        lambda runs: runs["dataset"].map(lambda name: is_part(name, names)),
    )


def is_part(dataset: str, of: Collection[str]) -> bool:
    """Whether `dataset` is listed in `of`, or is a part or superset of a listed one."""
    whole = dataset.partition("-")[0].removesuffix("_all")
    return whole in of


def _condition(asked: Any) -> Condition:
    if isinstance(asked, Condition):
        return asked
    if asked is None:
        return Condition("empty", lambda values: values.isna())
    if isinstance(asked, list | tuple):
        return Condition(
            f"in {', '.join(map(str, asked))}", lambda values: values.isin(asked)
        )
    return Condition(f"= {asked}", lambda values: values == asked)


def _numbers(values: pd.Series[Any]) -> pd.Series[float]:
    return pd.to_numeric(values, errors="coerce")

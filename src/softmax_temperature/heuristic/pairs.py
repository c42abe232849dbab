"""The table of pairs, and what is checked before any number is made from it; see the package for its columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from softmax_temperature.runner.errors import nearest

# Leaving one out leaves two, the fewest among which the ridge penalty can in turn leave one out.
MINIMUM_DATASETS = 3
SEARCHED = (1.0, *(float(value) for value in range(5, 255, 5)))  # section 4.3
SEARCHED_RANGE = (SEARCHED[0], SEARCHED[-1])

Floats: TypeAlias = NDArray[np.float64]
Pairs: TypeAlias = pd.DataFrame | Iterable[Mapping[str, Any]]


def checked_pairs(pairs: Pairs, statistics: Sequence[str], *, datasets: int = MINIMUM_DATASETS) -> pd.DataFrame:
    """The pairs as a table in one order, with the named statistics and at least that many data sets."""
    table = as_table(pairs)
    _check_identities(table)
    _check_numbers(table, ("inverse_temperature", *statistics))
    if {"plateau_low", "plateau_high"} <= set(table.columns):
        check_plateaus(table)
    names = sorted(table["dataset"].unique())
    if len(names) < datasets:
        raise ValueError(f"pairs must hold at least {datasets} data sets, got {len(names)}: {', '.join(names)}")
    return table.sort_values(["dataset", "backbone"], ignore_index=True)


def as_table(pairs: Pairs) -> pd.DataFrame:
    """The pairs as a DataFrame, unchecked; one that is given is returned itself."""
    return pairs if isinstance(pairs, pd.DataFrame) else pd.DataFrame([dict(pair) for pair in pairs])


def check_plateaus(table: pd.DataFrame) -> None:
    """Refuse plateaus that are not finite numbers or do not hold their optimum."""
    names = ("plateau_low", "inverse_temperature", "plateau_high")
    _check_numbers(table, names)
    for low, optimum, high in matrix(table, names):
        if not low <= optimum <= high:
            raise ValueError(f"pairs: plateau_low {low} and plateau_high {high} must enclose the optimum {optimum}")


def check_bounds(bounds: tuple[float, float]) -> None:
    """Refuse a searched range that is not two increasing, positive, finite numbers."""
    if not 0 < bounds[0] < bounds[1] < math.inf:
        raise ValueError(f"bounds must be two increasing positive numbers, got {bounds}")


def identities(table: pd.DataFrame) -> pd.DataFrame:
    """The columns that every table of predictions starts with: the pair and its optimum."""
    return table[["dataset", "backbone", "inverse_temperature"]]


def floats(table: pd.DataFrame, name: str) -> Floats:
    """A column as an array of shape (pairs,)."""
    return table[name].to_numpy(dtype=np.float64, na_value=np.nan)


def matrix(table: pd.DataFrame, names: Sequence[str]) -> Floats:
    """The named columns as an array of shape (pairs, names)."""
    return np.stack([floats(table, name) for name in names], axis=1)


def _check_identities(table: pd.DataFrame) -> None:
    for name in ("dataset", "backbone"):
        _check_column(table, name)
        if not all(isinstance(value, str) for value in table[name]):
            raise ValueError(f"pairs[{name!r}] must hold names, got {table[name].tolist()}")
    repeated = table[table.duplicated(["dataset", "backbone"])]
    if len(repeated):
        raise ValueError(f"pairs holds {repeated['dataset'].iloc[0]} with {repeated['backbone'].iloc[0]} twice")


def _check_numbers(table: pd.DataFrame, names: Iterable[str]) -> None:
    for name in names:
        _check_column(table, name)
        if not pd.api.types.is_numeric_dtype(table[name]):
            raise ValueError(f"pairs[{name!r}] must hold numbers, got {table[name].tolist()}")
        values = floats(table, name)
        if not np.isfinite(values).all():
            raise ValueError(f"pairs[{name!r}] must hold finite numbers, got {values[~np.isfinite(values)][0]}")


def _check_column(table: pd.DataFrame, name: str) -> None:
    if name not in table.columns:
        raise ValueError(f"pairs lacks the column {name!r}. {nearest(name, map(str, table.columns))}")

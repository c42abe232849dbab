"""The table of pairs, checked before any number is made from it, and its plateaus; see the package for its columns."""

from __future__ import annotations

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


def identified(pairs: Pairs, *, max_share: float = 0.5, grid: Sequence[float] = SEARCHED) -> pd.DataFrame:
    """The pairs whose best inverse temperature is a number rather than a plateau, in the order given. Source: ours.

    Where accuracy saturates, many values are equally good and the best of them is an accident of ties. A plateau, from
    `plateau_low` to `plateau_high`, ends included, may hold at most `max_share`, a fraction in (0, 1], of the searched
    `grid`. Raises ValueError also if a plateau does not hold its optimum.
    """
    if not 0 < max_share <= 1:
        raise ValueError(f"max_share must be in (0, 1], got {max_share}")
    if not len(grid):
        raise ValueError("grid must hold the inverse temperatures that were searched, got none")
    table = _as_table(pairs)
    _check_plateaus(table)
    low, high = matrix(table, ("plateau_low", "plateau_high")).T[:, :, None]
    share = ((np.asarray(grid) >= low) & (np.asarray(grid) <= high)).mean(axis=1)
    return table.iloc[np.flatnonzero(share <= max_share)].reset_index(drop=True)


def share_on_plateau(table: pd.DataFrame, predicted: Floats) -> float | None:
    """Share of the predictions, shape (pairs,), on their pair's plateau; None without plateau columns."""
    if not {"plateau_low", "plateau_high"} <= set(table.columns):
        return None
    on_plateau = (floats(table, "plateau_low") <= predicted) & (predicted <= floats(table, "plateau_high"))
    return float(on_plateau.mean())


def checked_pairs(pairs: Pairs, statistics: Sequence[str], *, datasets: int = MINIMUM_DATASETS) -> pd.DataFrame:
    """The pairs as a table in one order, with the named statistics and at least that many data sets."""
    table = _as_table(pairs)
    _check_identities(table)
    _check_numbers(table, ("inverse_temperature", *statistics))
    if {"plateau_low", "plateau_high"} <= set(table.columns):
        _check_plateaus(table)
    names = sorted(table["dataset"].unique())
    if len(names) < datasets:
        raise ValueError(f"pairs must hold at least {datasets} data sets, got {len(names)}: {', '.join(names)}")
    return table.sort_values(["dataset", "backbone"], ignore_index=True)


def identities(table: pd.DataFrame) -> pd.DataFrame:
    """The columns that every table of predictions starts with: the pair and its optimum."""
    return table[["dataset", "backbone", "inverse_temperature"]]


def floats(table: pd.DataFrame, name: str) -> Floats:
    """A column as an array of shape (pairs,)."""
    return table[name].to_numpy(dtype=np.float64, na_value=np.nan)


def matrix(table: pd.DataFrame, names: Sequence[str]) -> Floats:
    """The named columns as an array of shape (pairs, names)."""
    return np.stack([floats(table, name) for name in names], axis=1)


def _as_table(pairs: Pairs) -> pd.DataFrame:
    return pairs if isinstance(pairs, pd.DataFrame) else pd.DataFrame([dict(pair) for pair in pairs])


def _check_plateaus(table: pd.DataFrame) -> None:
    names = ("plateau_low", "inverse_temperature", "plateau_high")
    _check_numbers(table, names)
    for low, optimum, high in matrix(table, names):
        if not low <= optimum <= high:
            raise ValueError(f"pairs: plateau_low {low} and plateau_high {high} must enclose the optimum {optimum}")


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

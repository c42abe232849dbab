"""Plateaus: ranges of inverse temperatures that are as good as the best one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from softmax_temperature.heuristic.pairs import SEARCHED, Floats, Pairs, as_table, check_plateaus, floats, matrix

if TYPE_CHECKING:
    import pandas as pd


def identified(pairs: Pairs, *, max_share: float = 0.5, grid: Sequence[float] = SEARCHED) -> pd.DataFrame:
    """The pairs whose best inverse temperature is a number rather than a plateau, in the order given. Source: ours.

    Where accuracy saturates, many values are equally good and the best of them is an accident of ties.

    Args:
        pairs: Pairs with `plateau_low` and `plateau_high`, ends included.
        max_share: Largest share of the grid that a plateau may hold, a fraction in (0, 1].
        grid: The inverse temperatures that were searched.

    Raises:
        ValueError: Also if a plateau does not hold its optimum.
    """
    if not 0 < max_share <= 1:
        raise ValueError(f"max_share must be in (0, 1], got {max_share}")
    if not len(grid):
        raise ValueError("grid must hold the inverse temperatures that were searched, got none")
    table = as_table(pairs)
    check_plateaus(table)
    low, high = matrix(table, ("plateau_low", "plateau_high")).T[:, :, None]
    share = ((np.asarray(grid) >= low) & (np.asarray(grid) <= high)).mean(axis=1)
    return table.iloc[np.flatnonzero(share <= max_share)].reset_index(drop=True)


def share_on_plateau(table: pd.DataFrame, predicted: Floats) -> float | None:
    """Share of the predictions, shape (pairs,), on their pair's plateau; None without plateau columns."""
    if not {"plateau_low", "plateau_high"} <= set(table.columns):
        return None
    on_plateau = (floats(table, "plateau_low") <= predicted) & (predicted <= floats(table, "plateau_high"))
    return float(on_plateau.mean())

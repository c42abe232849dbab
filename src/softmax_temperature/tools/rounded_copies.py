"""Find rows of one table that are rounded copies of rows of another."""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

Rounding = Callable[[Tensor], Tensor]

# Maximum number of decimals to which a table is tested for being rounded.
MOST_DECIMALS = 6
# The number of rows that are checked first. Most tables already have an unrounded
# number in these rows.
FIRST_ROWS = 3
# Probabilities of 0 are stored as numbers below this.
TINY = 1e-30


def rounded_pairs(first: Tensor, second: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield both tables, rounded in each way in which only one of them is rounded.

    Args:
        first: Shape (n, dim).
        second: Shape (m, dim).

    Yields:
        Both tables in float32, rounded alike: to half precision or to decimals.
    """
    halves: list[Rounding] = [
        lambda table: table.half().float(),
        lambda table: table.bfloat16().float(),
    ]
    # Numbers with at most two decimals also have at most three, so only the smallest
    # number of decimals is of interest.
    decimals = [
        rounding
        for rounding in map(_to_decimals, range(1, MOST_DECIMALS + 1))
        if _is_rounded(first, rounding) != _is_rounded(second, rounding)
    ]
    for rounding in halves + decimals[:1]:
        if _is_rounded(first, rounding) != _is_rounded(second, rounding):
            yield rounding(first.float()), rounding(second.float())


def _to_decimals(decimals: int) -> Rounding:
    def rounded(table: Tensor) -> Tensor:
        # torch would round in float32, which moves numbers.
        return torch.from_numpy(np.round(table.double().numpy(), decimals)).float()

    return rounded


def _is_rounded(table: Tensor, rounding: Rounding) -> bool:
    return all(
        bool(torch.isclose(rounding(part), part, rtol=0, atol=TINY).all())
        for part in (table[:FIRST_ROWS].float(), table.float())
    )

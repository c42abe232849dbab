"""Find rows of one table that are rows of another one, but rounded."""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

Rounding = Callable[[Tensor], Tensor]

# Numbers are compared with the same numbers rounded to up to this many decimals.
MOST_DECIMALS = 6
# In the rows that are looked at first, most tables have a number that is not rounded.
FIRST_ROWS = 3
# Zeros of probabilities are stored as smaller numbers than this.
TINY = 1e-30


def rounded_pairs(first: Tensor, second: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield two tables after each rounding that one of them has, but not the other.

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
    # Numbers with two decimals also have three, so only the fewest are of interest.
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

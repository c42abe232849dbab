"""Refuse base-10 or base-2 logarithms of probabilities that are given as logits."""

import math

from torch import Tensor

from softmax_temperature.metrics.calibration import CHUNK
from softmax_temperature.metrics.checks import ArgumentError
from softmax_temperature.metrics.probability_check import FEW_ROWS

BASES = (10, 2)
# The probabilities of a row must sum to 1 within `SUM_ERROR`, plus `SHARE_ERROR` times
# the sum of all probabilities but the largest. Rounding to three decimals, or to
# bfloat16, causes smaller errors.
SUM_ERROR = 2e-3
SHARE_ERROR = 0.03
# A row is informative if its largest probability is neither so large nor so small that
# the row hardly shows a base. A confident row of logits minus their maximum sums to 1
# in every base, so the other probabilities must sum to more than `LEAST_REST`. Ten
# logits near -1 sum to 1 in base 10, so the largest probability must exceed
# `LEAST_RATIO` times the mean.
LEAST_REST = 0.02
LEAST_RATIO = 1.5
# The share of all rows, and of the informative ones, that must sum to 1.
NEARLY_ALL = 0.95


def check_natural(table: Tensor, name: str) -> None:
    """Refuse logarithms to base 10 or 2, which the softmax does not invert.

    Natural logarithms are logits.

    Args:
        table: Logits, shape (n, classes).
        name: Name of the logits in messages.
    """
    if len(table) < FEW_ROWS or table.shape[1] < 2:
        return
    for base in BASES:
        # Look at a few rows first: most tables differ from logarithms in each of them.
        few = table[:: len(table) // FEW_ROWS]
        if _share(few, base, least=0) > 0.5 and (
            _share(table, base, least=FEW_ROWS) >= NEARLY_ALL
        ):
            raise ArgumentError(
                f"{name} are logarithms to base {base} of probabilities",
                f"Multiply them by ln {base} = {math.log(base):.6f}, or give natural "
                "logarithms.",
            )


def _share(table: Tensor, base: int, *, least: int) -> float:
    """The share of rows that look like logarithms to `base`.

    If `least` is not 0, the share among the informative rows is computed, too, and the
    smaller share is returned. If fewer than `least` rows are informative, the result is
    0.
    """
    near = informative = both = 0
    for piece in table.detach().split(max(1, CHUNK // table.shape[1])):
        largest = (piece.amax(dim=1).double() * math.log(base)).exp()
        if largest.max() > 1 + SUM_ERROR:
            # Few logarithms of probabilities are positive, and only due to rounding.
            return 0.0
        # Multiply out of place, because `double` may return the user's own numbers.
        shares = (piece.double() * math.log(base)).exp_()
        sums = shares.sum(dim=1)
        rest = sums - largest
        fits = (sums - 1).abs() <= SUM_ERROR + SHARE_ERROR * rest
        mean = sums / (shares > 0).sum(dim=1)
        informs = (rest > LEAST_REST) & (largest > LEAST_RATIO * mean)
        near += int(fits.sum())
        informative += int(informs.sum())
        both += int((fits & informs).sum())
    if informative < least:
        return 0.0
    share = near / len(table)
    return min(share, both / informative) if least else share

"""Refuse log-odds log(p / (1 - p)) of a softmax's probabilities p as logits.

The softmax of such numbers is not p: it is more confident in every unsure row. The
sigmoids of a row's log-odds sum to 1, which those of logits hardly ever do. The logits
of one binary classifier per class are log-odds, too, but their sigmoids do not sum to
1, so they are accepted.
"""

import torch
from torch import Tensor

from softmax_temperature.metrics.calibration import CHUNK
from softmax_temperature.metrics.checks import ArgumentError
from softmax_temperature.metrics.probability_check import (
    FEW_ROWS,
    FEWEST_DISTINCT_MAXIMA,
    VARIATION,
)

# The largest difference between a sum of sigmoids and 1: in float32 and float64; if
# log-odds or probabilities were rounded to float16, four decimals or five significant
# digits, or to fewer; and in bfloat16.
EXACT = 1e-5
ROUNDED = 3e-3
COARSE = 1e-2
DECIMALS = 4
DIGITS = 5
# The largest relative error in float32 at which a number still counts as rounded.
ROUNDING = 2e-6
# A row is informative if its largest sigmoid is below `LARGEST`, because the sigmoids
# of confident logits sum to 1, too, and if each of two numbers is more than `CLEAR`
# times the tolerance. The sum of all sigmoids but the two largest must be, because the
# centred logits of two classes, (-a, a), are log-odds. The sum of the odds minus 1 must
# be, because log-odds of small probabilities are log-probabilities, which are logits.
LARGEST = 0.95
CLEAR = 10
# The share of the informative rows that must sum to 1 within the tolerance, and of all
# rows that must do so within `ROUGH`.
NEARLY_ALL = 0.95
ROUGH = 0.05


def check_not_log_odds(table: Tensor, name: str, remedy: str) -> None:
    """Refuse log-odds of the probabilities of a softmax.

    Args:
        table: Logits, shape (n, classes). Fewer than three classes are not judged,
            because the log-odds of two are centred logits.
        name: Name of the logits in messages.
        remedy: What to do if they are log-odds.
    """
    if len(table) < FEW_ROWS or table.shape[1] < 3:
        return
    # Look at a few rows first: they rule out almost all other tables.
    few = table[:: len(table) // FEW_ROWS].detach().double()
    if not _nearly_all((few.sigmoid().sum(dim=1) - 1).abs() <= ROUGH):
        return
    # Probabilities that were clipped all have the lowest or the highest log-odds.
    lowest, highest = (bound.double() for bound in torch.aminmax(table.detach()))
    tolerance = _tolerance(few[(few > lowest) & (few < highest)])
    near, fits, largest = [], [], []
    for piece in table.detach().split(max(1, CHUNK // table.shape[1])):
        odds = piece.double().exp()
        shares = piece.double().sigmoid()
        misses = (shares.sum(dim=1) - 1).abs()
        clipped = (piece == lowest).sum(dim=1) * lowest.sigmoid()
        allowed = tolerance + clipped
        first, second = shares.topk(2, dim=1).values.unbind(dim=1)
        others = shares.sum(dim=1) - first - second
        evidence = torch.minimum(others, odds.sum(dim=1) - 1)
        informs = (first < LARGEST) & (evidence > CLEAR * allowed)
        near.append(misses <= ROUGH + clipped)
        fits.append((misses <= allowed)[informs])
        largest.append(first[informs])
    sum_to_one = _nearly_all(torch.cat(near)) and _nearly_all(torch.cat(fits))
    if sum_to_one and _varies(torch.cat(largest)):
        raise ArgumentError(
            f"{name} are log-odds log(p / (1 - p)) of probabilities p: the sigmoids of "
            "each row sum to 1",
            remedy,
        )


def _nearly_all(flags: Tensor) -> bool:
    """Whether nearly all `flags` are true, and they are not few."""
    return len(flags) >= FEW_ROWS and flags.double().mean().item() >= NEARLY_ALL


def _varies(largest: Tensor) -> bool:
    """Whether the largest sigmoids of the rows vary, as those of a trained model do.

    Those of an untrained model, or of a toy example, may sum to 1 in every row.
    """
    low, high = (bound.item() for bound in torch.aminmax(largest))
    return high - low >= VARIATION and len(largest.unique()) >= FEWEST_DISTINCT_MAXIMA


def _tolerance(scores: Tensor) -> float:
    """The largest difference from 1 that the rounding of `scores` explains."""
    # The probabilities may have been rounded before their log-odds were computed.
    tables = (scores, scores.sigmoid())
    if any(_are_close(table, table.bfloat16().double()) for table in tables):
        return COARSE
    for table in tables:
        halves = table.half().double()
        if any(
            _are_close(table, rounded)
            for rounded in (halves, table.round(decimals=DECIMALS), _to_digits(table))
        ):
            return ROUNDED
    return EXACT


def _are_close(table: Tensor, rounded: Tensor) -> bool:
    return torch.allclose(table, rounded, rtol=ROUNDING, atol=0)


def _to_digits(table: Tensor) -> Tensor:
    """Round to `DIGITS` significant digits."""
    exponents = table.abs().clamp(min=1e-300).log10().floor()
    units = 10 ** (exponents + 1 - DIGITS)
    return (table / units).round() * units

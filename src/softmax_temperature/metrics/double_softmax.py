"""Check for a softmax of probabilities, which a second softmax in a network returns.

Such a softmax q can be undone: the probabilities p of a row are log q plus a number
that makes them sum to one. If a model is merely unsure, the logarithms of its
probabilities also span a small range, so the same computation may yield numbers in [0,
1] by chance. But 0 and 1 are then not bounds: either no row comes near them, or some
rows lie beyond them. If a softmax of probabilities is undone, some rows come as near to
the bounds as rounding allows, and none lies beyond them.
"""

import math

import torch
from torch import Tensor

from softmax_temperature.metrics.checks import (
    PIECE,
    PROBABILITY_TOLERANCE,
    ArgumentError,
)

# Tables with fewer rows than this are not judged.
FEWEST_ROWS = 20
# At least this many rows must touch a bound, and the rows' largest p must have at least
# this many distinct values.
FEWEST_TOUCHES = 5
# A row touches the upper bound if its largest p is closer to 1 than this, and the lower
# bound if its smallest p times the number of classes is closer to 0 than this.
TOUCH = 1e-3
# Tables whose rounding error, in p, is larger than this are not judged. For two
# classes, a row has only one number that can touch a bound, so the limit is smaller: it
# is the error of probabilities with three decimals.
LARGEST_ERROR = 0.02
LARGEST_ERROR_OF_TWO = 4e-3
# The largest p of the rows must span at least `LEAST_RANGE` and reach `LEAST_REACH`.
# Those of an untrained network do not.
LEAST_RANGE = 0.2
LEAST_REACH = 0.6
# Numbers of decimals to which users round, and the largest error, in units of the last
# decimal place, at which a float32 number still counts as rounded.
DECIMALS = (2, 3, 4, 5, 6)
ROUNDING = 0.05
# The logarithms of a row span at most 1; this leaves room for rounding.
LARGEST_SPAN = 1.1

ONE_SOFTMAX = (
    "Drop the second softmax: give the logits, or the softmax of the logits. To undo "
    "it, add the same number to the logarithms of a row, so that they sum to 1."
)
BEFORE_SOFTMAX = "Give the logits from before the softmax."
ONE_SIGMOID = (
    "Drop the second sigmoid: give the logits, or the sigmoid of the logits. To undo "
    "it, take log(q / (1 - q))."
)


def check_not_double(
    probs: Tensor, bounds: tuple[float, float], *, unit: float = 0.0, name: str
) -> None:
    """Refuse probabilities that are the softmax, or the sigmoid, of probabilities.

    Args:
        probs: Shape (n, classes); rows sum to one.
        bounds: The smallest and the largest of all probabilities. For almost all
            tables, they alone give the answer.
        unit: Relative rounding error of the probabilities, if larger than that of
            their dtype.
        name: Name of the argument in messages.
    """
    rows, classes = probs.shape
    low, high = bounds
    least = 1 / (math.e + classes - 1)
    if rows < FEWEST_ROWS or not (
        low * LARGEST_SPAN >= least and high <= LARGEST_SPAN * math.e * least
    ):
        return
    error = max(PROBABILITY_TOLERANCE, unit, torch.finfo(probs.dtype).eps)
    error = max(error, _rounding_error(probs[:FEWEST_ROWS]) / low)
    pieces = [
        _undone(piece.detach().double().log())
        for piece in probs.split(max(1, PIECE // classes))
    ]
    smallest, largest = (torch.cat(parts) for parts in zip(*pieces, strict=True))
    count = _touches(smallest, largest, classes, error)
    if not count:
        return
    if classes == 2 and _is_one_sided(probs, error):
        raise ArgumentError(
            f"{name} are the sigmoid of probabilities: all of one class are in "
            f"[0.5, 0.731], and {count} of {rows} touch an end",
            ONE_SIGMOID,
        )
    raise ArgumentError(
        f"{name} are the softmax of probabilities: undoing a softmax gives rows in "
        f"[0, 1], and {count} of {rows} touch 0 or 1",
        ONE_SOFTMAX,
    )


def check_not_log_double(logits: Tensor, low: Tensor, *, name: str) -> None:
    """Refuse logits that are probabilities plus a constant in each row.

    The logarithms of a softmax of probabilities are such logits.

    Args:
        logits: Shape (n, classes).
        low: The smallest logit of each row, shape (n,).
        name: Name of the argument in messages.
    """
    rows, classes = logits.shape
    if rows < FEWEST_ROWS or classes < 2:
        return
    # For almost all tables, the first rows already give the answer.
    first = logits[:FEWEST_ROWS]
    if not bool((first.amax(dim=1) - low[:FEWEST_ROWS] <= LARGEST_SPAN).all()):
        return
    smallest, largest = _undone(logits)
    exact = first.double()
    error = max(
        PROBABILITY_TOLERANCE,
        torch.finfo(logits.dtype).eps * exact.abs().max().item(),
        _rounding_error(exact),
        _rounding_error(exact.exp()) / max(exact.exp().min().item(), 1e-300),
    )
    count = _touches(smallest, largest, classes, error)
    if count:
        raise ArgumentError(
            f"{name} are probabilities plus a number in each row, or the logarithms of "
            "their softmax: with such a number, all rows lie in [0, 1] and sum to 1, "
            f"and {count} of {rows} touch 0 or 1",
            BEFORE_SOFTMAX,
        )


def _undone(logs: Tensor) -> tuple[Tensor, Tensor]:
    """Return the smallest and largest number of each row, shifted to sum to one.

    Both are float64 tensors of shape (n,).
    """
    classes = logs.shape[1]
    shift = (1 - logs.sum(dim=1, dtype=torch.float64)) / classes
    return logs.amin(dim=1) + shift, logs.amax(dim=1) + shift


def _touches(smallest: Tensor, largest: Tensor, classes: int, error: float) -> int:
    """Number of rows that touch 0 or 1; 0 unless the rows evidently are probabilities.

    Args:
        smallest: The smallest number of each row, shape (n,).
        largest: The largest number of each row, shape (n,).
        classes: Number of classes.
        error: Largest error of a number.
    """
    if error > (LARGEST_ERROR if classes > 2 else LARGEST_ERROR_OF_TWO):
        return 0
    if not bool(((smallest >= -error) & (largest <= 1 + error)).all()):
        return 0
    reach = largest.max().item()
    if reach < LEAST_REACH or reach - largest.min().item() < LEAST_RANGE:
        return 0
    if len(largest.unique()) < FEWEST_TOUCHES:
        return 0
    touches = largest > 1 - max(TOUCH, error)
    if error <= TOUCH:
        touches |= classes * smallest < max(TOUCH, classes * error)
    count = int(touches.sum())
    return count if count >= FEWEST_TOUCHES else 0


def _is_one_sided(probs: Tensor, error: float) -> bool:
    """Whether the same one of two classes is at least as probable in all rows."""
    margins = probs[:, 1] - probs[:, 0]
    return bool((margins >= -error).all() or (margins <= error).all())


def _rounding_error(numbers: Tensor) -> float:
    """Twice the error that rounding to decimals causes; 0 if there is no rounding.

    The error is doubled because undoing a softmax subtracts the mean of a row from each
    number.
    """
    exact = numbers.detach().double()
    for decimals in DECIMALS:
        scaled = exact * 10**decimals
        if bool((scaled - scaled.round()).abs().max() <= ROUNDING):
            return float(10.0**-decimals)
    return 0.0

"""Check for probabilities that were passed as logits.

The check is used wherever users pass logits. It judges a table by the share of rows
that look like probabilities, so that a few odd rows do not hide the rest. It refuses a
table only for a pattern that logits do not show by chance.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn

from softmax_temperature.metrics.checks import (
    PROBABILITY_TOLERANCE,
    ArgumentError,
    check_logits,
)
from softmax_temperature.metrics.double_softmax import (
    check_not_double,
    check_not_log_double,
)

# A table is judged to hold probabilities if more than this share of its rows sum to
# one, or to another sum that rows of probabilities may have.
SUM_SHARE = 0.5
# Rows of probabilities rounded to three decimals have sums that differ from one by at
# most this, if there are at most 20 classes; for more classes see `sum_tolerance`.
SUM_TOLERANCE = 1e-2
# In tables with fewer than `FEW_ROWS` rows, sums must equal one within a tighter
# tolerance. A single row is never judged, because two small logits can sum to one by
# chance.
FEW_ROWS = 20
SUM_TOLERANCE_OF_FEW = 1e-4
# The sums that rows of probabilities may have, each with the name for such a table in
# messages. Probabilities may be stored as bytes or in parts of a thousand.
WHOLES = {
    1: "probabilities",
    100: "percentages",
    255: "probabilities times 255",
    1000: "probabilities times 1000",
}
# Logits with few distinct rows, as in a toy example, may have equal sums by chance.
# Rows with equal sums are therefore judged to be probabilities only if their maxima
# have at least this many distinct values.
FEWEST_DISTINCT_MAXIMA = 5
# A table of at least `FEW_ROWS` rows is judged to hold outputs of a sigmoid if at least
# the share `SIGMOID_SHARE` of the rows lies in [0, 1], and the numbers in these rows
# lie on both sides of 0.5 and span at least `SIGMOID_RANGE`. Logits of an untrained
# network span less.
SIGMOID_SHARE = 0.95
SIGMOID_RANGE = 0.3
# The outputs of a network may lie in [0, 1] although it has no sigmoid, for instance
# after a ReLU and an average. If the autograd graph does not show the last function,
# that function is judged to be a sigmoid only if all outputs lie in [0, 1] and come
# this close to both ends.
SATURATION = 0.02
# Functions that return sigmoids, and functions that return probabilities if their
# inputs are probabilities. They are named like the nodes of torch's autograd graph,
# without the number at the end of the name.
SIGMOID_NODES = {"SigmoidBackward", "HardsigmoidBackward"}
VIEW_NODES = {
    *("AliasBackward", "AsStridedBackward", "ClampBackward", "ClampMaxBackward"),
    *("ClampMinBackward", "CloneBackward", "ExpandBackward", "FlipBackward"),
    *("GatherBackward", "IndexBackward", "IndexSelectBackward", "PermuteBackward"),
    *("RepeatBackward", "ReshapeAliasBackward", "SelectBackward", "SliceBackward"),
    *("SplitBackward", "SplitWithSizesBackward", "SqueezeBackward", "TBackward"),
    *("ToCopyBackward", "TransposeBackward", "UnbindBackward", "UnsafeViewBackward"),
    *("UnsqueezeBackward", "ViewBackward"),
}
JOINING_NODES = {"CatBackward", "StackBackward"}
# Numbers of decimals to which users round probabilities.
DECIMALS = (1, 2, 3)
# The largest float32 error, in units of the last decimal place, at which a number still
# counts as rounded.
ROUNDING = 1e-4
# The largest difference between a row's sum and one that is attributed to rounding.
LARGEST_MISS = 0.5

# Rows are judged to be odds p / (1 - p) if the probabilities p computed from them sum
# to one within a tolerance. A row is judged only if one minus its largest p is at least
# `ODDS_REST` times the tolerance.
ODDS_TOLERANCE = 1e-3
LARGEST_ODDS_TOLERANCE = 0.05
ODDS_REST = 10
ODDS_NUMBERS = 1 << 20
# If the probabilities of a table's predictions span less than this range, sums near the
# expected one are no evidence: the outputs of an untrained network hardly differ, and
# their sums may have any value.
VARIATION = 0.1

# A table of numbers in [0, 1] is judged to be a softmax over the rows instead of the
# classes if all columns sum to the same whole number, which is the number of batches.
# The tolerance is `COLUMN_TOLERANCE` times the square root of the sum, but at most
# `LARGEST_COLUMN_TOLERANCE`.
COLUMN_TOLERANCE = 1e-3
LARGEST_COLUMN_TOLERANCE = 0.05
# Scores are judged to have a constant sum if, in at least this share of the rows, the
# sum differs from the median by at most `ROUNDING_ERRORS` standard deviations of the
# rounding error in float32. Logits have a constant sum by chance only if the sum is 0.
CONSTANT_SHARE = 0.95
ROUNDING_ERRORS = 4
# A sum counts as 0 unless it is more than this many times as large as the rounding
# error. The range of the rows' maxima must exceed the same limit: if a row has a number
# such as -1e9 that masks a class, rounding removes all other numbers from the sum.
NONZERO_SUM = 100
# Numbers, apart from those in `WHOLES`, by which probabilities are multiplied before
# they are stored as whole numbers. The sums may differ by rounding only if they are
# near one of these numbers, because centred logits that were quantised with an offset
# also have nearly equal sums.
SCALES = (32767, 65535, 65536, *(10**digits for digits in range(4, 10)))
# The largest rounding error of a sum of whole numbers, relative to a row's range.
WHOLE_TOLERANCE = 0.01

# A probability computed as one minus a sum can fall this far below 0 by rounding.
LOWEST = -PROBABILITY_TOLERANCE

LOGITS_INSTEAD = "Give logits from before the softmax, or the logarithms (torch.log)."
FROM_COMPLEMENTS = "Subtract them from 1."
FROM_ODDS = "Convert them: x / (1 + x)."
NO_SOFTMAX = "Take the softmax off the end of the network."
NO_SIGMOID = "Take the sigmoid off the end of the network."
NO_LOG_SOFTMAX = (
    "Return the logits from before the log_softmax, and train with cross_entropy "
    "instead of nll_loss."
)
OVER_CLASSES = "Take softmax(logits, dim=1), over the classes, or give the logits."
CENTRE = (
    "For the logit of class 1 of two, give raw or [-raw, raw] / 2 instead of "
    "[1 - raw, raw]. If they are logits, subtract each row's mean, which changes "
    "nothing else."
)
SHIFT = "If they are logits, subtract 1 from all of them, which changes nothing else."


def check_probs(probs: Tensor) -> Tensor:
    """Refuse probabilities unless they are in [0, 1] and each row sums to one.

    A softmax of probabilities, which a second softmax returns, is refused too.

    Returns:
        The probabilities, clipped to [0, 1] if rounding has moved some of them outside.
    """
    check_logits(probs, name="probs")
    # The sum of a half-precision row may differ from one by the type's rounding unit,
    # and so may a probability that was computed as one minus a sum.
    tolerance = max(PROBABILITY_TOLERANCE, torch.finfo(probs.dtype).eps)
    low, high = (bound.item() for bound in torch.aminmax(probs))
    if low < -tolerance or high > 1 + tolerance:
        raise ArgumentError(
            f"probs must lie in [0, 1], got values from {low} to {high}",
            "Take the softmax of logits.",
        )
    sums = probs.sum(dim=1, dtype=torch.float64)
    worst = int((sums - 1).abs().argmax())
    if abs(sums[worst].item() - 1) > tolerance:
        raise ArgumentError(
            f"probs must have rows that sum to one, got {sums[worst].item():.8g} "
            f"in row {worst}",
            "Take the softmax of logits over all classes, or divide each row by its "
            "sum.",
        )
    check_not_double(probs, (low, high), name="probs")
    return probs.clamp(0, 1) if low < 0 or high > 1 else probs


def check_not_probs(
    logits: Tensor,
    *,
    name: str = "logits",
    remedy: str = LOGITS_INSTEAD,
    sigmoids: bool = True,
    of_network: bool = False,
) -> None:
    """Refuse logits (n, classes) or (n, 1) that look like probabilities.

    Args:
        logits: Finite, or -inf where a class is masked.
        name: Name of the argument in messages.
        remedy: What to do if the logits are probabilities.
        sigmoids: Whether to refuse outputs of a sigmoid as well as rows that sum to
            one, to 100 and so on. It should be False for cosines, which look like
            outputs of a sigmoid if none is negative.
        of_network: Whether the logits come straight from a network. They are then taken
            for outputs of a sigmoid only if they come near both 0 and 1, because
            networks without a sigmoid may also return numbers in [0, 1].
    """
    if len(logits) < 2:
        return
    rows = logits.detach()
    low = rows.amin(dim=1)
    _refuse_ranks(rows, low, name)
    _refuse_constant_sum(rows, low, name, of_network=of_network)
    # Rows of probabilities have no negative number.
    if (low >= LOWEST).double().mean().item() <= SUM_SHARE:
        check_not_log_double(rows, low, name=name)
        return
    high = rows.amax(dim=1)
    whole = sum_of_columns(rows, low, high)
    if whole:
        raise ArgumentError(
            f"{name} are probabilities over the rows: all lie in [0, 1], and every "
            f"column sums to {whole}",
            OVER_CLASSES,
        )
    _refuse_functions_of_probs(rows, low, high, name, remedy)
    _refuse_sums(rows, low, high, name, remedy)
    inside = _in_unit_interval(low, high)
    are_sigmoids = _are_saturated if of_network else _are_spread
    if sigmoids and are_sigmoids(rows, inside):
        share = inside.double().mean().item()
        raise ArgumentError(
            f"{name} are probabilities: {100 * share:.0f} % of the rows lie in [0, 1], "
            "as a sigmoid's do",
            f"{remedy} {SHIFT}",
        )
    check_not_log_double(rows, low, name=name)


def _refuse_ranks(rows: Tensor, low: Tensor, name: str) -> None:
    """Refuse rows that all hold the same consecutive numbers, in any order."""
    classes = rows.shape[1]
    if classes < 3 or len(rows) < FEW_ROWS or not bool((low == low[0]).all()):
        return
    numbers = torch.arange(classes, dtype=rows.dtype, device=rows.device)
    # Subtract first, because sums of large numbers are rounded. For almost all tables,
    # the first row already gives the answer.
    if all(
        bool(((part - low[0]).sort(dim=1).values == numbers).all())
        for part in (rows[:1], rows)
    ):
        first, last = (f"{number:g}" for number in (low[0], low[0] + classes - 1))
        raise ArgumentError(
            f"{name} are ranks: every row holds each number from {first} to {last} "
            "once",
            "Give the scores that were ranked.",
        )


def sum_of_columns(rows: Tensor, low: Tensor, high: Tensor) -> int:
    """Return the whole number to which all columns sum, as after a softmax over rows.

    This is the number of batches. The result is 0 if the table does not look like such
    a softmax. If there is only one column, it must sum to 1.

    Args:
        rows: All rows, shape (n, classes).
        low: The smallest number of each row, shape (n,).
        high: The largest number of each row, shape (n,).
    """
    if len(rows) < FEW_ROWS or not bool(_in_unit_interval(low, high).all()):
        return 0
    sums = rows.sum(dim=0, dtype=torch.float64)
    whole = round(sums[0].item())
    if whole < 1 or (rows.shape[1] == 1 and whole > 1):
        return 0
    tolerance = min(COLUMN_TOLERANCE * math.sqrt(whole), LARGEST_COLUMN_TOLERANCE)
    if bool(((sums - whole).abs() > tolerance).any()):
        return 0
    # If few rows are distinct, as with one-hot rows, columns may have such sums by
    # chance.
    return whole if len(high.unique()) >= FEWEST_DISTINCT_MAXIMA else 0


def _refuse_constant_sum(
    rows: Tensor, low: Tensor, name: str, *, of_network: bool
) -> None:
    """Refuse rows with negative numbers if they all have the same nonzero sum.

    Examples are [1 - raw, raw] for the logit `raw` of class 1 of two, the predictions
    of a regression on one-hot classes, and probabilities that were negated or rescaled
    to [-1, 1]. Centred logits sum to 0. Whole numbers are not judged, because they may
    be centred logits, quantised with an offset.

    Args:
        rows: All rows, shape (n, classes).
        low: The smallest number of each row, shape (n,).
        name: Name of the rows in messages.
        of_network: Whether a network has just returned the rows. Only a sum of 1 is
            then refused, because the logits of a last layer whose weights start at 0
            always sum to the sum of its biases.
    """
    if len(rows) < FEW_ROWS or rows.shape[1] == 1 or not bool((low < LOWEST).any()):
        return
    sums = _sums(rows)
    if not bool(sums.isfinite().all()):
        return
    total = sums.median().item()
    if of_network and abs(total - 1) > PROBABILITY_TOLERANCE:
        return
    high = rows.amax(dim=1)
    largest = torch.maximum(high.abs(), low.abs()).double()
    unit = torch.finfo(torch.float32).eps / math.sqrt(12)
    errors = ROUNDING_ERRORS * math.sqrt(rows.shape[1]) * unit * largest
    constant = (sums - total).abs() <= errors
    share = constant.double().mean().item()
    least = NONZERO_SUM * errors.median().item()
    if share < CONSTANT_SHARE or abs(total) <= least or _range(high) <= least:
        return
    few = len(high.unique()) < FEWEST_DISTINCT_MAXIMA
    if few or _are_whole(rows):
        return
    raise ArgumentError(
        f"{name} are not logits of the classes: {100 * share:.0f} % of the rows sum to "
        f"{total:.6g}",
        CENTRE,
    )


def _refuse_functions_of_probs(
    rows: Tensor, low: Tensor, high: Tensor, name: str, remedy: str
) -> None:
    """Refuse rows that are 1 - p or p / (1 - p) for probabilities p."""
    share = share_of_complements(rows, low, high)
    if share > SUM_SHARE:
        raise ArgumentError(
            f"{name} are one minus probabilities: {100 * share:.0f} % of the rows lie "
            f"in [0, 1] and sum to {rows.shape[1] - 1}, the number of classes minus "
            "one",
            f"{FROM_COMPLEMENTS} {remedy}",
        )
    share = share_of_odds(rows, low)
    if share > SUM_SHARE:
        raise ArgumentError(
            f"{name} are odds p / (1 - p): {100 * share:.0f} % of the rows give "
            "probabilities x / (1 + x) that sum to 1",
            f"{FROM_ODDS} {remedy}",
        )


def _refuse_sums(
    rows: Tensor, low: Tensor, high: Tensor, name: str, remedy: str
) -> None:
    """Refuse nonnegative rows whose sums are one of `WHOLES`, or are all equal.

    Args:
        rows: All rows, shape (n, classes).
        low: The smallest number of each row, shape (n,).
        high: The largest number of each row, shape (n,).
        name: Name of the rows in messages.
        remedy: What to do if the rows are probabilities.
    """
    for whole, noun in WHOLES.items():
        inside = (low >= LOWEST) & (high <= whole * (1 + PROBABILITY_TOLERANCE))
        if inside.double().mean().item() <= SUM_SHARE:
            continue
        share = _share_summing_to(whole, rows, inside)
        if share > SUM_SHARE:
            raise ArgumentError(
                f"{name} are {noun}: {100 * share:.0f} % of the rows lie in "
                f"[0, {whole}] and sum to {whole}",
                remedy if whole == 1 else f"Divide by {whole}. {remedy}",
            )
    total = _sums(rows).median().item()
    # Rounding changes the sum by at most half a unit per class.
    near = [scale for scale in SCALES if abs(total - scale) <= rows.shape[1] / 2]
    rounded = bool(near) and _are_whole(rows)
    if rounded:
        total = float(near[0])
    share = _share_with_constant_sum(total, rows, low, high, rounded=rounded)
    if share > SUM_SHARE:
        raise ArgumentError(
            f"{name} are probabilities times {total:.6g}: {100 * share:.0f} % of the "
            f"rows are at least 0 and sum to {total:.6g}, as votes do",
            f"Divide by {total:.6g}. {remedy}",
        )


def with_earlier(rows: Tensor, earlier: Tensor | None) -> Tensor:
    """Return `rows`; if they are few, prepend the rows of `earlier` small batches.

    A single row is never judged, and sigmoids are recognised only in many rows, so
    small batches must be judged together.

    Args:
        rows: Logits of a batch, shape (n, classes).
        earlier: The rows that this function returned for the previous batch, or None.
    """
    if len(rows) >= FEW_ROWS:
        return rows.detach()
    # Copy the plain numbers, because a tensor made inside torch.func.grad must not
    # outlive that call.
    few = torch.tensor(rows.tolist(), dtype=rows.dtype)
    if earlier is not None and earlier.shape[1:] == few.shape[1:]:
        few = torch.cat([earlier.to(few.dtype), few])
    return torch.func.debug_unwrap(few)


def check_no_softmax_at_end(
    network: nn.Module, name: str, *, log: bool = False
) -> None:
    """Refuse a network whose last module turns logits into probabilities.

    Args:
        network: The network.
        name: Name of the argument in messages.
        log: Whether to refuse a network whose last module returns log-probabilities.
    """
    last = network
    while isinstance(last, nn.Sequential) and len(last):
        last = last[-1]
    if isinstance(last, nn.Softmax | nn.Softmax2d | nn.Softmin | nn.Sigmoid):
        raise ArgumentError(
            f"{name} must return logits, but ends in {type(last).__name__}",
            NO_SIGMOID if isinstance(last, nn.Sigmoid) else NO_SOFTMAX,
        )
    if log and isinstance(last, nn.LogSoftmax):
        raise ArgumentError(
            f"{name} must return logits, but ends in {type(last).__name__}",
            NO_LOG_SOFTMAX,
        )


def is_of_sigmoid(logits: Tensor) -> bool | None:
    """Whether the autograd graph shows that a sigmoid returned `logits`.

    Views, copies and clamps after the sigmoid do not change the answer. The answer is
    None if there is no graph, or if the graph ends in a function that may hide others,
    such as compiled code.
    """
    if torch.compiler.is_compiling():
        return None
    return _is_sigmoid_node(logits.grad_fn)


def _is_sigmoid_node(node: Any) -> bool | None:
    """Answer `is_of_sigmoid` for a node of the graph."""
    while node is not None:
        kind = type(node).__name__
        name = kind.rstrip("0123456789")
        if name in SIGMOID_NODES:
            return True
        if name in JOINING_NODES:
            parts = [_is_sigmoid_node(part) for part, _ in node.next_functions]
            return None if None in parts else all(parts)
        if name not in VIEW_NODES:
            # Torch numbers the nodes of its own functions. Leaves, custom functions and
            # compiled code have no number.
            return None if name == kind else False
        node = node.next_functions[0][0]
    return None


def check_not_of_sigmoid(logits: Tensor, name: str = "logits") -> bool:
    """Refuse logits if their autograd graph shows that a sigmoid returned them.

    Returns:
        Whether the graph shows that no sigmoid returned them.
    """
    of_sigmoid = is_of_sigmoid(logits)
    if of_sigmoid:
        raise ArgumentError(
            f"{name} are probabilities: they are the output of a sigmoid", NO_SIGMOID
        )
    return of_sigmoid is False


def check_not_log_probs(logits: Tensor) -> None:
    """Refuse logits (n, classes) whose exponentials sum to one in every row.

    The check must come before the logits are changed, for example divided by a
    temperature, because their exponentials may no longer sum to one afterwards. A table
    passes if it has fewer than `FEW_ROWS` rows, or if its rows have few distinct
    maxima: a new last layer may return the logarithms of the classes' frequencies in
    every row.
    """
    rows = logits.detach()
    tolerance = max(SUM_TOLERANCE_OF_FEW, 2 * torch.finfo(rows.dtype).eps)
    high = rows.amax(dim=1)
    if len(rows) < FEW_ROWS or bool((high > tolerance).any()):
        return
    misses = (_sums(rows.exp()) - 1).abs()
    are_one = bool((misses <= tolerance).all())
    if are_one and len(high.unique()) >= FEWEST_DISTINCT_MAXIMA:
        raise ArgumentError(
            "logits are log-probabilities: the exponentials of every row sum to 1",
            NO_LOG_SOFTMAX,
        )


def lie_in_unit_interval(logits: Tensor) -> bool:
    """Whether all logits lie in [0, 1], up to rounding, as a sigmoid's outputs do."""
    low, high = torch.aminmax(logits.detach())
    return bool(_in_unit_interval(low, high))


def sum_tolerance(probs: Tensor, rows: int) -> float:
    """Return the largest distance of a row's sum from one that rounding can explain.

    Args:
        probs: Rows to judge, shape (n, classes).
        rows: Number of rows of the whole table.
    """
    if rows < FEW_ROWS:
        return max(SUM_TOLERANCE_OF_FEW, float(torch.finfo(probs.dtype).eps))
    decimals = rounded_decimals(probs)
    if decimals is None:
        return SUM_TOLERANCE
    most = probs.shape[1] / 2 / 10.0**decimals
    return max(SUM_TOLERANCE, min(most, LARGEST_MISS))


def rounded_decimals(probs: Tensor) -> int | None:
    """Number of decimals to which `probs` are rounded; None if they are not rounded."""
    for decimals in DECIMALS:
        scaled = probs * 10**decimals
        if bool((scaled - scaled.round()).abs().max() < ROUNDING):
            return decimals
    return None


def _share_summing_to(whole: int, rows: Tensor, inside: Tensor) -> float:
    """Return the share of the rows that sum to `whole`, up to rounding.

    Rows that hold only 0 and `whole` do not count, because they may be logits of a toy
    example or saturated probabilities.

    Args:
        whole: The sum to look for, such as 1 or 100.
        rows: All rows, shape (n, classes).
        inside: Mask of the rows in [0, whole], shape (n,). Other rows cannot sum to
            `whole` as probabilities do.
    """
    # For most tables, the sums alone show that the share is 0, without a copy of the
    # rows.
    near = inside & ((_sums(rows) / whole - 1).abs() <= LARGEST_MISS)
    if not bool(near.any()):
        return 0.0
    candidates = rows[inside] / whole
    soft = candidates[~((candidates == 0) | (candidates == 1)).all(dim=1)]
    if not len(soft):
        return 0.0
    misses = (_sums(soft) - 1).abs()
    to_one = int((misses <= sum_tolerance(soft, len(rows))).sum())
    judged = int(len(rows) - len(candidates) + len(soft))
    return to_one / judged


def _share_with_constant_sum(
    total: float, rows: Tensor, low: Tensor, high: Tensor, *, rounded: bool = False
) -> float:
    """Return the share of the rows that have no negative number and sum to `total`.

    Counts of an ensemble's votes form such rows, and so do sums of its members'
    probabilities. The sums must be equal up to rounding, because logits shifted far
    above 0 also have sums that are nearly equal.

    Args:
        total: The median of the rows' sums.
        rows: All rows, shape (n, classes).
        low: The smallest number of each row, shape (n,).
        high: The largest number of each row, shape (n,).
        rounded: Whether probabilities were multiplied by `total` and then rounded.
    """
    sums = _sums(rows)
    # Rows in which all numbers are equal, and rows in which all but one are 0, may be
    # logits of a toy example, so they do not count.
    judged = (low < 0) | ((high > low) & (high < sums))
    if int(judged.sum()) < FEW_ROWS:
        return 0.0
    misses = (sums - total).abs()
    tolerance = SUM_TOLERANCE_OF_FEW * (high - low)
    if rounded:
        largest = (WHOLE_TOLERANCE * (high - low)).clamp(max=rows.shape[1] / 2)
        tolerance = torch.maximum(tolerance, largest)
    constant = judged & (low >= 0) & (misses <= tolerance)
    if len(high[constant].unique()) < FEWEST_DISTINCT_MAXIMA:
        return 0.0
    return int(constant.sum()) / int(judged.sum())


def _are_whole(rows: Tensor) -> bool:
    """Whether all numbers are whole; the first row rules it out for most tables."""
    return all(bool((part == part.round()).all()) for part in (rows[:1], rows))


def share_of_complements(rows: Tensor, low: Tensor, high: Tensor) -> float:
    """Return the share of the rows that are 1 - p for class probabilities p.

    The share is 0 for two classes, where 1 - p is the probability of the other class.
    It is also 0 for few rows, and for few distinct rows, as in a toy example.

    Args:
        rows: All rows, shape (n, classes).
        low: The smallest number of each row, shape (n,).
        high: The largest number of each row, shape (n,).
    """
    others = rows.shape[1] - 1
    inside = _in_unit_interval(low, high)
    if others < 2 or len(rows) < FEW_ROWS or inside.double().mean() <= SUM_SHARE:
        return 0.0
    near = inside & ((_sums(rows) - others).abs() <= LARGEST_MISS)
    if len(low[near].unique()) < FEWEST_DISTINCT_MAXIMA:
        return 0.0
    if _range(low[near]) >= VARIATION:
        return _share_summing_to(1, 1 - rows, inside)
    return _share_with_constant_sum(others, rows, low, high)


def share_of_odds(rows: Tensor, low: Tensor) -> float:
    """Return the share of the rows that are odds p / (1 - p) of probabilities p.

    Rows do not count if nearly all the probability belongs to one class, because any
    row with a single large number looks like that. The share is 0 for few rows, and for
    rows that hardly differ, as those of an untrained network do.

    Args:
        rows: All rows, shape (n, classes). Only the first `ODDS_NUMBERS` numbers are
            judged.
        low: The smallest number of each row, shape (n,).
    """
    count = max(FEW_ROWS, ODDS_NUMBERS // rows.shape[1])
    positive = rows[:count][low[:count] >= LOWEST]
    if len(positive) < FEW_ROWS:
        return 0.0
    tolerance = ODDS_TOLERANCE
    decimals = rounded_decimals(positive)
    if decimals is not None:
        tolerance = max(tolerance, rows.shape[1] / 2 / 10.0**decimals)
    if tolerance > LARGEST_ODDS_TOLERANCE:
        return 0.0
    odds = positive.double().clamp(min=0)
    probs = odds / (1 + odds)
    top = probs.amax(dim=1)
    judged = 1 - top >= ODDS_REST * tolerance
    matches = judged & ((_sums(probs) - 1).abs() <= tolerance)
    found = top[matches]
    if len(found.unique()) < FEWEST_DISTINCT_MAXIMA:
        return 0.0
    if _range(found) < max(VARIATION, ODDS_REST * tolerance):
        return 0.0
    total = int(judged.sum()) + len(rows[:count]) - len(positive)
    return len(found) / total


def _range(values: Tensor) -> float:
    low, high = torch.aminmax(values)
    return float(high) - float(low)


def _in_unit_interval(low: Tensor, high: Tensor) -> Tensor:
    """Whether [low, high] lies in [0, 1], up to rounding."""
    return (low >= LOWEST) & (high <= 1 + PROBABILITY_TOLERANCE)


def _sums(rows: Tensor) -> Tensor:
    return rows.sum(dim=1, dtype=torch.float64)


def _are_spread(rows: Tensor, inside: Tensor) -> bool:
    """Whether `SIGMOID_SHARE` of the rows lie in [0, 1], spread like sigmoid outputs.

    Their numbers then lie on both sides of 0.5, span at least `SIGMOID_RANGE` and are
    not all 0 or 1. The answer is False for fewer than `FEW_ROWS` rows.

    Args:
        rows: All rows, shape (n, classes).
        inside: Mask of the rows in [0, 1], shape (n,).
    """
    share = inside.double().mean().item()
    if len(rows) < FEW_ROWS or share < SIGMOID_SHARE:
        return False
    candidates = rows[inside]
    low, high = (bound.item() for bound in torch.aminmax(candidates))
    if bool(((candidates == 0) | (candidates == 1)).all()):
        return False
    return low < 0.5 < high and high - low >= SIGMOID_RANGE


def _are_saturated(rows: Tensor, inside: Tensor) -> bool:
    """Whether all rows lie in [0, 1] and come near both ends as sigmoids do.

    A sigmoid in float32 returns 0 only for logits below about -88, so exact zeros
    indicate a ReLU, unless the numbers are rounded.

    Args:
        rows: All rows, shape (n, classes).
        inside: Mask of the rows in [0, 1], shape (n,).
    """
    if not bool(inside.all()) or not _are_spread(rows, inside):
        return False
    low, high = (bound.item() for bound in torch.aminmax(rows))
    if low > SATURATION or high < 1 - SATURATION:
        return False
    return bool((rows != 0).all()) or rounded_decimals(rows) is not None

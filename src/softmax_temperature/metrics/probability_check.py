"""The check for probabilities that were passed as logits.

It is used wherever users pass logits. It judges a table by the share of rows that look
like probabilities, so that a few odd rows do not hide the rest. It refuses only on
evidence that logits do not show by chance.
"""

import torch
from torch import Tensor, nn

from softmax_temperature.metrics.checks import PROBABILITY_TOLERANCE, ArgumentError

# A table holds probabilities if more than this share of its rows sum to one.
SUM_SHARE = 0.5
# Sums of probabilities rounded to three digits differ from one by less.
SUM_TOLERANCE = 1e-2
# Rows of small tables have to sum to one more closely. A single row is never judged,
# because two small logits can sum to one by chance.
FEW_ROWS = 20
SUM_TOLERANCE_OF_FEW = 1e-4
# Sums of rows of probabilities and their names in a message, also for probabilities
# stored as bytes or in parts of a thousand.
WHOLES = {
    1: "probabilities",
    100: "percentages",
    255: "probabilities times 255",
    1000: "probabilities times 1000",
}
# Rows whose sums are equal have at least so many different largest numbers.
FEWEST_FORMS = 5
# A table of at least `FEW_ROWS` rows is one of sigmoids if this share of them lie in
# [0, 1], on both sides of 0.5 and this far apart. Logits of an untrained network are
# close to each other.
SIGMOID_SHARE = 0.95
SIGMOID_RANGE = 0.3
# Numbers of decimals to which users round probabilities.
DECIMALS = (1, 2, 3)
# Error of a rounded number in float32, in units of its last decimal.
ROUNDING = 1e-4
# The largest distance of a sum from one that rounding may explain.
LARGEST_MISS = 0.5

# Rounding can make probabilities computed as one minus a sum negative by this much.
LOWEST = -PROBABILITY_TOLERANCE

LOGITS_INSTEAD = "Give logits from before the softmax, or the logarithms (torch.log)."
NO_SOFTMAX = "Take the softmax off the end of the network."
SHIFT = "If they are logits, subtract 1 from all of them, which changes nothing else."


def check_not_probs(
    logits: Tensor,
    *,
    name: str = "logits",
    remedy: str = LOGITS_INSTEAD,
    sigmoids: bool = True,
) -> None:
    """Refuse logits (n, classes) or (n, 1) that look like probabilities.

    Args:
        logits: Finite, or -inf where a class is masked.
        name: Name of the argument in messages.
        remedy: What to do if they are probabilities.
        sigmoids: Whether to refuse sigmoids as well as probabilities and percentages;
            cosines that are at least zero look like sigmoids.
    """
    if len(logits) < 2:
        return
    rows = logits.detach()
    low = rows.amin(dim=1)
    # No rule applies if most rows have a negative logit.
    if (low >= LOWEST).double().mean().item() <= SUM_SHARE:
        return
    high = rows.amax(dim=1)
    for whole, noun in WHOLES.items():
        inside = (low >= LOWEST) & (high <= whole * (1 + PROBABILITY_TOLERANCE))
        if inside.double().mean().item() <= SUM_SHARE:
            continue
        share = _share_of_sums(rows, inside, whole)
        if share > SUM_SHARE:
            raise ArgumentError(
                f"{name} are {noun}: {100 * share:.0f} % of the rows lie in "
                f"[0, {whole}] and sum to {whole}",
                remedy if whole == 1 else f"Divide by {whole}. {remedy}",
            )
    total = _sums(rows).median().item()
    share = _share_of_shares(rows, low, high, total)
    if share > SUM_SHARE:
        raise ArgumentError(
            f"{name} are probabilities times {total:.6g}: {100 * share:.0f} % of the "
            f"rows are at least 0 and sum to {total:.6g}, as votes do",
            f"Divide by {total:.6g}. {remedy}",
        )
    inside = (low >= LOWEST) & (high <= 1 + PROBABILITY_TOLERANCE)
    share = inside.double().mean().item()
    enough = share >= SIGMOID_SHARE and len(rows) >= FEW_ROWS
    if sigmoids and enough and _spread(rows[inside]):
        raise ArgumentError(
            f"{name} are probabilities: {100 * share:.0f} % of the rows lie in [0, 1], "
            "as a sigmoid's do",
            f"{remedy} {SHIFT}",
        )


def check_no_softmax_at_end(network: nn.Module, name: str) -> None:
    """Refuse a network whose last module turns logits into probabilities."""
    last = network
    while isinstance(last, nn.Sequential) and len(last):
        last = last[-1]
    if isinstance(last, nn.Softmax | nn.Softmax2d | nn.Softmin | nn.Sigmoid):
        raise ArgumentError(
            f"{name} must return logits, but ends in {type(last).__name__}", NO_SOFTMAX
        )


def sum_tolerance(probs: Tensor, rows: int) -> float:
    """Largest distance of a row's sum from one that rounding explains.

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
    """Number of decimals to which probabilities are rounded, or None."""
    for decimals in DECIMALS:
        scaled = probs * 10**decimals
        if bool((scaled - scaled.round()).abs().max() < ROUNDING):
            return decimals
    return None


def _share_of_sums(rows: Tensor, inside: Tensor, whole: int) -> float:
    """Share of the rows that sum to `whole` and that the mask `inside` admits.

    Rows of zeros and ones do not count, because they may be logits of a toy example or
    saturated probabilities.
    """
    # Sums alone exclude most tables, without copying their rows.
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


def _share_of_shares(rows: Tensor, low: Tensor, high: Tensor, whole: float) -> float:
    """Share of the rows that are at least 0 and sum to `whole`, whichever that is.

    Votes of an ensemble do, and sums of its members' probabilities. Only rounding may
    part them, because logits that were shifted far above 0 have sums that are nearly
    the same, too.
    """
    sums = _sums(rows)
    # Rows of one value, or of one number beside zeros, may be a toy example's logits.
    judged = (low < 0) | ((high > low) & (high < sums))
    if int(judged.sum()) < FEW_ROWS:
        return 0.0
    misses = (sums - whole).abs()
    shares = judged & (low >= 0) & (misses <= SUM_TOLERANCE_OF_FEW * (high - low))
    # So may rows that take a few forms.
    if len(high[shares].unique()) < FEWEST_FORMS:
        return 0.0
    return int(shares.sum()) / int(judged.sum())


def _sums(rows: Tensor) -> Tensor:
    return rows.sum(dim=1, dtype=torch.float64)


def _spread(candidates: Tensor) -> bool:
    """Whether numbers in [0, 1] lie on both sides of 0.5, far enough apart."""
    low, high = (bound.item() for bound in torch.aminmax(candidates))
    if bool(((candidates == 0) | (candidates == 1)).all()):
        return False
    return low < 0.5 < high and high - low >= SIGMOID_RANGE

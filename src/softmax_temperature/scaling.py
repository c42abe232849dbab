"""Temperature scaling of logits (focal paper, section 5)."""

import math
from dataclasses import dataclass
from statistics import NormalDist

import torch
from scipy.optimize import brentq
from torch import Tensor

from softmax_temperature.metrics.calibration import CHUNK, binned_sums, equal_width_bins
from softmax_temperature.metrics.checks import (
    ArgumentError,
    check_count,
    check_labels,
    check_logits,
    check_not_shifted,
    check_positive,
    is_number_between,
)
from softmax_temperature.metrics.probability_check import check_not_probs

# Bracket of the likelihood search for logits of ordinary scale. For much larger or
# smaller logits the search multiplies both ends by a power of `BRACKET_STEP`.
TEMPERATURE_BOUNDS = (1e-4, 1e4)
BRACKET_STEP = 1e8
# Largest ratio of the temperature to the mean margin of the labels. At larger ratios,
# float64 rounding hides the slope at the optimum.
LARGEST_RATIO = 1e8
# Smallest accepted margin: the inverse of a smaller margin, times the bracket, would
# exceed float64.
SMALLEST_MARGIN = 1e-300
# The grid 0.1, 0.2, ..., 10.0 of the focal paper, section 5.
TEMPERATURE_GRID = tuple(tenths / 10 for tenths in range(1, 101))
# Tolerance on log T; `fit_temperature` promises 1e-6.
LOG_TOLERANCE = 1e-8


@dataclass(frozen=True)
class TemperatureFit:
    """The result of a search for a temperature.

    Attributes:
        temperature: Divides logits.
        value: The criterion at this temperature on the fitted data: nats for "nll", a
            fraction for "ece".
        at_bound: Whether the search ended at one of its bounds, so that the temperature
            is not an optimum.
        separable: Whether the search ended at the lower bound because every label has
            the largest logit of its row, so that the likelihood increases as the
            temperature falls. For "nll", if `at_bound` is true and `separable` is
            false, equal probabilities are most likely.
    """

    temperature: float
    value: float
    at_bound: bool
    separable: bool = False


def fit_temperature(
    logits: Tensor, labels: Tensor, *, criterion: str = "nll", bins: int = 15
) -> TemperatureFit:
    """Find the temperature that minimises a criterion on held-out logits.

    Focal paper, section 5. "nll" finds the root of the slope of the negative
    log-likelihood, which is convex in 1 / T. The root is accurate to 1e-6 on log T at
    any scale of the logits: multiplying all logits by c multiplies the temperature by
    c. There is no root if the logits separate the labels (every label has the largest
    logit of its row) or carry no information about them (equal probabilities are most
    likely). Both cases are detected, and the result is then a bound: 1e-4 or 1e4 for
    logits of ordinary scale, times a power of 1e8 for much larger or smaller ones.
    "ece" tries the paper's grid 0.1, 0.2, ..., 10.0 and takes the first minimum of the
    expected calibration error.

    Args:
        logits: Shape (n, classes), any float dtype; cast to float64. A masked class has
            the logit -inf and probability 0.
        labels: True classes, shape (n,), integers; none of them masked.
        criterion: "nll" or "ece".
        bins: Number of bins of the calibration error; not used by "nll".

    Raises:
        ValueError: If logits or labels are malformed, all labels are of one class,
            `criterion` is unknown or `bins` is below 1.
    """
    check_logits(logits, masked=True)
    check_labels(labels, logits, masked=True)
    check_not_shifted(labels, logits)
    check_not_probs(logits)
    check_two_classes(labels)
    return search_temperature(logits, labels, criterion=criterion, bins=bins)


def search_temperature(
    logits: Tensor, labels: Tensor, *, criterion: str = "nll", bins: int = 15
) -> TemperatureFit:
    """Do the work of `fit_temperature`, for logits and labels that were checked."""
    bins = check_count(bins, "bins", least=1)
    if criterion not in ("nll", "ece"):
        raise ArgumentError(
            f"criterion must be 'nll' or 'ece', got {criterion!r}",
            "Use one of the two.",
        )
    # Replace logits by their margins to the row's largest logit: the exponentials of
    # margins cannot overflow, and the largest in each row is 1. Compute the margins in
    # place, because the table may be large.
    margins = logits.detach().to(torch.float64, copy=True)
    margins -= margins.amax(dim=1, keepdim=True)
    _check_range(margins, logits)
    if criterion == "nll":
        return _fit_likelihood(margins, labels.long())
    return _fit_calibration_error(margins, labels.long(), bins)


def temperature_interval(
    logits: Tensor, labels: Tensor, temperature: float, *, level: float = 0.90
) -> tuple[float, float]:
    """Confidence interval of a temperature fitted by likelihood (source: ours).

    The interval treats the estimate of log T as normal with the sandwich variance,
    which is also valid for a misspecified model. If the interval of 1 / T would contain
    0, which happens when the logits carry little information about the labels, we treat
    1 / T as normal instead, and the upper end is infinite.

    Args:
        logits: The fitted logits, shape (n, classes).
        labels: The fitted labels, shape (n,), integers.
        temperature: The fitted temperature, not at a bound of the search.
        level: Coverage of the interval, in (0, 1).

    Raises:
        ValueError: If an argument is malformed.
    """
    check_logits(logits, masked=True)
    check_labels(labels, logits, masked=True)
    check_not_shifted(labels, logits)
    check_not_probs(logits)
    return sandwich_interval(logits, labels, temperature, level=level)


def sandwich_interval(
    logits: Tensor, labels: Tensor, temperature: float, *, level: float = 0.90
) -> tuple[float, float]:
    """`temperature_interval` for logits and labels that have been checked."""
    check_positive(temperature, "temperature")
    if not is_number_between(level, 0, 1) or level == 0:
        raise ArgumentError(
            f"level must be in (0, 1), got {level!r}", "Give a fraction, such as 0.9."
        )
    check_two_classes(labels)
    squared_slopes = 0.0
    curvature = 0.0
    for piece, classes in zip(_pieces(logits), _pieces(labels, logits), strict=True):
        scaled = piece.detach().double() / temperature
        probs = torch.softmax(scaled, dim=1)
        # A masked class must not contribute to a sum: 0 times infinity is NaN.
        scaled = scaled.masked_fill(scaled.isneginf(), 0.0)
        expected = (probs * scaled).sum(dim=1)
        # Slope and curvature of each sample's loss with respect to log(1 / T).
        label_logits = scaled.gather(1, classes.long()[:, None]).squeeze(1)
        slopes = expected - label_logits
        squared_slopes += slopes.square().sum().item()
        deviations = scaled - expected[:, None]
        curvature += (probs * deviations.square()).sum().item()
    if not 0 < curvature < math.inf:
        raise ArgumentError(
            f"the likelihood of the logits is flat at temperature {temperature:g}, so "
            "it gives no interval",
            "Give a temperature that was fitted on these logits and did not end at a "
            "bound of the search.",
        )
    quantile = NormalDist().inv_cdf((1 + level) / 2)
    # Half the width of the interval of log T, which is also half the relative width of
    # the interval of 1 / T.
    half_width = quantile * math.sqrt(squared_slopes) / curvature
    if half_width >= 1:
        return temperature / (1 + half_width), math.inf
    factor = math.exp(half_width)
    return temperature / factor, temperature * factor


def apply_temperature(logits: Tensor, temperature: float) -> Tensor:
    """Divide `logits` by `temperature`.

    Args:
        logits: Shape (n, classes), floating point; -inf for masked classes.
        temperature: Finite and positive.

    Returns:
        Shape (n, classes), in the dtype of the logits.

    Raises:
        ValueError: If an argument is malformed, or the logits are probabilities.
    """
    check_logits(logits, masked=True)
    check_not_probs(logits)
    check_positive(temperature, "temperature", logits.dtype)
    return logits / temperature


def _fit_likelihood(margins: Tensor, labels: Tensor) -> TemperatureFit:
    label_margin = margins.gather(1, labels[:, None]).squeeze(1).mean().item()
    largest = _largest_margin(margins)
    # Clamp the infinite margin of a masked class: its weight is 0, and 0 times a finite
    # margin is 0, not NaN.
    margins.clamp_(min=torch.finfo(margins.dtype).min)

    def fitted(temperature: float, **state: bool) -> TemperatureFit:
        value = _mean_log_sum(margins, 1 / temperature) - label_margin / temperature
        return TemperatureFit(temperature, value, **state)

    # Use the mean margin of the labels instead of the largest margin, because a logit
    # of -1e9 may mask a class.
    scale = -label_margin or largest
    step = round(math.log(scale, BRACKET_STEP)) if scale > 0 else 0
    separable = label_margin == 0 and largest > 0
    if separable:
        return fitted(_bracket(step)[0], at_bound=True, separable=True)
    # Pass the margins as arguments instead of in a closure: brentq leaves a reference
    # cycle that would keep a closure's variables in memory.
    sample = (margins, label_margin)
    if scale == 0 or _slope(math.log(LARGEST_RATIO * scale), *sample) >= 0:
        return fitted(_bracket(step)[1], at_bound=True)
    while _slope(math.log(_bracket(step)[1]), *sample) >= 0:
        step += 1
    while _slope(math.log(_bracket(step)[0]), *sample) <= 0:
        step -= 1
    low, high = _bracket(step)
    root = brentq(
        _slope, math.log(low), math.log(high), args=sample, xtol=LOG_TOLERANCE
    )
    return fitted(math.exp(root), at_bound=False)


def _slope(log_temperature: float, margins: Tensor, label_margin: float) -> float:
    """Derivative of the negative log-likelihood with respect to 1 / T."""
    return _mean_margin(margins, math.exp(-log_temperature)) - label_margin


def check_two_classes(labels: Tensor) -> None:
    """Refuse labels of a single class, which do not identify a temperature.

    Such labels show how often the model predicts this class, not how well its
    confidence agrees with its accuracy.
    """
    low, high = torch.aminmax(labels)
    if bool(low == high):
        raise ArgumentError(
            f"labels are all {int(low)}, and one class does not identify a temperature",
            "Give rows of at least two classes.",
        )


def _check_range(margins: Tensor, logits: Tensor) -> None:
    """Refuse logits whose margins, or their inverse, exceed float64."""
    for piece, piece_logits in zip(_pieces(margins), _pieces(logits), strict=True):
        if bool((piece.isneginf() & ~piece_logits.isneginf()).any()):
            raise ArgumentError(
                "logits of a row must not differ by more than 1.8e308, got infinity",
                "Divide all logits by a constant; the temperature is divided by it "
                "too.",
            )
    largest = _largest_margin(margins)
    if 0 < largest < SMALLEST_MARGIN:
        raise ArgumentError(
            f"some row must have logits that differ by at least {SMALLEST_MARGIN:g}; "
            f"the largest difference is {largest:g}",
            "Multiply all logits by a constant, which multiplies the temperature, too.",
        )


def _bracket(step: int) -> tuple[float, float]:
    """Return both ends of bracket number `step`; neighbouring brackets share an end."""
    low, high = TEMPERATURE_BOUNDS
    return low * BRACKET_STEP**step, high * BRACKET_STEP**step


def _largest_margin(margins: Tensor) -> float:
    """The largest distance from an unmasked logit to the largest logit of its row."""
    lowest = (
        piece.masked_fill(piece.isneginf(), 0.0).min().item()
        for piece in _pieces(margins)
    )
    return -min(lowest)


def _mean_margin(margins: Tensor, inverse_temperature: float) -> float:
    """Mean over samples of the expected margin under the tempered softmax."""
    total = 0.0
    for piece in _pieces(margins):
        weights = (piece * inverse_temperature).exp_()
        expected = (weights * piece).sum(dim=1) / weights.sum(dim=1)
        total += expected.sum().item()
    return total / len(margins)


def _mean_log_sum(margins: Tensor, inverse_temperature: float) -> float:
    """Mean over samples of the logarithm of the softmax's denominator."""
    sums = [
        (piece * inverse_temperature).exp_().sum(dim=1).log().sum().item()
        for piece in _pieces(margins)
    ]
    return math.fsum(sums) / len(margins)


def _fit_calibration_error(
    margins: Tensor, labels: Tensor, bins: int
) -> TemperatureFit:
    # Take the prediction from the undivided logits, because division can round two
    # logits to the same value.
    correct = (margins.argmax(dim=1) == labels).double()
    # The margin of the prediction is 0, so its probability is one over the softmax's
    # denominator. All pieces and temperatures share these two tensors, because small
    # tensors allocated between large temporaries would keep the allocator from reusing
    # memory.
    denominators = margins.new_empty(len(margins))
    scratch = torch.empty_like(_pieces(margins)[0])

    def error(temperature: float) -> Tensor:
        for piece, sums in zip(
            _pieces(margins), _pieces(denominators, margins), strict=True
        ):
            scaled = torch.div(piece, temperature, out=scratch[: len(piece)])
            torch.sum(scaled.exp_(), dim=1, out=sums)
        confidences = 1 / denominators
        index = equal_width_bins(confidences, bins)
        gaps = binned_sums(index, correct - confidences, bins)
        return gaps.abs().sum() / len(correct)

    errors = torch.stack([error(temperature) for temperature in TEMPERATURE_GRID])
    best = int(errors.argmin())
    return TemperatureFit(
        temperature=TEMPERATURE_GRID[best],
        value=errors[best].item(),
        at_bound=best in {0, len(TEMPERATURE_GRID) - 1},
    )


def _pieces(rows: Tensor, table: Tensor | None = None) -> tuple[Tensor, ...]:
    """Split `rows` so that a temporary with as many rows of `table` stays small.

    If `table` is None, `rows` itself is the table.
    """
    classes = (rows if table is None else table).shape[1]
    pieces: tuple[Tensor, ...] = rows.split(max(1, CHUNK // classes))
    return pieces

"""Temperature scaling: the one temperature that makes held-out logits best calibrated
(focal paper, section 5).
"""

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
    check_positive,
    is_number_between,
)
from softmax_temperature.metrics.probability_check import check_not_probs

# The bracket of the search on the likelihood for ordinary logits; for others it moves by
# steps.
TEMPERATURE_BOUNDS = (1e-4, 1e4)
BRACKET_STEP = 1e8
# Of the temperature over the mean margin of the labels. Beyond it the slope at the
# optimum is lost in the rounding of float64.
LARGEST_RATIO = 1e8
# The inverse of smaller ones, times the bracket, is no float64.
SMALLEST_MARGIN = 1e-300
# 0.1, 0.2, ..., 10.0: focal paper, section 5.
TEMPERATURE_GRID = tuple(tenths / 10 for tenths in range(1, 101))
LOG_TOLERANCE = 1e-8  # Of log T; 1e-6 is promised.


@dataclass(frozen=True)
class TemperatureFit:
    """The result of a search for a temperature."""

    temperature: float  # Divides logits.
    # The criterion at this temperature, on the data of the search: nats for "nll", a
    # fraction for "ece".
    value: float
    # Whether the search ended at one of its bounds; the temperature is then not an
    # optimum.
    at_bound: bool
    # Whether it ended there because the label has the largest logit in every row: the
    # lower the temperature, the better. Otherwise all classes equally likely are best.
    separable: bool = False


def fit_temperature(
    logits: Tensor, labels: Tensor, *, criterion: str = "nll", bins: int = 15
) -> TemperatureFit:
    """Find the temperature that minimises a criterion on held-out logits (focal paper,
    section 5).

    "nll" finds the root of the slope of the negative log-likelihood, which is convex in
    1 / T, on log T to 1e-6, whatever the scale of the logits: c times the logits have c
    times the temperature. There is no root if the logits separate the labels (the label
    has the largest logit in every row), or say nothing about them (the likelihood is
    best where all classes are equally likely). Both are read off the data, and the
    search then ends at a bound: 1e-4 or 1e4 for ordinary logits, and these times a
    power of 1e8 for much larger or smaller ones. "ece"
    tries the paper's grid 0.1, 0.2, ..., 10.0 and keeps the first minimum of the
    expected calibration error.

    Args:
        logits: Shape (n, classes), any float dtype; cast to float64. A class that is
            masked in a row has the logit -inf there, and probability 0.
        labels: True classes, shape (n,), integers; none of them masked.
        criterion: "nll" or "ece".
        bins: Number of bins of the calibration error; not used by "nll".

    Raises:
        ValueError: If logits or labels are malformed, `criterion` is unknown or `bins`
            is below 1.
    """
    check_logits(logits, masked=True)
    check_labels(labels, logits, masked=True)
    check_not_probs(logits)
    bins = check_count(bins, "bins", least=1)
    if criterion not in ("nll", "ece"):
        raise ValueError(f"criterion must be 'nll' or 'ece', got {criterion!r}")
    exact = logits.detach().double()
    # Margins to the largest logit: no exponential of them overflows, and one of each
    # row is 1.
    margins = exact - exact.amax(dim=1, keepdim=True)
    _check_range(margins, masked=exact.isneginf())
    if criterion == "nll":
        return _fit_likelihood(margins, labels.long())
    return _fit_calibration_error(margins, labels.long(), bins)


def temperature_interval(
    logits: Tensor, labels: Tensor, temperature: float, *, level: float = 0.90
) -> tuple[float, float]:
    """An interval at `level` for the temperature that minimises the negative
    log-likelihood (source: ours).

    Normal on log T, with the sandwich variance of the estimate, which holds where the
    model is wrong too. Where such an interval of 1 / T would hold 0, as near chance, it
    is normal on 1 / T, and the upper end is infinite. Logits (n, classes) and labels
    (n,) are those that the temperature was fitted on, not at a bound.
    """
    check_logits(logits, masked=True)
    check_labels(labels, logits, masked=True)
    check_positive(temperature, "temperature")
    if not is_number_between(level, 0, 1) or level == 0:
        raise ArgumentError(
            f"level must be in (0, 1), got {level!r}", "Give a share, such as 0.9."
        )
    squared_slopes = 0.0
    curvature = 0.0
    for piece, classes in zip(_pieces(logits), _pieces(labels, logits), strict=True):
        scaled = piece.detach().double() / temperature
        probs = torch.softmax(scaled, dim=1)
        # A masked class has no share in any sum: 0 times infinity is not a number.
        scaled = scaled.masked_fill(scaled.isneginf(), 0.0)
        expected = (probs * scaled).sum(dim=1)
        # Slope and curvature of each sample's loss in log(1 / T).
        slopes = expected - scaled.gather(1, classes.long()[:, None]).squeeze(1)
        squared_slopes += slopes.square().sum().item()
        curvature += (probs * (scaled - expected[:, None]).square()).sum().item()
    if not 0 < curvature < math.inf:
        raise ArgumentError(
            f"logits say nothing about a temperature of {temperature:g}: their "
            "likelihood is flat there",
            "Give the temperature that was fitted on these logits, not at a bound.",
        )
    quantile = NormalDist().inv_cdf((1 + level) / 2)
    # Half the width on log T, and half the relative width on 1 / T.
    half_width = quantile * math.sqrt(squared_slopes) / curvature
    if half_width >= 1:
        return temperature / (1 + half_width), math.inf
    factor = math.exp(half_width)
    return temperature / factor, temperature * factor


def apply_temperature(logits: Tensor, temperature: float) -> Tensor:
    """The logits, shape (n, classes), divided by the temperature, which is finite and
    positive; -inf where a class is masked.
    """
    check_logits(logits, masked=True)
    check_not_probs(logits)
    check_positive(temperature, "temperature")
    return logits / temperature


def _fit_likelihood(margins: Tensor, labels: Tensor) -> TemperatureFit:
    of_label = margins.gather(1, labels[:, None]).squeeze(1).mean().item()
    largest = _largest_margin(margins)
    # A masked class then has weight 0 at every temperature, and 0 times its margin is
    # 0.
    margins.clamp_(min=torch.finfo(margins.dtype).min)

    def slope(log_temperature: float) -> float:
        """Of the likelihood's negative logarithm, in 1 / T: mean logit under the model
        minus that of the label.
        """
        return _mean_margin(margins, math.exp(-log_temperature)) - of_label

    def fitted(temperature: float, **state: bool) -> TemperatureFit:
        value = _mean_log_sum(margins, 1 / temperature) - of_label / temperature
        return TemperatureFit(temperature, value, **state)

    # Not the largest margin: a class may be masked by a logit of -1e9.
    scale = -of_label or largest
    step = round(math.log(scale, BRACKET_STEP)) if scale > 0 else 0
    separable = of_label == 0 and largest > 0
    if separable:
        return fitted(_bracket(step)[0], at_bound=True, separable=True)
    if scale == 0 or slope(math.log(LARGEST_RATIO * scale)) >= 0:
        return fitted(_bracket(step)[1], at_bound=True)
    while slope(math.log(_bracket(step)[1])) >= 0:
        step += 1
    while slope(math.log(_bracket(step)[0])) <= 0:
        step -= 1
    low, high = _bracket(step)
    root = brentq(slope, math.log(low), math.log(high), xtol=LOG_TOLERANCE)
    return fitted(math.exp(root), at_bound=False)


def _check_range(margins: Tensor, masked: Tensor) -> None:
    """Refuse logits whose margins, or the inverse of them, no float64 holds."""
    if bool((margins.isneginf() & ~masked).any()):
        raise ArgumentError(
            "logits of a row must not differ by more than 1.8e308, got infinity",
            "Divide all logits by a constant; the temperature is divided by it too.",
        )
    largest = _largest_margin(margins)
    if 0 < largest < SMALLEST_MARGIN:
        raise ArgumentError(
            f"logits of a row must differ by at least {SMALLEST_MARGIN:g} somewhere, "
            f"got {largest:g} at most",
            "Multiply all logits by a constant; the temperature is multiplied by it too.",
        )


def _bracket(step: int) -> tuple[float, float]:
    """The bracket of the search, moved up by a number of steps; they join."""
    low, high = TEMPERATURE_BOUNDS
    return low * BRACKET_STEP**step, high * BRACKET_STEP**step


def _largest_margin(margins: Tensor) -> float:
    """The largest distance of a logit to the largest one of its row, without masked
    classes.
    """
    lowest = (
        piece.masked_fill(piece.isneginf(), 0.0).min().item()
        for piece in _pieces(margins)
    )
    return -min(lowest)


def _mean_margin(margins: Tensor, inverse_temperature: float) -> float:
    """Mean over samples of the expected margin under softmax(margins *
    inverse_temperature).
    """
    total = 0.0
    for some in _pieces(margins):
        weights = torch.exp(some * inverse_temperature)
        total += ((weights * some).sum(dim=1) / weights.sum(dim=1)).sum().item()
    return total / len(margins)


def _mean_log_sum(margins: Tensor, inverse_temperature: float) -> float:
    """Mean over samples of the logarithm of the softmax's denominator."""
    sums = [
        torch.exp(some * inverse_temperature).sum(dim=1).log().sum().item()
        for some in _pieces(margins)
    ]
    return math.fsum(sums) / len(margins)


def _fit_calibration_error(
    margins: Tensor, labels: Tensor, bins: int
) -> TemperatureFit:
    # One prediction for all temperatures, the first largest logit: division can round
    # two logits to one.
    correct = (margins.argmax(dim=1) == labels).double()

    def error(temperature: float) -> Tensor:
        # The margin of the prediction is 0, so its probability is one over the
        # softmax's denominator.
        confidences = 1 / torch.cat(
            [torch.exp(some / temperature).sum(dim=1) for some in _pieces(margins)]
        )
        gaps = binned_sums(
            equal_width_bins(confidences, bins), correct - confidences, bins
        )
        return gaps.abs().sum() / len(correct)

    errors = torch.stack([error(temperature) for temperature in TEMPERATURE_GRID])
    best = int(errors.argmin())
    return TemperatureFit(
        TEMPERATURE_GRID[best],
        errors[best].item(),
        at_bound=best in {0, len(TEMPERATURE_GRID) - 1},
    )


def _pieces(rows: Tensor, table: Tensor | None = None) -> tuple[Tensor, ...]:
    """Rows in groups that bound the temporaries of a table, by default their own."""
    classes = (rows if table is None else table).shape[1]
    pieces: tuple[Tensor, ...] = rows.split(max(1, CHUNK // classes))
    return pieces

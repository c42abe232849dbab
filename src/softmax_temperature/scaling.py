"""Temperature scaling of logits (focal paper, section 5)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import torch
from scipy.optimize import brentq
from torch import Tensor

from softmax_temperature.metrics.calibration import CHUNK, binned_sums, equal_width_bins
from softmax_temperature.metrics.checks import (
    ArgumentError,
    check_argument_order,
    check_count,
    check_labels,
    check_logits,
    check_positive,
    is_number_between,
)
from softmax_temperature.metrics.class_order import check_class_order
from softmax_temperature.metrics.label_column import check_no_label_column
from softmax_temperature.metrics.probability_check import check_not_probs

# Bracket in which both criteria search for a root, for logits of ordinary scale. For
# much larger or smaller logits the search multiplies both ends by a power of
# `BRACKET_STEP`.
TEMPERATURE_BOUNDS = (1e-4, 1e4)
BRACKET_STEP = 1e8
# Largest ratio of the temperature to the mean margin of the labels. At larger ratios,
# float64 rounding hides the slope at the optimum.
LARGEST_RATIO = 1e8
# The largest margin must be 0 or at least this value: the inverse of a smaller margin,
# multiplied by the ends of a bracket, would exceed the range of float64.
SMALLEST_MARGIN = 1e-300
# Largest accepted distance from a label's logit to the largest logit of its row.
# Multiplied by `LARGEST_RATIO`, this distance still fits in float64.
LARGEST_MARGIN = 1e300
# Index of the last bracket whose ends are in the range of float64.
LAST_STEP = 38
# The grid 0.1, 0.2, ..., 10.0 of the focal paper, section 5. It suits only logits that
# are about as large as those of the paper's networks.
TEMPERATURE_GRID = tuple(tenths / 10 for tenths in range(1, 101))
# By default, the search by calibration error tries these multiples of the temperature
# at which the mean confidence equals the accuracy: from a fifth to 5, each 3.3 % larger
# than the one before.
RELATIVE_GRID = tuple(5 ** (step / 50) for step in range(-50, 51))
# Tolerance on log T; `fit_temperature` promises 1e-6.
LOG_TOLERANCE = 1e-8


@dataclass(frozen=True)
class TemperatureFit:
    """The result of a search for a temperature.

    Attributes:
        temperature: The number by which to divide logits.
        value: The criterion at this temperature on the fitted data: nats for "nll", a
            fraction for "ece".
        at_bound: Whether the search ended at one of its bounds, so that the temperature
            is not an optimum. Unless a grid was given, the data then have no optimum.
        separable: Whether the search ended at the lower bound because the logits
            separate the labels: the lower the temperature, the better. If `at_bound`
            is true and `separable` is false, equal probabilities are best, unless a
            grid is given.
    """

    temperature: float
    value: float
    at_bound: bool
    separable: bool = False


def fit_temperature(
    logits: Tensor,
    labels: Tensor,
    *,
    criterion: str = "nll",
    bins: int = 15,
    grid: Sequence[float] | None = None,
) -> TemperatureFit:
    """Find the temperature that minimises a criterion on held-out logits.

    Focal paper, section 5. With either criterion, multiplying all logits by c
    multiplies the temperature by c, unless `grid` is given.

    "nll" finds the root of the slope of the negative log-likelihood, which is convex in
    1 / T. The root is accurate to 1e-6 on log T. There is no root if the logits
    separate the labels (every label has the largest logit of its row) or carry no
    information about them (equal probabilities have the highest likelihood). Both cases
    are detected, and the result is then a bound: 1e-4 or 1e4 for logits of ordinary
    scale, times a power of 1e8 for much larger or smaller ones.

    "ece" tries a grid and takes the first minimum of the expected calibration error.
    The default grid goes from a fifth to 5 times the temperature at which the mean
    confidence equals the accuracy, in 101 geometric steps. There is no such temperature
    if every prediction is right, or if the predictions are no better than chance; the
    result is then a bound, as with "nll". The paper's grid, 0.1, 0.2, ..., 10.0, is
    absolute, and suits logits of ordinary scale only. Our reproduction of the paper
    passes it as `grid=TEMPERATURE_GRID`.

    Args:
        logits: Logits of shape (n, classes) and any float dtype; they are cast to
            float64. A masked class has the logit -inf and probability 0.
        labels: Integer true classes of shape (n,); none of them may be masked.
        criterion: "nll" or "ece".
        bins: Number of bins of the calibration error; not used by "nll".
        grid: Increasing temperatures that "ece" tries instead of the default grid; not
            used by "nll". `at_bound` is then true if the first or the last of them is
            best.

    Raises:
        ValueError: If logits or labels are malformed, all labels are of one class,
            `criterion` is unknown, `bins` is below 1, or `grid` is not increasing and
            positive.
    """
    check_argument_order(logits, labels)
    check_logits(logits, masked=True)
    check_labels(labels, logits, masked=True)
    check_no_label_column(logits, labels)
    check_class_order(labels, logits, any_order=True)
    check_not_probs(logits)
    check_two_classes(labels)
    return search_temperature(logits, labels, criterion=criterion, bins=bins, grid=grid)


def search_temperature(
    logits: Tensor,
    labels: Tensor,
    *,
    criterion: str = "nll",
    bins: int = 15,
    grid: Sequence[float] | None = None,
) -> TemperatureFit:
    """Do the work of `fit_temperature` for logits and labels already checked."""
    bins = check_count(bins, "bins", least=1)
    if criterion not in ("nll", "ece"):
        raise ArgumentError(
            f"criterion must be 'nll' or 'ece', got {criterion!r}",
            "Use one of the two.",
        )
    if grid is not None:
        _check_grid(grid)
    # Replace each logit by its margin, the difference from the row's largest logit: the
    # exponentials of margins cannot overflow, and the largest exponential in each row
    # is 1. Compute the margins in place, because the table may be large.
    margins = logits.detach().to(torch.float64, copy=True)
    margins -= margins.amax(dim=1, keepdim=True)
    _check_range(margins, logits)
    _check_label_margins(margins, labels.long())
    if criterion == "nll":
        return _fit_likelihood(margins, labels.long())
    return _fit_calibration_error(margins, labels.long(), bins, grid)


def temperature_interval(
    logits: Tensor, labels: Tensor, temperature: float, *, level: float = 0.90
) -> tuple[float, float]:
    """Confidence interval of a temperature fitted by likelihood (source: ours).

    The interval treats the estimate of log T as normal with the sandwich variance,
    which is also valid for a misspecified model. If the interval of 1 / T would contain
    0, which happens when the logits carry little information about the labels, we treat
    1 / T as normal instead, and the upper end is infinite.

    Args:
        logits: The logits on which the temperature was fitted, shape (n, classes).
        labels: The integer labels of these logits, shape (n,).
        temperature: The fitted temperature, which must not be a bound of the search.
        level: Coverage of the interval, in (0, 1).

    Raises:
        ValueError: If an argument is malformed.
    """
    check_argument_order(logits, labels)
    check_logits(logits, masked=True)
    check_labels(labels, logits, masked=True)
    check_no_label_column(logits, labels)
    check_class_order(labels, logits, any_order=True)
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
        # A class of probability 0 must not contribute: its logit may be a mask so large
        # that its square is infinite.
        deviations = (scaled - expected[:, None]).masked_fill(probs == 0, 0.0)
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
        logits: Floating-point logits of shape (n, classes); -inf masks a class.
        temperature: Finite positive number.

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
    runner_up = 0.0 if label_margin else _typical_margin(margins)
    # Clamp the infinite margin of a masked class: its weight is 0, and 0 times a finite
    # margin is 0, not NaN.
    margins.clamp_(min=torch.finfo(margins.dtype).min)

    def fitted(temperature: float, **state: bool) -> TemperatureFit:
        value = _mean_log_sum(margins, 1 / temperature) - label_margin / temperature
        return TemperatureFit(temperature, value, **state)

    # Use the mean margin of the labels instead of the largest margin, because a logit
    # of -1e9 may mask a class.
    scale = -label_margin or runner_up
    step = _step(scale)
    separable = label_margin == 0 and runner_up > 0
    if separable:
        return fitted(_bracket(step)[0], at_bound=True, separable=True)
    sample = (margins, label_margin)
    if scale == 0 or _slope(math.log(LARGEST_RATIO * scale), *sample) >= 0:
        return fitted(_bracket(step)[1], at_bound=True)
    return fitted(_root(_slope, step, *sample), at_bound=False)


def _root(function: Callable[..., float], step: int, *arguments: Any) -> float:
    """The temperature T at which `function`(log T) falls through zero.

    The search starts in bracket number `step`. `function` receives `arguments` instead
    of being a closure, because brentq leaves a reference cycle that would keep the
    variables of a closure in memory.
    """
    while function(math.log(_bracket(step)[1]), *arguments) >= 0:
        step += 1
    while function(math.log(_bracket(step)[0]), *arguments) <= 0:
        step -= 1
    low, high = _bracket(step)
    root: float = brentq(
        function, math.log(low), math.log(high), args=arguments, xtol=LOG_TOLERANCE
    )
    return math.exp(root)


def _slope(log_temperature: float, margins: Tensor, label_margin: float) -> float:
    """Derivative of the negative log-likelihood with respect to 1 / T."""
    return _mean_margin(margins, math.exp(-log_temperature)) - label_margin


def check_two_classes(labels: Tensor) -> None:
    """Refuse labels of a single class, which do not identify a temperature.

    Such labels show how often the model predicts this class, not how well its
    confidence agrees with its accuracy.
    """
    low, high = torch.aminmax(labels.long())
    if bool(low == high):
        raise ArgumentError(
            f"labels are all {int(low)}, and one class does not identify a temperature",
            "Give rows of at least two classes.",
        )


def _check_range(margins: Tensor, logits: Tensor) -> None:
    """Refuse logits if the margins or their inverses exceed the range of float64."""
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


def _check_label_margins(margins: Tensor, labels: Tensor) -> None:
    """Refuse a label whose logit is too far below the row's largest logit."""
    of_labels = margins.gather(1, labels[:, None]).squeeze(1)
    row = int(of_labels.argmin())
    distance = -of_labels[row].item()
    if distance > LARGEST_MARGIN:
        raise ArgumentError(
            f"logits of a label must be less than {LARGEST_MARGIN:g} below the largest "
            f"of their row, got {distance:.3g} in row {row}, class {int(labels[row])}",
            "Leave such rows out, or divide all logits by a constant.",
        )


def _check_grid(grid: Sequence[float]) -> None:
    """Refuse a grid unless it is nonempty, increasing, finite and positive."""
    if (
        not hasattr(grid, "__len__")
        or isinstance(grid, str)
        or not hasattr(grid, "__getitem__")
        or getattr(grid, "ndim", 1) != 1
    ):
        raise ArgumentError(
            f"grid must be a sequence of temperatures, got {grid!r}",
            "Give several, such as [0.5, 1.0, 2.0].",
        )
    for temperature in grid:
        check_positive(temperature, "grid")
    if not len(grid):
        raise ArgumentError("grid must hold temperatures, got none", "Give several.")
    for low, high in pairwise(grid):
        if low >= high:
            raise ArgumentError(
                f"grid must hold increasing temperatures, got {low} before {high}",
                "Sort the temperatures, and give each of them once.",
            )


def _step(scale: float) -> int:
    """Index of the bracket in which the search starts for logits of this scale."""
    if scale <= 0:
        return 0
    return min(round(math.log(scale, BRACKET_STEP)), LAST_STEP)


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


def _typical_margin(margins: Tensor) -> float:
    """The median distance from a row's largest logit to the next smaller one.

    Rows in which all unmasked logits are equal are left out. The result is 0 if no rows
    remain. Large negative logits that mask classes hardly change this median, but they
    would determine the largest distance.
    """
    nearest = torch.cat(
        [
            piece.masked_fill(piece == 0, -math.inf).amax(dim=1)
            for piece in _pieces(margins)
        ]
    )
    nearest = nearest[~nearest.isneginf()]
    return -nearest.median().item() if len(nearest) else 0.0


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
    margins: Tensor, labels: Tensor, bins: int, grid: Sequence[float] | None
) -> TemperatureFit:
    # Take the prediction from the undivided logits, because division can round two
    # logits to the same value.
    correct = (margins.argmax(dim=1) == labels).double()
    confidences = _Confidences(margins)

    def error(temperature: float) -> Tensor:
        of_rows = confidences.at(temperature)
        index = equal_width_bins(of_rows, bins)
        gaps = binned_sums(index, correct - of_rows, bins)
        return gaps.abs().sum() / len(correct)

    ends: set[int] = set()
    if grid is None:
        label_margin = margins.gather(1, labels[:, None]).squeeze(1).mean().item()
        scale = -label_margin or _typical_margin(margins)
        center = _center(confidences, correct.mean().item(), scale)
        if center.at_bound:
            return replace(center, value=error(center.temperature).item())
        grid = [center.temperature * multiple for multiple in RELATIVE_GRID]
    else:
        ends = {0, len(grid) - 1}
    errors = torch.stack([error(temperature) for temperature in grid])
    best = int(errors.argmin())
    return TemperatureFit(
        temperature=grid[best], value=errors[best].item(), at_bound=best in ends
    )


class _Confidences:
    """Computes the confidences of logits at one temperature after another.

    All temperatures and pieces of rows share the two tensors that are stored here,
    because small tensors allocated between large temporaries would keep the allocator
    from reusing memory.
    """

    def __init__(self, margins: Tensor) -> None:
        self._margins = margins
        self._denominators = margins.new_empty(len(margins))
        self._scratch = torch.empty_like(_pieces(margins)[0])

    def at(self, temperature: float) -> Tensor:
        """The confidence of each row's prediction, shape (n,)."""
        for piece, sums in zip(
            _pieces(self._margins),
            _pieces(self._denominators, self._margins),
            strict=True,
        ):
            scaled = torch.div(piece, temperature, out=self._scratch[: len(piece)])
            torch.sum(scaled.exp_(), dim=1, out=sums)
        # The margin of the prediction is 0, so its probability is one over the
        # softmax's denominator.
        return 1 / self._denominators

    def near_zero(self) -> Tensor:
        """The limits of the confidences as the temperature approaches 0, shape (n,)."""
        # A row's largest logits, whose margin is 0, share the probability.
        shared = [(piece == 0).sum(dim=1) for piece in _pieces(self._margins)]
        return 1 / torch.cat(shared).double()


def _center(confidences: _Confidences, accuracy: float, scale: float) -> TemperatureFit:
    """Find the temperature at which the mean confidence equals the accuracy.

    The mean confidence falls as the temperature rises, and the calibration error is at
    least the difference between the mean confidence and the accuracy. If the mean
    confidence is below the accuracy at every temperature, or above it at every
    temperature, the result is a bound. The `value` of the result is NaN.

    Args:
        confidences: The confidences of the rows to fit.
        accuracy: The share of correct predictions.
        scale: The scale of the margins; 0 if every row consists of equal logits.
    """
    step = _step(scale)
    if scale > 0 and accuracy >= confidences.near_zero().mean().item():
        return TemperatureFit(
            _bracket(step)[0], math.nan, at_bound=True, separable=True
        )
    if (
        scale == 0
        or _overconfidence(math.log(LARGEST_RATIO * scale), confidences, accuracy) >= 0
    ):
        return TemperatureFit(_bracket(step)[1], math.nan, at_bound=True)
    center = _root(_overconfidence, step, confidences, accuracy)
    return TemperatureFit(center, math.nan, at_bound=False)


def _overconfidence(
    log_temperature: float, confidences: _Confidences, accuracy: float
) -> float:
    """Mean confidence minus accuracy."""
    return confidences.at(math.exp(log_temperature)).mean().item() - accuracy


def _pieces(rows: Tensor, table: Tensor | None = None) -> tuple[Tensor, ...]:
    """Split `rows` into pieces of equally many rows; only the last may be shorter.

    A piece has as many rows as fit into `CHUNK` elements of `table`, but at least one.
    If `table` is None, `rows` itself is the table.
    """
    classes = (rows if table is None else table).shape[1]
    pieces: tuple[Tensor, ...] = rows.split(max(1, CHUNK // classes))
    return pieces

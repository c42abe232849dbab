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
)
from softmax_temperature.metrics.probability_check import check_not_probs

TEMPERATURE_BOUNDS = (
    1e-4,
    1e4,
)  # For the search on the likelihood; wide enough for logits of any sensible scale.
TEMPERATURE_GRID = tuple(
    tenths / 10 for tenths in range(1, 101)
)  # 0.1, 0.2, ..., 10.0: focal paper, section 5.
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


def fit_temperature(
    logits: Tensor, labels: Tensor, *, criterion: str = "nll", bins: int = 15
) -> TemperatureFit:
    """Find the temperature that minimises a criterion on held-out logits (focal paper,
    section 5).

    "nll" finds the root of the slope of the negative log-likelihood, which is convex in
    1 / T, on log T in [1e-4, 1e4] to 1e-6; logits that separate the labels, speak
    against them or are constant have none, and end at a bound. "ece" tries the paper's
    grid 0.1, 0.2, ..., 10.0 and keeps the first minimum of the expected calibration
    error.

    Args:
        logits: Shape (n, classes), any float dtype; cast to float64.
        labels: True classes, shape (n,), integers.
        criterion: "nll" or "ece".
        bins: Number of bins of the calibration error; not used by "nll".

    Raises:
        ValueError: If logits or labels are malformed, `criterion` is unknown or `bins`
            is below 1.
    """
    check_logits(logits)
    check_labels(labels, logits)
    check_not_probs(logits)
    bins = check_count(bins, "bins", least=1)
    if criterion not in ("nll", "ece"):
        raise ValueError(f"criterion must be 'nll' or 'ece', got {criterion!r}")
    exact = logits.detach().double()
    # Margins to the largest logit: no exponential of them overflows, and one of each
    # row is 1.
    margins = exact - exact.amax(dim=1, keepdim=True)
    if criterion == "nll":
        return _fit_likelihood(margins, labels.long())
    return _fit_calibration_error(margins, labels.long(), bins)


def temperature_interval(
    logits: Tensor, labels: Tensor, temperature: float, *, level: float = 0.90
) -> tuple[float, float]:
    """An interval at `level` for the temperature that minimises the negative
    log-likelihood (source: ours).

    Normal on log T, with the sandwich variance of the estimate, which holds where the
    model is wrong too. Logits (n, classes) and labels (n,) are those that the
    temperature was fitted on, not at a bound.
    """
    check_logits(logits)
    check_labels(labels, logits)
    check_positive(temperature, "temperature")
    if not 0 < level < 1:
        raise ArgumentError(
            f"level must be in (0, 1), got {level}", "Give a share, such as 0.9."
        )
    scaled = logits.double() / temperature
    probs = torch.softmax(scaled, dim=1)
    expected = (probs * scaled).sum(dim=1)
    # Slope and curvature of each sample's loss in log(1 / T).
    slopes = expected - scaled.gather(1, labels.long()[:, None]).squeeze(1)
    curvature = (probs * (scaled - expected[:, None]).square()).sum()
    deviation = (slopes.square().sum().sqrt() / curvature).item()
    factor = math.exp(NormalDist().inv_cdf((1 + level) / 2) * deviation)
    return temperature / factor, temperature * factor


def apply_temperature(logits: Tensor, temperature: float) -> Tensor:
    """The logits, shape (n, classes), divided by the temperature, which is finite and
    positive.
    """
    check_logits(logits)
    check_not_probs(logits)
    check_positive(temperature, "temperature")
    return logits / temperature


def _fit_likelihood(margins: Tensor, labels: Tensor) -> TemperatureFit:
    of_label = margins.gather(1, labels[:, None]).squeeze(1).mean().item()
    low, high = TEMPERATURE_BOUNDS

    def slope(log_temperature: float) -> float:
        """Of the likelihood's negative logarithm, in 1 / T: mean logit under the model
        minus that of the label.
        """
        return _mean_margin(margins, math.exp(-log_temperature)) - of_label

    if slope(math.log(high)) >= 0:
        temperature = high
    elif slope(math.log(low)) <= 0:
        temperature = low
    else:
        temperature = math.exp(
            brentq(slope, math.log(low), math.log(high), xtol=LOG_TOLERANCE)
        )
    value = _mean_log_sum(margins, 1 / temperature) - of_label / temperature
    return TemperatureFit(
        temperature, value, at_bound=temperature in TEMPERATURE_BOUNDS
    )


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


def _pieces(margins: Tensor) -> tuple[Tensor, ...]:
    """Rows in groups that bound the temporaries."""
    pieces: tuple[Tensor, ...] = margins.split(max(1, CHUNK // margins.shape[1]))
    return pieces

"""Other interval methods for calibration errors, which the library does not use.

`benchmarks.interval_coverage` compares them with ours.

Each method takes the ECE's bins for two arms of one sample, before and after scaling.
It returns an interval for the error of each arm and for the change.
"""

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from scipy.special import erf
from torch import Tensor

from softmax_temperature.metrics.calibration import equal_width_bins
from softmax_temperature.metrics.report import resample_weights

Floats = NDArray[np.float64]
Interval = tuple[float, float]
BINS = 15
RESAMPLES = 400
GRID = 41  # Number of true errors tried, from 0 to 1.5 times the observed one.
NORMAL = 1.6449  # The 95 % quantile of the standard normal distribution.


class Moments(NamedTuple):
    """Weighted means for each bin of one arm; one row per weighting of the samples.

    The means are over all samples: a sample outside a bin counts as 0 in that bin.

    Attributes:
        means: Means of correctness minus confidence, shape (rows, bins).
        squares: Means of the squared difference, shape (rows, bins).
        shares: Shares of the samples in each bin, shape (rows, bins).
        samples: The number of samples: the sum of the weights in a row.
    """

    means: Floats
    squares: Floats
    shares: Floats
    samples: int

    @property
    def plain(self) -> Floats:
        """The ECE, shape (rows,)."""
        errors: Floats = np.abs(self.means).sum(axis=1)
        return errors

    @property
    def maximum(self) -> Floats:
        """The MCE, shape (rows,)."""
        gaps: Floats = np.abs(self.means) / np.maximum(self.shares, 1e-300)
        largest: Floats = gaps.max(axis=1)
        return largest

    @property
    def deviations(self) -> Floats:
        """Standard errors of the means, shape (rows, bins)."""
        variances = np.maximum(self.squares - self.means**2, 0) / self.samples
        deviations: Floats = np.sqrt(variances)
        return deviations

    @property
    def debiased(self) -> Floats:
        """The ECE minus its bias as in Kumar et al. (2019), shape (rows,)."""
        gaps = np.abs(self.means)
        deviations = self.deviations
        corrected: Floats = 2 * gaps - _mean_absolute(gaps, deviations)
        errors: Floats = corrected.sum(axis=1)
        return errors

    @property
    def squared(self) -> Floats:
        """The debiased squared error, shape (rows,).

        Broecker 2012; Ferro and Fricker 2012; Sun et al. 2024.
        """
        shares = np.maximum(self.shares, 1 / self.samples)
        corrected: Floats = (self.means**2 - self.deviations**2) / shares
        errors: Floats = corrected.sum(axis=1)
        return errors


class Pair(NamedTuple):
    """Two arms on the same weighted samples."""

    before: Moments
    after: Moments
    products: Floats  # Mean products of the two arms' gaps, shape (rows, bins, bins).

    @classmethod
    def of(
        cls, before: Tensor, after: Tensor, right: Tensor, weights: Tensor
    ) -> "Pair":
        """Moments from confidences (n,), correctness (n,) and weights (rows, n)."""
        share = weights / weights.sum(dim=1, keepdim=True)
        samples = int(weights[0].sum())
        arms = []
        scattered = []
        for confidences in (before, after):
            membership = F.one_hot(equal_width_bins(confidences, BINS), BINS).double()
            gaps = (right - confidences)[:, None] * membership
            arms.append(
                Moments(
                    (share @ gaps).numpy(),
                    (share @ gaps.square()).numpy(),
                    (share @ membership).numpy(),
                    samples,
                )
            )
            scattered.append(gaps)
        crossed = scattered[0][:, :, None] * scattered[1][:, None, :]
        products = (share @ crossed.flatten(1)).view(-1, BINS, BINS).numpy()
        return cls(before=arms[0], after=arms[1], products=products)

    def arrays(self, name: str) -> list[Floats]:
        """The named property before scaling, after scaling, and their difference."""
        before: Floats = getattr(self.before, name)
        after: Floats = getattr(self.after, name)
        return [before, after, after - before]

    @property
    def errors(self) -> list[Floats]:
        """Standard errors of the ECEs and their change; the gaps' signs are fixed."""
        variances = [
            arm.squares.sum(axis=1) - arm.plain**2 for arm in (self.before, self.after)
        ]
        signs = (
            np.sign(self.before.means)[:, :, None]
            * np.sign(self.after.means)[:, None, :]
        )
        covariance = (signs * self.products).sum(axis=(1, 2))
        covariance -= self.before.plain * self.after.plain
        variances.append(variances[0] + variances[1] - 2 * covariance)
        samples = self.before.samples
        return [np.sqrt(np.maximum(each, 1e-12) / samples) for each in variances]


def intervals(
    before: Tensor, after: Tensor, right: Tensor, seed: int
) -> dict[str, list[Interval]]:
    """Intervals of the error before and after scaling, and of its change, by method."""
    samples = len(right)
    here = Pair.of(before, after, right, torch.ones(1, samples, dtype=torch.float64))
    weights = torch.cat(list(resample_weights(samples, RESAMPLES, seed)))
    resampled = Pair.of(before, after, right, weights)
    halves = Pair.of(before, after, right, _halves(samples, seed))
    return {
        "reflected bootstrap of the plain ECE": _reflected(here, resampled),
        "basic bootstrap of the debiased ECE": _basic(here, resampled),
        "studentised bootstrap of the debiased ECE": _studentised(here, resampled),
        "half-sampling of the debiased ECE": _basic(here, halves),
        "normal, of the debiased squared error": _squared(here),
        "inverted test, noise simulated": _inverted(here, seed),
        "MCE: reflected bootstrap": _reflected(here, resampled, "maximum"),
        "MCE: band of all bins": _band(here),
    }


def _reflected(here: Pair, resampled: Pair, name: str = "plain") -> list[Interval]:
    """Percentiles reflected at the observed error, and extended to contain it."""
    found = []
    for value, draws in zip(here.arrays(name), resampled.arrays(name), strict=True):
        low, high = 2 * value[0] - np.quantile(draws, [0.95, 0.05])
        found.append((min(low, value[0]), max(high, value[0])))
    return _bounded(found)


def _basic(here: Pair, resampled: Pair) -> list[Interval]:
    """Percentiles reflected at the debiased error."""
    found = []
    pairs = zip(here.arrays("debiased"), resampled.arrays("debiased"), strict=True)
    for value, draws in pairs:
        low, high = 2 * value[0] - np.quantile(draws, [0.95, 0.05])
        found.append((low, high))
    return _bounded(found)


def _studentised(here: Pair, resampled: Pair) -> list[Interval]:
    found = []
    values = here.arrays("debiased")
    draws = resampled.arrays("debiased")
    for place, value in enumerate(values):
        scaled = (draws[place] - value[0]) / resampled.errors[place]
        low, high = value[0] - here.errors[place][0] * np.quantile(scaled, [0.95, 0.05])
        found.append((low, high))
    return _bounded(found)


def _squared(here: Pair) -> list[Interval]:
    """Normal intervals around the debiased squared error.

    The variance is the sum of two terms: a miscalibrated model's, which falls as 1 / n,
    and a calibrated model's, which falls as 1 / n^2.
    """
    variances = []
    for arm in (here.before, here.after):
        shares = np.maximum(arm.shares, 1 / arm.samples)
        linear = 4 * (arm.means**2 * arm.deviations**2 / shares**2).sum()
        quadratic = 2 * (arm.deviations**4 / shares**2).sum()
        variances.append(linear + quadratic)
    variances.append(variances[0] + variances[1])
    found = []
    for value, variance in zip(here.arrays("squared"), variances, strict=True):
        margin = NORMAL * np.sqrt(variance)
        found.append((value[0] - margin, value[0] + margin))
    return _bounded(found)


def _band(here: Pair) -> list[Interval]:
    """The largest lower and the largest upper end over the non-empty bins.

    The bins' intervals contain all gaps simultaneously. The interval of the change runs
    from the lower end after scaling minus the upper end before it, to the upper end
    after scaling minus the lower end before it.
    """
    ends = []
    for arm in (here.before, here.after):
        filled = arm.shares[0] > 0
        factor = NormalDist().inv_cdf(1 - 0.05 / filled.sum())
        gaps = (np.abs(arm.means[0]) / np.maximum(arm.shares[0], 1e-300))[filled]
        margins = factor * arm.deviations[0][filled] / arm.shares[0][filled]
        ends.append((max(0.0, (gaps - margins).max()), (gaps + margins).max()))
    (low_before, high_before), (low_after, high_after) = ends
    return [*ends, (low_after - high_before, high_after - low_before)]


def _inverted(here: Pair, seed: int) -> list[Interval]:
    """Range of true errors for which the observed error is not extreme.

    An observed error is not extreme if it lies between the 5th and the 95th percentile
    of simulated errors. The true gaps are assumed to be the observed gaps, all shrunk
    by the same number of standard errors. This method gives no interval for the change.
    """
    generator = np.random.default_rng(seed)
    found = []
    for arm in (here.before, here.after):
        gaps = np.abs(arm.means[0])
        deviations = arm.deviations[0]
        noise = generator.standard_normal((RESAMPLES, BINS)) * deviations
        accepted = []
        for true in np.linspace(0, 1.5 * gaps.sum(), GRID):
            mean = _shrunk(gaps, deviations, true)
            low, high = np.quantile(np.abs(mean + noise).sum(axis=1), [0.05, 0.95])
            if low <= gaps.sum() <= high:
                accepted.append(true)
        found.append((min(accepted, default=0.0), max(accepted, default=0.0)))
    return [*found, (np.nan, np.nan)]


def _shrunk(gaps: Floats, deviations: Floats, total: float) -> Floats:
    """Gaps reduced by a common multiple of their standard errors to sum to `total`."""
    if total >= gaps.sum():
        stretched: Floats = gaps * total / max(gaps.sum(), 1e-12)
        return stretched
    low = 0.0
    high = float((gaps / np.maximum(deviations, 1e-12)).max())
    for _ in range(40):
        middle = (low + high) / 2
        if np.maximum(gaps - middle * deviations, 0).sum() > total:
            low = middle
        else:
            high = middle
    shrunk: Floats = np.maximum(gaps - high * deviations, 0)
    return shrunk


def _halves(samples: int, seed: int) -> Tensor:
    """Weights (resamples, samples) that choose random halves of the samples.

    A half varies around the whole sample as the sample varies around the truth.
    """
    generator = torch.Generator().manual_seed(seed)
    order = torch.rand(RESAMPLES, samples, generator=generator).argsort(dim=1)
    return (order < samples // 2).double()


def _mean_absolute(means: Floats, deviations: Floats) -> Floats:
    """Mean of |mean + deviation * x| for a standard normal x."""
    scaled = means / np.maximum(deviations, 1e-300)
    spread = deviations * np.sqrt(2 / np.pi) * np.exp(-(scaled**2) / 2)
    result: Floats = spread + means * erf(scaled / np.sqrt(2))
    return result


def _bounded(found: list[Interval]) -> list[Interval]:
    """Clip the intervals at 0, except the last one, which is that of the change."""
    *errors, change = found
    return [*((max(0.0, low), max(0.0, high)) for low, high in errors), change]

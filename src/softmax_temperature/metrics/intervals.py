"""90 % intervals of binned calibration errors, and of the change between two arms, in
closed form (source: ours).

A binned calibration error is a sum of absolute values of means, one for each bin: the
share of right predictions minus the mean confidence, times the bin's share of the
samples. Noise adds to an absolute value on average and never takes away, so the plain
error of a sample is too large by between nothing and the error that noise alone shows.
The bootstrap does not see this bias well: its intervals cover half of the time near
perfect calibration. Here the normal interval around the plain error is widened by the
biases that the sample allows. `docs/calibration_intervals.md` compares
the coverage of this interval with others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import NormalDist
from typing import NamedTuple

import torch
from scipy.optimize import brentq
from torch import Tensor

from softmax_temperature.metrics.calibration import (
    binned_sums,
    class_cells,
    class_gaps,
    row_pieces,
)

ONE_SIDED = NormalDist().inv_cdf(0.95)  # Each end of a 90 % interval misses 5 %.
TWO_SIDED = NormalDist().inv_cdf(0.975)  # The same, where data choose the sign.
# A bin's true gap is nearer to the observed one than so many standard errors, but for
# 1 bin in 80.
CLEAR = 2.5


class BinnedError(NamedTuple):
    """A calibration error of a sample, with the numbers that its interval needs."""

    value: float  # The plain error.
    # The least and the most by which it may exceed the true one on average.
    least_bias: float
    largest_bias: float
    # Each sample's part in the error, signs of the bins held; the mean is the error.
    parts: Tensor  # Shape (n,).
    # The same for the absolute sum of all gaps, which bounds the error from below and
    # is hardly biased; None where the sum says nothing (classwise: it is zero).
    total_parts: Tensor | None  # Shape (n,).
    # Squared standard error that a calibrated model would have beyond the observed one:
    # thirty right predictions of confidence 0.98 vary less than the next thirty may.
    unseen_variance: float

    @property
    def interval(self) -> tuple[float, float]:
        """The 90 % interval of the true error, in [0, 1]; it holds the plain one."""
        margin = ONE_SIDED * self._deviation(self.parts)
        low = self.value - self.largest_bias - margin
        if self.total_parts is not None:
            total_margin = TWO_SIDED * self._deviation(self.total_parts)
            low = max(low, self.total_parts.mean().item() - total_margin)
        return min(max(0.0, low), self.value), min(1.0, self.value + margin)

    def highest_change_from(self, other: BinnedError) -> float:
        """Upper end of the 90 % interval of this true error minus the other's."""
        change = self.value - other.value
        deviation = _deviation_of_change(self, other, other.parts)
        high = change + other.largest_bias + ONE_SIDED * deviation
        if other.total_parts is not None:
            # This plain error is too large rather than too small, which makes up for a
            # sign that data choose.
            from_total = self.value - other.total_parts.mean().item()
            margin = ONE_SIDED * _deviation_of_change(self, other, other.total_parts)
            high = min(high, from_total + margin)
        # The plain change, which a reader compares, stays inside.
        return min(1.0, max(high - self.least_bias, change + deviation))

    def _deviation(self, parts: Tensor) -> float:
        """Standard error of the mean of the parts."""
        observed = parts.var(correction=0).item() / len(parts)
        return math.sqrt(observed + self.unseen_variance)


def change_interval(new: BinnedError, old: BinnedError) -> tuple[float, float]:
    """The 90 % interval of the true error of `new` minus that of `old`, in [-1, 1].

    Both are of the same samples, in the same order.
    """
    return -old.highest_change_from(new), new.highest_change_from(old)


def top_label_error(
    confidences: Tensor, correct: Tensor, membership: Tensor
) -> BinnedError:
    """The error of the predicted class over bins: ECE, or AdaECE.

    Args:
        confidences: Of the predictions, shape (n,), float64.
        correct: Whether they are right, 0 or 1, shape (n,).
        membership: Share of each sample in each bin, shape (n, bins).
    """
    samples = len(confidences)
    gaps = correct - confidences
    means = gaps @ membership / samples
    observed = gaps.square() @ membership / samples
    calibrated = (confidences * (1 - confidences)) @ membership / samples
    squares = torch.maximum(observed, calibrated)
    deviations = _deviations(means, squares, samples)
    least_deviations = _deviations(means, torch.minimum(observed, calibrated), samples)
    value = means.abs().sum().item()
    return BinnedError(
        value=value,
        least_bias=_least_bias(value, least_deviations),
        largest_bias=_largest_bias(means, deviations),
        parts=gaps * (membership @ _signs(means)),
        total_parts=gaps * _signs(means.sum()),
        # The next prediction may be the first wrong one.
        unseen_variance=(squares - observed).sum().item() / samples + 1 / samples**2,
    )


class ClassCells(NamedTuple):
    """Moments of label minus probability in the cells of a class and a bin of its
    probability, each of shape (classes * bins,).
    """

    means: Tensor
    squares: Tensor  # The larger of the observed ones and of a calibrated model's.
    unseen_square: float  # By how much all of them exceed the observed ones.

    @classmethod
    def of(cls, logits: Tensor, labels: Tensor, bins: int) -> ClassCells:
        """The cells of logits (n, classes) and labels (n,)."""
        samples, classes = logits.shape
        sums = logits.new_zeros(classes * bins, dtype=torch.float64)
        calibrated = torch.zeros_like(sums)
        observed_by_bin = sums.new_zeros(bins)
        for probs, gaps, cells in _class_pieces(logits, labels, bins):
            index = cells.flatten()
            sums += binned_sums(index, gaps.flatten(), len(sums))
            variances = (probs * (1 - probs)).flatten()
            calibrated += binned_sums(index, variances, len(sums))
            squares = gaps.square().flatten()
            observed_by_bin += binned_sums(index % bins, squares, bins)
        # A cell of few samples rarely has a label of its class, and then no visible
        # variance: cells of one bin share the factor between observed and calibrated.
        calibrated_by_bin = calibrated.view(classes, bins).sum(dim=0)
        tiny = torch.finfo(sums.dtype).tiny
        factor = observed_by_bin / calibrated_by_bin.clamp(min=tiny)
        unseen = (calibrated_by_bin - observed_by_bin).clamp(min=0).sum().item()
        return cls(
            means=sums / samples,
            squares=calibrated * factor.clamp(min=1).repeat(classes) / samples,
            unseen_square=unseen / samples,
        )


def classwise_error(
    logits: Tensor, labels: Tensor, bins: int, cells: ClassCells
) -> BinnedError:
    """The Classwise-ECE of logits (n, classes) and labels (n,), whose cells these are."""
    samples, classes = logits.shape
    deviations = _deviations(cells.means, cells.squares, samples)
    signs = _signs(cells.means)
    parts = [
        (signs[index] * gaps).sum(dim=1)
        for _, gaps, index in _class_pieces(logits, labels, bins)
    ]
    return BinnedError(
        value=cells.means.abs().sum().item() / classes,
        # Cells of few samples are not normal, and may have less bias than normal ones.
        least_bias=0.0,
        largest_bias=_largest_bias(cells.means, deviations) / classes,
        parts=torch.cat(parts) / classes,
        total_parts=None,
        unseen_variance=(cells.unseen_square + 1 / samples) / (samples * classes**2),
    )


def _class_pieces(
    logits: Tensor, labels: Tensor, bins: int
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Probabilities, gaps and cells of consecutive rows, each of shape (rows, classes)."""
    for piece, piece_labels in row_pieces(logits, labels):
        probs = torch.softmax(piece, dim=1)
        yield probs, class_gaps(probs, piece_labels), class_cells(probs, bins)


def _signs(means: Tensor) -> Tensor:
    """1 or -1; a mean of exactly zero varies as others do, and has a sign, too."""
    return 1.0 - 2.0 * (means < 0).double()


def _deviations(means: Tensor, squares: Tensor, samples: int) -> Tensor:
    """Standard errors of means of values with these mean squares."""
    return ((squares - means.square()).clamp(min=0) / samples).sqrt()


def _least_bias(value: float, deviations: Tensor) -> float:
    """By how much noise of these standard errors enlarges a sum of |means| at least, if
    the sum with noise is the value.

    Of all means with the same sum, those in proportion to their standard errors have
    the least bias: E|m + s x| is convex in m. The sum is the largest at which a value
    as low as this is seen one time in twenty.
    """
    total = deviations.sum().item()
    spread = deviations.square().sum().sqrt().item()
    if total == 0:
        return 0.0

    def excess(multiple: float) -> float:
        """The 5th percentile of the sum with noise, over the value."""
        mean = _mean_absolute(multiple)
        variance = max(0.0, 1 + multiple**2 - mean**2)
        return total * mean - ONE_SIDED * spread * math.sqrt(variance) - value

    multiple = 0.0
    if excess(0.0) < 0:
        # The mean absolute value is at least the multiple, and its spread at most 1.
        highest = (value + ONE_SIDED * spread) / total
        multiple = brentq(excess, 0.0, highest) if excess(highest) > 0 else highest
    return min(value, total * (_mean_absolute(multiple) - multiple))


def _mean_absolute(shift: float) -> float:
    """Mean of |shift + x| of a normal x."""
    density = math.sqrt(2 / math.pi) * math.exp(-(shift**2) / 2)
    return shift * math.erf(shift / math.sqrt(2)) + density


def _largest_bias(means: Tensor, deviations: Tensor) -> float:
    """By how much noise of these standard errors may enlarge the sum of |means|.

    |m + noise| is |m| on average where m is clear of zero, and most above |m| at zero:
    the bias is that of the m nearest to zero which the observed mean allows.
    """
    noise = deviations.clamp(min=torch.finfo(deviations.dtype).tiny)
    nearest = (means.abs() - CLEAR * noise).clamp(min=0)
    scaled = nearest / noise
    density = math.sqrt(2 / math.pi) * torch.exp(-scaled.square() / 2)
    # E|m + s x| - |m| of a normal x, with erfc: no difference of nearly equal numbers.
    bias = noise * density - nearest * torch.erfc(scaled / math.sqrt(2))
    return bias.sum().item()


def _deviation_of_change(a: BinnedError, b: BinnedError, parts: Tensor) -> float:
    """Standard error of the mean of a's parts minus these parts of b."""
    observed = (a.parts - parts).var(correction=0).item() / len(parts)
    return math.sqrt(observed + a.unseen_variance + b.unseen_variance)

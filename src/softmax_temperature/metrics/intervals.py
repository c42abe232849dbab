"""90 % intervals for binned calibration errors and for their changes (source: ours).

A binned calibration error is a sum of absolute values of means, one for each bin: the
accuracy minus the mean confidence, times the bin's share of the samples. Noise
increases an absolute value on average, so the plain error of a sample is biased
upwards. The bias lies between zero and the error that a calibrated model would show on
the same number of samples. The bootstrap underestimates the bias: near perfect
calibration, bootstrap intervals cover the true value only half of the time. We widen
the normal interval around the plain error, in closed form, by the biases that are
consistent with the sample. `docs/calibration_intervals.md` compares the coverage of
this interval with that of others.
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

# Normal quantile for one end of a 90 % interval, beyond which 5 % of values lie.
ONE_SIDED = NormalDist().inv_cdf(0.95)
# Normal quantile for an end that comes from the sum of all gaps. The sign of this sum
# is taken from the data, which doubles the probability of an error, so only 2.5 % of
# values may lie beyond the quantile.
TWO_SIDED = NormalDist().inv_cdf(0.975)
# In 79 of 80 bins, the true gap lies within this many standard errors of the observed
# gap.
CLEAR = 2.5


class BinnedError(NamedTuple):
    """A calibration error of a sample, with the numbers that determine its interval.

    Attributes:
        value: The plain error.
        least_bias: Lower bound of the expected excess of `value` over the true error.
        largest_bias: Upper bound of that excess.
        parts: Contribution of each sample to `value`, shape (n,), with the sign of each
            bin's gap held fixed. The mean of these contributions is `value`.
        total_parts: Contribution of each sample to the absolute value of the mean gap
            over all samples, shape (n,). That value bounds the error from below and has
            little bias. None for the classwise error, for which it is always zero.
        unseen_variance: The growth of the squared standard error if the variance in
            each bin is raised to that of a calibrated model, plus a term of the order 1
            / n^2. For example, the gaps of thirty correct predictions with confidence
            0.98 have no variance, but one of the next thirty may be wrong.
    """

    value: float
    least_bias: float
    largest_bias: float
    parts: Tensor
    total_parts: Tensor | None
    unseen_variance: float

    @property
    def interval(self) -> tuple[float, float]:
        """The 90 % interval for the true error, in [0, 1]; it contains `value`."""
        margin = ONE_SIDED * self._deviation(self.parts)
        low = self.value - self.largest_bias - margin
        if self.total_parts is not None:
            total_margin = TWO_SIDED * self._deviation(self.total_parts)
            low = max(low, self.total_parts.mean().item() - total_margin)
        return min(max(0.0, low), self.value), min(1.0, self.value + margin)

    def highest_change_from(self, other: BinnedError) -> float:
        """Upper end of the 90 % interval for the true error minus that of `other`."""
        change = self.value - other.value
        deviation = _deviation_of_change(self, other, other.parts)
        high = change + other.largest_bias + ONE_SIDED * deviation
        if other.total_parts is not None:
            # The one-sided quantile suffices although the sign depends on the data,
            # because the upward bias of `self.value` compensates for that.
            from_total = self.value - other.total_parts.mean().item()
            margin = ONE_SIDED * _deviation_of_change(self, other, other.total_parts)
            high = min(high, from_total + margin)
        # Readers compare the interval with the plain change, so the interval must
        # contain the plain change.
        return min(1.0, max(high - self.least_bias, change + deviation))

    def _deviation(self, parts: Tensor) -> float:
        """Standard error of the mean of `parts`, with the unseen variance added."""
        observed = parts.var(correction=0).item() / len(parts)
        return math.sqrt(observed + self.unseen_variance)


def change_interval(new: BinnedError, old: BinnedError) -> tuple[float, float]:
    """The 90 % interval for the true error of `new` minus the true error of `old`.

    Both errors must come from the same samples in the same order.
    """
    return -old.highest_change_from(new), new.highest_change_from(old)


def top_label_error(
    confidences: Tensor, correct: Tensor, membership: Tensor
) -> BinnedError:
    """The ECE or the AdaECE, depending on the bins in `membership`.

    Args:
        confidences: Confidences of the predictions, a float64 tensor of shape (n,).
        correct: 1 for a correct prediction and 0 otherwise, a float64 tensor of shape
            (n,).
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
        # Add 1 / n^2, because even if no prediction has been wrong so far, the next one
        # may be.
        unseen_variance=(squares - observed).sum().item() / samples + 1 / samples**2,
    )


class ClassCells(NamedTuple):
    """Moments of the one-hot label minus the probability, for each cell.

    A cell is a pair of a class and a bin of that class's probability. Tensors have
    shape (classes * bins,).
    """

    means: Tensor
    # Mean squares of a calibrated model, scaled up in each bin whose observed squares
    # are larger.
    squares: Tensor
    # Sum of `squares` minus the sum of the observed mean squares.
    unseen_square: float

    @classmethod
    def of(
        cls, logits: Tensor, labels: Tensor, bins: int, *, temperature: float = 1.0
    ) -> ClassCells:
        """The cells of `logits / temperature` (n, classes) and `labels` (n,)."""
        samples, classes = logits.shape
        sums = logits.new_zeros(classes * bins, dtype=torch.float64)
        calibrated = torch.zeros_like(sums)
        observed_by_bin = sums.new_zeros(bins)
        for probs, gaps, cells in _class_pieces(logits, labels, bins, temperature):
            index = cells.flatten()
            sums += binned_sums(index, gaps.flatten(), len(sums))
            variances = (probs * (1 - probs)).flatten()
            calibrated += binned_sums(index, variances, len(sums))
            squares = gaps.square().flatten()
            observed_by_bin += binned_sums(index % bins, squares, bins)
        # A cell with few samples rarely has a label of its class, and without one it
        # shows hardly any variance. The cells of one bin therefore share the ratio of
        # observed to calibrated variance.
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
    logits: Tensor,
    labels: Tensor,
    bins: int,
    cells: ClassCells,
    *,
    temperature: float = 1.0,
) -> BinnedError:
    """The Classwise-ECE of `logits / temperature` and `labels`, from their `cells`.

    The logits have shape (n, classes), and the labels have shape (n,).
    """
    samples, classes = logits.shape
    deviations = _deviations(cells.means, cells.squares, samples)
    signs = _signs(cells.means)
    parts = [
        signs[index].mul_(gaps).sum(dim=1)
        for _, gaps, index in _class_pieces(logits, labels, bins, temperature)
    ]
    return BinnedError(
        value=cells.means.abs().sum().item() / classes,
        # A mean of few samples is not normally distributed, and may have less bias than
        # a normal mean, so zero is the only safe bound.
        least_bias=0.0,
        largest_bias=_largest_bias(cells.means, deviations) / classes,
        parts=torch.cat(parts) / classes,
        total_parts=None,
        unseen_variance=(cells.unseen_square + 1 / samples) / (samples * classes**2),
    )


def _class_pieces(
    logits: Tensor, labels: Tensor, bins: int, temperature: float
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield the probabilities, gaps and cells of row slices, shape (rows, classes)."""
    for piece, piece_labels in row_pieces(logits, labels, temperature=temperature):
        probs = torch.softmax(piece, dim=1)
        yield probs, class_gaps(probs, piece_labels), class_cells(probs, bins)


def _signs(means: Tensor) -> Tensor:
    """Sign of each mean; 1 for a zero mean, whose samples contribute variance, too."""
    return 1.0 - 2.0 * (means < 0).double()


def _deviations(means: Tensor, squares: Tensor, samples: int) -> Tensor:
    """Standard errors of `means` over `samples`, from the mean squares in `squares`."""
    return ((squares - means.square()).clamp(min=0) / samples).sqrt()


def _least_bias(value: float, deviations: Tensor) -> float:
    """Lower bound of the bias that noise adds to a sum of |means|.

    Among all means with the same sum, means proportional to their standard errors have
    the least bias, because E|m + s x| is convex in m. We take the true sum to be the
    largest one at which `value` or a lower sum would be observed with probability 5 %.

    Args:
        value: The observed sum, with noise.
        deviations: Standard error of each mean.
    """
    total = deviations.sum().item()
    spread = deviations.square().sum().sqrt().item()
    if total == 0:
        return 0.0

    def excess(multiple: float) -> float:
        """5th percentile of the noisy sum, minus `value`.

        The means are taken to be `multiple` times their standard errors.
        """
        mean = _mean_absolute(multiple)
        variance = max(0.0, 1 + multiple**2 - mean**2)
        return total * mean - ONE_SIDED * spread * math.sqrt(variance) - value

    multiple = 0.0
    if excess(0.0) < 0:
        # The root is below `highest`, because |multiple + x| has a mean of at least
        # `multiple` and a standard deviation of at most 1.
        highest = (value + ONE_SIDED * spread) / total
        multiple = highest
        if excess(highest) > 0:
            multiple = brentq(excess, 0.0, highest)
    return min(value, total * (_mean_absolute(multiple) - multiple))


def _mean_absolute(shift: float) -> float:
    """Mean of |shift + x| for a standard normal x."""
    density = math.sqrt(2 / math.pi) * math.exp(-(shift**2) / 2)
    return shift * math.erf(shift / math.sqrt(2)) + density


def _largest_bias(means: Tensor, deviations: Tensor) -> float:
    """Upper bound of the bias that noise adds to a sum of |means|.

    The bias of one mean, E|m + noise| - |m|, is largest at m = 0 and vanishes far from
    zero, so it is computed at the m nearest to zero that is consistent with the
    observed mean.
    """
    noise = deviations.clamp(min=torch.finfo(deviations.dtype).tiny)
    nearest = (means.abs() - CLEAR * noise).clamp(min=0)
    scaled = nearest / noise
    density = math.sqrt(2 / math.pi) * torch.exp(-scaled.square() / 2)
    # E|m + s x| - |m| for a normal x, written with erfc because a difference of two
    # nearly equal terms would lose digits.
    bias = noise * density - nearest * torch.erfc(scaled / math.sqrt(2))
    return bias.sum().item()


def _deviation_of_change(a: BinnedError, b: BinnedError, parts: Tensor) -> float:
    """Standard error of the mean of `a.parts - parts`, with unseen variances added.

    Args:
        a: The first error.
        b: The second error.
        parts: Either `b.parts` or `b.total_parts`.
    """
    observed = (a.parts - parts).var(correction=0).item() / len(parts)
    return math.sqrt(observed + a.unseen_variance + b.unseen_variance)

"""Calibration errors from section 2 of the focal paper, and estimates of their bias."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.metrics.checks import (
    check_argument_order,
    check_count,
    check_labels,
)
from softmax_temperature.metrics.class_order import check_class_order
from softmax_temperature.metrics.probability_check import check_probs

# Maximum number of elements of a temporary tensor wherever rows are processed in
# pieces. In float64 such a tensor takes 16 MiB, which the allocator can reuse for the
# next piece.
CHUNK = 2**21
# Number of simulations for the noise floor. With 500 simulations, the floor's standard
# error is 1 % of the floor.
NOISE_DRAWS = 500


@dataclass(frozen=True)
class ReliabilityBins:
    """Equal-width bins of a reliability diagram (focal paper, Figure A.1).

    Attributes:
        edges: Edges of the bins, from 0 to 1; float64 tensor of shape (bins + 1,).
        counts: Number of samples in each bin; int64 tensor of shape (bins,).
        confidence: Mean confidence in each bin; float64 tensor of shape (bins,), NaN in
            an empty bin.
        accuracy: Share of correct predictions in each bin; float64 tensor of shape
            (bins,), NaN in an empty bin.
    """

    edges: Tensor
    counts: Tensor
    confidence: Tensor
    accuracy: Tensor

    @property
    def shares(self) -> Tensor:
        """Share of the samples in each bin, shape (bins,)."""
        return self.counts / self.counts.sum().double()

    @property
    def gaps(self) -> Tensor:
        """Accuracy minus confidence in each bin, shape (bins,); 0 in an empty bin."""
        return (self.accuracy - self.confidence).nan_to_num(0.0)


def reliability_bins(
    probs: Tensor, labels: Tensor, *, bins: int = 15
) -> ReliabilityBins:
    """Mean confidence and accuracy of the predictions in each equal-width bin.

    Arguments and errors are those of `expected_calibration_error`.
    """
    confidences, correct = _top_label(probs, labels, bins)
    return bins_of_predictions(confidences, correct, bins)


def expected_calibration_error(
    probs: Tensor, labels: Tensor, *, bins: int = 15
) -> Tensor:
    """Mean gap between accuracy and confidence over equal-width bins (ECE, section 2).

    Bins are weighted by their number of samples. The value is biased upwards: see
    `noise_floor` and `debiased_calibration_error`.

    Args:
        probs: Floating-point tensor of shape (n, classes) whose rows sum to one.
        labels: Integer true classes of shape (n,).
        bins: Number of bins on [0, 1].

    Returns:
        A float64 scalar in [0, 1].

    Raises:
        ValueError: If the shapes disagree, a probability is outside [0, 1], a row does
            not sum to one, a label is out of range, the labels evidently number the
            classes in a different order from the columns, or `bins` is below 1.
    """
    table = reliability_bins(probs, labels, bins=bins)
    return (table.shares * table.gaps.abs()).sum()


def maximum_calibration_error(
    probs: Tensor, labels: Tensor, *, bins: int = 15
) -> Tensor:
    """Largest gap between accuracy and confidence in any equal-width bin (MCE).

    Arguments, return value and errors are those of `expected_calibration_error`.
    """
    return reliability_bins(probs, labels, bins=bins).gaps.abs().max()


def adaptive_calibration_error(
    probs: Tensor, labels: Tensor, *, bins: int = 15
) -> Tensor:
    """ECE over bins of equal mass (AdaECE, section 2).

    Bin sizes differ by at most one: if `bins` does not divide n, the first `n % bins`
    bins, which have the lowest confidence, contain one more sample. All samples are
    used. If samples of equal confidence lie at an edge, the correct and the wrong
    samples are split between the two bins in the same proportion. Arguments, return
    value and errors are those of `expected_calibration_error`.
    """
    # Deviation: we use all samples. The released code interpolates bin edges between
    # sorted confidences and leaves the bins open on the left, which drops the smallest
    # confidence and every sample tied with it.
    confidences, correct = _top_label(probs, labels, bins)
    membership = equal_mass_membership(confidences, bins)
    gaps = (correct - confidences) @ membership
    return gaps.abs().sum() / len(correct)


def classwise_calibration_error(
    probs: Tensor, labels: Tensor, *, bins: int = 15
) -> Tensor:
    """ECE of each class's probabilities, averaged over classes (Classwise-ECE).

    Focal paper, section 2. Classes that do not occur among the labels count too.
    Arguments, return value and errors are those of `expected_calibration_error`.
    """
    # Deviation: we average over all classes. The released code averages only over the
    # classes from 0 to the largest label that occurs.
    probs = _checked(probs, labels, bins)
    samples, classes = probs.shape
    sums = torch.zeros(classes * bins, dtype=torch.float64, device=probs.device)
    for exact, exact_labels in row_pieces(probs, labels.long()):
        gaps = class_gaps(exact, exact_labels)
        cells = class_cells(exact, bins)
        sums += binned_sums(cells.flatten(), gaps.flatten(), len(sums))
    return sums.abs().sum() / (samples * classes)


def noise_floor(probs: Tensor, *, bins: int = 15, seed: int = 0) -> Tensor:
    """Mean ECE of a perfectly calibrated model with these `probs` (source: ours).

    The floor is the mean over 500 simulations in which each prediction is correct with
    probability equal to its confidence; the draws are the same on every device. An ECE
    near this value is not evidence of miscalibration.

    Args:
        probs: Floating-point tensor of shape (n, classes) whose rows sum to one.
        bins: Number of bins on [0, 1].
        seed: Seed of the draws, at least 0.

    Returns:
        A float64 scalar in [0, 1].

    Raises:
        ValueError: If an argument is malformed.
    """
    probs = check_probs(probs)
    check_count(bins, "bins", least=1)
    check_count(seed, "seed", least=0)
    return floor_of_confidences(probs.detach().double().amax(dim=1), bins, seed)


def debiased_calibration_error(
    probs: Tensor, labels: Tensor, *, bins: int = 15
) -> Tensor:
    """ECE minus its estimated bias (Kumar, Liang and Ma, NeurIPS 2019).

    "Verified uncertainty calibration" models each bin's accuracy a as normal with
    variance a (1 - a) / count. The bias is the mean absolute gap under that normal, in
    closed form, minus the observed gap. The correction is of first order: it removes
    only 40 % of the bias of a perfectly calibrated model. The value is negative if the
    estimated bias exceeds the ECE, which happens only if the observed gaps are small
    compared with their noise. Arguments and errors are those of
    `expected_calibration_error`.
    """
    return debiased_error(reliability_bins(probs, labels, bins=bins))


def _checked(probs: Tensor, labels: Tensor, bins: int) -> Tensor:
    """Check the arguments, and return the probabilities, clipped to [0, 1]."""
    check_argument_order(probs, labels, name="probs")
    probs = check_probs(probs)
    check_labels(labels, probs)
    check_class_order(labels, probs)
    check_count(bins, "bins", least=1)
    return probs


def _top_label(probs: Tensor, labels: Tensor, bins: int) -> tuple[Tensor, Tensor]:
    """Return the confidences, and 1 for each right and 0 for each wrong prediction.

    Both are float64 tensors of shape (n,).
    """
    probs = _checked(probs, labels, bins)
    confidences, predicted = probs.detach().double().max(dim=1)
    return confidences, (predicted == labels.long()).double()


def row_pieces(
    scores: Tensor, labels: Tensor, *, temperature: float = 1.0
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield slices of the rows of `scores / temperature` in float64, with their labels.

    A slice has at most `CHUNK` elements, unless a single row has more.
    """
    rows = max(1, CHUNK // scores.shape[1])
    pieces = zip(scores.detach().split(rows), labels.split(rows), strict=True)
    for piece, piece_labels in pieces:
        yield piece.double() / temperature, piece_labels


def bins_of_predictions(
    confidences: Tensor, correct: Tensor, bins: int
) -> ReliabilityBins:
    """Return the equal-width bins of n predictions.

    Both tensors are float64 and have shape (n,).
    """
    index = equal_width_bins(confidences, bins)
    counts = torch.bincount(index, minlength=bins)
    edges = torch.arange(bins + 1, dtype=torch.float64, device=counts.device) / bins
    mean_confidence = binned_sums(index, confidences, bins) / counts
    accuracy = binned_sums(index, correct, bins) / counts
    return ReliabilityBins(edges, counts, mean_confidence, accuracy)


def floor_of_confidences(confidences: Tensor, bins: int, seed: int) -> Tensor:
    """Return the noise floor of predictions as a scalar.

    The confidences are a float64 tensor of shape (n,).
    """
    membership = F.one_hot(equal_width_bins(confidences, bins), bins).double()
    expected = confidences @ membership
    generator = np.random.default_rng(seed)
    rows = max(1, CHUNK // len(confidences))
    errors = []
    for start in range(0, NOISE_DRAWS, rows):
        draws = min(rows, NOISE_DRAWS - start)
        uniform = torch.from_numpy(generator.random((draws, len(confidences))))
        correct = uniform.to(confidences.device) < confidences
        gaps = correct.double() @ membership - expected
        errors.append(gaps.abs().sum(dim=1))
    return torch.cat(errors).mean() / len(confidences)


def debiased_error(table: ReliabilityBins) -> Tensor:
    """The ECE of the bins in `table`, minus the ECE's estimated bias."""
    filled = table.counts > 0
    accuracy = table.accuracy[filled]
    gaps = table.gaps[filled].abs()
    deviation = torch.sqrt(accuracy * (1 - accuracy) / table.counts[filled])
    scaled = gaps / deviation.clamp(min=torch.finfo(gaps.dtype).tiny)
    spread = deviation * math.sqrt(2 / math.pi) * torch.exp(-scaled.square() / 2)
    expected = spread + gaps * torch.erf(scaled / math.sqrt(2))
    return (table.shares[filled] * (2 * gaps - expected)).sum()


def class_gaps(probs: Tensor, labels: Tensor) -> Tensor:
    """One-hot labels minus probabilities, shape (n, classes)."""
    gaps = -probs
    return gaps.scatter_add_(1, labels[:, None], torch.ones_like(gaps[:, :1]))


def class_cells(probs: Tensor, bins: int) -> Tensor:
    """Index of each probability's cell (its class and its bin), shape (n, classes)."""
    first = torch.arange(probs.shape[1], device=probs.device) * bins
    return equal_width_bins(probs, bins).add_(first)


def equal_width_bins(values: Tensor, bins: int) -> Tensor:
    """Return the int64 index of the bin that contains each value in [0, 1].

    Bins are closed on the right, (a, b], and the first also includes 0.
    """
    # Comparing values with the edges is exact, whereas ceil(bins * value) can put a
    # value near an edge into the wrong bin.
    edges = torch.arange(1, bins, dtype=values.dtype, device=values.device) / bins
    return torch.bucketize(values.contiguous(), edges)


def equal_mass_membership(values: Tensor, bins: int) -> Tensor:
    """Share of each sample that belongs to each bin of the AdaECE, shape (n, bins)."""
    size, larger = divmod(len(values), bins)
    ranks = [number * size + min(number, larger) for number in range(bins + 1)]
    edges = torch.tensor(ranks, dtype=torch.float64, device=values.device)
    # Equal values form a group, which occupies a range of ranks.
    _, group, counts = torch.unique(values, return_inverse=True, return_counts=True)
    ends = counts.cumsum(0).to(torch.float64)
    starts = torch.cat([ends.new_zeros(1), ends[:-1]])
    overlap_ends = torch.minimum(ends[:, None], edges[1:])
    overlap_starts = torch.maximum(starts[:, None], edges[:-1])
    overlap = (overlap_ends - overlap_starts).clamp(min=0)
    shares: Tensor = overlap / (ends - starts)[:, None]
    return shares[group]


def binned_sums(index: Tensor, values: Tensor, size: int) -> Tensor:
    """Sum of the `values` at each index from 0 to `size` - 1, shape (size,)."""
    return values.new_zeros(size).scatter_add_(0, index, values)

"""Calibration errors in the four forms of the focal paper, section 2, and how much of
one is noise at this n.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.metrics.checks import check_count, check_labels, check_probs

# Elements of the largest float64 temporary: 16 MiB, small enough for the allocator to
# keep and reuse.
CHUNK = 2**21
NOISE_DRAWS = 500  # The standard error of their mean is 1 % of the floor.


@dataclass(frozen=True)
class ReliabilityBins:
    """What a reliability diagram shows (focal paper, Figure A.1); float64 but the
    counts; NaN where a bin is empty.
    """

    edges: Tensor  # Shape (bins + 1,).
    counts: Tensor  # Shape (bins,), int64.
    confidence: Tensor  # Mean in each bin, shape (bins,).
    accuracy: Tensor  # Share of right predictions in each bin, shape (bins,).

    @property
    def shares(self) -> Tensor:
        """Share of the samples in each bin, shape (bins,)."""
        return self.counts / self.counts.sum().double()

    @property
    def gaps(self) -> Tensor:
        """Accuracy minus confidence in each bin, shape (bins,); 0 where it is empty."""
        return (self.accuracy - self.confidence).nan_to_num(0.0)


def reliability_bins(
    probs: Tensor, labels: Tensor, *, bins: int = 15
) -> ReliabilityBins:
    """Confidence and accuracy of the predicted class in equal-width bins, from what the
    ECE takes.
    """
    confidences, correct = _top_label(probs, labels, bins)
    return bins_of_predictions(confidences, correct, bins)


def expected_calibration_error(
    probs: Tensor, labels: Tensor, *, bins: int = 15
) -> Tensor:
    """Gap between accuracy and confidence, averaged over equal-width bins weighted by
    their samples (ECE, section 2).

    `probs` (n, classes) have rows that sum to one, `labels` (n,) are integers, `bins`
    are on [0, 1]. A scalar in [0, 1], float64, biased upwards: see `noise_floor` and
    `debiased_calibration_error`. Raises ValueError if the shapes disagree, a row does
    not sum to one, a label is out of range or `bins` is below 1.
    """
    table = reliability_bins(probs, labels, bins=bins)
    return (table.shares * table.gaps.abs()).sum()


def maximum_calibration_error(
    probs: Tensor, labels: Tensor, *, bins: int = 15
) -> Tensor:
    """Largest gap of any non-empty equal-width bin (MCE, section 2); otherwise as
    `expected_calibration_error`.
    """
    return reliability_bins(probs, labels, bins=bins).gaps.abs().max()


def adaptive_calibration_error(
    probs: Tensor, labels: Tensor, *, bins: int = 15
) -> Tensor:
    """ECE over bins of equal mass (AdaECE, section 2); otherwise as
    `expected_calibration_error`.

    Bin sizes differ by at most one (the first n % bins, of lowest confidence, are the
    larger ones) and no sample is dropped. Equal confidences that straddle an edge are
    split across it in proportion, right and wrong alike.
    """
    # Deviation: the released code interpolates edges between sorted confidences and
    # opens the bins on the left, which drops the smallest confidence, and every sample
    # tied with it.
    confidences, correct = _top_label(probs, labels, bins)
    return (
        (correct - confidences) @ equal_mass_membership(confidences, bins)
    ).abs().sum() / len(correct)


def classwise_calibration_error(
    probs: Tensor, labels: Tensor, *, bins: int = 15
) -> Tensor:
    """ECE of the probability of each class, a mean over all classes, absent ones too
    (Classwise-ECE, section 2).
    """
    # Deviation: the released code averages over the classes up to the largest label
    # that occurs.
    _check(probs, labels, bins)
    samples, classes = probs.shape
    sums = torch.zeros(classes * bins, dtype=torch.float64, device=probs.device)
    for exact, exact_labels in row_pieces(probs, labels.long()):
        gaps = class_gaps(exact, exact_labels)
        cells = class_cells(exact, bins)
        sums += binned_sums(cells.flatten(), gaps.flatten(), len(sums))
    return sums.abs().sum() / (samples * classes)


def noise_floor(probs: Tensor, *, bins: int = 15, seed: int = 0) -> Tensor:
    """ECE that a perfectly calibrated model with these confidences shows on average at
    this n (source: ours).

    The mean of 500 draws of right and wrong, the same on every device; an ECE near it
    is no evidence of miscalibration.
    """
    check_probs(probs)
    check_count(bins, "bins", least=1)
    check_count(seed, "seed", least=0)
    return floor_of_confidences(probs.detach().double().amax(dim=1), bins, seed)


def debiased_calibration_error(
    probs: Tensor, labels: Tensor, *, bins: int = 15
) -> Tensor:
    """ECE minus its estimated bias (Kumar, Liang and Ma, "Verified uncertainty
    calibration", NeurIPS 2019).

    Each bin's accuracy a is taken as normal with variance a (1 - a) / count; by how
    much the mean absolute gap under that normal, in closed form, exceeds the gap is the
    bias. Below zero where the bias exceeds the ECE: "calibrated". The correction is of
    first order, and removes four tenths of a perfectly calibrated model's bias.
    """
    return debiased_error(reliability_bins(probs, labels, bins=bins))


def _check(probs: Tensor, labels: Tensor, bins: int) -> None:
    check_probs(probs)
    check_labels(labels, probs)
    check_count(bins, "bins", least=1)


def _top_label(probs: Tensor, labels: Tensor, bins: int) -> tuple[Tensor, Tensor]:
    """Confidence in the prediction, and whether it is right (0 or 1): each of shape
    (n,), float64; checked.
    """
    _check(probs, labels, bins)
    confidences, predicted = probs.detach().double().max(dim=1)
    return confidences, (predicted == labels.long()).double()


def row_pieces(scores: Tensor, labels: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Consecutive rows of scores (n, classes), as float64, and of labels (n,); few
    enough of them that a temporary of their shape is small.
    """
    rows = max(1, CHUNK // scores.shape[1])
    pieces = zip(scores.detach().split(rows), labels.split(rows), strict=True)
    for piece, piece_labels in pieces:
        yield piece.double(), piece_labels


def bins_of_predictions(
    confidences: Tensor, correct: Tensor, bins: int
) -> ReliabilityBins:
    """The equal-width bins of predictions, each of shape (n,), float64."""
    index = equal_width_bins(confidences, bins)
    counts = torch.bincount(index, minlength=bins)
    edges = torch.arange(bins + 1, dtype=torch.float64, device=counts.device) / bins
    mean_confidence = binned_sums(index, confidences, bins) / counts
    accuracy = binned_sums(index, correct, bins) / counts
    return ReliabilityBins(edges, counts, mean_confidence, accuracy)


def floor_of_confidences(confidences: Tensor, bins: int, seed: int) -> Tensor:
    """The noise floor of predictions with these confidences (n,), float64."""
    membership = F.one_hot(equal_width_bins(confidences, bins), bins).double()
    expected = confidences @ membership
    generator = np.random.default_rng(seed)
    rows = max(1, CHUNK // len(confidences))
    errors = []
    for start in range(0, NOISE_DRAWS, rows):
        uniform = generator.random((min(rows, NOISE_DRAWS - start), len(confidences)))
        right = torch.from_numpy(uniform).to(confidences.device) < confidences
        errors.append((right.double() @ membership - expected).abs().sum(dim=1))
    return torch.cat(errors).mean() / len(confidences)


def debiased_error(table: ReliabilityBins) -> Tensor:
    """The ECE of equal-width bins minus its estimated bias."""
    filled = table.counts > 0
    accuracy, gaps = table.accuracy[filled], table.gaps[filled].abs()
    deviation = torch.sqrt(accuracy * (1 - accuracy) / table.counts[filled])
    scaled = gaps / deviation.clamp(min=torch.finfo(gaps.dtype).tiny)
    spread = deviation * math.sqrt(2 / math.pi) * torch.exp(-scaled.square() / 2)
    expected = spread + gaps * torch.erf(scaled / math.sqrt(2))
    return (table.shares[filled] * (2 * gaps - expected)).sum()


def class_gaps(probs: Tensor, labels: Tensor) -> Tensor:
    """One-hot label minus probability, shape (n, classes)."""
    gaps = -probs
    return gaps.scatter_add_(1, labels[:, None], torch.ones_like(gaps[:, :1]))


def class_cells(probs: Tensor, bins: int) -> Tensor:
    """Index of the cell, a class and a bin of its probability, shape (n, classes)."""
    first = torch.arange(probs.shape[1], device=probs.device) * bins
    return equal_width_bins(probs, bins) + first


def equal_width_bins(values: Tensor, bins: int) -> Tensor:
    """Index of the bin of each value in [0, 1], int64; bins are (a, b] and the first
    also holds 0.
    """
    # Edges are compared: ceil(bins * value) puts a value next to an edge into the wrong
    # bin.
    edges = torch.arange(1, bins, dtype=values.dtype, device=values.device) / bins
    return torch.bucketize(values.contiguous(), edges)


def equal_mass_membership(values: Tensor, bins: int) -> Tensor:
    """Share of each sample in each equal-mass bin, shape (n, bins), as
    `adaptive_calibration_error` has them.
    """
    size, larger = divmod(len(values), bins)
    ranks = [number * size + min(number, larger) for number in range(bins + 1)]
    edges = torch.tensor(ranks, dtype=torch.float64, device=values.device)
    # Equal values share a range of ranks.
    _, group, counts = torch.unique(values, return_inverse=True, return_counts=True)
    ends = counts.cumsum(0).to(torch.float64)
    starts = torch.cat([ends.new_zeros(1), ends[:-1]])
    overlap = torch.minimum(ends[:, None], edges[1:]) - torch.maximum(
        starts[:, None], edges[:-1]
    )
    shares: Tensor = overlap.clamp(min=0) / (ends - starts)[:, None]
    return shares[group]


def binned_sums(index: Tensor, values: Tensor, size: int) -> Tensor:
    """Sum of the values that share an index, shape (size,)."""
    return values.new_zeros(size).scatter_add_(0, index, values)

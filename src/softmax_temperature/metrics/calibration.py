"""Calibration errors: gaps between confidence and accuracy, in the four forms of the focal paper, section 2."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from softmax_temperature.metrics.binning import CHUNK, Ranking, binned_sums, equal_mass_membership, equal_width_bins
from softmax_temperature.metrics.checks import check_count, check_labels, check_probs


@dataclass(frozen=True)
class ReliabilityBins:
    """What a reliability diagram shows (focal paper, Figure A.1); everything float64 but the counts."""

    edges: Tensor  # Shape (bins + 1,).
    counts: Tensor  # Samples in each bin, shape (bins,), int64; they sum to n.
    confidence: Tensor  # Mean confidence in each bin, shape (bins,); NaN where it is empty.
    accuracy: Tensor  # Share of right predictions in each bin, shape (bins,); NaN where it is empty.

    @property
    def shares(self) -> Tensor:
        """Share of the samples in each bin, shape (bins,)."""
        return self.counts / self.counts.sum().double()

    @property
    def gaps(self) -> Tensor:
        """Accuracy minus confidence in each bin, shape (bins,); 0 where it is empty."""
        return (self.accuracy - self.confidence).nan_to_num(0.0)


def reliability_bins(probs: Tensor, labels: Tensor, *, bins: int = 15) -> ReliabilityBins:
    """Confidence and accuracy of the predicted class, the first of equal largest ones, in bins of equal width.

    Arguments and errors are those of `expected_calibration_error`.
    """
    confidences, correct = _top_label(probs, labels, bins)
    index = equal_width_bins(confidences, bins)
    counts = torch.bincount(index, minlength=bins)
    edges = torch.arange(bins + 1, dtype=torch.float64, device=counts.device) / bins
    sums = (binned_sums(index, values, bins) for values in (confidences, correct))
    return ReliabilityBins(edges, counts, *(total / counts for total in sums))


def expected_calibration_error(probs: Tensor, labels: Tensor, *, bins: int = 15) -> Tensor:
    """Gap between accuracy and confidence, averaged over equal-width bins weighted by their samples (ECE, section 2).

    Not a proper score, and biased upwards: see `noise_floor` and `debiased_calibration_error`.

    Args:
        probs: Shape (n, classes); rows sum to one.
        labels: True classes, shape (n,), integers.
        bins: Number of bins on [0, 1], closed on the right; the first also holds 0.

    Returns:
        A scalar in [0, 1], float64.

    Raises:
        ValueError: If the shapes disagree, a row does not sum to one, a label is out of range or `bins` is below 1.
    """
    table = reliability_bins(probs, labels, bins=bins)
    return (table.shares * table.gaps.abs()).sum()


def maximum_calibration_error(probs: Tensor, labels: Tensor, *, bins: int = 15) -> Tensor:
    """Largest gap between accuracy and confidence of any non-empty equal-width bin (MCE, section 2).

    Arguments, result and errors are those of `expected_calibration_error`.
    """
    return reliability_bins(probs, labels, bins=bins).gaps.abs().max()


def adaptive_calibration_error(probs: Tensor, labels: Tensor, *, bins: int = 15) -> Tensor:
    """ECE over bins of equal mass (AdaECE, section 2).

    Bin sizes differ by at most one (the first n % bins, of lowest confidence, are the larger ones) and no sample is
    dropped. Equal confidences that straddle an edge are split across it in proportion, right and wrong alike.
    Arguments, result and errors are those of `expected_calibration_error`.
    """
    # Deviation: the released code interpolates edges between sorted confidences and opens the bins on the left, which
    # drops the smallest confidence, and every sample tied with it.
    confidences, correct = _top_label(probs, labels, bins)
    membership = equal_mass_membership(Ranking.of(confidences), bins)
    return ((correct - confidences) @ membership).abs().sum() / len(correct)


def classwise_calibration_error(probs: Tensor, labels: Tensor, *, bins: int = 15) -> Tensor:
    """ECE of the probability of each class, over equal-width bins, averaged over classes (Classwise-ECE, section 2).

    Every sample counts for every class, and every column of `probs` is a class, whether a label names it or not.
    Arguments, result and errors are those of `expected_calibration_error`.
    """
    # Deviation: the released code averages over the classes up to the largest label that occurs.
    _check(probs, labels, bins)
    samples, classes = probs.shape
    offsets = torch.arange(classes, device=probs.device) * bins
    sums = torch.zeros(classes * bins, dtype=torch.float64, device=probs.device)
    rows = max(1, CHUNK // classes)
    for some, their_labels in zip(probs.detach().split(rows), labels.long().split(rows), strict=True):
        exact = some.double()
        gaps, index = class_gaps(exact, their_labels), equal_width_bins(exact, bins) + offsets
        sums += binned_sums(index.flatten(), gaps.flatten(), len(sums))
    return sums.abs().sum() / (samples * classes)


def _top_label(probs: Tensor, labels: Tensor, bins: int) -> tuple[Tensor, Tensor]:
    """Confidence in the prediction, and whether it is right (0 or 1): each of shape (n,), float64; checked."""
    _check(probs, labels, bins)
    confidences, predicted = probs.detach().double().max(dim=1)
    return confidences, (predicted == labels).double()


def class_gaps(probs: Tensor, labels: Tensor) -> Tensor:
    """One-hot label minus probability, shape (n, classes)."""
    gaps = -probs
    return gaps.scatter_add_(1, labels[:, None], torch.ones_like(gaps[:, :1]))


def _check(probs: Tensor, labels: Tensor, bins: int) -> None:
    check_probs(probs)
    check_labels(labels, probs)
    check_count(bins, "bins", least=1)

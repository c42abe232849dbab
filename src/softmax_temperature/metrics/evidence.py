"""What the metrics of one set of predictions are sums of, so that a bootstrap resample is a matrix product."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.metrics.calibration import CHUNK, class_gaps, equal_mass_membership, equal_width_bins
from softmax_temperature.metrics.scores import label_ranks, squared_distances

SCORES = ("accuracy", "top5_accuracy", "negative_log_likelihood", "brier_score")
TOP = 5
INTERVAL = (0.05, 0.95)  # 90 %, focal paper, section 5.


def resample_weights(samples: int, resamples: int, seed: int, *, rows: int | None = None) -> Iterator[Tensor]:
    """How often each sample is drawn: float64 tensors of shape (rows, samples) on the CPU, `resamples` rows together.

    Depends on nothing but the first three arguments, so that every arm and every device sees the same resamples.
    """
    # A stream of its own: the noise floor draws from the same seed.
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
    most = rows or max(1, CHUNK // samples)
    for start in range(0, resamples, most):
        count = min(most, resamples - start)
        drawn = generator.integers(0, samples, size=(count, samples)) + samples * np.arange(count)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=count * samples)
        yield torch.from_numpy(counts.reshape(count, samples).astype(np.float64))


@dataclass(frozen=True)
class Evidence:
    """Contributions of each sample; weighted sums of them give every metric of the report."""

    # Shape (n, columns): the SCORES; gaps and counts of the equal-width bins; gaps of the equal-mass bins; gaps of each
    # class over all bins.
    dense: Tensor
    # The gaps of each class in each bin but the first, sparse, shape (classes * (bins - 1), n): at most `bins` classes
    # of a sample can be above the first bin. The gap of the first is what is missing from the total.
    upper: Tensor
    bins: int

    @classmethod
    def of(cls, logits: Tensor, labels: Tensor, bins: int) -> Evidence:
        """The evidence in checked logits of shape (n, classes), float64, and labels of shape (n,), int64."""
        probs = torch.softmax(logits, dim=1)
        ranks = label_ranks(logits, labels)
        # The prediction is the first largest logit: softmax may round two logits to one probability.
        confidences = probs.gather(1, logits.argmax(dim=1, keepdim=True)).squeeze(1)
        gaps = (ranks == 0).double() - confidences
        in_bin = F.one_hot(equal_width_bins(confidences, bins), bins).double()
        in_equal_mass = equal_mass_membership(confidences, bins)
        losses = F.cross_entropy(logits, labels, reduction="none")
        scores = [(ranks == 0).double(), (ranks < TOP).double(), losses, squared_distances(probs, labels)]
        by_class = class_gaps(probs, labels)
        weighted = [gaps[:, None] * in_bin, in_bin, gaps[:, None] * in_equal_mass]
        return cls(torch.cat([torch.stack(scores, dim=1), *weighted, by_class], 1), _upper(probs, by_class, bins), bins)

    def metrics(self, weights: Tensor) -> dict[str, Tensor]:
        """Every metric, shape (resamples,), for weights (resamples, n): how often each sample is drawn."""
        samples = weights.shape[1]
        classes = self.dense.shape[1] - len(SCORES) - 3 * self.bins
        sums = weights @ self.dense
        scores, gaps, counts, equal_mass, totals = sums.split([len(SCORES), *[self.bins] * 3, classes], dim=1)
        upper = torch.sparse.mm(self.upper, weights.t().contiguous()).t().unflatten(1, (classes, self.bins - 1))
        first = totals - upper.sum(dim=2)
        values = dict(zip(SCORES, (scores / samples).unbind(dim=1), strict=True))
        values["expected_calibration_error"] = gaps.abs().sum(dim=1) / samples
        values["maximum_calibration_error"] = (gaps.abs() / counts.clamp(min=1)).amax(dim=1)
        values["adaptive_calibration_error"] = equal_mass.abs().sum(dim=1) / samples
        classwise = upper.abs().sum(dim=(1, 2)) + first.abs().sum(dim=1)
        values["classwise_calibration_error"] = classwise / (samples * classes)
        return values


def _upper(probs: Tensor, by_class: Tensor, bins: int) -> Tensor:
    index = equal_width_bins(probs, bins)
    sample, column = torch.nonzero(index, as_tuple=True)
    row = column * (bins - 1) + index[sample, column] - 1
    shape = (probs.shape[1] * (bins - 1), len(probs))
    positions = torch.stack([row, sample])
    # The positions are right by construction; saying so explicitly keeps torch from warning that it does not look.
    sparse = torch.sparse_coo_tensor(positions, by_class[sample, column], shape, check_invariants=False)
    return sparse.coalesce()

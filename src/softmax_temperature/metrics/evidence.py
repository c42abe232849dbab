"""What the metrics of one set of predictions are sums of, so that a bootstrap resample is a matrix product."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.metrics.calibration import CHUNK, class_gaps, equal_mass_membership, equal_width_bins
from softmax_temperature.metrics.scores import label_ranks, squared_distances

SCORES = ("accuracy", "top5_accuracy", "negative_log_likelihood", "brier_score")
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


class Evidence(NamedTuple):
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
        correct = (ranks == 0).double()
        # The prediction is the first largest logit: softmax may round two logits to one probability.
        confidences = probs.gather(1, logits.argmax(dim=1, keepdim=True)).squeeze(1)
        gaps = (correct - confidences)[:, None]
        in_bin = F.one_hot(equal_width_bins(confidences, bins), bins).double()
        losses = F.cross_entropy(logits, labels, reduction="none")
        scores = torch.stack([correct, (ranks < 5).double(), losses, squared_distances(probs, labels)], dim=1)
        by_class = class_gaps(probs, labels)
        dense = [scores, gaps * in_bin, in_bin, gaps * equal_mass_membership(confidences, bins), by_class]

        index = equal_width_bins(probs, bins)
        sample, column = torch.nonzero(index, as_tuple=True)
        positions = torch.stack([column * (bins - 1) + index[sample, column] - 1, sample])
        shape = (probs.shape[1] * (bins - 1), len(probs))
        # The positions are right by construction; saying so explicitly keeps torch from warning that it does not look.
        upper = torch.sparse_coo_tensor(positions, by_class[sample, column], shape, check_invariants=False)
        return cls(torch.cat(dense, 1), upper.coalesce(), bins)

    def metrics(self, weights: Tensor) -> dict[str, Tensor]:
        """Every metric, shape (resamples,), for weights (resamples, n): how often each sample is drawn."""
        samples = weights.shape[1]
        classes = self.dense.shape[1] - len(SCORES) - 3 * self.bins
        sums = weights @ self.dense
        scores, gaps, counts, equal_mass, totals = sums.split([len(SCORES), *[self.bins] * 3, classes], dim=1)
        upper = torch.sparse.mm(self.upper, weights.t().contiguous()).t().unflatten(1, (classes, self.bins - 1))
        first = totals - upper.sum(dim=2)
        classwise = upper.abs().sum(dim=(1, 2)) + first.abs().sum(dim=1)
        return {
            **dict(zip(SCORES, (scores / samples).unbind(dim=1), strict=True)),
            "expected_calibration_error": gaps.abs().sum(dim=1) / samples,
            "maximum_calibration_error": (gaps.abs() / counts.clamp(min=1)).amax(dim=1),
            "adaptive_calibration_error": equal_mass.abs().sum(dim=1) / samples,
            "classwise_calibration_error": classwise / (samples * classes),
        }

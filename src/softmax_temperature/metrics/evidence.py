"""What the metrics of one set of predictions are sums of, so that a resample is a matrix product."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.metrics.binning import Ranking, equal_mass_edges, equal_mass_membership, equal_width_bins
from softmax_temperature.metrics.calibration import class_gaps
from softmax_temperature.metrics.scores import label_ranks, squared_distances

SCORES = ("accuracy", "top5_accuracy", "negative_log_likelihood", "brier_score")
TOP = 5


@dataclass(frozen=True)
class Evidence:
    """Contributions of each sample; weighted sums of them give every metric of the report."""

    # Shape (n, columns): the SCORES; gaps and counts of the equal-width bins; gaps of the equal-mass bins; gaps of each
    # class over all bins.
    dense: Tensor
    # The gaps of each class in each bin but the first, sparse, shape (classes * (bins - 1), n): at most `bins` classes
    # of a sample can be above the first bin. The gap of the first is what is missing from the total.
    upper: Tensor
    gaps: Tensor  # Right (1) or wrong (0) minus confidence, shape (n,).
    ranking: Ranking  # Of the confidences.
    bins: int

    @classmethod
    def of(cls, logits: Tensor, labels: Tensor, bins: int) -> Evidence:
        """The evidence in checked logits of shape (n, classes), float64, and labels of shape (n,), int64."""
        probs = torch.softmax(logits, dim=1)
        ranks = label_ranks(logits, labels)
        # The prediction is the first largest logit: softmax may round two logits to one probability.
        confidences = probs.gather(1, logits.argmax(dim=1, keepdim=True)).squeeze(1)
        gaps, ranking = (ranks == 0).double() - confidences, Ranking.of(confidences)
        in_bin = F.one_hot(equal_width_bins(confidences, bins), bins).double()
        in_equal_mass = equal_mass_membership(ranking, bins)
        scores = _scores(logits, probs, labels, ranks)
        by_class = class_gaps(probs, labels)
        weighted = [gaps[:, None] * in_bin, in_bin, gaps[:, None] * in_equal_mass]
        return cls(torch.cat([scores, *weighted, by_class], dim=1), _upper(probs, by_class, bins), gaps, ranking, bins)

    def metrics(self, weights: Tensor, *, rebin: bool = False) -> dict[str, Tensor]:
        """Every metric, shape (resamples,), for weights (resamples, n): how often each sample is drawn.

        `rebin` draws the bins of equal mass anew in each resample.
        """
        samples = weights.shape[1]
        classes = self.dense.shape[1] - len(SCORES) - 3 * self.bins
        sums = weights @ self.dense
        scores, gaps, counts, equal_mass, totals = sums.split([len(SCORES), *[self.bins] * 3, classes], dim=1)
        if rebin:
            equal_mass = self._rebinned(weights)
        upper = torch.sparse.mm(self.upper, weights.t().contiguous()).t().unflatten(1, (classes, self.bins - 1))
        first = totals - upper.sum(dim=2)
        values = dict(zip(SCORES, (scores / samples).unbind(dim=1), strict=True))
        values["expected_calibration_error"] = gaps.abs().sum(dim=1) / samples
        values["maximum_calibration_error"] = (gaps.abs() / counts.clamp(min=1)).amax(dim=1)
        values["adaptive_calibration_error"] = equal_mass.abs().sum(dim=1) / samples
        values["classwise_calibration_error"] = (upper.abs().sum(dim=(1, 2)) + first.abs().sum(dim=1)) / (
            samples * classes
        )
        return values

    def _rebinned(self, weights: Tensor) -> Tensor:
        """Gaps of the equal-mass bins of each resample, shape (resamples, bins).

        Over the ranks of a resample the sum of gaps rises linearly within each distinct confidence, so its value at the
        edges is an interpolation, and a confidence that straddles an edge is split in proportion.
        """
        order = self.ranking.group.argsort()
        sorted_weights = weights[:, order]
        last = self.ranking.ends - 1
        ranks = sorted_weights.cumsum(dim=1)[:, last].contiguous()
        totals = (sorted_weights * self.gaps[order]).cumsum(dim=1)[:, last]
        edges = equal_mass_edges(weights.shape[1], self.bins)[1:]
        at_edges = _interpolate(ranks, totals, ranks.new_tensor(edges).expand(len(ranks), -1).contiguous())
        return torch.diff(at_edges, dim=1, prepend=at_edges.new_zeros(len(ranks), 1))


def _scores(logits: Tensor, probs: Tensor, labels: Tensor, ranks: Tensor) -> Tensor:
    losses = F.cross_entropy(logits, labels, reduction="none")
    return torch.stack([(ranks == 0).double(), (ranks < TOP).double(), losses, squared_distances(probs, labels)], dim=1)


def _upper(probs: Tensor, by_class: Tensor, bins: int) -> Tensor:
    index = equal_width_bins(probs, bins)
    sample, column = torch.nonzero(index, as_tuple=True)
    row = column * (bins - 1) + index[sample, column] - 1
    shape = (probs.shape[1] * (bins - 1), len(probs))
    positions = torch.stack([row, sample])
    # The positions are right by construction; saying so explicitly keeps torch from warning that it does not look.
    sparse = torch.sparse_coo_tensor(positions, by_class[sample, column], shape, check_invariants=False)
    return sparse.coalesce()


def _interpolate(ranks: Tensor, totals: Tensor, edges: Tensor) -> Tensor:
    """Totals at the edges, row by row, between (0, 0) and the points (ranks, totals); edges are above 0."""
    after = torch.searchsorted(ranks, edges)
    ranks, totals = (torch.cat([points.new_zeros(len(points), 1), points], dim=1) for points in (ranks, totals))
    low, high = ranks.gather(1, after), ranks.gather(1, after + 1)
    share = (edges - low) / (high - low)
    return torch.lerp(totals.gather(1, after), totals.gather(1, after + 1), share)

"""All metrics of an arm, or the difference of two, with bootstrap intervals (focal
paper, section 5, appendix G).

Every metric is made of sums over samples, so that a bootstrap resample is a matrix
product.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.metrics.calibration import (
    CHUNK,
    class_gaps,
    debiased_calibration_error,
    equal_mass_membership,
    equal_width_bins,
    noise_floor,
)
from softmax_temperature.metrics.checks import (
    ArgumentError,
    check_count,
    check_labels,
    check_logits,
)
from softmax_temperature.metrics.scores import label_ranks, squared_distances

SCORES = ("accuracy", "top5_accuracy", "negative_log_likelihood", "brier_score")
INTERVAL = (0.05, 0.95)  # 90 %, focal paper, section 5.


class Difference(NamedTuple):
    """A metric of arm a minus that of arm b, and its 90 % interval over resamples that
    both arms share.
    """

    value: float
    low: float
    high: float


def calibration_report(
    logits: Tensor, labels: Tensor, *, bins: int = 15, bootstrap: int = 0, seed: int = 0
) -> dict[str, Any]:
    """Accuracy, proper scores and calibration errors of a classifier, with what is
    needed to judge them.

    Logits (n, classes) of any float dtype are cast to float64, `labels` (n,) are
    integers; `bootstrap` is the number of resamples for the intervals, 1000 in the
    paper, 0 for none, and `seed` theirs and the noise floor's. Returns plain numbers:
    `samples`, `classes`, `bins`, `bootstrap`; the metrics of this package by their
    names and `top5_accuracy`; and `intervals`, name to (low, high): the 5th and 95th
    percentile over the resamples. A calibration error is biased upwards, that of a
    resample twice as much, so its interval is reflected at the value (the basic
    bootstrap), and extended to hold it. Raises ValueError if a shape, value or number
    is wrong.
    """
    # Deviation: the released error bars are reflected for every metric, (2 value -
    # high, 2 value - low). Here those of calibration errors are, which are biased; they
    # hold the value and stay above 0. The others are plain percentiles.
    _check(logits, labels, bins, bootstrap, seed)
    bins = int(bins)  # A numpy integer is no JSON.
    bootstrap = int(bootstrap)
    exact = logits.detach().double()
    probs = torch.softmax(exact, dim=1)
    estimates, resampled = _evaluated(exact, labels, bins, bootstrap, seed)
    return {
        "samples": len(exact),
        "classes": exact.shape[1],
        "bins": bins,
        "bootstrap": bootstrap,
        **estimates,
        "debiased_calibration_error": debiased_calibration_error(
            probs, labels, bins=bins
        ).item(),
        "noise_floor": noise_floor(probs, bins=bins, seed=seed).item(),
        "intervals": _intervals(resampled, estimates, least=0.0),
    }


def paired_difference(
    logits_a: Tensor,
    logits_b: Tensor,
    labels: Tensor,
    *,
    bins: int = 15,
    bootstrap: int = 1000,
    seed: int = 0,
) -> dict[str, Difference]:
    """How every metric that has an interval differs between two arms on the same
    samples (source: ours).

    Both arms see the same resamples, so what they share cancels. Logits (n, classes) of
    both arms, in the same order; the other arguments and errors are those of
    `calibration_report`.
    """
    if logits_a.shape != logits_b.shape:
        raise ValueError(
            f"logits_b must have shape {tuple(logits_a.shape)} like logits_a, got {tuple(logits_b.shape)}"
        )
    for name, logits in (("logits_a", logits_a), ("logits_b", logits_b)):
        _check(logits, labels, bins, bootstrap, seed, name=name)
    (a, resampled_a), (b, resampled_b) = (
        _evaluated(logits.detach().double(), labels, bins, bootstrap, seed)
        for logits in (logits_a, logits_b)
    )
    differences = {name: value - b[name] for name, value in a.items()}
    bounds = _intervals(
        {name: each - resampled_b[name] for name, each in resampled_a.items()},
        differences,
        least=-1.0,
    )
    return {name: Difference(differences[name], *bounds[name]) for name in bounds}


def confident_report(
    logits: Tensor,
    labels: Tensor,
    *,
    threshold: float = 0.99,
    bootstrap: int = 0,
    seed: int = 0,
) -> dict[str, Any]:
    """The predictions of at least a confidence: `confident_share`, `confident_accuracy`
    (focal paper, Table H.1).

    `intervals` as in `calibration_report`; that of the accuracy is over resamples that
    draw a confident prediction.
    """
    _check(logits, labels, 1, bootstrap, seed)
    if not 0 <= threshold <= 1:
        raise ArgumentError(
            f"threshold must be in [0, 1], got {threshold}", "Give a probability."
        )
    confidences, predicted = torch.softmax(logits.detach().double(), dim=1).max(1)
    confident = confidences >= threshold
    kinds = (
        torch.stack((confident, confident & (predicted == labels)), dim=1)
        .double()
        .cpu()
    )
    count, right = kinds.sum(0).tolist()
    resampled: dict[str, Tensor] = {}
    if bootstrap:
        counts = torch.cat(
            [
                weights @ kinds
                for weights in resample_weights(len(kinds), bootstrap, seed)
            ]
        )
        resampled["confident_share"] = counts[:, 0] / len(kinds)
        if count:
            some = counts[counts[:, 0] > 0]
            resampled["confident_accuracy"] = some[:, 1] / some[:, 0]
    return {
        "confident_share": count / len(kinds),
        "confident_accuracy": right / count if count else None,
        "intervals": _intervals(resampled, {}),
    }


def _check(
    logits: Tensor,
    labels: Tensor,
    bins: int,
    bootstrap: int,
    seed: int,
    *,
    name: str = "logits",
) -> None:
    check_logits(logits, name=name)
    check_labels(labels, logits)
    check_count(bins, "bins", least=1)
    check_count(bootstrap, "bootstrap", least=0)
    check_count(seed, "seed", least=0)


def _evaluated(
    logits: Tensor, labels: Tensor, bins: int, bootstrap: int, seed: int
) -> tuple[dict[str, float], dict[str, Tensor]]:
    """Every metric, and its values on the resamples, shape (bootstrap,)."""
    arm = Evidence.of(logits, labels.long(), bins)
    estimates = {
        name: value.item()
        for name, value in arm.metrics(logits.new_ones(1, len(logits))).items()
    }
    weights = resample_weights(len(logits), bootstrap, seed)
    pieces = [arm.metrics(some.to(logits.device)) for some in weights]
    return estimates, {
        name: torch.cat([piece[name] for piece in pieces])
        for name in estimates
        if pieces
    }


def _intervals(
    resampled: dict[str, Tensor], estimates: dict[str, float], *, least: float = 0.0
) -> dict[str, tuple[float, float]]:
    """Percentiles; those of calibration errors are reflected at the estimates, which
    corrects their bias once.
    """
    intervals = {}
    for name, values in resampled.items():
        low, high = torch.quantile(values, values.new_tensor(INTERVAL)).tolist()
        if name.endswith("calibration_error"):
            value = estimates[name]
            # An error of few samples may be all bias, and the reflected interval lie
            # below it.
            low, high = (
                max(least, min(2 * value - high, value)),
                max(2 * value - low, value),
            )
        intervals[name] = low, high
    return intervals


def resample_weights(
    samples: int, resamples: int, seed: int, *, rows: int | None = None
) -> Iterator[Tensor]:
    """How often each sample is drawn: float64 tensors of shape (rows, samples) on the
    CPU, `resamples` rows together.

    Depends on nothing but the first three arguments, so that every arm and every device
    sees the same resamples.
    """
    # A stream of its own: the noise floor draws from the same seed.
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
    most = rows or max(1, CHUNK // samples)
    for start in range(0, resamples, most):
        count = min(most, resamples - start)
        drawn = (
            generator.integers(0, samples, size=(count, samples))
            + samples * np.arange(count)[:, None]
        )
        counts = np.bincount(drawn.ravel(), minlength=count * samples)
        yield torch.from_numpy(counts.reshape(count, samples).astype(np.float64))


class Evidence(NamedTuple):
    """Contributions of each sample; weighted sums of them give every metric of the
    report.
    """

    # (n, columns): SCORES; gaps and counts of equal-width bins; gaps of equal-mass
    # bins; gaps of each class, all bins.
    dense: Tensor
    # Sparse (classes * (bins - 1), n): the gaps of each class in each bin but the
    # first, which few classes leave.
    upper: Tensor
    bins: int

    @classmethod
    def of(cls, logits: Tensor, labels: Tensor, bins: int) -> Evidence:
        """The evidence in checked logits (n, classes), float64, and labels (n,), int64."""
        probs = torch.softmax(logits, dim=1)
        ranks = label_ranks(logits, labels)
        correct = (ranks == 0).double()
        # The prediction is the first largest logit: softmax may round two logits to one
        # probability.
        confidences = probs.gather(1, logits.argmax(dim=1, keepdim=True)).squeeze(1)
        gaps = (correct - confidences)[:, None]
        in_bin = F.one_hot(equal_width_bins(confidences, bins), bins).double()
        losses = F.cross_entropy(logits, labels, reduction="none")
        scores = torch.stack(
            [correct, (ranks < 5).double(), losses, squared_distances(probs, labels)],
            dim=1,
        )
        by_class = class_gaps(probs, labels)
        dense = [
            scores,
            gaps * in_bin,
            in_bin,
            gaps * equal_mass_membership(confidences, bins),
            by_class,
        ]

        index = equal_width_bins(probs, bins)
        sample, column = torch.nonzero(index, as_tuple=True)
        positions = torch.stack(
            [column * (bins - 1) + index[sample, column] - 1, sample]
        )
        shape = (probs.shape[1] * (bins - 1), len(probs))
        # The positions are right by construction; saying so explicitly keeps torch from
        # warning that it does not look.
        upper = torch.sparse_coo_tensor(
            positions, by_class[sample, column], shape, check_invariants=False
        )
        return cls(torch.cat(dense, 1), upper.coalesce(), bins)

    def metrics(self, weights: Tensor) -> dict[str, Tensor]:
        """Every metric, shape (resamples,), for weights (resamples, n): how often each
        sample is drawn.
        """
        samples = weights.shape[1]
        classes = self.dense.shape[1] - len(SCORES) - 3 * self.bins
        sums = weights @ self.dense
        scores, gaps, counts, equal_mass, totals = sums.split(
            [len(SCORES), *[self.bins] * 3, classes], dim=1
        )
        upper = (
            torch.sparse.mm(self.upper, weights.t().contiguous())
            .t()
            .unflatten(1, (classes, self.bins - 1))
        )
        first = totals - upper.sum(dim=2)
        classwise = upper.abs().sum(dim=(1, 2)) + first.abs().sum(dim=1)
        return {
            **dict(zip(SCORES, (scores / samples).unbind(dim=1), strict=True)),
            "expected_calibration_error": gaps.abs().sum(dim=1) / samples,
            "maximum_calibration_error": (gaps.abs() / counts.clamp(min=1)).amax(dim=1),
            "adaptive_calibration_error": equal_mass.abs().sum(dim=1) / samples,
            "classwise_calibration_error": classwise / (samples * classes),
        }

"""All metrics of an arm, or the difference of two, with 90 % intervals (focal paper,
section 5, appendix G).

Scores are means over samples, and their intervals are percentiles over bootstrap
resamples, each a matrix product. Calibration errors have intervals of their own: see
`metrics.intervals`. The logits are read in pieces, and no temporary is of their size.
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
    ReliabilityBins,
    bins_of_predictions,
    debiased_error,
    equal_mass_membership,
    equal_width_bins,
    floor_of_confidences,
    row_pieces,
)
from softmax_temperature.metrics.checks import (
    ArgumentError,
    check_count,
    check_labels,
    check_logits,
)
from softmax_temperature.metrics.intervals import (
    BinnedError,
    ClassCells,
    change_interval,
    classwise_error,
    top_label_error,
)
from softmax_temperature.metrics.scores import label_ranks, squared_distances

SCORES = ("accuracy", "top5_accuracy", "negative_log_likelihood", "brier_score")
INTERVAL = (0.05, 0.95)  # 90 %, focal paper, section 5.


class Difference(NamedTuple):
    """A metric of arm a minus that of arm b, and its 90 % interval, which knows that
    both arms have the same samples.
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
    paper, 0 for no intervals at all, and `seed` theirs and the noise floor's. Returns
    plain numbers: `samples`, `classes`, `bins`, `bootstrap`; the metrics of this
    package by their names and `top5_accuracy`; and `intervals`, name to (low, high).

    The interval of a score is from the 5th to the 95th percentile over the resamples.
    A calibration error is the plain one of these samples, which noise enlarges; its
    interval is that of the true error of the same bins on endless samples, and holds
    the plain one (`metrics.intervals`). The maximum calibration error has none: no
    interval of it covers. Raises ValueError if a shape, value or number is wrong.
    """
    # Deviation: the released error bars are percentiles over resamples, reflected for
    # every metric, (2 value - high, 2 value - low). Of calibration errors after scaling
    # they cover the true value half of the time.
    _check(logits, labels, bins, bootstrap, seed)
    bins = int(bins)  # A numpy integer is no JSON.
    bootstrap = int(bootstrap)
    targets = labels.long()
    evidence = Evidence.of(logits, targets, bins)
    intervals: dict[str, tuple[float, float]] = {}
    if bootstrap:
        resampled = _resampled_means(evidence.scores, bootstrap, seed)
        intervals |= _percentiles(dict(zip(SCORES, resampled.unbind(1), strict=True)))
        errors = evidence.errors(logits, targets, bins)
        intervals |= {name: error.interval for name, error in errors.items()}
    floor = floor_of_confidences(evidence.confidences, bins, seed)
    return {
        "samples": logits.shape[0],
        "classes": logits.shape[1],
        "bins": bins,
        "bootstrap": bootstrap,
        **evidence.estimates,
        "debiased_calibration_error": debiased_error(evidence.table).item(),
        "noise_floor": floor.item(),
        "intervals": intervals,
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
    `calibration_report`. Nothing without resamples.
    """
    _check_pair(logits_a, logits_b, labels, bins, bootstrap, seed)
    if not bootstrap:
        return {}
    targets = labels.long()
    a = Evidence.of(logits_a, targets, bins)
    b = Evidence.of(logits_b, targets, bins)
    resampled = _resampled_means(a.scores - b.scores, bootstrap, seed)
    bounds = _percentiles(dict(zip(SCORES, resampled.unbind(1), strict=True)))
    errors_a = a.errors(logits_a, targets, bins)
    errors_b = b.errors(logits_b, targets, bins)
    for name, error in errors_a.items():
        bounds[name] = change_interval(error, errors_b[name])
    estimates_a = a.estimates
    estimates_b = b.estimates
    return {
        name: Difference(estimates_a[name] - estimates_b[name], low, high)
        for name, (low, high) in bounds.items()
    }


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
        torch.stack((confident, confident & (predicted == labels.long())), dim=1)
        .double()
        .cpu()
    )
    count, right = kinds.sum(0).tolist()
    resampled: dict[str, Tensor] = {}
    if bootstrap:
        shares = _resampled_means(kinds, bootstrap, seed)
        resampled["confident_share"] = shares[:, 0]
        if count:
            drawn = shares[shares[:, 0] > 0]
            resampled["confident_accuracy"] = drawn[:, 1] / drawn[:, 0]
    return {
        "confident_share": count / len(kinds),
        "confident_accuracy": right / count if count else None,
        "intervals": _percentiles(resampled),
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
    check_logits(logits, name=name, masked=True)
    check_labels(labels, logits, masked=True)
    check_count(bins, "bins", least=1)
    check_count(bootstrap, "bootstrap", least=0)
    check_count(seed, "seed", least=0)


def _check_pair(
    logits_a: Tensor,
    logits_b: Tensor,
    labels: Tensor,
    bins: int,
    bootstrap: int,
    seed: int,
) -> None:
    if logits_a.shape != logits_b.shape:
        raise ValueError(
            f"logits_b must have shape {tuple(logits_a.shape)} like logits_a, got "
            f"{tuple(logits_b.shape)}"
        )
    _check(logits_a, labels, bins, bootstrap, seed, name="logits_a")
    _check(logits_b, labels, bins, bootstrap, seed, name="logits_b")


def _resampled_means(values: Tensor, resamples: int, seed: int) -> Tensor:
    """Means of the columns of values (n, columns) on each resample."""
    samples = len(values)
    sums = [
        weights.to(values.device) @ values
        for weights in resample_weights(samples, resamples, seed)
    ]
    return torch.cat(sums) / samples


def _percentiles(resampled: dict[str, Tensor]) -> dict[str, tuple[float, float]]:
    """The ends of the interval of each metric from its values on the resamples."""
    intervals = {}
    for name, values in resampled.items():
        low, high = torch.quantile(values, values.new_tensor(INTERVAL)).tolist()
        intervals[name] = (low, high)
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


def expected_calibration_error_change(
    logits_a: Tensor, logits_b: Tensor, labels: Tensor, *, bins: int = 15
) -> Difference:
    """The ECE of arm a minus that of arm b, as `paired_difference` has it, without
    resamples; the same arguments and errors.
    """
    _check_pair(logits_a, logits_b, labels, bins, bootstrap=0, seed=0)
    a, b = (
        _expected_error(logits, labels.long(), bins) for logits in (logits_a, logits_b)
    )
    return Difference(a.value - b.value, *change_interval(a, b))


class Evidence(NamedTuple):
    """All that the report needs of an arm on a sample, but the logits."""

    scores: Tensor  # What each sample adds to the means of SCORES, shape (n, 4).
    table: ReliabilityBins
    expected: BinnedError
    adaptive: BinnedError
    confidences: Tensor  # Of the predictions, shape (n,).
    cells: ClassCells

    @classmethod
    def of(cls, logits: Tensor, labels: Tensor, bins: int) -> Evidence:
        """The evidence in checked logits (n, classes) and labels (n,), int64."""
        scores, confidences = _scores_and_confidences(logits, labels)
        correct = scores[:, SCORES.index("accuracy")]
        equal_mass = equal_mass_membership(confidences, bins)
        return cls(
            scores=scores,
            table=bins_of_predictions(confidences, correct, bins),
            expected=_equal_width_error(confidences, correct, bins),
            adaptive=top_label_error(confidences, correct, equal_mass),
            confidences=confidences,
            cells=ClassCells.of(logits, labels, bins),
        )

    @property
    def estimates(self) -> dict[str, float]:
        """Every metric that two arms can be compared on."""
        means = self.scores.mean(dim=0).tolist()
        classes = len(self.cells.means) // len(self.table.counts)
        return {
            **dict(zip(SCORES, means, strict=True)),
            "expected_calibration_error": self.expected.value,
            "maximum_calibration_error": self.table.gaps.abs().max().item(),
            "adaptive_calibration_error": self.adaptive.value,
            "classwise_calibration_error": self.cells.means.abs().sum().item()
            / classes,
        }

    def errors(
        self, logits: Tensor, labels: Tensor, bins: int
    ) -> dict[str, BinnedError]:
        """The calibration errors that have an interval, by name; all but the maximum:
        no interval of a largest gap covered (docs/calibration_intervals.md).
        """
        return {
            "expected_calibration_error": self.expected,
            "adaptive_calibration_error": self.adaptive,
            "classwise_calibration_error": classwise_error(
                logits, labels, bins, self.cells
            ),
        }


def _expected_error(logits: Tensor, labels: Tensor, bins: int) -> BinnedError:
    """The ECE of logits (n, classes) and labels (n,)."""
    scores, confidences = _scores_and_confidences(logits, labels)
    return _equal_width_error(confidences, scores[:, SCORES.index("accuracy")], bins)


def _equal_width_error(confidences: Tensor, correct: Tensor, bins: int) -> BinnedError:
    membership = F.one_hot(equal_width_bins(confidences, bins), bins).double()
    return top_label_error(confidences, correct, membership)


def _scores_and_confidences(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The scores (n, 4) and confidences (n,) of logits (n, classes), in pieces."""
    pieces = [
        _scores(piece, piece_labels)
        for piece, piece_labels in row_pieces(logits, labels)
    ]
    scores = torch.cat([piece_scores for piece_scores, _ in pieces])
    return scores, torch.cat([confidences for _, confidences in pieces])


def _scores(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The scores (n, 4) and confidences (n,) of logits (n, classes), float64."""
    probs = torch.softmax(logits, dim=1)
    ranks = label_ranks(logits, labels)
    losses = F.cross_entropy(logits, labels, reduction="none")
    columns = [
        (ranks == 0).double(),
        (ranks < 5).double(),
        losses,
        squared_distances(probs, labels),
    ]
    # The prediction is the first largest logit: softmax may round two logits to one
    # probability.
    predicted = logits.argmax(dim=1, keepdim=True)
    return torch.stack(columns, dim=1), probs.gather(1, predicted).squeeze(1)

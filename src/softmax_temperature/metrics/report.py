"""All metrics of an arm, or the differences between two arms, with 90 % intervals.

Focal paper, section 5 and appendix G. Scores are means over samples, and their
intervals are percentiles over bootstrap resamples. `metrics.intervals` computes the
intervals of calibration errors. `ArmStatistics` reads logits in pieces, so that it
needs no temporary tensor of their size.
"""

from __future__ import annotations

import warnings
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
    check_argument_order,
    check_bootstrap,
    check_count,
    check_labels,
    check_logits,
    check_tensor,
)
from softmax_temperature.metrics.class_order import (
    check_class_order,
    rows_in_another_order,
)
from softmax_temperature.metrics.intervals import (
    BinnedError,
    ClassCells,
    change_interval,
    classwise_error,
    top_label_error,
)
from softmax_temperature.metrics.probability_check import check_not_probs
from softmax_temperature.metrics.scores import label_ranks, squared_distances

SCORES = ("accuracy", "top5_accuracy", "negative_log_likelihood", "brier_score")
EXPECTED = "expected_calibration_error"
ADAPTIVE = "adaptive_calibration_error"
CLASSWISE = "classwise_calibration_error"
# Ends of a 90 % interval (focal paper, section 5).
INTERVAL = (0.05, 0.95)


class Difference(NamedTuple):
    """The difference in a metric, arm a minus arm b, with its paired 90 % interval."""

    value: float
    low: float
    high: float


def calibration_report(
    logits: Tensor, labels: Tensor, *, bins: int = 15, bootstrap: int = 0, seed: int = 0
) -> dict[str, Any]:
    """Accuracy, proper scores and calibration errors, with intervals on request.

    The interval of a score goes from the 5th to the 95th percentile over resamples. A
    calibration error is the plain error of the given samples, which is biased upwards.
    The interval of a calibration error is a confidence interval for the true error,
    which is the error in the same bins on infinitely many samples. It always contains
    the plain error (`metrics.intervals`). The maximum calibration error has no
    interval, because no interval that we tried has the right coverage.

    Args:
        logits: Logits (n, classes) of any float dtype; they are cast to float64.
        labels: Integer true classes of shape (n,).
        bins: Number of bins of every binned metric.
        bootstrap: Number of resamples, at least 19 (1000 in the paper); 0 computes no
            intervals.
        seed: Seed of the resamples and of the noise floor.

    Returns:
        A dictionary with the numbers `samples`, `classes`, `bins` and `bootstrap`; the
        accuracies, proper scores, calibration errors and noise floor, keyed by metric
        name; and `intervals`, which maps metric names to (low, high).

    Raises:
        ValueError: If a shape, value or number is wrong.
    """
    # Deviation: our intervals are percentiles over resamples for scores, and those of
    # `metrics.intervals` for calibration errors. For every metric, the released error
    # bars are the percentiles over resamples, mirrored about the value: (2 value -
    # high, 2 value - low). After temperature scaling, the released error bars cover the
    # true calibration error only half of the time.
    _check(logits, labels, bins, bootstrap, seed)
    arm = ArmStatistics.of(logits, labels.long(), int(bins), intervals=bootstrap > 0)
    return arm.report(bootstrap, seed)


def paired_difference(
    logits_a: Tensor,
    logits_b: Tensor,
    labels: Tensor,
    *,
    bins: int = 15,
    bootstrap: int = 1000,
    seed: int = 0,
) -> dict[str, Difference]:
    """Differences between two arms in every metric that has an interval (source: ours).

    Both arms are evaluated on the same resamples, so that the variation they share
    cancels.

    Args:
        logits_a: Logits of arm a, shape (n, classes).
        logits_b: Logits of arm b on the same samples, in the same order.
        labels: Integer true classes of shape (n,).
        bins: Number of bins of every binned metric.
        bootstrap: Number of resamples, at least 19; or 0.
        seed: Seed of the resamples.

    Returns:
        The difference in each metric, arm a minus arm b, keyed by metric name. The
        dictionary is empty if `bootstrap` is 0.

    Raises:
        ValueError: If a shape, value or number is wrong.
    """
    _check_pair(logits_a, logits_b, labels, bins, bootstrap, seed)
    if not bootstrap:
        return {}
    targets = labels.long()
    a = ArmStatistics.of(logits_a, targets, int(bins), intervals=True)
    b = ArmStatistics.of(logits_b, targets, int(bins), intervals=True)
    return a.differences_from(b, bootstrap, seed)


def confident_report(
    logits: Tensor,
    labels: Tensor,
    *,
    threshold: float = 0.99,
    bootstrap: int = 0,
    seed: int = 0,
) -> dict[str, Any]:
    """Share and accuracy of confident predictions (focal paper, Table H.1).

    Args:
        logits: Logits (n, classes) of any float dtype; they are cast to float64.
        labels: Integer true classes of shape (n,).
        threshold: Lowest confidence of a confident prediction, in [0, 1].
        bootstrap: Number of resamples, at least 19; 0 for no intervals.
        seed: Seed of the resamples.

    Returns:
        `confident_share`; `confident_accuracy`, which is None if no prediction is
        confident; and `intervals` as in `calibration_report`. The interval of the
        accuracy uses only resamples with at least one confident prediction.

    Raises:
        ValueError: If a shape, value or number is wrong.
    """
    _check(logits, labels, 1, bootstrap, seed)
    if not 0 <= threshold <= 1:
        raise ArgumentError(
            f"threshold must be in [0, 1], got {threshold}", "Give a probability."
        )
    confidences, predicted = torch.softmax(logits.detach().double(), dim=1).max(1)
    confident = confidences >= threshold
    confident_and_correct = confident & (predicted == labels.long())
    indicators = torch.stack((confident, confident_and_correct), dim=1).double().cpu()
    count, correct = indicators.sum(0).tolist()
    resampled: dict[str, Tensor] = {}
    if bootstrap:
        shares = _resampled_means(indicators, bootstrap, seed)
        resampled["confident_share"] = shares[:, 0]
        if count:
            drawn = shares[shares[:, 0] > 0]
            resampled["confident_accuracy"] = drawn[:, 1] / drawn[:, 0]
    return {
        "confident_share": count / len(indicators),
        "confident_accuracy": correct / count if count else None,
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
    check_argument_order(logits, labels, name=name)
    check_logits(logits, name=name, masked=True)
    check_labels(labels, logits, masked=True)
    check_class_order(labels, logits)
    check_not_probs(logits, name=name)
    check_count(bins, "bins", least=1)
    check_bootstrap(bootstrap)
    check_count(seed, "seed", least=0)


def _check_pair(
    logits_a: Tensor,
    logits_b: Tensor,
    labels: Tensor,
    bins: int,
    bootstrap: int,
    seed: int,
) -> None:
    check_tensor(logits_a, "logits_a")
    check_tensor(logits_b, "logits_b")
    if logits_a.shape != logits_b.shape:
        raise ArgumentError(
            f"logits_b must have shape {tuple(logits_a.shape)} like logits_a, got "
            f"{tuple(logits_b.shape)}",
            "Give the logits of both arms for the same samples.",
        )
    _check(logits_a, labels, bins, bootstrap, seed, name="logits_a")
    _check(logits_b, labels, bins, bootstrap, seed, name="logits_b")
    if hint := rows_in_another_order(labels, logits_a, logits_b):
        warnings.warn(hint, UserWarning, stacklevel=3)


def _resampled_means(values: Tensor, resamples: int, seed: int) -> Tensor:
    """Average each column of `values` on each resample, shape (resamples, columns)."""
    samples = len(values)
    sums = [
        weights.to(values.device) @ values
        for weights in resample_weights(samples, resamples, seed)
    ]
    return torch.cat(sums) / samples


def _percentiles(resampled: dict[str, Tensor]) -> dict[str, tuple[float, float]]:
    """Compute the ends of each metric's interval from its values on the resamples."""
    intervals = {}
    for name, values in resampled.items():
        low, high = torch.quantile(values, values.new_tensor(INTERVAL)).tolist()
        intervals[name] = (low, high)
    return intervals


def resample_weights(
    samples: int, resamples: int, seed: int, *, rows: int | None = None
) -> Iterator[Tensor]:
    """Yield how often each resample draws each sample, as float64 tensors on the CPU.

    Each tensor has one row per resample and at most `rows` rows, shape (rows, samples).
    The counts depend on the first three arguments only, so that all arms and devices
    use the same resamples.
    """
    # The noise floor is drawn with the same seed. The resamples have a random stream of
    # their own, so that the two are independent.
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
    most_rows = rows or max(1, CHUNK // samples)
    for start in range(0, resamples, most_rows):
        count = min(most_rows, resamples - start)
        drawn = generator.integers(0, samples, size=(count, samples))
        # Offset the indices of each row, so that one bincount counts all rows.
        drawn += samples * np.arange(count)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=count * samples)
        yield torch.from_numpy(counts.reshape(count, samples).astype(np.float64))


def expected_calibration_error_change(
    logits_a: Tensor, logits_b: Tensor, labels: Tensor, *, bins: int = 15
) -> Difference:
    """ECE of arm a minus ECE of arm b, as in `paired_difference` but faster.

    Arguments and errors are those of `paired_difference`, except that there are no
    resamples and no seed.
    """
    _check_pair(logits_a, logits_b, labels, bins, bootstrap=0, seed=0)
    a = _expected_error(logits_a, labels.long(), bins)
    b = _expected_error(logits_b, labels.long(), bins)
    return _change(a, b)


class ArmStatistics(NamedTuple):
    """Statistics of an arm's logits for the report.

    Attributes:
        classes: Number of classes.
        scores: Each of `SCORES` for each sample, shape (n, 4).
        table: Equal-width bins of the predictions.
        confidences: Confidences of the predictions, shape (n,).
        classwise: The Classwise-ECE.
        errors: Calibration errors that have an interval, keyed by metric name. The
            Classwise-ECE is absent if no intervals are wanted. The maximum calibration
            error is absent, because none of our intervals for a largest gap had the
            right coverage (docs/calibration_intervals.md).
    """

    classes: int
    scores: Tensor
    table: ReliabilityBins
    confidences: Tensor
    classwise: float
    errors: dict[str, BinnedError]

    @classmethod
    def of(
        cls,
        logits: Tensor,
        labels: Tensor,
        bins: int,
        *,
        intervals: bool,
        temperature: float = 1.0,
    ) -> ArmStatistics:
        """Compute the statistics of logits and labels that have been checked.

        The logits have shape (n, classes); the labels are an int64 tensor of shape
        (n,). The logits are divided by the temperature in pieces, because a language
        model's logits are too large to copy.
        """
        scores, confidences = _scores_and_confidences(logits, labels, temperature)
        correct = scores[:, SCORES.index("accuracy")]
        equal_mass = equal_mass_membership(confidences, bins)
        cells = ClassCells.of(logits, labels, bins, temperature=temperature)
        classes = logits.shape[1]
        errors = {
            EXPECTED: _equal_width_error(confidences, correct, bins),
            ADAPTIVE: top_label_error(confidences, correct, equal_mass),
        }
        if intervals:
            errors[CLASSWISE] = classwise_error(
                logits, labels, bins, cells, temperature=temperature
            )
        return cls(
            classes=classes,
            scores=scores,
            table=bins_of_predictions(confidences, correct, bins),
            confidences=confidences,
            classwise=cells.means.abs().sum().item() / classes,
            errors=errors,
        )

    @property
    def estimates(self) -> dict[str, float]:
        """The means of the scores over samples, and the plain calibration errors."""
        means = self.scores.mean(dim=0).tolist()
        return {
            **dict(zip(SCORES, means, strict=True)),
            EXPECTED: self.errors[EXPECTED].value,
            "maximum_calibration_error": self.table.gaps.abs().max().item(),
            ADAPTIVE: self.errors[ADAPTIVE].value,
            CLASSWISE: self.classwise,
        }

    def report(self, bootstrap: int, seed: int) -> dict[str, Any]:
        """See `calibration_report`."""
        intervals: dict[str, tuple[float, float]] = {}
        if bootstrap:
            resampled = _resampled_means(self.scores, bootstrap, seed)
            intervals |= _percentiles(
                dict(zip(SCORES, resampled.unbind(1), strict=True))
            )
            intervals |= {name: error.interval for name, error in self.errors.items()}
        bins = len(self.table.counts)
        floor = floor_of_confidences(self.confidences, bins, seed)
        return {
            "samples": len(self.scores),
            "classes": self.classes,
            "bins": bins,
            # JSON cannot hold numpy integers.
            "bootstrap": int(bootstrap),
            **self.estimates,
            "debiased_calibration_error": debiased_error(self.table).item(),
            "noise_floor": floor.item(),
            "intervals": intervals,
        }

    def differences_from(
        self, other: ArmStatistics, bootstrap: int, seed: int
    ) -> dict[str, Difference]:
        """The metrics of this arm minus those of `other`; see `paired_difference`."""
        resampled = _resampled_means(self.scores - other.scores, bootstrap, seed)
        bounds = _percentiles(dict(zip(SCORES, resampled.unbind(1), strict=True)))
        for name, error in self.errors.items():
            bounds[name] = change_interval(error, other.errors[name])
        estimates = self.estimates
        others = other.estimates
        return {
            name: Difference(estimates[name] - others[name], low, high)
            for name, (low, high) in bounds.items()
        }

    def expected_change_from(self, other: ArmStatistics) -> Difference:
        """See `expected_calibration_error_change`."""
        return _change(self.errors[EXPECTED], other.errors[EXPECTED])


def _change(new: BinnedError, old: BinnedError) -> Difference:
    return Difference(new.value - old.value, *change_interval(new, old))


def _expected_error(logits: Tensor, labels: Tensor, bins: int) -> BinnedError:
    """Return the ECE of logits (n, classes) and labels (n,) as a `BinnedError`."""
    scores, confidences = _scores_and_confidences(logits, labels)
    return _equal_width_error(confidences, scores[:, SCORES.index("accuracy")], bins)


def _equal_width_error(confidences: Tensor, correct: Tensor, bins: int) -> BinnedError:
    membership = F.one_hot(equal_width_bins(confidences, bins), bins).double()
    return top_label_error(confidences, correct, membership)


def _scores_and_confidences(
    logits: Tensor, labels: Tensor, temperature: float = 1.0
) -> tuple[Tensor, Tensor]:
    """The scores (n, 4) and confidences (n,) of `logits / temperature`, in float64."""
    pieces = [
        _scores(piece, piece_labels)
        for piece, piece_labels in row_pieces(logits, labels, temperature=temperature)
    ]
    scores = torch.cat([piece_scores for piece_scores, _ in pieces])
    return scores, torch.cat([confidences for _, confidences in pieces])


def _scores(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the scores (n, 4) and confidences (n,) of float64 logits (n, classes)."""
    probs = torch.softmax(logits, dim=1)
    ranks = label_ranks(logits, labels)
    losses = F.cross_entropy(logits, labels, reduction="none")
    columns = [
        (ranks == 0).double(),
        (ranks < 5).double(),
        losses,
        squared_distances(probs, labels),
    ]
    # Take the prediction from the logits, because the softmax may round two different
    # logits to the same probability.
    predicted = logits.argmax(dim=1, keepdim=True)
    return torch.stack(columns, dim=1), probs.gather(1, predicted).squeeze(1)

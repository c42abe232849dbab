"""All metrics of an arm, or the difference of two, with bootstrap intervals (focal paper, section 5, appendix G)."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from softmax_temperature.metrics.calibration import debiased_calibration_error, noise_floor
from softmax_temperature.metrics.checks import check_count, check_labels, check_logits
from softmax_temperature.metrics.evidence import INTERVAL, Evidence, resample_weights


class Difference(NamedTuple):
    """A metric of arm a minus that of arm b, and its 90 % interval over resamples that both arms share."""

    value: float
    low: float
    high: float


def calibration_report(
    logits: Tensor, labels: Tensor, *, bins: int = 15, bootstrap: int = 0, seed: int = 0
) -> dict[str, Any]:
    """Accuracy, proper scores and calibration errors of a classifier, with what is needed to judge them.

    Args:
        logits: Shape (n, classes), any float dtype; cast to float64 before the softmax.
        labels: True classes, shape (n,), integers.
        bins: Number of bins of every binned metric.
        bootstrap: Resamples for the intervals, 1000 in the paper; 0 for none.
        seed: Of the resamples and of the noise floor, at least 0.

    Returns:
        Plain numbers: `samples`, `classes`, `bins`, `bootstrap`; the metrics of this package by their names and
        `top5_accuracy`; and `intervals`, name to (low, high): the 5th and 95th percentile over the resamples. A
        calibration error is biased upwards, that of a resample twice as much, so its interval is reflected at the value
        (the basic bootstrap), and extended to hold it.

    Raises:
        ValueError: If the shapes disagree, a value is not finite or out of range, or a number is too small.
    """
    # Deviation: the released error bars are reflected for every metric, (2 value - high, 2 value - low). Here those of
    # calibration errors are, which are biased; they hold the value and stay above 0. The others are plain percentiles.
    _check(logits, labels, bins, bootstrap, seed)
    exact = logits.detach().double()
    probs = torch.softmax(exact, dim=1)
    arm = Evidence.of(exact, labels.long(), bins)
    estimates = _estimates(arm)
    return {
        "samples": len(exact),
        "classes": exact.shape[1],
        "bins": bins,
        "bootstrap": bootstrap,
        **estimates,
        "debiased_calibration_error": debiased_calibration_error(probs, labels, bins=bins).item(),
        "noise_floor": noise_floor(probs, bins=bins, seed=seed).item(),
        "intervals": _intervals(_resampled(arm, bootstrap, seed), estimates, least=0.0) if bootstrap else {},
    }


def paired_difference(
    logits_a: Tensor, logits_b: Tensor, labels: Tensor, *, bins: int = 15, bootstrap: int = 1000, seed: int = 0
) -> dict[str, Difference]:
    """How every metric that has an interval differs between two arms on the same samples (source: ours).

    Both arms see the same resamples, so what they share cancels. Logits (n, classes) of both arms, in the same order;
    the other arguments and errors are those of `calibration_report`, with at least one resample.
    """
    check_count(bootstrap, "bootstrap", least=1)
    if logits_a.shape != logits_b.shape:
        raise ValueError(f"logits_b must have shape {tuple(logits_a.shape)} like logits_a, got {tuple(logits_b.shape)}")
    for name, logits in (("logits_a", logits_a), ("logits_b", logits_b)):
        _check(logits, labels, bins, bootstrap, seed, name=name)
    arms = [Evidence.of(logits.detach().double(), labels.long(), bins) for logits in (logits_a, logits_b)]
    estimates_a, estimates_b = map(_estimates, arms)
    resampled_a, resampled_b = (_resampled(arm, bootstrap, seed) for arm in arms)
    differences = {name: estimates_a[name] - estimates_b[name] for name in estimates_a}
    bounds = _intervals({name: values - resampled_b[name] for name, values in resampled_a.items()}, differences)
    return {name: Difference(differences[name], *bounds[name]) for name in bounds}


def confident_report(
    logits: Tensor, labels: Tensor, *, threshold: float = 0.99, bootstrap: int = 0, seed: int = 0
) -> dict[str, Any]:
    """The predictions of at least a confidence: how many, and how many of them are right (focal paper, Table H.1).

    `confident_share`, `confident_accuracy` (None when no prediction counts), and `intervals` as in
    `calibration_report`, on its very resamples; that of the accuracy is over the resamples that draw a confident
    prediction.
    """
    _check(logits, labels, 1, bootstrap, seed)
    confidences, predicted = torch.softmax(logits.detach().double(), dim=1).max(1)
    confident = confidences >= threshold
    kinds = torch.stack((confident, confident & (predicted == labels)), dim=1).double().cpu()
    count, right = kinds.sum(0).tolist()
    report = {"confident_share": count / len(kinds), "confident_accuracy": right / count if count else None}
    intervals: dict[str, tuple[float, float]] = {}
    if bootstrap:
        counts = torch.cat([weights @ kinds for weights in resample_weights(len(kinds), bootstrap, seed)])
        resampled = {"confident_share": counts[:, 0] / len(kinds)}
        if count:
            some = counts[counts[:, 0] > 0]
            resampled["confident_accuracy"] = some[:, 1] / some[:, 0]
        intervals = _intervals(resampled)
    return {**report, "intervals": intervals}


def _check(logits: Tensor, labels: Tensor, bins: int, bootstrap: int, seed: int, *, name: str = "logits") -> None:
    check_logits(logits, name=name)
    check_labels(labels, logits)
    check_count(bins, "bins", least=1)
    check_count(bootstrap, "bootstrap", least=0)
    check_count(seed, "seed", least=0)


def _estimates(arm: Evidence) -> dict[str, float]:
    once = arm.metrics(arm.dense.new_ones(1, len(arm.dense)))
    return {name: value.item() for name, value in once.items()}


def _resampled(arm: Evidence, resamples: int, seed: int) -> dict[str, Tensor]:
    """Every metric, shape (resamples,)."""
    weights = resample_weights(len(arm.dense), resamples, seed)
    pieces = [arm.metrics(some.to(arm.dense.device)) for some in weights]
    return {name: torch.cat([piece[name] for piece in pieces]) for name in pieces[0]}


def _intervals(
    resampled: dict[str, Tensor], estimates: dict[str, float] | None = None, *, least: float = -1.0
) -> dict[str, tuple[float, float]]:
    """Percentiles; those of calibration errors are reflected at the estimates, which corrects their bias once."""
    bounds = {name: torch.quantile(values, values.new_tensor(INTERVAL)).tolist() for name, values in resampled.items()}
    intervals = {name: (low, high) for name, (low, high) in bounds.items()}
    for name, estimate in (estimates or {}).items():
        if name.endswith("calibration_error") and name in intervals:
            low, high = intervals[name]
            # An error of few samples may be all bias, and the reflected interval lie below it.
            intervals[name] = (max(least, min(2 * estimate - high, estimate)), max(2 * estimate - low, estimate))
    return intervals

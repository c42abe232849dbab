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
    estimates, resampled = _evaluated(exact, labels, bins, bootstrap, seed)
    return {
        "samples": len(exact),
        "classes": exact.shape[1],
        "bins": bins,
        "bootstrap": bootstrap,
        **estimates,
        "debiased_calibration_error": debiased_calibration_error(probs, labels, bins=bins).item(),
        "noise_floor": noise_floor(probs, bins=bins, seed=seed).item(),
        "intervals": _intervals(resampled, estimates, least=0.0),
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
    (a, resampled_a), (b, resampled_b) = (
        _evaluated(logits.detach().double(), labels, bins, bootstrap, seed) for logits in (logits_a, logits_b)
    )
    differences = {name: value - b[name] for name, value in a.items()}
    bounds = _intervals({name: each - resampled_b[name] for name, each in resampled_a.items()}, differences, least=-1.0)
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
    resampled: dict[str, Tensor] = {}
    if bootstrap:
        counts = torch.cat([weights @ kinds for weights in resample_weights(len(kinds), bootstrap, seed)])
        resampled["confident_share"] = counts[:, 0] / len(kinds)
        if count:
            some = counts[counts[:, 0] > 0]
            resampled["confident_accuracy"] = some[:, 1] / some[:, 0]
    return {
        "confident_share": count / len(kinds),
        "confident_accuracy": right / count if count else None,
        "intervals": _intervals(resampled, {}),
    }


def _check(logits: Tensor, labels: Tensor, bins: int, bootstrap: int, seed: int, *, name: str = "logits") -> None:
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
    estimates = {name: value.item() for name, value in arm.metrics(logits.new_ones(1, len(logits))).items()}
    weights = resample_weights(len(logits), bootstrap, seed)
    pieces = [arm.metrics(some.to(logits.device)) for some in weights]
    return estimates, {name: torch.cat([piece[name] for piece in pieces]) for name in estimates if pieces}


def _intervals(
    resampled: dict[str, Tensor], estimates: dict[str, float], *, least: float = 0.0
) -> dict[str, tuple[float, float]]:
    """Percentiles; those of calibration errors are reflected at the estimates, which corrects their bias once."""
    intervals = {}
    for name, values in resampled.items():
        low, high = torch.quantile(values, values.new_tensor(INTERVAL)).tolist()
        if name.endswith("calibration_error"):
            value = estimates[name]
            # An error of few samples may be all bias, and the reflected interval lie below it.
            low, high = max(least, min(2 * value - high, value)), max(2 * value - low, value)
        intervals[name] = low, high
    return intervals

"""All metrics of an arm, or the difference of two, with bootstrap intervals (focal paper, section 5, appendix G)."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from softmax_temperature.metrics.bias import debiased_calibration_error, noise_floor
from softmax_temperature.metrics.checks import check_count, check_labels, check_logits
from softmax_temperature.metrics.evidence import Evidence
from softmax_temperature.metrics.resampling import INTERVAL, resample_weights


class Difference(NamedTuple):
    """A metric of arm a minus that of arm b, and its 90 % interval over resamples that both arms share."""

    value: float
    low: float
    high: float


def calibration_report(
    logits: Tensor, labels: Tensor, *, bins: int = 15, bootstrap: int = 0, seed: int = 0, rebin: bool = False
) -> dict[str, Any]:
    """Accuracy, proper scores and calibration errors of a classifier, with what is needed to judge them.

    Args:
        logits: Shape (n, classes), any float dtype; cast to float64 before the softmax.
        labels: True classes, shape (n,), integers.
        bins: Number of bins of every binned metric.
        bootstrap: Resamples for the intervals, 1000 in the paper; 0 for none.
        seed: Of the resamples and of the noise floor, at least 0.
        rebin: Whether each resample gets its own bins of equal mass. By default the bins are those of the sample, as
            bins of equal width are by nature; the interval then leaves out how the edges vary.

    Returns:
        Plain numbers, ready for JSON: `samples`, `classes`, `bins`, `bootstrap`; `top5_accuracy` and the metrics of
        this package by their names; and `intervals`: name to (low, high), the 5th and 95th percentile over the
        resamples, empty without a bootstrap. A calibration error is biased upwards, that of a resample twice as much:
        its interval may lie above the value.

    Raises:
        ValueError: If the shapes disagree, a logit is not finite, a label is out of range, `bins` is below 1, or
            `bootstrap` or `seed` is negative.
    """
    # Deviation: the released error bars are reflected, (2 value - high, 2 value - low); these are plain percentiles,
    # which cannot leave the range of the metric.
    _check(logits, labels, bins, bootstrap, seed)
    exact = logits.detach().double()
    probs = torch.softmax(exact, dim=1)
    arm = Evidence.of(exact, labels.long(), bins)
    return {
        "samples": len(exact),
        "classes": exact.shape[1],
        "bins": bins,
        "bootstrap": bootstrap,
        **_estimates(arm),
        "debiased_calibration_error": debiased_calibration_error(probs, labels, bins=bins).item(),
        "noise_floor": noise_floor(probs, bins=bins, seed=seed).item(),
        "intervals": _intervals(_resampled(arm, bootstrap, seed, rebin)) if bootstrap else {},
    }


def paired_difference(
    logits_a: Tensor,
    logits_b: Tensor,
    labels: Tensor,
    *,
    bins: int = 15,
    bootstrap: int = 1000,
    seed: int = 0,
    rebin: bool = False,
) -> dict[str, Difference]:
    """How every metric that has an interval differs between two arms on the same samples (source: ours).

    Both arms see the same resamples, so what they share cancels: intervals of the two arms may overlap while that of
    their difference excludes 0. Logits (n, classes) of both arms, the same samples in the same order; the other
    arguments and errors are those of `calibration_report`, with at least one resample.
    """
    check_count(bootstrap, "bootstrap", least=1)
    if logits_a.shape != logits_b.shape:
        raise ValueError(f"logits_b must have shape {tuple(logits_a.shape)} like logits_a, got {tuple(logits_b.shape)}")
    for name, logits in (("logits_a", logits_a), ("logits_b", logits_b)):
        _check(logits, labels, bins, bootstrap, seed, name=name)
    arms = [Evidence.of(logits.detach().double(), labels.long(), bins) for logits in (logits_a, logits_b)]
    estimates_a, estimates_b = map(_estimates, arms)
    resampled_a, resampled_b = (_resampled(arm, bootstrap, seed, rebin) for arm in arms)
    bounds = _intervals({name: values - resampled_b[name] for name, values in resampled_a.items()})
    return {name: Difference(estimates_a[name] - estimates_b[name], *bounds[name]) for name in bounds}


def confident_report(
    logits: Tensor, labels: Tensor, *, threshold: float = 0.99, bootstrap: int = 0, seed: int = 0
) -> dict[str, Any]:
    """The predictions of at least a confidence: how many, and how many of them are right (focal paper, Table H.1).

    `confident_share`, `confident_accuracy` (None when no prediction counts), and `intervals` as in
    `calibration_report`, on its very resamples; that of the accuracy is over the resamples that draw a confident
    prediction. Arguments and errors are those of `calibration_report`.
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
    once = arm.metrics(torch.ones_like(arm.gaps)[None])
    return {name: value.item() for name, value in once.items()}


def _resampled(arm: Evidence, resamples: int, seed: int, rebin: bool) -> dict[str, Tensor]:
    """Every metric, shape (resamples,)."""
    weights = resample_weights(len(arm.gaps), resamples, seed)
    pieces = [arm.metrics(some.to(arm.gaps.device), rebin=rebin) for some in weights]
    return {name: torch.cat([piece[name] for piece in pieces]) for name in pieces[0]}


def _intervals(resampled: dict[str, Tensor]) -> dict[str, tuple[float, float]]:
    bounds = {name: torch.quantile(values, values.new_tensor(INTERVAL)).tolist() for name, values in resampled.items()}
    return {name: (low, high) for name, (low, high) in bounds.items()}

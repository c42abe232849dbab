"""Speed of a calibration report and a temperature search, against loops and libraries.

Ours, the loop and the libraries start from the same float64 logits, in the same
process, with the same number of threads. Each computes 90 % intervals of the accuracy,
the top-5 accuracy, the negative log-likelihood, the Brier score, and the expected,
adaptive and classwise calibration errors. Each also searches the paper's grid of 100
temperatures for the smallest expected calibration error. Ours also computes the maximum
error, the debiased error and the noise floor.

The peers compute no intervals, so we take percentiles of their metrics over 1,000
resamples. Ours resamples only the scores. For calibration errors it uses closed-form
intervals, because percentiles have too little coverage (docs/calibration_intervals.md).
Much of the speed-up comes from this difference in method: ours does not resample every
bin of every class.

To make the peers faster, both compute the softmax and the per-sample scores once, and
resample them by index. The loop uses NumPy, with one mask per bin (per bin and class
for the classwise error), as the paper's released code does. The libraries are netcal,
and torchmetrics without argument checks. Both libraries have the expected and classwise
errors; we use those of torchmetrics, which take less than half of netcal's time. Only
netcal has the adaptive error, and it bins each resample again.
"""

import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from netcal.metrics import ECE
from numpy.typing import NDArray
from torch import Tensor
from torchmetrics.functional.classification import (
    binary_calibration_error,
    multiclass_calibration_error,
)

from benchmarks.program import print_result
from softmax_temperature.metrics import calibration_report
from softmax_temperature.metrics.report import SCORES
from softmax_temperature.scaling import TEMPERATURE_GRID, fit_temperature

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Answer = tuple[dict[str, tuple[float, float]], float]

BINS = 15
FULL_SIZE = (10_000, 100, 1_000)
QUICK_SIZE = (2_000, 10, 50)


def measure(*, quick: bool = False) -> dict[str, Any]:
    """Time our implementation, the loop and the libraries in the same process.

    Args:
        quick: Use 2,000 x 10 logits and 50 resamples instead of the 10,000 x 100 and
            1,000 of the promises.

    Returns:
        name, size, ours_seconds (the median of three runs), and for each peer its
        seconds (one run, because it takes a minute), its ratio (peer over ours), and
        the largest distance between its score intervals and ours, in widths of ours.
        Ours and the peers draw their own resamples.

    Raises:
        RuntimeError: If a peer's search finds a different temperature from ours.
    """
    samples, classes, resamples = QUICK_SIZE if quick else FULL_SIZE
    logits, labels = overconfident_logits(samples, classes)
    runs = [seconds(ours, logits, labels, resamples) for _ in range(3)]
    our_seconds, (intervals, temperature) = sorted(runs, key=lambda run: run[0])[1]
    result: dict[str, Any] = {
        "name": "calibration report and temperature search",
        "size": (
            f"{samples} x {classes} logits, {resamples} resamples, "
            f"{len(TEMPERATURE_GRID)} temperatures"
        ),
        "ours_seconds": our_seconds,
    }
    for name, peer in (("loop", by_loop), ("library", by_libraries)):
        peer_seconds, answer = seconds(peer, logits, labels, resamples)
        peer_intervals, peer_temperature = answer
        if peer_temperature != temperature:
            raise RuntimeError(
                f"{name}: temperature {peer_temperature}, ours {temperature}"
            )
        distance = largest_distance(intervals, peer_intervals)
        result |= {
            f"{name}_seconds": peer_seconds,
            f"{name}_ratio": peer_seconds / our_seconds,
            f"{name}_off": distance,
        }
    return result


def overconfident_logits(samples: int, classes: int) -> tuple[Tensor, Tensor]:
    """Logits that favour one class, and labels drawn from them at temperature 1.7."""
    generator = torch.Generator().manual_seed(0)
    logits = 1.5 * torch.randn(
        samples, classes, generator=generator, dtype=torch.float64
    )
    favoured = torch.randint(classes, (samples, 1), generator=generator)
    lead = 6 * torch.rand(samples, 1, generator=generator, dtype=torch.float64) + 4
    logits.scatter_add_(1, favoured, lead)
    probs = torch.softmax(logits / 1.7, dim=1)
    labels = torch.multinomial(probs, 1, generator=generator)
    return logits, labels.squeeze(1)


def ours(logits: Tensor, labels: Tensor, resamples: int) -> Answer:
    """Intervals of the metrics, and the temperature, from this library."""
    report = calibration_report(logits, labels, bins=BINS, bootstrap=resamples)
    fit = fit_temperature(
        logits, labels, criterion="ece", bins=BINS, grid=TEMPERATURE_GRID
    )
    return report["intervals"], fit.temperature


def by_loop(logits: Tensor, labels: Tensor, resamples: int) -> Answer:
    """Intervals of the metrics, and the temperature, from NumPy with a mask per bin."""
    scores = sample_scores(logits, labels)
    probs = torch.softmax(logits, dim=1).numpy()
    classes = labels.numpy()
    confidences = probs.max(axis=1)
    right = scores["accuracy"]
    edges = np.array_split(np.sort(confidences), BINS)
    equal_mass = np.array([0.0, *(part[-1] for part in edges[:-1]), 1.0])
    resampled = []
    for rows in resampled_rows(len(classes), resamples):
        metrics = {name: values[rows].mean() for name, values in scores.items()}
        gaps, shares = zip(*bin_gaps(confidences[rows], right[rows]), strict=True)
        metrics["expected_calibration_error"] = np.dot(gaps, shares)
        adaptive = bin_gaps(confidences[rows], right[rows], equal_mass)
        metrics["adaptive_calibration_error"] = weighted_sum(adaptive)
        metrics["classwise_calibration_error"] = classwise_loop(
            probs[rows], classes[rows]
        )
        resampled.append(metrics)
    errors = []
    for temperature in TEMPERATURE_GRID:
        scaled = torch.softmax(logits / temperature, dim=1).numpy().max(axis=1)
        errors.append(weighted_sum(bin_gaps(scaled, right)))
    return intervals_of(resampled), TEMPERATURE_GRID[int(np.argmin(errors))]


def bin_gaps(
    confidences: Floats, right: Floats, edges: Floats | None = None
) -> list[tuple[float, float]]:
    """Pairs (gap, share of the samples), one for each non-empty bin."""
    if edges is None:
        edges = np.linspace(0, 1, BINS + 1)
    gaps = []
    for low, high in pairwise(edges):
        inside = (confidences > low) & (confidences <= high)
        share = inside.mean()
        if share > 0:
            gap = abs(right[inside].mean() - confidences[inside].mean())
            gaps.append((gap, share))
    return gaps


def weighted_sum(gaps: list[tuple[float, float]]) -> float:
    """Sum of the gaps, each multiplied by its share."""
    return sum(gap * share for gap, share in gaps)


def classwise_loop(probs: Floats, labels: Integers) -> float:
    """Classwise calibration error, one class at a time."""
    errors = []
    for k in range(probs.shape[1]):
        gaps = bin_gaps(probs[:, k], (labels == k).astype(np.float64))
        errors.append(weighted_sum(gaps))
    return float(np.mean(errors))


def by_libraries(logits: Tensor, labels: Tensor, resamples: int) -> Answer:
    """Intervals of the metrics, and the temperature, from torchmetrics and netcal."""
    scores = sample_scores(logits, labels)
    probs = torch.softmax(logits, dim=1)
    adaptive = ECE(BINS, equal_intervals=False)
    resampled = []
    for rows in resampled_rows(len(labels), resamples):
        drawn_probs = probs[rows]
        drawn_labels = labels[rows]
        metrics = {name: values[rows].mean() for name, values in scores.items()}
        metrics["expected_calibration_error"] = torchmetrics_error(
            drawn_probs, drawn_labels
        )
        metrics["adaptive_calibration_error"] = adaptive.measure(
            drawn_probs.numpy(), drawn_labels.numpy()
        )
        metrics["classwise_calibration_error"] = torchmetrics_classwise(
            drawn_probs, drawn_labels
        )
        resampled.append(metrics)
    errors = []
    for temperature in TEMPERATURE_GRID:
        scaled = torch.softmax(logits / temperature, dim=1)
        errors.append(torchmetrics_error(scaled, labels))
    return intervals_of(resampled), TEMPERATURE_GRID[int(np.argmin(errors))]


def torchmetrics_error(probs: Tensor, labels: Tensor) -> float:
    """Expected calibration error from torchmetrics."""
    error = multiclass_calibration_error(
        probs, labels, probs.shape[1], n_bins=BINS, norm="l1", validate_args=False
    )
    return error.item()


def torchmetrics_classwise(probs: Tensor, labels: Tensor) -> float:
    """Classwise calibration error: torchmetrics' binary error of each class."""
    errors = [
        binary_calibration_error(
            column, (labels == k).long(), n_bins=BINS, validate_args=False
        )
        for k, column in enumerate(probs.t().contiguous())
    ]
    return torch.stack(errors).mean().item()


def sample_scores(logits: Tensor, labels: Tensor) -> dict[str, Floats]:
    """Each sample's contribution to the metrics that are means, keyed by metric."""
    top5 = logits.topk(5, dim=1).indices == labels[:, None]
    one_hot = F.one_hot(labels, logits.shape[1])
    scores = {
        "accuracy": top5[:, 0].double(),
        "top5_accuracy": top5.any(dim=1).double(),
        "negative_log_likelihood": F.cross_entropy(logits, labels, reduction="none"),
        "brier_score": (torch.softmax(logits, dim=1) - one_hot).square().sum(dim=1),
    }
    return {name: values.numpy() for name, values in scores.items()}


def resampled_rows(samples: int, resamples: int) -> Iterator[Integers]:
    """Yield the indices of all rows, then those of each resample."""
    yield np.arange(samples)
    generator = np.random.default_rng(1)
    for _ in range(resamples):
        yield generator.integers(0, samples, size=samples)


def intervals_of(
    resampled: list[dict[str, float]],
) -> dict[str, tuple[float, float]]:
    """The 5th and 95th percentile of each metric over the resamples.

    The first entry is skipped: it is the full sample, not a resample.
    """
    intervals = {}
    for name in resampled[0]:
        draws = [float(metrics[name]) for metrics in resampled[1:]]
        low, high = np.quantile(draws, [0.05, 0.95])
        intervals[name] = (float(low), float(high))
    return intervals


def largest_distance(
    first: dict[str, tuple[float, float]], second: dict[str, tuple[float, float]]
) -> float:
    """Largest distance, over all scores, between the ends of a score's two intervals.

    The unit is the width of the first interval.
    """
    distances = []
    for name in SCORES:
        low, high = first[name]
        second_low, second_high = second[name]
        distance = max(abs(low - second_low), abs(high - second_high))
        distances.append(distance / (high - low))
    return max(distances)


def seconds(
    side: Callable[[Tensor, Tensor, int], Answer], *arguments: Any
) -> tuple[float, Answer]:
    """Wall-clock seconds of one run of an implementation, and its answer."""
    start = time.perf_counter()
    answer = side(*arguments)
    return time.perf_counter() - start, answer


if __name__ == "__main__":
    sys.exit(print_result(measure, __doc__))

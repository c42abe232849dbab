"""How much of an expected calibration error is noise: its floor at this n, and an estimate with the bias taken off."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.metrics.binning import CHUNK, equal_width_bins
from softmax_temperature.metrics.calibration import reliability_bins
from softmax_temperature.metrics.checks import check_count, check_probs

NOISE_DRAWS = 500  # The standard error of their mean is 1 % of the floor.


def noise_floor(probs: Tensor, *, bins: int = 15, seed: int = 0) -> Tensor:
    """ECE that a perfectly calibrated model with these confidences shows on average at this n (source: ours).

    Right and wrong are drawn from the confidences themselves, 500 times, the same draws on every device. An ECE near
    the floor is no evidence of miscalibration. Arguments, result and errors are those of `expected_calibration_error`;
    `seed` is at least 0.
    """
    check_probs(probs)
    check_count(bins, "bins", least=1)
    check_count(seed, "seed", least=0)
    confidences = probs.detach().double().amax(dim=1)
    membership = F.one_hot(equal_width_bins(confidences, bins), bins).double()
    expected = confidences @ membership
    errors = [(right @ membership - expected).abs().sum(dim=1) for right in _drawn(confidences, seed)]
    return torch.cat(errors).mean() / len(confidences)


def debiased_calibration_error(probs: Tensor, labels: Tensor, *, bins: int = 15) -> Tensor:
    """ECE minus its estimated bias (Kumar, Liang and Ma, "Verified uncertainty calibration", NeurIPS 2019).

    Each bin's accuracy a is taken as normal with variance a (1 - a) / count. The mean absolute gap under that normal,
    here in closed form where their code draws it, exceeds the gap by the bias. The correction is of first order: of the
    bias of a perfectly calibrated model it takes off four tenths, and it leaves gaps that exceed their noise.
    Arguments and errors are those of `expected_calibration_error`; the result is at most the ECE, and below zero where
    the bias exceeds it, which says "calibrated".
    """
    table = reliability_bins(probs, labels, bins=bins)
    filled = table.counts > 0
    accuracy, counts, gaps = table.accuracy[filled], table.counts[filled], table.gaps[filled]
    expected = _mean_absolute_normal(gaps, torch.sqrt(accuracy * (1 - accuracy) / counts))
    return (table.shares[filled] * (2 * gaps.abs() - expected)).sum()


def _mean_absolute_normal(mean: Tensor, deviation: Tensor) -> Tensor:
    """E|X| for X normal; |mean| where the deviation is zero."""
    scaled = mean.abs() / deviation.clamp(min=torch.finfo(mean.dtype).tiny)
    spread = deviation * math.sqrt(2 / math.pi) * torch.exp(-scaled.square() / 2)
    return spread + mean.abs() * torch.erf(scaled / math.sqrt(2))


def _drawn(confidences: Tensor, seed: int) -> Iterator[Tensor]:
    """Right (1) or wrong (0) drawn from the confidences: tensors of shape (draws, n), NOISE_DRAWS draws together."""
    generator = np.random.default_rng(seed)
    rows = max(1, CHUNK // len(confidences))
    for start in range(0, NOISE_DRAWS, rows):
        uniform = generator.random((min(rows, NOISE_DRAWS - start), len(confidences)))
        yield (torch.from_numpy(uniform).to(confidences.device) < confidences).double()

"""Bootstrap resamples as weights, and the interval that is read from them (focal paper, section 5)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from softmax_temperature.metrics.binning import CHUNK

INTERVAL = (0.05, 0.95)  # 90 %, focal paper, section 5.


def resample_weights(samples: int, resamples: int, seed: int, *, rows: int | None = None) -> Iterator[Tensor]:
    """How often each sample is drawn: tensors of shape (rows, samples), `resamples` rows together, float64, on the CPU.

    Depends on nothing but the first three arguments, so that every arm and every device sees the same resamples. By
    default `rows` is what a moderate memory holds.
    """
    # A stream of its own: the noise floor draws from the same seed.
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
    most = rows or max(1, CHUNK // samples)
    for start in range(0, resamples, most):
        count = min(most, resamples - start)
        drawn = generator.integers(0, samples, size=(count, samples)) + samples * np.arange(count)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=count * samples)
        yield torch.from_numpy(counts.reshape(count, samples).astype(np.float64))

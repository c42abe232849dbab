from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from softmax_temperature import metrics


def calibrated(samples: int, *, seed: int) -> tuple[Tensor, Tensor]:
    """Probabilities of ten classes, and labels drawn from them."""
    generator = torch.Generator().manual_seed(seed)
    probs = torch.softmax(2 * torch.randn(samples, 10, generator=generator, dtype=torch.float64), dim=1)
    return probs, torch.multinomial(probs, 1, generator=generator).squeeze(1)


def test_noise_floor_by_hand() -> None:
    # Four samples of confidence 1/2 in one bin: E|B(4, 1/2) - 2| / 4 = (2 + 4 + 4 + 2) / 16 / 4.
    floor = metrics.noise_floor(torch.full((4, 2), 0.5)).item()
    assert floor == pytest.approx(0.1875, abs=4 * 0.165 / 500**0.5)


@pytest.mark.parametrize("samples", [200, 2000])
def test_noise_floor_is_the_mean_error_of_calibrated_models(samples: int) -> None:
    errors, floors = [], []
    for seed in range(30):
        probs, labels = calibrated(samples, seed=seed)
        errors.append(metrics.expected_calibration_error(probs, labels).item())
        floors.append(metrics.noise_floor(probs).item())
    standard_error = np.std(errors) / len(errors) ** 0.5
    assert np.mean(floors) == pytest.approx(np.mean(errors), abs=3 * standard_error)
    assert np.std(floors) < np.std(errors) / 3


def test_noise_floor_is_zero_for_certain_predictions_and_repeats() -> None:
    assert metrics.noise_floor(torch.eye(3)).item() == 0
    probs, _ = calibrated(300, seed=0)
    assert metrics.noise_floor(probs, seed=5) == metrics.noise_floor(probs, seed=5)
    assert metrics.noise_floor(probs, seed=5) != metrics.noise_floor(probs, seed=6)


def test_debiased_error_equals_a_simulation_of_its_normals() -> None:
    probs, labels = calibrated(500, seed=3)
    table = metrics.reliability_bins(probs, labels)
    shares, gaps = table.shares.numpy(), table.gaps.numpy()
    accuracy, counts = table.accuracy.nan_to_num(0).numpy(), table.counts.clamp(min=1).numpy()
    spread = np.sqrt(accuracy * (1 - accuracy) / counts)
    draws = np.abs(gaps + spread * np.random.default_rng(0).normal(size=(20_000, 15))) @ shares
    expected = 2 * (shares @ np.abs(gaps)) - draws.mean()
    error = metrics.debiased_calibration_error(probs, labels).item()
    assert error == pytest.approx(expected, abs=4 * draws.std() / 20_000**0.5)


def test_debiasing_takes_off_four_tenths_of_the_bias_of_a_calibrated_model() -> None:
    # With a gap g of mean zero and deviation s in a bin, 2 E|g| - E|g + noise| = sqrt(2 / pi) s (2 - sqrt(2)).
    sets = [calibrated(2000, seed=seed) for seed in range(60)]
    plain = [metrics.expected_calibration_error(*some).item() for some in sets]
    debiased = [metrics.debiased_calibration_error(*some).item() for some in sets]
    assert np.mean(debiased) / np.mean(plain) == pytest.approx(2 - 2**0.5, abs=0.1)
    assert all(low <= high for low, high in zip(debiased, plain, strict=True))


def test_bad_input_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="rows that sum to one"):
        metrics.noise_floor(torch.full((2, 2), 0.4))
    with pytest.raises(ValueError, match="seed must be an integer of at least 0, got -1"):
        metrics.noise_floor(torch.eye(2), seed=-1)
    with pytest.raises(ValueError, match="bins must be an integer"):
        metrics.noise_floor(torch.eye(2), bins=2.5)  # type: ignore[arg-type]

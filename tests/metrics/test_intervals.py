"""Intervals of calibration errors agree with hand-worked values, simulations and
bounds.

`test_interval_coverage.py` tests the coverage of the intervals.
"""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from softmax_temperature import metrics
from softmax_temperature.metrics import intervals
from softmax_temperature.metrics.calibration import equal_mass_membership
from softmax_temperature.metrics.intervals import (
    ONE_SIDED,
    BinnedError,
    ClassCells,
    change_interval,
    classwise_error,
    top_label_error,
)


def one_bin(confidences: Tensor, correct: Tensor) -> BinnedError:
    """The calibration error if all samples are in one bin."""
    everything = torch.ones(len(confidences), 1, dtype=torch.float64)
    return top_label_error(confidences, correct, everything)


def drawn(samples: int, temperature: float, seed: int) -> tuple[Tensor, Tensor]:
    """Logits of five classes, and labels drawn from softmax(z / T)."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(samples, 5, generator=generator, dtype=torch.float64)
    probs = torch.softmax(logits / temperature, dim=1)
    return logits, torch.multinomial(probs, 1, generator=generator).squeeze(1)


def test_the_interval_of_one_bin_by_hand() -> None:
    # Half of 100 predictions of confidence 0.5 are right: the mean gap is 0 with a
    # standard error of 0.5 / 10. With standard normal x, the mean of |0.05 x| is 0.05
    # sqrt(2 / pi), which is the bias.
    half = torch.full((100,), 0.5, dtype=torch.float64)
    error = one_bin(half, (torch.arange(100) % 2).double())
    assert error.value == 0
    assert error.largest_bias == pytest.approx(0.05 * math.sqrt(2 / math.pi))
    deviation = math.hypot(0.05, 0.01)  # The unseen variance is 1 / n^2.
    assert error.interval == pytest.approx((0.0, 1.6449 * deviation), abs=1e-5)
    # If every prediction is right, the gap of 0.5 is far from 0 and does not vary.
    error = one_bin(half, torch.ones(100, dtype=torch.float64))
    assert error.value == 0.5
    assert error.largest_bias == 0
    margins = (0.5 - 1.6449 * 0.01, 0.5 + 1.6449 * 0.01)
    assert error.interval == pytest.approx(margins, abs=1e-5)


def test_only_right_predictions_do_not_show_that_confidence_was_too_low() -> None:
    # A calibrated model with confidence 0.98 gets all 30 predictions right in 55 % of
    # samples.
    sure = torch.full((30,), 0.98, dtype=torch.float64)
    low, high = one_bin(sure, torch.ones(30, dtype=torch.float64)).interval
    assert low == 0
    assert high > 0.05


def test_the_largest_bias_is_that_of_gaps_that_are_zero() -> None:
    # For a calibrated model the bias is the noise floor.
    logits, labels = drawn(20_000, 1.0, seed=0)
    probs = torch.softmax(logits, dim=1)
    confidences, predicted = probs.max(dim=1)
    correct = (predicted == labels).double()
    membership = equal_mass_membership(confidences, 15)
    error = top_label_error(confidences, correct, membership)
    deviations = (confidences * (1 - confidences)) @ membership
    floor = deviations.sqrt().sum().item() / 20_000 * math.sqrt(2 / math.pi)
    assert error.largest_bias == pytest.approx(floor, rel=0.03)


@pytest.mark.parametrize("multiple", [0.0, 0.5, 2.0])
def test_gaps_of_any_size_have_at_least_the_least_bias(multiple: float) -> None:
    # Simulate the gaps of 15 bins many times, with standard errors from 1 to 2 %.
    generator = np.random.default_rng(0)
    deviations = np.linspace(0.01, 0.02, 15)
    alike = multiple * deviations
    uneven = np.zeros(15)
    uneven[0] = alike.sum()
    noise = generator.standard_normal((20_000, 15)) * deviations
    biases = [
        np.abs(gaps + noise).sum(axis=1).mean() - gaps.sum() for gaps in (alike, uneven)
    ]
    assert biases[0] <= biases[1] + 1e-4
    # `least_bias` assumes that noise increased the error as little as is plausible, so
    # it is below the mean bias.
    value = np.abs(alike + noise).sum(axis=1).mean()
    bound = least_bias(value, deviations)
    assert 0 <= bound <= biases[0]
    assert bound >= 0.2 * biases[0] or multiple > 0


def least_bias(value: float, deviations: np.ndarray) -> float:  # type: ignore[type-arg]
    return intervals._least_bias(value, torch.from_numpy(deviations))


def normal_mean_absolute(shift: float) -> float:
    """Mean of |shift + x| for a standard normal x."""
    density = math.exp(-(shift**2) / 2) * math.sqrt(2 / math.pi)
    return shift * math.erf(shift / math.sqrt(2)) + density


def test_the_least_bias_is_that_of_the_largest_sum_the_sample_permits() -> None:
    # The observed sum is the 5th percentile of the sums that occur if each true gap is
    # one standard error. So true gaps of one standard error are the largest gaps that
    # are consistent with the observed sum.
    generator = np.random.default_rng(1)
    deviations = np.full(40, 0.01)
    sums = np.abs(0.01 + 0.01 * generator.standard_normal((50_000, 40))).sum(axis=1)
    found = least_bias(float(np.quantile(sums, 0.05)), deviations)
    expected = 0.4 * (normal_mean_absolute(1.0) - 1)
    assert found == pytest.approx(expected, rel=0.03)
    assert found == pytest.approx(sums.mean() - 0.4, rel=0.03)
    # If an error is below the mean error that noise alone causes, its bias is at most
    # the error itself.
    assert least_bias(0.1, deviations) == 0.1
    assert least_bias(0.0, np.zeros(4)) == 0


def test_the_least_bias_is_zero_if_no_noise_was_seen() -> None:
    # All predictions have confidence 0.9 and are right: the observed gaps do not vary,
    # but those of a calibrated model would.
    sure = torch.full((4,), 0.9, dtype=torch.float64)
    error = one_bin(sure, torch.ones(4, dtype=torch.float64))
    assert error.least_bias == 0
    # The unseen variance is a calibrated model's 0.9 * 0.1 minus the observed squared
    # gap of 0.01, divided by n, plus 1 / n^2.
    assert error.unseen_variance == pytest.approx((0.09 - 0.01) / 4 + 1 / 16)
    # A gap of 0.1 is less than one standard error (0.14), so its bias equals the bias
    # of a gap of zero.
    deviation = math.sqrt((0.09 - 0.01) / 4)
    assert error.largest_bias == pytest.approx(deviation * math.sqrt(2 / math.pi))


def test_the_bias_of_a_gap_near_the_clear_distance() -> None:
    # An observed gap of 3.5 standard errors may come from a true gap of one standard
    # error, whose bias is 0.16663 standard errors.
    means = torch.tensor([0.035, -0.035], dtype=torch.float64)
    found = intervals._largest_bias(means, torch.full_like(means, 0.01))
    assert found == pytest.approx(2 * 0.01 * (normal_mean_absolute(1.0) - 1))
    assert found == pytest.approx(2 * 0.01 * 0.16663, rel=1e-4)


def binned(value: float, spread: float, **numbers: Any) -> BinnedError:
    """A mean error of 100 samples, whose errors lie `spread` above or below it."""
    signs = 1.0 - 2.0 * (torch.arange(100) % 2).double()
    unknown: dict[str, Any] = {
        "least_bias": 0.0,
        "largest_bias": 0.0,
        "total_parts": None,
        "unseen_variance": 0.0,
    }
    return BinnedError(value=value, parts=value + spread * signs, **unknown | numbers)


def test_an_interval_from_its_parts_by_hand() -> None:
    # If half of the parts are 0.2 and half 0.4, their mean has a standard error of 0.1
    # / 10; 1.644854 and 1.959964 are the normal quantiles at 95 and 97.5 %.
    error = binned(0.3, 0.1, largest_bias=0.2)
    expected = (0.3 - 0.2 - 0.01644854, 0.3 + 0.01644854)
    assert error.interval == pytest.approx(expected, abs=1e-7)
    total = torch.full((100,), 0.28, dtype=torch.float64)
    total[::2] += 0.1
    total[1::2] -= 0.1
    error = binned(0.3, 0.1, largest_bias=0.2, total_parts=total)
    expected = (0.28 - 0.01959964, 0.3 + 0.01644854)
    assert error.interval == pytest.approx(expected, abs=1e-7)
    # The unseen variance adds 0.0003 to the observed 0.0001.
    error = binned(0.3, 0.1, unseen_variance=0.0003)
    assert error.interval == pytest.approx((0.3 - 0.03289707, 0.3 + 0.03289707))


def test_the_interval_of_a_change_by_hand() -> None:
    # The parts differ by 0.1 from the mean change, and unseen variances add up:
    # sqrt(0.0001 + 0.0001 + 0.0002) = 0.02, and 1.644854 times that is 0.03289707.
    new = binned(0.1, 0.1, largest_bias=0.05, least_bias=0.02, unseen_variance=0.0001)
    old = binned(0.3, 0.0, largest_bias=0.04, least_bias=0.01, unseen_variance=0.0002)
    high = -0.2 + 0.04 + 0.03289707 - 0.02
    low = -0.2 - 0.05 - 0.03289707 + 0.01
    assert change_interval(new, old) == pytest.approx((low, high), abs=1e-7)
    # The absolute value of the sum of all gaps, here 0.28, is a lower bound of the old
    # error.
    total = torch.full((100,), 0.28, dtype=torch.float64)
    bounded = old._replace(total_parts=total)
    high = 0.1 - 0.28 + 0.03289707 - 0.02
    assert new.highest_change_from(bounded) == pytest.approx(high, abs=1e-7)
    # The interval extends at least one standard error beyond the plain change.
    biased = new._replace(least_bias=0.2)
    assert biased.highest_change_from(old) == pytest.approx(-0.2 + 0.02, abs=1e-7)


def test_classwise_moments_equal_a_loop_over_cells() -> None:
    logits, labels = drawn(400, 2.0, seed=1)
    cells = ClassCells.of(logits, labels, 15)
    error = classwise_error(logits, labels, 15, cells)
    probs = torch.softmax(logits, dim=1).numpy()
    gaps = np.eye(5)[labels.numpy()] - probs
    bins = np.minimum(np.ceil(probs * 15).astype(int) - 1, 14).clip(0)
    factors = [
        max(1.0, (gaps**2)[bins == b].sum() / (probs * (1 - probs))[bins == b].sum())
        for b in range(15)
    ]
    parts = np.zeros(400)
    for k in range(5):
        for b in range(15):
            inside = bins[:, k] == b
            mean = gaps[inside, k].sum() / 400
            variance = (probs * (1 - probs))[inside, k].sum() / 400
            cell = 15 * k + b
            assert cells.means[cell].item() == pytest.approx(mean, abs=1e-12)
            assert cells.squares[cell].item() == pytest.approx(factors[b] * variance)
            parts[inside] += (1 if mean >= 0 else -1) * gaps[inside, k] / 5
    squares = cells.squares.numpy()
    means = cells.means.numpy()
    deviations = np.sqrt(np.maximum(0, squares - means**2) / 400)
    noise = np.maximum(deviations, 1e-300)
    nearest = np.maximum(0, np.abs(means) - 2.5 * noise) / noise
    excess = [normal_mean_absolute(shift) - shift for shift in nearest]
    assert error.largest_bias == pytest.approx((noise * excess).sum() / 5)
    unseen = sum(
        max(0, ((probs * (1 - probs)) - gaps**2)[bins == b].sum()) for b in range(15)
    )
    variance = (unseen / 400 + 1 / 400) / (400 * 25)
    assert error.unseen_variance == pytest.approx(variance)
    assert error.least_bias == 0
    assert error.parts.numpy() == pytest.approx(parts, abs=1e-12)
    assert error.value == pytest.approx(parts.mean())
    plain = metrics.classwise_calibration_error(torch.softmax(logits, dim=1), labels)
    assert error.value == pytest.approx(plain.item())


@pytest.mark.parametrize("temperature", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("samples", [1, 20, 1000])
def test_intervals_stay_in_bounds_and_contain_the_plain_error(
    samples: int, temperature: float
) -> None:
    logits, labels = drawn(samples, temperature, seed=samples)
    report = metrics.calibration_report(logits, labels, bootstrap=19)
    errors = {
        name: ends
        for name, ends in report["intervals"].items()
        if name.endswith("calibration_error")
    }
    assert len(errors) == 3
    for name, (low, high) in errors.items():
        assert 0 <= low <= report[name] <= high <= 1, name
        assert high > report[name], name
    changes = metrics.paired_difference(logits / 2, logits, labels, bootstrap=19)
    for name in errors:
        value, low, high = changes[name]
        assert -1 <= low <= value <= high <= 1, name
        assert low < value < high, name


def test_the_maximum_error_has_no_interval() -> None:
    logits, labels = drawn(200, 2.0, seed=3)
    report = metrics.calibration_report(logits, labels, bootstrap=19)
    changes = metrics.paired_difference(logits, 2 * logits, labels, bootstrap=19)
    assert report["maximum_calibration_error"] > 0
    assert "maximum_calibration_error" not in {*report["intervals"], *changes}


def test_a_change_reverses_its_sign_if_the_arms_are_swapped() -> None:
    logits, labels = drawn(500, 2.0, seed=4)
    there = metrics.expected_calibration_error_change(logits / 2, logits, labels)
    back = metrics.expected_calibration_error_change(logits, logits / 2, labels)
    assert there == pytest.approx((-back.value, -back.high, -back.low))
    assert there.high < 0
    paired = metrics.paired_difference(logits / 2, logits, labels, bootstrap=19)
    assert paired["expected_calibration_error"] == there


def test_clear_gaps_have_the_normal_interval() -> None:
    # With 50,000 samples at T = 3 every bin's gap is far from zero, so no bin is
    # biased.
    logits, labels = drawn(50_000, 3.0, seed=5)
    report = metrics.calibration_report(logits, labels, bootstrap=19)
    name = "expected_calibration_error"
    low, high = report["intervals"][name]
    assert high - report[name] == pytest.approx(report[name] - low, rel=0.1)
    probs, predicted = torch.softmax(logits, dim=1).max(dim=1)
    gaps = (predicted == labels).double() - probs
    deviation = gaps.std().item() / math.sqrt(50_000)
    assert high - report[name] == pytest.approx(ONE_SIDED * deviation, rel=0.02)


def test_the_change_between_equal_arms_is_zero() -> None:
    logits, labels = drawn(300, 1.0, seed=6)
    error = metrics.expected_calibration_error_change(logits, logits, labels)
    assert error.value == 0
    assert error.low == -error.high
    found = top_label_error(
        torch.full((9,), 0.6, dtype=torch.float64),
        torch.ones(9, dtype=torch.float64),
        torch.ones(9, 1, dtype=torch.float64),
    )
    low, high = change_interval(found, found)
    assert low < 0 < high

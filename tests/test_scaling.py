import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from softmax_temperature import metrics, scaling
from softmax_temperature.scaling import (
    TEMPERATURE_BOUNDS,
    TEMPERATURE_GRID,
    apply_temperature,
    fit_temperature,
)


def drawn(
    samples: int, classes: int = 5, *, temperature: float = 1.7, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Logits, and labels drawn from their softmax at a known temperature."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(samples, classes, generator=generator, dtype=torch.float64)
    labels = torch.multinomial(
        torch.softmax(logits / temperature, dim=1), 1, generator=generator
    ).squeeze(1)
    return logits, labels


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5, 7.0])
def test_a_known_temperature_is_found_again(temperature: float) -> None:
    logits, labels = drawn(4000, temperature=temperature)
    fit = fit_temperature(logits, labels)
    # The variance of an estimate of 1 / T is one over n times the mean variance of the
    # logits under the model.
    probs = torch.softmax(logits / temperature, dim=1)
    information = (
        ((probs * logits.square()).sum(1) - (probs * logits).sum(1).square())
        .mean()
        .item()
    )
    spread = temperature**2 / math.sqrt(4000 * information)
    assert fit.temperature == pytest.approx(temperature, abs=4 * spread)
    assert not fit.at_bound


def test_the_slope_vanishes_at_the_fit_and_the_value_is_the_likelihood() -> None:
    logits, labels = drawn(500)
    fit = fit_temperature(logits, labels)
    log_temperature = torch.tensor(
        math.log(fit.temperature), dtype=torch.float64, requires_grad=True
    )
    value = torch.nn.functional.cross_entropy(logits / log_temperature.exp(), labels)
    (slope,) = torch.autograd.grad(value, log_temperature, create_graph=True)
    (curvature,) = torch.autograd.grad(slope, log_temperature)
    # Newton's step from the fit is how far log T is off.
    assert abs(slope / curvature).item() < 1e-6
    assert fit.value == pytest.approx(value.item(), abs=1e-12)


@given(st.integers(0, 10_000), st.integers(1, 40), st.integers(2, 6))
def test_a_fit_never_raises_the_likelihood_loss_nor_changes_a_prediction(
    seed: int, samples: int, classes: int
) -> None:
    logits, labels = drawn(samples, classes, seed=seed)
    fit = fit_temperature(logits, labels)
    after = apply_temperature(logits, fit.temperature)
    assert (
        metrics.negative_log_likelihood(after, labels)
        <= metrics.negative_log_likelihood(logits, labels) + 1e-9
    )
    assert fit.value == pytest.approx(
        metrics.negative_log_likelihood(after, labels).item(), abs=1e-9
    )
    assert torch.equal(after.argmax(dim=1), logits.argmax(dim=1))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_data_without_an_optimum_end_on_a_flagged_bound(scale: float) -> None:
    labels = torch.arange(30) % 3
    separable = scale * torch.eye(3)[labels]
    low, high = TEMPERATURE_BOUNDS
    for logits, bound in (
        (separable, low),
        (-separable, high),
        (torch.full((30, 3), scale), high),
    ):
        fit = fit_temperature(logits, labels)
        assert (fit.temperature, fit.at_bound) == (bound, True)
        assert math.isfinite(fit.value)
    assert fit_temperature(-separable, labels).value == pytest.approx(
        math.log(3), abs=1e-3 + scale * 1e-4
    )


def test_calibration_error_is_searched_on_the_grid_of_the_paper() -> None:
    assert TEMPERATURE_GRID[:3] == (0.1, 0.2, 0.3)
    assert (len(TEMPERATURE_GRID), TEMPERATURE_GRID[-1]) == (100, 10.0)
    logits, labels = drawn(400)
    for bins in (15, 5):
        slow = [
            metrics.expected_calibration_error(
                torch.softmax(logits / t, dim=1), labels, bins=bins
            ).item()
            for t in TEMPERATURE_GRID
        ]
        fit = fit_temperature(logits, labels, criterion="ece", bins=bins)
        assert fit.temperature == TEMPERATURE_GRID[int(np.argmin(slow))]
        assert fit.value == pytest.approx(min(slow), abs=1e-12)
        assert not fit.at_bound


def test_the_first_of_equal_minima_is_kept_and_ends_of_the_grid_are_flagged() -> None:
    labels = torch.arange(30) % 3
    # At 0.1 and 0.2 every confidence is exactly 1 and right: an error of 0 at both.
    fit = fit_temperature(40 * torch.eye(3)[labels], labels, criterion="ece")
    assert fit == scaling.TemperatureFit(0.1, 0.0, at_bound=True)
    wrong = fit_temperature(-40 * torch.eye(3)[labels], labels, criterion="ece")
    assert (wrong.temperature, wrong.at_bound) == (10.0, True)


def test_bad_input_is_refused_by_name() -> None:
    logits, labels = drawn(6)
    for bad_logits, bad_labels, keywords, message in (
        (
            logits,
            labels,
            {"criterion": "brier"},
            "criterion must be 'nll' or 'ece', got 'brier'",
        ),
        (
            logits,
            labels,
            {"criterion": "ece", "bins": 0},
            "bins must be an integer of at least 1, got 0",
        ),
        (logits, labels + 5, {}, r"labels must be in \[0, 5\), got"),
    ):
        with pytest.raises(ValueError, match=message):
            fit_temperature(bad_logits, bad_labels, **keywords)
    with pytest.raises(
        ValueError, match="temperature must be finite and positive, got 0"
    ):
        apply_temperature(logits, 0.0)


@pytest.mark.gpu
@pytest.mark.parametrize("criterion", ["nll", "ece"])
def test_a_gpu_finds_the_same_temperature(criterion: str) -> None:
    logits, labels = drawn(500)
    here, there = (
        fit_temperature(logits.to(d), labels.to(d), criterion=criterion)
        for d in ("cpu", "cuda")
    )
    assert there.temperature == pytest.approx(here.temperature, rel=1e-7)
    assert there.value == pytest.approx(here.value, abs=1e-12)

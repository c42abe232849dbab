import gc
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor, nn

from softmax_temperature import (
    Cooling,
    TemperatureScaler,
    calibrate,
    metrics,
    scaling,
)
from softmax_temperature.scaling import (
    TEMPERATURE_BOUNDS,
    TEMPERATURE_GRID,
    apply_temperature,
    fit_temperature,
    temperature_interval,
)


def drawn(
    samples: int, classes: int = 5, *, temperature: float = 1.7, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Logits, with labels drawn from their softmax at a known temperature."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(samples, classes, generator=generator, dtype=torch.float64)
    labels = torch.multinomial(
        torch.softmax(logits / temperature, dim=1), 1, generator=generator
    ).squeeze(1)
    return logits, labels


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5, 7.0])
def test_a_known_temperature_is_recovered(temperature: float) -> None:
    logits, labels = drawn(4000, temperature=temperature)
    fit = fit_temperature(logits, labels)
    # The variance of the estimate of 1 / T is 1 / n divided by the mean variance of the
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
    # A Newton step from the fitted temperature estimates the error of log T.
    assert abs(slope / curvature).item() < 1e-6
    assert fit.value == pytest.approx(value.item(), abs=1e-12)


@given(st.integers(0, 10_000), st.integers(2, 40), st.integers(2, 6))
def test_a_fit_never_raises_the_likelihood_loss_nor_changes_a_prediction(
    seed: int, samples: int, classes: int
) -> None:
    logits, labels = drawn(samples, classes, seed=seed)
    assume(len(labels.unique()) > 1)
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


@pytest.mark.parametrize("criterion", ["nll", "ece"])
@given(
    st.integers(0, 10_000),
    st.integers(2, 40),
    st.integers(2, 6),
    st.floats(-9, 9),
)
def test_c_times_the_logits_have_c_times_the_temperature(
    criterion: str, seed: int, samples: int, classes: int, exponent: float
) -> None:
    logits, labels = drawn(samples, classes, seed=seed)
    assume(len(labels.unique()) > 1)
    fit = fit_temperature(logits, labels, criterion=criterion)
    scaled = fit_temperature(10**exponent * logits, labels, criterion=criterion)
    assert (scaled.at_bound, scaled.separable) == (fit.at_bound, fit.separable)
    if not fit.at_bound:
        expected = 10**exponent * fit.temperature
        assert scaled.temperature == pytest.approx(expected, rel=1e-6)
        tolerance = 1e-9 if criterion == "nll" else 1e-6
        assert scaled.value == pytest.approx(fit.value, rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1.0, 1e3, 1e9])
def test_data_without_an_optimum_are_recognised_at_every_scale(scale: float) -> None:
    labels = torch.arange(30) % 3
    separable = scale * torch.eye(3)[labels]
    for logits, is_separable, value, error in (
        (separable, True, 0.0, 0.0),
        # If the logits contradict the labels, or are constant, the best fit makes all
        # classes equally likely.
        (-separable, False, math.log(3), 1 / 3),
        (torch.full((30, 3), scale), False, math.log(3), 0.0),
    ):
        for criterion, best in (("nll", value), ("ece", error)):
            fit = fit_temperature(logits, labels, criterion=criterion)
            assert (fit.at_bound, fit.separable) == (True, is_separable)
            # The fit ends near the bound, where margins are `scale` divided by the
            # temperature.
            near = 1e-3 + (0 if is_separable else scale / fit.temperature)
            assert fit.value == pytest.approx(best, abs=near)


@pytest.mark.parametrize("scale", [1e-250, 1e-6, 0.02, 1.0, 30.0, 1e6, 1e250])
@pytest.mark.parametrize("criterion", ["nll", "ece"])
def test_the_estimator_scales_with_the_logits_and_says_nothing(
    criterion: str, scale: float
) -> None:
    # In the tests a warning is an error, so the estimator does not warn here.
    logits, labels = drawn(2000, temperature=2.0)
    scaler = TemperatureScaler(criterion=criterion).fit(scale * logits, labels)
    assert not scaler.at_bound_
    assert scaler.temperature_ == pytest.approx(2.0 * scale, rel=0.15)


def test_the_temperature_by_calibration_error_is_near_that_of_equal_confidence() -> (
    None
):
    logits, labels = drawn(1000)
    best = fit_temperature(logits, labels, criterion="ece")
    correct = (logits.argmax(dim=1) == labels).double().mean()
    confidence = torch.softmax(logits / best.temperature, dim=1).amax(dim=1).mean()
    # The calibration error is at least the difference between accuracy and confidence.
    assert abs(confidence - correct) <= best.value
    for temperature in torch.logspace(-2, 2, 200).tolist():
        probs = torch.softmax(logits / temperature, dim=1)
        error = metrics.expected_calibration_error(probs, labels).item()
        # The fit tries temperatures in steps of 3.3 %, between which the error changes
        # little.
        assert best.value <= error + 0.005


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_an_optimum_far_from_the_largest_margin_is_found(scale: float) -> None:
    # In most rows, the margin between the two classes is 1e-6, and two thirds of these
    # rows are right. One row is right with a margin of 1, and does not affect the fit.
    # At the best T, the larger logit of these rows has a probability of 2/3.
    logits = scale * torch.tensor([[0.0, -1e-6]] * 30 + [[0.0, -1.0]]).double()
    labels = torch.tensor([0, 0, 1] * 10 + [0])
    fit = fit_temperature(logits, labels)
    assert fit.temperature == pytest.approx(1e-6 * scale / math.log(2), rel=1e-6)
    assert not fit.at_bound


def test_ordinary_logits_end_on_the_bounds_of_the_bracket() -> None:
    labels = torch.arange(30) % 3
    logits = 5 * torch.eye(3)[labels]
    assert fit_temperature(logits, labels).temperature == TEMPERATURE_BOUNDS[0]
    assert fit_temperature(-logits, labels).temperature == TEMPERATURE_BOUNDS[1]


def test_near_chance_the_interval_has_no_upper_end() -> None:
    # There are two classes with margin 1, and 1001 of 2000 rows are right. At the best
    # T, the larger logit has probability 0.5005, so T = 1 / log(0.5005 / 0.4995) = 500.
    # The slope of a row in 1 / T has sd 1/2 and the mean curvature is 1/4, so 1 / T has
    # sd 0.5 / sqrt(2000) / 0.25 = 0.0447.
    logits = torch.tensor([[1.0, 0.0]]).repeat(2000, 1)
    labels = (torch.arange(2000) >= 1001).long()
    fit = fit_temperature(logits, labels)
    assert fit.temperature == pytest.approx(500, rel=1e-6)
    low, high = temperature_interval(logits, labels, fit.temperature)
    assert low == pytest.approx(1 / (0.002 + 1.6449 * 0.0447214), rel=1e-4)
    assert high == math.inf
    # Of a million rows, 500,001 are right, so the interval's upper end exceeds the
    # range of an exponential.
    logits, labels = logits.repeat(500, 1), torch.arange(1_000_000) % 2
    labels[-1] = 0
    fit = fit_temperature(logits, labels)
    assert temperature_interval(logits, labels, fit.temperature)[1] == math.inf


def test_the_interval_has_an_upper_end_while_its_half_width_is_below_one() -> None:
    # As above, but with n right rows of 2000: log T has sd 1 / (z sqrt(n (1 - p))),
    # where p = n / 2000 and z = log(p / (1 - p)) is the best 1 / T. The half width of
    # the interval is 0.920 for n = 1040, and 1.226 for n = 1030.
    logits = torch.tensor([[1.0, 0.0]], dtype=torch.float64).repeat(2000, 1)
    inverse = math.log(1040 / 960)
    labels = (torch.arange(2000) >= 1040).long()
    low, high = temperature_interval(logits, labels, 1 / inverse)
    assert low == pytest.approx(math.exp(-0.91975) / inverse, rel=1e-4)
    assert high == pytest.approx(math.exp(0.91975) / inverse, rel=1e-4)
    inverse = math.log(1030 / 970)
    labels = (torch.arange(2000) >= 1030).long()
    low, high = temperature_interval(logits, labels, 1 / inverse)
    assert low == pytest.approx(1 / (inverse * 2.22619), rel=1e-4)
    assert high == math.inf


@pytest.mark.parametrize("criterion", ["nll", "ece"])
def test_a_masked_class_is_a_class_of_probability_zero(criterion: str) -> None:
    logits, labels = drawn(300, 4)
    masked = torch.cat([logits, torch.full((300, 2), -math.inf)], dim=1)
    # A row in which all classes but the label are masked says nothing about the
    # temperature.
    masked[0] = -math.inf
    masked[0, labels[0]] = 1.0
    fit = fit_temperature(masked, labels, criterion=criterion)
    interval = temperature_interval(masked, labels, fit.temperature)
    # Users mask classes with such values; the last two are the lower ends of the ranges
    # of float32 and float64.
    smallest = (-1e6, -1e9, -1e200, -torch.finfo().max, -sys.float_info.max)
    for lowest in smallest:
        finite = masked.clamp(min=lowest)
        assert fit == fit_temperature(finite, labels, criterion=criterion)
        assert interval == temperature_interval(finite, labels, fit.temperature)
    scaled = apply_temperature(masked, fit.temperature)
    assert torch.equal(scaled.isneginf(), masked.isneginf())


@pytest.mark.parametrize("criterion", ["nll", "ece"])
def test_masks_do_not_move_the_bound_of_separable_logits(criterion: str) -> None:
    labels = torch.arange(30) % 3
    logits = 5 * torch.eye(3, dtype=torch.float64)[labels]
    logits[labels == 0, 2] = -math.inf
    expected = fit_temperature(logits, labels, criterion=criterion)
    assert expected.temperature == TEMPERATURE_BOUNDS[0]
    for lowest in (-1e9, -1e200, -sys.float_info.max):
        masked = logits.clamp(min=lowest)
        assert fit_temperature(masked, labels, criterion=criterion) == expected


def test_a_label_on_a_mask_is_refused() -> None:
    logits, labels = drawn(100, 4)
    for lowest in (-math.inf, -torch.finfo().max, -sys.float_info.max):
        masked = logits.double()
        masked[17, labels[17]] = lowest
        for function in (fit_temperature, metrics.negative_log_likelihood):
            with pytest.raises(ValueError, match=r"not be a masked class.* in row 17"):
                function(masked, labels)
    masked[17, labels[17]] = -1e305
    with pytest.raises(ValueError, match=r"got 1e\+305 in row 17, class"):
        fit_temperature(masked, labels)


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
        fit = fit_temperature(
            logits, labels, criterion="ece", bins=bins, grid=TEMPERATURE_GRID
        )
        assert fit.temperature == TEMPERATURE_GRID[int(np.argmin(slow))]
        assert fit.value == pytest.approx(min(slow), abs=1e-12)
        assert not fit.at_bound


def test_the_first_of_equal_minima_is_kept_and_ends_of_the_grid_are_flagged() -> None:
    labels = torch.arange(30) % 3
    # At temperatures 0.1 and 0.2 every confidence is exactly 1 and every prediction is
    # right, so both have an ECE of 0.
    settings: dict[str, Any] = {"criterion": "ece", "grid": TEMPERATURE_GRID}
    fit = fit_temperature(40 * torch.eye(3)[labels], labels, **settings)
    assert fit == scaling.TemperatureFit(0.1, 0.0, at_bound=True)
    wrong = fit_temperature(-40 * torch.eye(3)[labels], labels, **settings)
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
        (logits, labels, {"grid": []}, "grid must hold temperatures, got none"),
        (logits, labels, {"grid": [*range(1, 9), 7]}, "increasing .* got 8 before 7"),
        (logits, labels, {"grid": [2.0, 1.0]}, "increasing .* got 2.0 before 1.0"),
        (logits, labels, {"grid": [0.0, 1.0]}, "grid must be finite and positive"),
        (logits, labels + 5, {}, r"labels must be in \[0, 5\), got"),
        (
            logits.masked_fill(logits < math.inf, -math.inf),
            labels,
            {},
            "got -inf in row 0; -inf may mask some",
        ),
        (logits.clone().fill_(math.inf), labels, {}, "got .*inf in row 0"),
        (logits.clone().fill_(math.nan), labels, {}, "got .*nan in row 0"),
        (
            logits.scatter(1, labels[:, None], -math.inf),
            labels,
            {},
            "labels must not be a masked class, got . in row 0",
        ),
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


def test_an_interval_at_a_flat_likelihood_is_refused() -> None:
    labels = torch.arange(10) % 3
    with pytest.raises(ValueError, match="likelihood of the logits is flat"):
        scaling.temperature_interval(torch.zeros(10, 3), labels, 1.0)
    with pytest.raises(ValueError, match=r"level must be in \(0, 1\), got '0.9'"):
        scaling.temperature_interval(torch.eye(3), labels[:3], 1.0, level="0.9")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("scale", "fault"), [(1e-310, "differ by at least 1e-300"), (1.7e308, "1.8e308")]
)
def test_logits_whose_margins_no_float_holds_are_refused(
    scale: float, fault: str
) -> None:
    logits = scale * torch.tensor([[1.0, -1.0], [-1.0, 1.0]] * 5, dtype=torch.float64)
    with pytest.raises(ValueError, match=fault):
        fit_temperature(logits, torch.tensor([0, 1] * 5))


@pytest.mark.parametrize("criterion", ["nll", "ece"])
def test_a_fit_leaves_no_copy_of_the_logits_in_memory(criterion: str) -> None:
    logits, labels = drawn(777)
    gc.disable()  # Otherwise a copy in a reference cycle would be collected.
    try:
        fit_temperature(logits, labels, criterion=criterion)
        left = [
            thing
            for thing in gc.get_objects()
            if type(thing) is Tensor and thing.shape == logits.shape
        ]
    finally:
        gc.enable()
    assert [id(thing) for thing in left] == [id(logits)]


@pytest.mark.parametrize("criterion", ["nll", "ece"])
def test_labels_of_one_class_do_not_identify_a_temperature(criterion: str) -> None:
    logits = drawn(100)[0]
    labels = torch.full((100,), 3)
    fault = "labels are all 3"
    network = torch.nn.Linear(2, 5)
    cooling = Cooling(network)
    for call in (
        lambda: fit_temperature(logits, labels, criterion=criterion),
        lambda: temperature_interval(logits, labels, 1.5),
        lambda: TemperatureScaler(criterion=criterion).fit(logits, labels),
        lambda: calibrate(logits, labels, bootstrap=0),
    ):
        with pytest.raises(ValueError, match=fault):
            call()
    # Cooling leaves the network unchanged, so training can continue.
    assert cooling.cool(logits, labels) == 1
    assert cooling.last_fit is not None
    assert cooling.last_fit.at_bound
    assert cooling.temperature == 1
    # If the temperature is fitted on other rows, the reported rows may all be of one
    # class.
    report = calibrate(logits, labels, validation=drawn(200, seed=1), bootstrap=0)
    assert report.temperature == fit_temperature(*drawn(200, seed=1)).temperature


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("criterion", ["nll", "ece"])
def test_labels_of_every_unsigned_type_give_the_same_temperature(
    dtype: str, criterion: str
) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(300, 5, generator=generator)
    labels = (logits / 1.5).softmax(1).multinomial(1, generator=generator)[:, 0]
    expected = fit_temperature(logits, labels, criterion=criterion)
    unsigned = labels.to(getattr(torch, dtype))
    assert fit_temperature(logits, unsigned, criterion=criterion) == expected
    interval = temperature_interval(logits, unsigned, 1.5)
    assert interval == temperature_interval(logits, labels, 1.5)


@pytest.mark.parametrize("fill", [-1e4, -65504.0, -1e9, torch.finfo(torch.float32).min])
def test_a_label_on_a_filled_mask_is_refused_by_fits_metrics_and_cooling(
    fill: float,
) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(300, 5, generator=generator)
    labels = (logits / 1.5).softmax(1).multinomial(1, generator=generator)[:, 0]
    masked = torch.rand(300, 5, generator=generator) < 0.3
    masked[torch.arange(300), labels] = False
    masked[7, (labels[7] + 1) % 5] = True
    infinite = logits.masked_fill(masked, -math.inf)
    filled = logits.masked_fill(masked, fill)
    fitted = fit_temperature(filled, labels).temperature
    assert fitted == pytest.approx(fit_temperature(infinite, labels).temperature)
    wrong = labels.clone()
    wrong[7] = (labels[7] + 1) % 5
    calls: list[Callable[[], Any]] = [
        lambda: fit_temperature(filled, wrong),
        lambda: temperature_interval(filled, wrong, 1.5),
        lambda: metrics.negative_log_likelihood(filled, wrong),
        lambda: metrics.top_accuracy(filled, wrong),
        lambda: metrics.calibration_report(filled, wrong),
        lambda: metrics.confident_report(filled, wrong),
        lambda: metrics.paired_difference(filled, filled / 2, wrong),
        lambda: metrics.expected_calibration_error_change(filled, filled / 2, wrong),
        lambda: Cooling(nn.Linear(2, 5)).cool(filled, wrong),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"not be a masked class, got . in row 7"):
            call()

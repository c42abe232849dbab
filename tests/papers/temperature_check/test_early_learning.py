"""Runs with known power laws give the right slopes, claims and figures."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from softmax_temperature.early_learning.flows import FIT, LEARNED, TENTH, UNIT, WHOLE
from softmax_temperature.papers.shared.claims import (
    CONTRADICTED,
    HOLDS,
    INCONCLUSIVE,
    NOT_TESTED,
    judge_all,
)
from softmax_temperature.papers.shared.runs import Runs
from softmax_temperature.papers.temperature_check import flow_figures
from softmax_temperature.papers.temperature_check.claims import CLAIMS as ALL_CLAIMS
from softmax_temperature.papers.temperature_check.early_learning import (
    PREDICTIONS,
    early_slopes,
)
from softmax_temperature.papers.temperature_check.study import (
    LARGE_LOGITS,
    SMALL_LOGITS,
)

from .conftest import Row, make_runs

SEEDS = (0, 1, 2)
INVERSE_TEMPERATURES = (0.01, 0.1, 1.0, 10.0, 100.0)
NORMS = (0.1, 0.5, 2.0, 20.0, 300.0, 1000.0, 5000.0)
"""The first three are in the limit of small logits, the last three in the limit of
large logits.
"""
SMOOTH = "mlp-tiny"
KINKED = "wrn-tiny"
CLAIMS = {claim.id: claim for claim in ALL_CLAIMS if claim.id.startswith("early-")}
DRAWN = (
    flow_figures.learning_curves,
    flow_figures.early_logit_norms,
    flow_figures.kernel_drift,
)

Change = Callable[[Row], Row]


def flow(network: str, seed: int, **others: Any) -> Row:
    """The row of a gradient flow."""
    return {
        "task": "gradient_flow",
        "dataset": "digits",
        "network": network,
        "architecture": "mlp",
        "batch_norm": False,
        "dynamics": "network",
        "seed": seed,
        "classes": 10,
        "smooth": network == SMOOTH,
        "unit_time": 0.01,
        "drift_rate": 1.0,
        "diverged": False,
        "epochs_done": 0,
        "train_samples": 100,
        "cell": f"temperature_check/early_learning/{network}/course/{seed}",
        **others,
    }


def noise(seed: int) -> float:
    """A factor that depends only on the seed, so that it changes no slope."""
    return float(np.exp(0.1 * (seed - 1)))


def from_zero(network: str, seed: int, inverse_temperature: float, slope: float) -> Row:
    """A flow from logits of 0, observed every half decade of time.

    The drift is 0.5 at inverse temperature 0.01 and follows a power law with exponent
    `slope`.
    """
    row = flow(
        network,
        seed,
        start="zero",
        start_norm=0.0,
        initial_logit_norm=0.0,
        inverse_temperature=inverse_temperature,
    )
    course = [
        {"moment": "time", "time": time, "loss": 2.3 / (1 + time), "change": time}
        for time in np.geomspace(0.001, 1, 7)
    ]
    if np.isnan(inverse_temperature):
        return {**row, "dynamics": "linearised", "course": course}
    drift = 0.5 * (inverse_temperature / 0.01) ** slope * noise(seed)
    unit = {"moment": UNIT, "time": 0.01 * noise(seed), "loss": 2.0, "drift": drift}
    fit = {**unit, "moment": FIT, "time": 1.0}
    return {**row, "train": times({UNIT: unit["time"]}), "course": [*course, unit, fit]}


def from_a_norm(network: str, seed: int, norm: float, dynamics: str) -> Row:
    """A flow from logits of the given norm, with event times that follow power laws.

    The values of the linearised dynamics must not count; if they did, every slope would
    change.
    """
    scale = noise(seed) * (norm if dynamics == "linearised" else 1)
    fit = 0.01 * max(1.0, norm / 10) * scale
    events = {UNIT: 0.01 * scale, TENTH: 0.001 * norm * scale, FIT: fit}
    return flow(
        network,
        seed,
        start="norm",
        start_norm=norm,
        initial_logit_norm=norm * (1 + 1e-5),
        dynamics=dynamics,
        inverse_temperature=1000.0,
        logit_time=0.01 * norm,
        train=times({**events, WHOLE: np.nan, LEARNED: 5 * fit}),
    )


def times(events: dict[str, Any]) -> dict[str, Any]:
    """Event times, under the names of their metrics."""
    return {f"time_to_{event}": time for event, time in events.items()}


def flows(networks: tuple[str, ...], drift: float = -1.0) -> list[Row]:
    """Flows from logits of 0, and from logits of seven norms."""
    rows = []
    for network in networks:
        for seed in SEEDS:
            rows += [
                from_zero(network, seed, value, drift)
                for value in (np.nan, *INVERSE_TEMPERATURES)
            ]
            rows += [
                from_a_norm(network, seed, norm, dynamics)
                for norm in NORMS
                for dynamics in ("network", "linearised")
            ]
    return rows


def early(change: Change = dict) -> Runs:
    """A study of two networks, with `change` applied to each row."""
    return make_runs([change(row) for row in flows((SMOOTH, KINKED))])


def with_time(row: Row, event: str, factor: float) -> Row:
    """The row, with the time of the event multiplied by `factor`."""
    name = f"time_to_{event}"
    return {**row, "train": {**row["train"], name: row["train"][name] * factor}}


def bent(event: str, power: float) -> Change:
    """A function that multiplies an event's time by a power of the initial norm."""

    def change(row: Row) -> Row:
        if row["start"] == "zero":
            return row
        return with_time(row, event, row["initial_logit_norm"] ** power)

    return change


def judged(name: str, runs: Runs) -> dict[str, Any]:
    (row,) = judge_all("temperature_check", [CLAIMS[name]], runs, profile="tiny")
    return row


def test_power_laws_give_their_slopes_and_noise_of_seeds_does_not_count() -> None:
    table = early_slopes(early())
    assert len(table) == 2 * len(PREDICTIONS)
    np.testing.assert_allclose(table["slope"], table["predicted"], atol=1e-9)
    np.testing.assert_allclose(table["sd"], 0, atol=1e-9)
    np.testing.assert_allclose(table["misfit"], 1, atol=1e-9)
    assert set(table["n"]) == {3}
    # The drifts are 0.5, 0.05, 0.005, 0.0005 and 0.00005. The last three are below 1 /
    # 50.
    points = table.groupby("where")["points"].unique().map(list).to_dict()
    assert points == {"still": [3], "small": [3], "large": [3]}


def test_points_off_their_line_leave_a_claim_open() -> None:
    """The drift of a kernel that changes in steps could match the slope by accident."""

    def step(row: Row) -> Row:
        if row["inverse_temperature"] != 10:
            return row
        # A change of the middle one of three points does not change the slope.
        course = [
            {**moment, "drift": moment.get("drift", np.nan) * 8}
            for moment in row["course"]
        ]
        return {**row, "course": course}

    row = judged("early-drift-kinks", early(step))
    assert (row["verdict"], row["value"]) == (INCONCLUSIVE, pytest.approx(0, abs=1e-9))
    # The residuals have the ratio -1 : 2 : -1, so the middle point is off by a factor
    # of 8 ** (2 / 3) = 4.
    assert row["note"] == (
        f"not judged: {KINKED}, as a line: points miss it by a factor of 4.00"
    )


@pytest.mark.parametrize(("miss", "verdict"), [(1.49, HOLDS), (1.51, INCONCLUSIVE)])
def test_a_point_may_miss_its_line_by_a_factor_of_one_and_a_half(
    miss: float, verdict: str
) -> None:
    def step(row: Row) -> Row:
        if row["inverse_temperature"] != 10:
            return row
        # The middle one of three points misses the line by two thirds of its change.
        course = [
            {**moment, "drift": moment.get("drift", np.nan) * miss**1.5}
            for moment in row["course"]
        ]
        return {**row, "course": course}

    assert judged("early-drift-kinks", early(step))["verdict"] == verdict


def test_points_outside_of_the_regime_change_nothing() -> None:
    def change(row: Row) -> Row:
        if row["start"] == "norm" and row["start_norm"] == 20:
            for event in (UNIT, TENTH, FIT):
                row = with_time(row, event, 7)
        if row["start"] == "zero" and row["inverse_temperature"] < 0.5:
            row = with_time(row, UNIT, 7)
        return row

    pd.testing.assert_frame_equal(early_slopes(early(change)), early_slopes(early()))


def test_logits_are_small_or_large_up_to_the_bounds_for_one_image() -> None:
    # The logit norm of each of the 100 images is a tenth of the norm over all images.
    norms = (3.4, 3.6, 199.0, 201.0)
    runs = make_runs([from_a_norm(SMOOTH, 0, norm, "network") for norm in norms])
    assert runs.select(SMALL_LOGITS)["start_norm"].tolist() == [3.4]
    assert runs.select(LARGE_LOGITS)["start_norm"].tolist() == [201.0]


def without_fit(is_lost: Callable[[float], bool]) -> Runs:
    """The study, but at norms for which `is_lost` is true the loss never halves."""

    def change(row: Row) -> Row:
        if row["start"] == "norm" and is_lost(row["start_norm"]):
            return with_time(row, FIT, np.nan)
        return row

    return early(change)


def test_an_event_that_did_not_happen_leaves_the_others() -> None:
    # Two of three points with small logits remain.
    table = early_slopes(without_fit(lambda norm: norm == 0.5))
    expected = early_slopes(early()).drop(columns="points")
    pd.testing.assert_frame_equal(table.drop(columns="points"), expected, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "lost"),
    [
        ("early-small-logits", lambda norm: norm < 10),
        ("early-small-logits", lambda norm: norm in (0.1, 0.5)),
        ("early-large-logits", lambda norm: norm in (300, 1000)),
        ("early-large-logits", lambda norm: norm > 100),
    ],
)
def test_times_at_fewer_than_two_norms_give_no_slope_and_leave_the_claim_open(
    name: str, lost: Callable[[float], bool]
) -> None:
    without = without_fit(lost)
    assert len(early_slopes(without)) == 2 * (len(PREDICTIONS) - 1)
    row = judged(name, without)
    assert row["verdict"] == INCONCLUSIVE
    assert "not judged: time to half of the loss, mlp-tiny: no seed" in row["note"]


@pytest.mark.parametrize("name", CLAIMS)
def test_claims_hold_where_the_data_agree_and_are_not_tested_without(name: str) -> None:
    row = judged(name, early())
    assert (row["verdict"], row["n"]) == (HOLDS, 3)
    row = judged(name, make_runs())
    assert row["verdict"] == NOT_TESTED
    assert "two points where the prediction speaks" in row["note"]


@pytest.mark.parametrize(
    ("name", "event", "power"),
    [
        ("early-small-logits", UNIT, 0.2),
        ("early-small-logits", FIT, -0.2),
        ("early-large-logits", TENTH, -0.2),
        ("early-large-logits", FIT, 0.2),
    ],
)
def test_claims_about_norms_fail_where_a_slope_is_off(
    name: str, event: str, power: float
) -> None:
    row = judged(name, early(bent(event, power)))
    assert (row["verdict"], row["value"]) == (CONTRADICTED, pytest.approx(power))
    # A slope that deviates by a quarter of its size is within the margin.
    near = early(bent(event, power / 4))
    assert judged("early-small-logits", near)["verdict"] == HOLDS
    assert judged("early-large-logits", near)["verdict"] == HOLDS


def test_claims_about_drift_tell_networks_with_kinks_from_smooth_ones() -> None:
    smooth = flows((SMOOTH,), drift=-0.7)
    runs = make_runs(smooth, flows((KINKED,), drift=-1.0))
    row = judged("early-drift", runs)
    assert (row["verdict"], row["value"]) == (CONTRADICTED, pytest.approx(0.3))
    assert judged("early-drift-kinks", runs)["verdict"] == HOLDS
    assert judged("early-drift-kinks", make_runs(smooth))["verdict"] == NOT_TESTED


def test_a_network_that_is_called_relu_is_smooth_if_its_units_are() -> None:
    rows = [{**row, "network": "mlp-relu"} for row in flows((SMOOTH,))]
    assert judged("early-drift", make_runs(rows))["verdict"] == HOLDS
    assert judged("early-drift-kinks", make_runs(rows))["verdict"] == NOT_TESTED


def drawn(draw: Any, runs: Runs) -> Figure:
    figure: Figure = draw(runs)
    figure.draw_without_rendering()
    return figure


@pytest.mark.parametrize("draw", DRAWN)
@pytest.mark.filterwarnings("error")
def test_figures_have_logarithmic_axes_and_are_none_without_courses(draw: Any) -> None:
    assert draw(make_runs()) is None
    panels = [axes for axes in drawn(draw, early()).axes if axes.get_visible()]
    assert {axes.get_xscale() for axes in panels} == {"log"}


def incomplete(row: Row) -> Row:
    """Return the row without some events, the late drifts, and the end of the flow."""
    if row["start"] == "norm":
        lost = [FIT, TENTH] if row["network"] == SMOOTH else []
        lost += [UNIT, FIT] if row["start_norm"] > 100 else []
        for event in lost:
            row = with_time(row, event, np.nan)
        return row
    if row["network"] != KINKED or not row["inverse_temperature"] < 10:
        return row
    course = [
        {**moment, "drift": np.nan}
        for moment in row["course"]
        if moment["moment"] != "time" or moment["time"] <= 0.01
    ]
    return {**row, "course": course}


@pytest.mark.parametrize("draw", DRAWN)
@pytest.mark.filterwarnings("error")
def test_figures_are_drawn_without_events_that_did_not_happen(draw: Any) -> None:
    runs = early(incomplete)
    drawn(draw, replace(runs, table=runs.table[runs.table["seed"] == 0]))


def test_the_legend_of_drift_has_slopes_with_intervals() -> None:
    figure = drawn(flow_figures.kernel_drift, early())
    texts = [
        text.get_text() for legend in figure.legends for text in legend.get_texts()
    ]
    slope = "slope −1.000 [−1.000, −1.000], predicted −1"
    assert f"multilayer perceptron, tiny:\n{slope}" in texts
    assert f"Wide-ResNet, tiny (kinks):\n{slope}" in texts
    means = next(line for line in figure.axes[0].lines if line.get_linestyle() == "-")
    heights = np.asarray(means.get_ydata(), float)
    np.testing.assert_allclose(heights, [0.5, 0.05, 0.005, 0.0005, 0.00005])

"""Slopes, claims and figures of early learning on records with known power laws."""

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
from softmax_temperature.papers.temperature_check import figures
from softmax_temperature.papers.temperature_check.claims import CLAIMS as ALL_CLAIMS
from softmax_temperature.papers.temperature_check.early_learning import (
    PREDICTIONS,
    early_slopes,
)
from softmax_temperature.papers.temperature_check.records import Records

SEEDS = (0, 1, 2)
INVERSE_TEMPERATURES = (0.01, 0.1, 1.0, 10.0, 100.0)
NORMS = (
    0.1,
    0.5,
    2.0,
    20.0,
    300.0,
    1000.0,
    5000.0,
)  # The first three and the last two belong to a limit.
SMOOTH, KINKED = "mlp-tiny", "wrn-tiny"
CLAIMS = {claim.id: claim for claim in ALL_CLAIMS if claim.id.startswith("early-")}
DRAWN = ("learning_curves", "early_logit_norms", "kernel_drift")


def about(network: str, seed: int) -> dict[str, Any]:
    known = {
        "network": network,
        "seed": seed,
        "smooth": network == SMOOTH,
        "parameters": 500,
        "images": 100,
    }
    return known | {
        "classes": 10,
        "kernel_norm": 30.0,
        "kernel_norm_error": 1.0,
        "unit_time": 0.01,
    }


def noise(seed: int) -> float:
    """A factor that no slope sees."""
    return float(np.exp(0.1 * (seed - 1)))


def course(
    network: str, seed: int, inverse_temperature: float, slope: float
) -> list[dict[str, Any]]:
    """Half a decade of times, and two events; the drift falls by `slope`, from 0.5 at
    inverse temperature 0.01.
    """
    own = {
        "inverse_temperature": inverse_temperature,
        "ending": "complete",
        "drift_rate": 1.0,
    }
    shared = (
        about(network, seed)
        | own
        | {"drift": np.nan, "drift_error": np.nan, "distance": np.nan}
    )
    times = np.geomspace(0.001, 1, 7)
    rows = [
        shared
        | {"moment": "time", "time": time, "loss": 2.3 / (1 + time), "change": time}
        for time in times
    ]
    if np.isnan(inverse_temperature):
        return rows
    drift = 0.5 * (inverse_temperature / 0.01) ** slope * noise(seed)
    unit = {
        "moment": UNIT,
        "time": 0.01 * noise(seed),
        "loss": 2.0,
        "change": 1.0,
        "drift": drift,
        "drift_error": 0.0,
    }
    return [*rows, shared | unit, shared | unit | {"moment": FIT, "time": 1.0}]


def start(network: str, seed: int, norm: float, dynamics: str) -> dict[str, Any]:
    """Events at 0.01 for small logits, and in proportion to large ones."""
    own = {
        "inverse_temperature": 1000.0,
        "wanted_norm": norm,
        "logit_norm": norm * (1 + 1e-5),
        "correlation": 0.9,
    }
    fit = 0.01 * max(1.0, norm / 10) * noise(seed)
    events = {
        UNIT: 0.01 * noise(seed),
        TENTH: 0.001 * norm * noise(seed),
        WHOLE: np.nan,
        FIT: fit,
        LEARNED: 5 * fit,
    }
    # The linearised dynamics must not be counted: here they would bend every slope.
    events = {
        name: time * (norm if dynamics == "linearised" else 1)
        for name, time in events.items()
    }
    return (
        about(network, seed)
        | own
        | events
        | {"logit_time": 0.01 * norm, "dynamics": dynamics, "ending": "complete"}
    )


def make_early(
    networks: tuple[str, ...] = (SMOOTH, KINKED), drift: float = -1.0
) -> Records:
    cells = [(network, seed) for network in networks for seed in SEEDS]
    curves = [
        row
        for cell in cells
        for value in (np.nan, *INVERSE_TEMPERATURES)
        for row in course(*cell, value, drift)
    ]
    norms = [
        start(*cell, norm, dynamics)
        for cell in cells
        for norm in NORMS
        for dynamics in ("real", "linearised")
    ]
    return Records(*[pd.DataFrame()] * 4, pd.DataFrame(curves), pd.DataFrame(norms))


@pytest.fixture
def early() -> Records:
    return make_early()


@pytest.fixture
def nothing(early: Records) -> Records:
    """What a profile without early learning has."""
    return replace(
        early,
        early_curves=early.early_curves.iloc[:0],
        early_norms=early.early_norms.iloc[:0],
    )


def with_events(records: Records, event: str, values: Any) -> Records:
    return replace(records, early_norms=records.early_norms.assign(**{event: values}))


def judged(name: str, records: Records) -> dict[str, Any]:
    (row,) = judge_all("temperature_check", [CLAIMS[name]], records, profile="tiny")
    return row


def test_power_laws_give_their_slopes_and_noise_of_seeds_does_not_count(
    early: Records,
) -> None:
    table = early_slopes(early)
    assert len(table) == 2 * len(PREDICTIONS)
    for column, expected in (
        ("slope", table["predicted"]),
        ("sd", 0),
        ("misfit", 1),
        ("n", 3),
    ):
        np.testing.assert_allclose(table[column], expected, atol=1e-9)
    points = table.groupby("where")["points"].unique().map(list).to_dict()
    # Drifts of 0.5, 0.05, 0.005, 0.0005 and 0.00005: the last three are below a
    # fiftieth.
    assert points == {"still": [3], "small": [3], "large": [3]}


def test_what_is_no_power_law_is_told_by_its_misfit(early: Records) -> None:
    """A drift that steps: its slope may be the predicted one by accident."""
    curves = early.early_curves.copy()
    curves.loc[curves["inverse_temperature"] == 10, "drift"] *= (
        8  # The middle one of three: the slope stays.
    )
    row = judged("early-drift-kinks", replace(early, early_curves=curves))
    assert (row["verdict"], row["value"]) == (INCONCLUSIVE, pytest.approx(0, abs=1e-9))
    # Least squares share a logarithm of 8 as 2 : -1 among the points.
    assert (
        row["note"]
        == f"not judged: {KINKED}, as a line: points miss it by a factor of 4.00"
    )


def test_points_outside_of_the_regime_change_nothing(early: Records) -> None:
    curves, norms = early.early_curves.copy(), early.early_norms.copy()
    curves.loc[curves["inverse_temperature"] < 0.5, "time"] *= 7
    norms.loc[norms["wanted_norm"].isin([20.0]), [UNIT, TENTH, FIT]] *= 7
    outside = replace(early, early_curves=curves, early_norms=norms)
    pd.testing.assert_frame_equal(early_slopes(outside), early_slopes(early))


def test_an_event_that_did_not_happen_leaves_the_others(early: Records) -> None:
    norms = early.early_norms
    some = early_slopes(
        with_events(early, FIT, norms[FIT].where(norms["wanted_norm"] != 5000))
    )
    expected = early_slopes(early).drop(columns="points")
    pd.testing.assert_frame_equal(some.drop(columns="points"), expected, atol=1e-9)
    none = early_slopes(
        with_events(early, FIT, norms[FIT].where(norms["wanted_norm"] < 400))
    )
    assert len(none) == 2 * (len(PREDICTIONS) - 1)  # One point is no slope.


@pytest.mark.parametrize("name", CLAIMS)
def test_claims_hold_where_the_data_agree_and_are_not_tested_without(
    early: Records, nothing: Records, name: str
) -> None:
    row = judged(name, early)
    assert (row["verdict"], row["n"]) == (HOLDS, 3)
    row = judged(name, nothing)
    assert (row["verdict"], "two points" in row["note"]) == (NOT_TESTED, True)


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
    early: Records, name: str, event: str, power: float
) -> None:
    norms = early.early_norms
    row = judged(
        name, with_events(early, event, norms[event] * norms["logit_norm"] ** power)
    )
    assert (row["verdict"], row["value"]) == (CONTRADICTED, pytest.approx(power))
    # Half a margin is none.
    near = with_events(early, event, norms[event] * norms["logit_norm"] ** (power / 4))
    assert {
        judged(each, near)["verdict"]
        for each in ("early-small-logits", "early-large-logits")
    } == {HOLDS}


def test_claims_about_drift_know_kinks() -> None:
    smooth, kinked = (
        make_early((SMOOTH,), drift=-0.7),
        make_early((KINKED,), drift=-1.0),
    )
    both = replace(
        smooth, early_curves=pd.concat([smooth.early_curves, kinked.early_curves])
    )
    row = judged("early-drift", both)
    assert (row["verdict"], row["value"]) == (CONTRADICTED, pytest.approx(0.3))
    assert judged("early-drift-kinks", both)["verdict"] == HOLDS
    assert judged("early-drift-kinks", smooth)["verdict"] == NOT_TESTED


def drawn(name: str, records: Records) -> Figure:
    figure: Figure = getattr(figures, name)(records)
    figure.draw_without_rendering()
    return figure


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.filterwarnings("error")
def test_figures_bear_what_did_not_happen(
    early: Records, nothing: Records, name: str
) -> None:
    assert getattr(figures, name)(nothing) is None
    assert all(
        axes.get_xscale() == "log"
        for axes in drawn(name, early).axes
        if axes.get_visible()
    )
    curves, norms = early.early_curves.copy(), early.early_norms.copy()
    norms.loc[norms["network"] == SMOOTH, [FIT, TENTH]] = np.nan
    norms.loc[norms["wanted_norm"] > 100, [UNIT, FIT]] = np.nan
    lost = (curves["network"] == KINKED) & (curves["inverse_temperature"] < 10)
    curves.loc[lost, "drift"] = np.nan
    curves = curves[~(lost & (curves["moment"] == "time") & (curves["time"] > 0.01))]
    drawn(
        name,
        replace(
            early,
            early_curves=curves[curves["seed"] == 0],
            early_norms=norms[norms["seed"] == 0],
        ),
    )


def test_the_legend_of_drift_has_slopes_with_intervals(early: Records) -> None:
    figure = drawn("kernel_drift", early)
    texts = [
        text.get_text() for legend in figure.legends for text in legend.get_texts()
    ]
    assert f"{SMOOTH}: slope -1.000 [-1.000, -1.000], predicted -1" in texts
    assert f"{KINKED} (kinks): slope -1.000 [-1.000, -1.000], predicted -1" in texts
    means = next(
        line.get_ydata() for line in figure.axes[0].lines if line.get_linestyle() == "-"
    )
    np.testing.assert_allclose(means, [0.5, 0.05, 0.005, 0.0005, 0.00005])

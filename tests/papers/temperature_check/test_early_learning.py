"""Slopes, claims and figures of early learning on records with known power laws."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from softmax_temperature.early_learning.flows import FIT, LEARNED, TENTH, UNIT, WHOLE
from softmax_temperature.papers.shared.claims import CONTRADICTED, HOLDS, INCONCLUSIVE, NOT_TESTED, judge_all
from softmax_temperature.papers.temperature_check import early_learning_figures as figures
from softmax_temperature.papers.temperature_check.claims import CLAIMS as ALL_CLAIMS
from softmax_temperature.papers.temperature_check.early_learning import PREDICTIONS, early_slopes
from softmax_temperature.papers.temperature_check.records import Records

IMAGES, SEEDS = 100, (0, 1, 2)
INVERSE_TEMPERATURES = (0.01, 0.1, 1.0, 10.0, 100.0)
NORMS = (0.1, 0.5, 2.0, 20.0, 300.0, 1000.0, 5000.0)  # The first three and the last two belong to a limit.
SMOOTH, KINKED = "mlp-tiny", "wrn-tiny"
CLAIMS = {claim.id: claim for claim in ALL_CLAIMS if claim.id.startswith("early-")}
DRAWN: dict[str, Callable[[Records], Figure | None]] = {
    "learning_curves": figures.learning_curves,
    "logit_norms": figures.logit_norms,
    "kernel_drift": figures.kernel_drift,
}


def about(network: str, seed: int) -> dict[str, Any]:
    known = {"network": network, "seed": seed, "smooth": network == SMOOTH, "parameters": 500, "images": IMAGES}
    return known | {"classes": 10, "kernel_norm": 30.0, "kernel_norm_error": 1.0, "unit_time": 0.01}


def noise(seed: int) -> float:
    """A factor that no slope sees."""
    return float(np.exp(0.1 * (seed - 1)))


def course(network: str, seed: int, inverse_temperature: float, slope: float) -> list[dict[str, Any]]:
    """Half a decade of times, and two events; the drift falls by `slope`, from 0.5 at inverse temperature 0.01."""
    own = {"inverse_temperature": inverse_temperature, "ending": "complete", "drift_rate": 1.0}
    shared = about(network, seed) | own | {"drift": np.nan, "drift_error": np.nan, "distance": np.nan}
    times = np.geomspace(0.001, 1, 7)
    rows = [shared | {"moment": "time", "time": time, "loss": 2.3 / (1 + time), "change": time} for time in times]
    if np.isnan(inverse_temperature):
        return rows
    drift = 0.5 * (inverse_temperature / 0.01) ** slope * noise(seed)
    unit = {"moment": UNIT, "time": 0.01 * noise(seed), "loss": 2.0, "change": 1.0, "drift": drift, "drift_error": 0.0}
    return [*rows, shared | unit, shared | unit | {"moment": FIT, "time": 1.0}]


def start(network: str, seed: int, norm: float, dynamics: str) -> dict[str, Any]:
    """Events at 0.01 for small logits, and in proportion to large ones."""
    own = {"inverse_temperature": 1000.0, "wanted_norm": norm, "logit_norm": norm * (1 + 1e-5), "correlation": 0.9}
    fit = 0.01 * max(1.0, norm / 10) * noise(seed)
    events = {UNIT: 0.01 * noise(seed), TENTH: 0.001 * norm * noise(seed), WHOLE: np.nan, FIT: fit, LEARNED: 5 * fit}
    # The linearised dynamics must not be counted: here they would bend every slope.
    if dynamics == "linearised":
        events = {name: time * norm for name, time in events.items()}
    return (
        about(network, seed) | own | {"logit_time": 0.01 * norm, "dynamics": dynamics, **events, "ending": "complete"}
    )


@pytest.fixture
def make_early() -> Callable[..., Records]:
    def make(
        networks: tuple[str, ...] = (SMOOTH, KINKED), seeds: tuple[int, ...] = SEEDS, drift: float = -1.0
    ) -> Records:
        cells = [(network, seed) for network in networks for seed in seeds]
        curves = [
            row
            for network, seed in cells
            for value in (np.nan, *INVERSE_TEMPERATURES)
            for row in course(network, seed, value, drift)
        ]
        norms = [
            start(network, seed, norm, dynamics)
            for network, seed in cells
            for norm in NORMS
            for dynamics in ("real", "linearised")
        ]
        empty = pd.DataFrame()
        return Records(empty, empty, empty, empty, pd.DataFrame(curves), pd.DataFrame(norms))

    return make


@pytest.fixture
def early(make_early: Callable[..., Records]) -> Records:
    return make_early()


@pytest.fixture
def nothing(early: Records) -> Records:
    """What a profile without early learning has."""
    return replace(early, early_curves=early.early_curves.iloc[:0], early_norms=early.early_norms.iloc[:0])


def with_events(records: Records, event: str, make: Callable[[pd.DataFrame], Any]) -> Records:
    norms = records.early_norms.copy()
    norms[event] = make(norms)
    return replace(records, early_norms=norms)


def judged(name: str, records: Records) -> dict[str, Any]:
    (row,) = judge_all("temperature_check", [CLAIMS[name]], records, profile="tiny")
    return row


def test_power_laws_give_their_slopes_and_noise_of_seeds_does_not_count(early: Records) -> None:
    table = early_slopes(early)
    assert len(table) == 2 * len(PREDICTIONS)
    np.testing.assert_allclose(table["slope"], table["predicted"], atol=1e-9)
    np.testing.assert_allclose(table["sd"], 0, atol=1e-9)
    np.testing.assert_allclose(table["misfit"], 1, atol=1e-9)
    assert set(table["n"]) == {3}
    points = table.groupby("where")["points"].unique().map(list).to_dict()
    # Drifts of 0.5, 0.05, 0.005, 0.0005 and 0.00005: the last three are below a fiftieth.
    assert points == {"still": [3], "small": [3], "large": [3]}


def test_what_is_no_power_law_is_told_by_its_misfit(early: Records) -> None:
    """A drift that steps: its slope may be the predicted one by accident."""
    curves = early.early_curves.copy()
    curves.loc[curves["inverse_temperature"] == 10, "drift"] *= 8  # The middle one of three: the slope stays.
    stepped = replace(early, early_curves=curves)
    table = early_slopes(stepped)
    row = table[(table["network"] == KINKED) & (table["predicted"] == -1)].iloc[0]
    assert row["slope"] == pytest.approx(-1)
    # Least squares share a logarithm of 8 as 2 : -1 among the points.
    assert row["misfit"] == pytest.approx(8 ** (2 / 3))
    assert judged("early-drift-kinks", early)["verdict"] == HOLDS
    row = judged("early-drift-kinks", stepped)
    assert (row["verdict"], row["value"]) == (INCONCLUSIVE, pytest.approx(0, abs=1e-9))
    assert row["note"] == f"not judged: {KINKED}, as a line: points miss it by a factor of 4.00"


def test_points_outside_of_the_regime_change_nothing(early: Records) -> None:
    expected = early_slopes(early)
    curves, norms = early.early_curves.copy(), early.early_norms.copy()
    curves.loc[curves["inverse_temperature"] < 0.5, "time"] *= 7
    between = (norms["wanted_norm"] > 3.6) & (norms["wanted_norm"] < 199)
    assert between.any()
    norms.loc[between, [UNIT, TENTH, FIT]] *= 7
    pd.testing.assert_frame_equal(early_slopes(replace(early, early_curves=curves, early_norms=norms)), expected)


def test_an_event_that_did_not_happen_leaves_the_others(early: Records) -> None:
    some = with_events(early, FIT, lambda rows: rows[FIT].where(rows["wanted_norm"] != 5000))
    pd.testing.assert_frame_equal(
        early_slopes(some).drop(columns="points"), early_slopes(early).drop(columns="points"), atol=1e-9
    )
    none = with_events(early, FIT, lambda rows: rows[FIT].where(rows["wanted_norm"] < 400))
    table = early_slopes(none)
    assert len(table) == 2 * (len(PREDICTIONS) - 1)  # One point is no slope.


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
def test_claims_about_norms_fail_where_a_slope_is_off(early: Records, name: str, event: str, power: float) -> None:
    off = with_events(early, event, lambda rows: rows[event] * rows["logit_norm"] ** power)
    row = judged(name, off)
    assert (row["verdict"], row["value"]) == (CONTRADICTED, pytest.approx(power))
    others = {"early-small-logits", "early-large-logits"} - {name}
    # Half a margin is none.
    near = with_events(early, event, lambda rows: rows[event] * rows["logit_norm"] ** (power / 4))
    assert {judged(each, near)["verdict"] for each in (name, *others)} == {HOLDS}


def test_claims_about_drift_know_kinks(make_early: Callable[..., Records]) -> None:
    smooth, kinked = make_early((SMOOTH,), drift=-0.7), make_early((KINKED,), drift=-1.0)
    both = replace(smooth, early_curves=pd.concat([smooth.early_curves, kinked.early_curves]))
    row = judged("early-drift", both)
    assert (row["verdict"], row["value"]) == (CONTRADICTED, pytest.approx(0.3))
    assert judged("early-drift-kinks", both)["verdict"] == HOLDS
    assert judged("early-drift-kinks", smooth)["verdict"] == NOT_TESTED
    assert judged("early-drift", kinked)["verdict"] == NOT_TESTED


def one_seed(records: Records) -> Records:
    curves, norms = records.early_curves, records.early_norms
    return replace(records, early_curves=curves[curves["seed"] == 0], early_norms=norms[norms["seed"] == 0])


def drawn(name: str, records: Records) -> Figure:
    figure = DRAWN[name](records)
    assert figure is not None
    figure.draw_without_rendering()
    return figure


def panels(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.get_visible()]


@pytest.mark.parametrize("name", DRAWN)
def test_figures_are_drawn_with_axes_that_say_what_they_are(early: Records, nothing: Records, name: str) -> None:
    axes = panels(drawn(name, early))
    assert all(each.get_xscale() == "log" for each in axes)
    # Panels of one column share its label, those of one row its other one.
    labels = {each.get_xlabel() for each in axes} | {each.get_ylabel() for each in axes}
    assert len(labels - {""}) >= 2
    assert DRAWN[name](nothing) is None


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.filterwarnings("error")
def test_figures_bear_what_did_not_happen(early: Records, name: str) -> None:
    curves, norms = early.early_curves.copy(), early.early_norms.copy()
    norms.loc[norms["network"] == SMOOTH, [FIT, TENTH]] = np.nan
    norms.loc[norms["wanted_norm"] > 100, [UNIT, FIT]] = np.nan
    lost = (curves["network"] == KINKED) & (curves["inverse_temperature"] < 10)
    curves.loc[lost, "drift"] = np.nan
    curves = curves[~(lost & (curves["moment"] == "time") & (curves["time"] > 0.01))]
    drawn(name, replace(early, early_curves=curves, early_norms=norms))
    drawn(name, one_seed(early))


def test_the_legend_of_drift_has_slopes_with_intervals(early: Records) -> None:
    figure = drawn("kernel_drift", early)
    texts = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    assert f"{SMOOTH}: slope -1.000 [-1.000, -1.000], predicted -1" in texts
    assert f"{KINKED} (kinks): slope -1.000 [-1.000, -1.000], predicted -1" in texts
    (axes,) = panels(figure)
    means = next(line.get_ydata() for line in axes.lines if line.get_linestyle() == "-")
    np.testing.assert_allclose(means, [0.5, 0.05, 0.005, 0.0005, 0.00005])

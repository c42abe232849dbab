"""The trainings that count are those that validation data prefer; tables and figures of
them, worked out by hand.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from softmax_temperature.papers.temperature_check import figures, tables
from softmax_temperature.papers.temperature_check.records import Records, chosen

from .conftest import SEEDS, make_records, run

DRAWN = (
    "accuracy",
    "learning_rates",
    "confidence",
    "spread",
    "logit_norms",
    "three_temperatures",
)
LOST = {"diverged": True, "validation_accuracy": None, "test_accuracy": None}


def test_the_learning_rate_is_chosen_on_validation_data_and_of_equal_ones_the_lowest() -> (
    None
):
    rows = [run("wrn", 1.0, 0.1, seed, 0.7, test_accuracy=0.9) for seed in SEEDS]
    rows += [
        run("wrn", 1.0, rate, seed, 0.8, test_accuracy=0.1)
        for rate in (3.0, 1.0)
        for seed in SEEDS
    ]
    assert chosen(make_records(rows))["learning_rate"].tolist() == [1.0] * len(SEEDS)


def test_confirmations_count_instead_of_what_their_rate_was_chosen_on() -> None:
    places = [(beta, rate) for beta in (0.1, 1.0) for rate in (0.01, 0.1, 1.0)]
    rows = [
        run("wrn", beta, rate, seed, 0.7 + rate * (rate < 1))
        for beta, rate in places
        for seed in SEEDS
    ]
    rows += [
        run("wrn", 1.0, 0.1, seed, 0.4, start="confirmed-plain") for seed in (10, 11)
    ]
    found = chosen(make_records(rows))
    assert set(found.loc[found["inverse_temperature"] == 1, "seed"]) == {10, 11}
    assert set(found.loc[found["inverse_temperature"] == 0.1, "seed"]) == set(SEEDS)
    assert found["interior"].all()
    assert found["cells"].iloc[-1] == "temperature_check/confirmation/wrn/1/plain"


def test_diverged_trainings_are_counted_and_count_as_guessing() -> None:
    rows = [run("wrn", 1.0, 1.0, seed, 0.9, **(LOST if seed else {})) for seed in SEEDS]
    rows += [
        run("wrn", 1.0, 0.1, seed, 0.5, **(LOST if not seed else {})) for seed in SEEDS
    ]
    row = tables.accuracies(make_records(rows)).iloc[0]
    assert (row["learning_rate"], row["runs"], row["diverged"]) == (0.1, 4, 1)
    assert row["test"] == pytest.approx((0.1 + 3 * 0.5 + 0.001 * 1.5) / 4)


def test_accuracies_and_gains_against_the_usual_softmax(records: Records) -> None:
    table = tables.accuracies(records).set_index(["sweep", "inverse_temperature"])
    assert len(table) == 8
    numbers = table.loc[
        ("wrn", 0.1), ["test", "gain", "gain_sd", "learning_rate", "test_best"]
    ]
    assert numbers.tolist() == pytest.approx([0.80, 0.05, 0, 0.1, 0.8015], abs=1e-12)


def test_logit_norms(records: Records) -> None:
    table = tables.logit_norms(records).set_index("correlation")
    assert table["initial_logit_norm"].to_dict() == {1.0: 0.0, 0.9: 3.0, 0.0: 30.0}
    assert table.loc[0.0, "test"] == pytest.approx(0.73)
    assert tables.logit_norms(make_records([run("wrn", 1.0, 1.0, 0, 0.9)])).empty


def test_confidence_leaves_out_fits_at_a_bound() -> None:
    rows = [
        run(
            "wrn",
            1.0,
            1.0,
            seed,
            0.9,
            temperature=4.0 if seed else 1e4,
            at_bound=not seed,
        )
        for seed in SEEDS
    ]
    row = tables.confidence(make_records(rows)).iloc[0]
    assert (row["temperature"], row["at_bound"]) == (pytest.approx(4.0), 1)


def test_the_three_temperatures_are_inverse_ones(records: Records) -> None:
    table = tables.three_temperatures(records).set_index("sweep")
    # The heuristic's is that of the chosen learning rate alone.
    names = ["training_best", "post_hoc", "cooling", "heuristic"]
    assert table.loc["wrn", names].tolist() == pytest.approx([0.1, 0.5, 0.25, 20])
    assert table.loc["gru", names].tolist() == pytest.approx(
        [1.0, 0.5, np.nan, np.nan], nan_ok=True
    )


@pytest.mark.parametrize(("gap", "low"), [(0.0, 0.1), (0.2, 1.0)])
def test_what_is_as_good_as_the_best(gap: float, low: float) -> None:
    # Seeds differ by turns, so that a difference has a standard error of 0.005.
    rows = [run("wrn", 1.0, 1.0, seed, 0.8) for seed in SEEDS]
    rows += [
        run("wrn", 0.1, 1.0, seed, 0.799 - gap + 0.01 * (-1) ** seed) for seed in SEEDS
    ]
    (found,) = tables.three_temperatures(make_records(rows)).itertuples()
    assert (found.training_best, found.training_low, found.training_high) == (
        1.0,
        low,
        1.0,
    )


@pytest.mark.parametrize(
    "name", sorted(tables.TABLES.keys() - {"early_slopes"})
)  # Of gradient flow, not of sweeps.
def test_a_profile_without_sweeps_has_empty_tables(records: Records, name: str) -> None:
    nothing = replace(
        records, runs=records.runs.iloc[:0], sweeps=records.sweeps.iloc[:0]
    )
    assert tables.TABLES[name](nothing).empty


def drawn(name: str, records: Records) -> Any:
    """The panels of a figure."""
    figure = getattr(figures, name)(records)
    figure.draw_without_rendering()
    return figure.axes


@pytest.mark.parametrize("name", DRAWN)
def test_nothing_is_drawn_where_nothing_was_trained(
    records: Records, name: str
) -> None:
    nothing = replace(
        records, runs=records.runs.iloc[:0], sweeps=records.sweeps.iloc[:0]
    )
    assert getattr(figures, name)(nothing) is None
    assert drawn(name, records)


def test_accuracy_shows_means_of_the_best_rate_and_the_best_temperature(
    records: Records,
) -> None:
    axes = drawn("accuracy", records)[0]
    assert axes.get_title() == "wrn\ndigits"
    heights = next(
        line.get_ydata() for line in axes.lines if len(line.get_xdata()) == 4
    )
    np.testing.assert_allclose(heights, [70, 80, 75, 60])
    best = next(line for line in axes.lines if line.get_marker() == "v")
    assert list(best.get_xdata()) == [0.1]


def test_accuracy_has_the_same_span_in_all_panels_and_ends_at_100() -> None:
    rows = [run("wrn", 1.0, 0.1, seed, 0.95 - 0.2 * seed) for seed in SEEDS]
    found = make_records(rows, [run("gru", 1.0, 0.1, 0, 0.97)])
    (low, high), other = (axes.get_ylim() for axes in drawn("accuracy", found))
    assert other == pytest.approx((100 - (high - low), 100))


def test_spread_has_intervals_of_the_standard_deviation(records: Records) -> None:
    (low, high), *_ = (
        segment[:, 1]
        for segment in drawn("spread", records)[0].collections[0].get_segments()
    )
    # Four values 0.1 apart; chi-square with three degrees of freedom: 0.3518 and
    # 7.8147.
    sd = 0.1 * (5 / 3) ** 0.5
    assert [low, high] == pytest.approx(
        [sd * (3 / 7.814728) ** 0.5, sd * (3 / 0.351846) ** 0.5], rel=1e-4
    )


def test_learning_rates_mark_what_diverged(records: Records) -> None:
    runs = records.runs.copy()
    runs.loc[
        (runs["inverse_temperature"] == 0.01) & (runs["learning_rate"] == 1.0),
        "diverged",
    ] = True
    texts = [
        text.get_text()
        for text in drawn("learning_rates", replace(records, runs=runs))[0].texts
    ]
    assert texts.count("div") == 1
    assert "77" in texts  # 0.1 with another rate than the best.


def test_confidence_shows_both_sides_of_scaling(records: Records) -> None:
    before, after = (
        line.get_ydata() for line in drawn("confidence", records)[0].lines[:2]
    )
    np.testing.assert_allclose(np.asarray(before) - np.asarray(after), 0.5)


def test_logit_norms_are_judged_by_the_sweep(records: Records) -> None:
    (band,) = drawn("logit_norms", records)[0].patches
    assert band.get_bbox().bounds[1::2] == pytest.approx((60, 20))

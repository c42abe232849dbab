"""The trainings that stand for an inverse temperature are those that validation data prefer."""

from collections.abc import Callable

import pytest

from softmax_temperature.papers.temperature_check.records import Records
from softmax_temperature.papers.temperature_check.selection import (
    alone,
    best_temperatures,
    chosen,
    several_norms,
    trainings,
)

from .conftest import SEEDS, run


def test_the_learning_rate_is_chosen_on_validation_data(make_records: Callable[..., Records]) -> None:
    rows = [run("wrn", 1.0, 0.1, seed, 0.7, test_accuracy=0.9) for seed in SEEDS]
    rows += [run("wrn", 1.0, 1.0, seed, 0.8, test_accuracy=0.1) for seed in SEEDS]
    found = alone(make_records(rows))
    assert set(found["learning_rate"]) == {1.0}
    assert len(found) == len(SEEDS)


def test_of_equal_rates_the_lowest_is_chosen(make_records: Callable[..., Records]) -> None:
    rows = [run("wrn", 1.0, rate, seed, 0.7) for rate in (1.0, 0.1) for seed in SEEDS]
    assert set(alone(make_records(rows))["learning_rate"]) == {0.1}


def test_confirmations_count_instead_of_what_their_rate_was_chosen_on(make_records: Callable[..., Records]) -> None:
    rows = [
        run("wrn", beta, rate, seed, 0.7 + rate * (rate < 1))
        for beta in (0.1, 1.0)
        for rate in (0.01, 0.1, 1.0)
        for seed in SEEDS
    ]
    rows += [run("wrn", 1.0, 0.1, seed, 0.4, start="confirmed-plain") for seed in (10, 11)]
    found = alone(make_records(rows))
    assert set(found.loc[found["inverse_temperature"] == 1, "seed"]) == {10, 11}
    assert set(found.loc[found["inverse_temperature"] == 0.1, "seed"]) == set(SEEDS)
    assert found["interior"].all()
    assert found["cells"].iloc[-1] == "temperature_check/confirmation/wrn/1/plain"


def test_a_rate_that_diverges_counts_as_guessing(make_records: Callable[..., Records]) -> None:
    lost = {"diverged": True, "validation_accuracy": None, "test_accuracy": None}
    rows = [run("wrn", 1.0, 1.0, seed, 0.9, **(lost if seed else {})) for seed in SEEDS]
    rows += [run("wrn", 1.0, 0.1, seed, 0.5) for seed in SEEDS]
    table = trainings(make_records(rows))
    assert set(table.loc[table["diverged"], "test_accuracy"]) == {0.1}
    assert set(chosen(table)["learning_rate"]) == {0.1}


def test_pairs_and_cooled_networks_are_no_part_of_a_sweep(records: Records) -> None:
    assert set(alone(records)["start"]) == {"plain"}
    assert set(several_norms(records)["correlation"]) == {1.0, 0.9, 0.0}


def test_the_best_temperature_is_chosen_on_validation_data(records: Records) -> None:
    found = {place.sweep: place for place in best_temperatures(alone(records))}
    assert {sweep: place.best for sweep, place in found.items()} == {"wrn": 0.1, "gru": 1.0}
    assert {sweep: place.worst for sweep, place in found.items()} == {"wrn": 10.0, "gru": 0.01}


@pytest.mark.parametrize(("gap", "low"), [(0.0, 0.1), (0.2, 1.0)])
def test_what_is_as_good_as_the_best(make_records: Callable[..., Records], gap: float, low: float) -> None:
    # Seeds differ by turns, so that a difference has a standard error of 0.005.
    rows = [run("wrn", 1.0, 1.0, seed, 0.8) for seed in SEEDS]
    rows += [run("wrn", 0.1, 1.0, seed, 0.799 - gap + 0.01 * (-1) ** seed) for seed in SEEDS]
    (found,) = best_temperatures(alone(make_records(rows)))
    assert (found.best, found.low, found.high) == (1.0, low, 1.0)

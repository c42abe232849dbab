"""The tables of the practical part, worked out by hand."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from softmax_temperature.papers.temperature_check import tables
from softmax_temperature.papers.temperature_check.records import Records

from .conftest import SEEDS, run


def test_accuracies_and_gains_against_the_usual_softmax(records: Records) -> None:
    table = tables.accuracies(records).set_index(["sweep", "inverse_temperature"])
    assert len(table) == 8
    row = table.loc[("wrn", 0.1)]
    assert row["test"] == pytest.approx(0.80)
    assert row["gain"] == pytest.approx(0.05)
    assert row["gain_sd"] == pytest.approx(0.0, abs=1e-12)
    assert row["learning_rate"] == 1.0
    assert row["test_best"] == pytest.approx(0.8015)


def test_diverged_trainings_are_counted_and_count_as_guessing(make_records: Callable[..., Records]) -> None:
    lost = {"diverged": True, "validation_accuracy": None, "test_accuracy": None}
    rows = [run("wrn", 1.0, 1.0, seed, 0.9, **(lost if seed == 0 else {})) for seed in SEEDS]
    row = tables.accuracies(make_records(rows)).iloc[0]
    assert (row["runs"], row["diverged"]) == (4, 1)
    assert row["test"] == pytest.approx((0.1 + 3 * 0.9 + 0.001 * 1.5) / 4)


def test_logit_norms(records: Records) -> None:
    table = tables.logit_norms(records).set_index("correlation")
    assert table["initial_logit_norm"].to_dict() == {1.0: 0.0, 0.9: 3.0, 0.0: 30.0}
    assert table.loc[0.0, "test"] == pytest.approx(0.73)


def test_logit_norms_without_pairs(make_records: Callable[..., Records]) -> None:
    assert tables.logit_norms(make_records([run("wrn", 1.0, 1.0, 0, 0.9)])).empty


def test_confidence_leaves_out_fits_at_a_bound(make_records: Callable[..., Records]) -> None:
    rows = [run("wrn", 1.0, 1.0, seed, 0.9, temperature=4.0 if seed else 1e4, at_bound=not seed) for seed in SEEDS]
    row = tables.confidence(make_records(rows)).iloc[0]
    assert row["temperature"] == pytest.approx(4.0)
    assert row["at_bound"] == 1


def test_the_three_temperatures_are_inverse_ones(records: Records) -> None:
    table = tables.three_temperatures(records).set_index("sweep")
    row = table.loc["wrn"]
    assert (row["training_best"], row["post_hoc"], row["cooling"]) == pytest.approx((0.1, 0.5, 0.25))
    assert row["heuristic"] == pytest.approx(20.0)  # Of the chosen learning rate alone.
    assert np.isnan(table.loc["gru", "cooling"])
    assert np.isnan(table.loc["gru", "heuristic"])


@pytest.mark.parametrize("name", sorted(tables.TABLES.keys() - {"early_slopes"}))  # Of gradient flow, not of sweeps.
def test_a_profile_without_sweeps_has_empty_tables(records: Records, name: str) -> None:
    nothing = replace(records, runs=records.runs.iloc[:0], sweeps=records.sweeps.iloc[:0])
    assert tables.TABLES[name](nothing).empty

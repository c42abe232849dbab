"""Tables of training runs have the numbers that are worked out by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from softmax_temperature.papers.shared.notebooks import shown
from softmax_temperature.papers.shared.runs import NOT_RUN, Runs
from softmax_temperature.papers.shared.tables import Table
from softmax_temperature.papers.temperature_check import tables

from .conftest import SEEDS, lost, make_runs, training


def test_diverged_trainings_are_counted_and_count_as_guessing() -> None:
    rows = [training("wrn", 1.0, 1.0, seed, 0.9) for seed in SEEDS]
    rows = [rows[0], *map(lost, rows[1:])]
    other = [training("wrn", 1.0, 0.1, seed, 0.5) for seed in SEEDS]
    other = [lost(other[0]), *other[1:]]
    row = tables.accuracies(make_runs(rows, other)).iloc[0]
    assert (row["learning_rate"], row["runs"], row["diverged"]) == (0.1, 4, 1)
    assert row["test"] == pytest.approx((0.1 + 3 * 0.5 + 0.001 * 1.5) / 4)


def test_accuracies_and_gains_against_the_usual_softmax(runs: Runs) -> None:
    table = tables.accuracies(runs)
    assert len(table) == 8
    columns = ["test", "gain", "gain_sd", "learning_rate", "test_best"]
    row = table.query("sweep == 'wrn' and inverse_temperature == 0.1").iloc[0]
    assert list(row[columns]) == pytest.approx([0.80, 0.05, 0, 0.1, 0.8015], abs=1e-12)
    assert row["cells"] == (
        "temperature_check/training/wrn/0.1/own; temperature_check/training/wrn/1/own"
    )


def test_logit_norms(runs: Runs) -> None:
    table = tables.logit_norms(runs).set_index("correlation")
    assert table["initial_logit_norm"].to_dict() == {1.0: 0.0, 0.9: 3.0, 0.0: 30.0}
    assert table["test"][0.0] == pytest.approx(0.73)
    assert tables.logit_norms(make_runs([training("wrn", 1.0, 1.0, 0, 0.9)])).empty


def test_confidence_leaves_out_fits_at_a_bound() -> None:
    rows = [training("wrn", 1.0, 1.0, seed, 0.9) for seed in SEEDS]
    fits = [{"temperature": 1e4, "at_bound": 1.0}] + 3 * [
        {"temperature": 4.0, "at_bound": 0.0}
    ]
    rows = [{**row, "scaled": fit} for row, fit in zip(rows, fits, strict=True)]
    row = tables.confidence(make_runs(rows)).iloc[0]
    assert row["temperature"] == pytest.approx(4.0)
    assert row["at_bound"] == 1


def test_the_three_temperatures_are_inverse_ones(runs: Runs) -> None:
    table = tables.three_temperatures(runs)
    assert table["sweep"].tolist() == ["wrn", "gru"]
    # The heuristic's temperature comes only from the runs with the chosen learning
    # rate.
    names = ["training_best", "post_hoc", "cooling", "heuristic"]
    wrn, gru = table[names].to_numpy(float)
    assert wrn == pytest.approx([0.1, 0.5, 0.25, 20])
    assert gru == pytest.approx([1.0, 0.5, np.nan, np.nan], nan_ok=True)


@pytest.mark.parametrize(("gap", "low"), [(0.0, 0.1), (0.2, 1.0)])
def test_inverse_temperatures_within_a_standard_error_are_as_good(
    gap: float, low: float
) -> None:
    # The accuracies of the seeds alternate between two values, so a mean difference
    # over seeds has a standard error of 0.0058.
    rows = [training("wrn", 1.0, 1.0, seed, 0.8) for seed in SEEDS]
    rows += [
        training("wrn", 0.1, 1.0, seed, 0.799 - gap + 0.01 * (-1) ** seed)
        for seed in SEEDS
    ]
    row = tables.three_temperatures(make_runs(rows)).iloc[0]
    columns = ["training_low", "training_best", "training_high"]
    assert list(row[columns]) == [low, 1.0, 1.0]


@pytest.mark.parametrize("table", tables.TABLES, ids=lambda table: table.name)
def test_a_study_without_sweeps_has_empty_tables(table: Table) -> None:
    assert table.make(make_runs()).empty


def test_a_reader_sees_words_for_columns_and_values(runs: Runs) -> None:
    table = tables.ACCURACIES.lay_out(tables.accuracies(runs))
    assert {"β", "rescaled learning rate", "best seed"} <= set(table)


def test_a_sweep_whose_data_are_missing_is_a_row_of_each_of_its_tables(
    runs: Runs,
) -> None:
    assert "status" not in tables.ACCURACIES.make(runs), "no run is missing"
    own = {
        "task": "training",
        "sweep": "birds",
        "dataset": "cub200",
        "start": "own",
        "mode": "none",
        "role": "tuning",
    }
    rows = [
        {**own, "inverse_temperature": 1.0, "reason": "data missing"},
        {**own, "inverse_temperature": 10.0, "reason": "data missing"},
        {**own, "sweep": "wrn", "dataset": "cifar10", "reason": "not trained"},
    ]
    some = replace(runs, tables={**runs.tables, NOT_RUN: pd.DataFrame(rows)})
    for table in (
        tables.ACCURACIES,
        tables.CONFIDENCE,
        tables.LEARNING_RATES,
        tables.THREE_TEMPERATURES,
    ):
        made = table.make(some)
        status = made.groupby("sweep")["status"].unique()
        assert status["birds"].tolist() == ["not run: data missing"]
        assert status["wrn"].tolist() == ["measured"]
        assert (made["sweep"] == "birds").sum() == 1
    # This study sweeps no norms and follows no gradient flows.
    assert "status" not in tables.LOGIT_NORMS.make(some)
    html = shown(tables.ACCURACIES.make(some), "accuracies").data
    assert "not run: data missing" in html
    assert "<details>" not in html


def test_a_network_whose_flow_lacks_its_data_is_a_row_of_the_slopes() -> None:
    row = {"task": "gradient_flow", "network": "mlp", "reason": "data missing"}
    runs = make_runs([training("wrn", 1.0, 1.0, 0, 0.9)])
    some = replace(runs, tables={**runs.tables, NOT_RUN: pd.DataFrame([row])})
    [slopes] = tables.EARLY_SLOPES.make(some).to_dict("records")
    assert slopes["network"] == "mlp"
    assert slopes["status"] == "not run: data missing"

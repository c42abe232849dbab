"""Each number in a table belongs to the subset, method, rule or data set beside it."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from softmax_temperature.dataset_statistics import STATISTICS
from softmax_temperature.papers.classifier_temperature import figures
from softmax_temperature.papers.classifier_temperature.study import (
    is_trained,
    searches,
)
from softmax_temperature.papers.classifier_temperature.tables import (
    TABLES,
    cost_of_rules,
    cost_of_suggest,
    plateaus,
    table_1,
)
from softmax_temperature.papers.shared.runs import NOT_RUN, Runs
from tests.papers.classifier_temperature.conftest import DATASETS, changed_pairs

ROWS = ("Best Stat", "4-Best Stats", "All Stats")
SUBSETS = ("all pairs", "identified pairs", "trained backbones")
METHODS = ("least_squares", "ridge")


@pytest.fixture(autouse=True)
def _in_the_project(project_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project_root)


@pytest.fixture
def left_out(runs: Runs) -> Runs:
    """Runs with a median r of 0.ijk in row i, subset j and method k; the mean r is 0.1
    larger.
    """
    rows = [
        {
            "subset": SUBSETS[subset],
            "row": ROWS[row],
            "method": METHODS[method],
            "median_r": 0.1 * row + 0.01 * subset + 0.001 * method,
            "mean_r": 0.1 * row + 0.01 * subset + 0.001 * method + 0.1,
            "sd_r": 0.5,
            "mean_p": 0.02,
            "folds": 8,
            "undefined_folds": row,
        }
        for subset, row, method in product(range(3), range(3), range(2))
    ]
    return replace(runs, tables={**runs.tables, "leave_one_out": pd.DataFrame(rows)})


def test_table_1_has_the_subset_and_method_of_each_column(left_out: Runs) -> None:
    table = table_1(left_out).set_index(["row", "metric"])
    row = table.loc[table.index.unique("row")[1], "average_correlation"]
    assert row["ours"] == pytest.approx(0.2)
    assert row["ours_sd"] == 0.5
    assert row["ours_trained_backbones"] == pytest.approx(0.22)
    assert row["ours_identified_pairs"] == pytest.approx(0.21)
    assert row["ours_ridge"] == pytest.approx(0.201)
    assert row["folds"] == 7


def test_table_1_leaves_out_a_missing_subset(left_out: Runs) -> None:
    known = left_out.tables["leave_one_out"]
    known = known[known["subset"] != "trained backbones"]
    table = table_1(
        replace(left_out, tables={**left_out.tables, "leave_one_out": known})
    )
    assert table["ours_trained_backbones"].isna().all()
    assert table["ours"].notna().all()


def test_only_the_mean_correlation_has_a_standard_deviation(left_out: Runs) -> None:
    table = table_1(left_out)
    has_sd = table["metric"] == "average_correlation"
    assert (table["ours_sd"].notna() == has_sd).all()


def test_rules_are_sorted_by_their_mean_cost(runs: Runs) -> None:
    lost = {"good": [0.0, 0.0, 0.03], "bad": [0.1, 0.2, 0.6]}
    rows = [
        {"rule": rule, "accuracy_lost": value}
        for rule in ("bad", "good")
        for value in lost[rule]
    ]
    rules = replace(runs, tables={"rules": pd.DataFrame(rows)})
    table = cost_of_rules(rules).set_index("rule")
    assert table.index.tolist() == ["good", "bad"]
    assert table.loc["bad", ["mean", "median", "worst", "pairs"]].tolist() == (
        pytest.approx([0.3, 0.2, 0.6, 3])
    )
    assert table.loc["bad", "p90"] == pytest.approx(0.52)


# seaborn's boxes use an argument that matplotlib 3.11 deprecates.
@pytest.mark.filterwarnings("ignore:vert. bool was deprecated")
def test_rules_that_cost_the_same_have_one_order_in_table_and_figure(
    runs: Runs,
) -> None:
    rows = [
        {"rule": rule, "accuracy_lost": value}
        for rule, costs in (("c", [0.3, 0.5]), ("b", [0.1, 0.2]), ("a", [0.2, 0.1]))
        for value in costs
    ]
    rules = replace(runs, tables={"rules": pd.DataFrame(rows)})
    (axes,) = figures.cost_of_rules(rules).axes
    drawn = [label.get_text() for label in axes.get_yticklabels()]
    assert drawn == cost_of_rules(rules)["rule"].tolist() == ["b", "a", "c"]


def with_costs(runs: Runs, costs: dict[str, float], outside: str) -> Runs:
    """The runs, with the given costs of the rules.

    Every statistic is 1, except `dim`, which is 2 on the data set `outside`.
    """
    pairs = changed_pairs(runs, **dict.fromkeys(STATISTICS, 1.0)).tables["pairs"]
    pairs.loc[pairs["dataset"] == outside, "dim"] = 2.0
    places = pairs[["dataset", "backbone"]]
    rules = [
        places.assign(rule=rule, accuracy_lost=cost) for rule, cost in costs.items()
    ]
    tables = {**runs.tables, "pairs": pairs, "rules": pd.concat(rules)}
    return replace(runs, tables=tables)


def test_suggest_costs_the_prediction_inside_its_range_and_the_constant_outside(
    runs: Runs,
) -> None:
    costs = {
        "ridge of the logarithm (ours)": 0.01,
        "best constant": 0.05,
        "square root of dimension": 0.02,
        "chosen on validation": 0.0,
    }
    table = cost_of_suggest(with_costs(runs, costs, "set3"))
    rows = table.set_index(["range", "rule"])
    # Five of forty pairs are outside the range: all pairs of one of the eight data
    # sets.
    sizes = {"all": (40, 8), "inside": (35, 7), "outside": (5, 1)}
    means = {"all": (35 * 0.01 + 5 * 0.05) / 40, "inside": 0.01, "outside": 0.05}
    for name, (count, data_sets) in sizes.items():
        row = rows.loc[(name, "suggest")]
        assert (row["pairs"], row["data_sets"]) == (count, data_sets)
        assert row["mean"] == pytest.approx(means[name])
    against = rows["difference"].unstack()
    assert against.loc["inside", "best constant"] == pytest.approx(-0.04)
    assert against.loc["outside", "best constant"] == 0
    assert against.loc["outside", "ridge of the logarithm (ours)"] == pytest.approx(
        0.04
    )
    # The difference is -0.04 for seven of eight data sets and 0 for one; t(0.95, 7) is
    # 1.8946.
    row = rows.loc[("all", "best constant")]
    half_width = 1.8946 * 0.0141421 / 8**0.5
    assert row["difference"] == pytest.approx(-0.035)
    assert row["high"] - row["difference"] == pytest.approx(half_width, rel=1e-4)
    assert row["difference"] - row["low"] == pytest.approx(half_width, rel=1e-4)
    # The interval of a single data set is undefined.
    assert np.isnan(rows.loc[("outside", "best constant"), "low"])


def test_plateaus_are_medians_over_backbones(runs: Runs) -> None:
    count = len(runs.tables["pairs"])
    low = pd.Series([10.0, 20.0, 30.0, 40.0, 50.0] * (count // 5))
    table = plateaus(
        changed_pairs(runs, plateau_low=low, plateau_high=2 * low, best_accuracy=0.99)
    )
    assert set(table["dataset"]) == set(DATASETS)
    assert set(table["plateau_low"]) == {30.0}
    assert set(table["width"]) == {30.0}
    # The gain is the best test accuracy on the grid, 0.99, minus the accuracy at
    # inverse temperature 1.
    assert table["gain_over_1"].tolist() == pytest.approx([0.29] * len(DATASETS))


def test_searches_have_the_accuracies_of_both_splits(runs: Runs) -> None:
    table = searches(runs)
    at_50 = table[table["inverse_temperature"] == 50]
    assert set(at_50["validation_accuracy"]) == {0.8}
    assert set(table["test_accuracy"]) == {0.7, 0.8, 0.99}


def test_backbones_of_predictions_are_known_as_trained_or_untrained(runs: Runs) -> None:
    rows = runs.tables["pairs"][["dataset", "backbone"]]
    expected = rows["backbone"] != "untrained-64"
    assert is_trained(runs, rows).tolist() == expected.tolist()


def test_every_table_has_its_own_name() -> None:
    names = [table.name for table in TABLES]
    assert names == ["table_1", "cost_of_rules", "cost_of_suggest", "plateaus"]


def test_a_data_set_that_is_missing_is_a_row_of_the_plateaus(runs: Runs) -> None:
    low = pd.Series(10.0, index=runs.tables["pairs"].index)
    columns = {"plateau_low": low, "plateau_high": 2 * low, "best_accuracy": 0.99}
    runs = changed_pairs(runs, **columns)
    [table] = [table for table in TABLES if table.name == "plateaus"]
    assert "status" not in table.make(runs), "no data set is missing"
    search = {"task": "search", "reason": "data missing"}
    rows = [
        {**search, "dataset": "birds", "backbone": "resnet"},
        {**search, "dataset": "birds", "backbone": "vit"},
        # On this data set, only one backbone has no runs.
        {**search, "dataset": DATASETS[0], "backbone": "vit"},
    ]
    some = replace(runs, tables={**runs.tables, NOT_RUN: pd.DataFrame(rows)})
    made = table.make(some).set_index("dataset")["status"]
    assert made["birds"] == "not run: data missing"
    assert made.drop("birds").unique().tolist() == ["measured"]
    assert len(made) == len(plateaus(runs)) + 1

"""Tables show means over seeds beside printed numbers, and list missing runs."""

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from softmax_temperature.papers.shared.factors import ALL, where
from softmax_temperature.papers.shared.metrics import Factor, Metric
from softmax_temperature.papers.shared.runs import Runs
from softmax_temperature.papers.shared.tables import (
    DIFFERENCE,
    Comparison,
    Number,
    lost_seeds,
)
from tests.papers.shared.made_runs import runs_of

COLUMNS = ["published", "published_sd", "ours", "ours_sd", "seeds", "runs", DIFFERENCE]


def printed() -> pd.DataFrame:
    """Two printed numbers: one on CIFAR-10, and one on a data set without runs."""
    row = {"network": "vgg", "loss": "ce", "metric": "accuracy", "published_sd": 0.01}
    return pd.DataFrame(
        [
            {**row, "dataset": "cifar10", "published": 0.6},
            {**row, "dataset": "svhn", "published": 0.9},
        ]
    )


TABLE = Comparison(
    name="table",
    of=ALL,
    numbers=(Number("accuracy", Metric("accuracy")),),
    keys=("experiment", "dataset", "network", "loss"),
    columns=COLUMNS,
    printed=printed,
    printed_runs=4,
    profiles=lambda dataset, network: (f"of-{dataset}-{network}", "whole"),
)


def trained(*values: float, **factors: Any) -> list[dict[str, Any]]:
    """Rows with one run per seed and the given values."""
    about = {"experiment": "main", "loss": "ce", "sure": True, **factors}
    return [
        {**about, "seed": seed, "value": value} for seed, value in enumerate(values)
    ]


def only_row(table: pd.DataFrame, **values: Any) -> pd.Series:
    [row] = where(**values).select(table).to_dict("records")
    return pd.Series(row)


def test_means_are_shown_next_to_printed_numbers() -> None:
    table = TABLE.make(runs_of(trained(0.7, 0.8)))
    row = only_row(table, dataset="cifar10")
    numbers = row[["published", "ours", "ours_sd", "seeds"]].tolist()
    assert numbers == pytest.approx([0.6, 0.75, 0.005**0.5, 2])
    # The variances of the two means are 0.005 / 2 and 0.0001 / 4.
    assert row[DIFFERENCE] == pytest.approx(0.15 / (0.005 / 2 + 0.0001 / 4) ** 0.5)
    assert row["cells"] == "made/ce-0; made/ce-1"


def test_a_row_is_measured_only_if_a_run_has_a_value() -> None:
    misspelt = replace(TABLE, numbers=(Number("accuracy", Metric("acuracy")),))
    runs = runs_of(trained(0.7, 0.8))
    assert only_row(TABLE.make(runs), dataset="cifar10")["status"] == "measured"
    row = only_row(misspelt.make(runs), dataset="cifar10")
    assert row[["seeds", "status"]].tolist() == [0, "no value"]


def test_a_printed_number_that_was_not_run_names_the_profile_that_gives_it() -> None:
    table = TABLE.make(runs_of(trained(0.7, 0.8)))
    assert len(table) == 2
    row = only_row(table, dataset="svhn")
    assert row[["experiment", "published", "seeds"]].tolist() == ["", 0.9, 0]
    assert row["status"] == "not run: profile of-svhn-vgg"
    # If a profile itself declares the runs of a row, the table names no other profile
    # for the row.
    runs = runs_of(trained(0.7, 0.8))
    inside = replace(runs, table=runs.table.assign(study="whole"))
    row = only_row(TABLE.make(inside), dataset="svhn")
    assert row["status"] == "not run: declared by this profile"


def test_the_error_is_only_ours_if_the_number_of_printed_runs_is_unknown() -> None:
    table = replace(TABLE, printed_runs=None).make(runs_of(trained(0.7, 0.8)))
    difference = only_row(table, dataset="cifar10")[DIFFERENCE]
    assert difference == pytest.approx(0.15 / (0.005 / 2) ** 0.5)


def test_a_single_seed_has_the_error_of_its_own_number() -> None:
    number = Number("accuracy", Metric("accuracy"), error=Factor("error"))
    table = replace(TABLE, numbers=(number,), printed_runs=None)
    single = table.make(runs_of(trained(0.7, error=0.05)))
    assert only_row(single, dataset="cifar10")[DIFFERENCE] == pytest.approx(2)
    several = table.make(runs_of(trained(0.7, 0.8, error=0.05)))
    difference = only_row(several, dataset="cifar10")[DIFFERENCE]
    assert difference == pytest.approx(0.15 / (0.005 / 2) ** 0.5)


def test_seeds_that_agree_have_no_difference_in_standard_errors() -> None:
    table = replace(TABLE, printed_runs=None).make(runs_of(trained(0.7, 0.7)))
    assert pd.isna(only_row(table, dataset="cifar10")[DIFFERENCE])


def test_a_training_of_two_experiments_counts_once_in_a_table() -> None:
    again = trained(0.9, 0.9, experiment="again")
    row = only_row(TABLE.make(runs_of(trained(0.7, 0.8) + again)), dataset="cifar10")
    assert row[["experiment", "ours", "seeds"]].tolist() == ["main", 0.75, 2]


def test_our_numbers_that_the_paper_does_not_print_can_be_left_out() -> None:
    runs = runs_of(trained(0.7, 0.8) + trained(0.5, loss="focal"))
    assert set(TABLE.make(runs)["loss"]) == {"ce", "focal"}
    assert set(replace(TABLE, printed_only=True).make(runs)["loss"]) == {"ce"}


def test_a_column_is_true_only_if_it_is_true_for_all_seeds() -> None:
    table = replace(TABLE, all_of=("sure",), columns=[*COLUMNS, "sure"])
    rows = trained(0.7, 0.8)
    assert only_row(table.make(runs_of(rows)), dataset="cifar10")["sure"]
    rows[1]["sure"] = False
    assert not only_row(table.make(runs_of(rows)), dataset="cifar10")["sure"]


def test_lost_seeds_are_in_no_mean_and_named_where_none_is_left() -> None:
    runs = runs_of(trained(0.7, 0.8))
    first = Runs(runs.table.assign(diverged=[True, False]), runs.measurements)
    row = only_row(TABLE.make(first), dataset="cifar10")
    assert row[["ours", "seeds", "runs", "status"]].tolist() == [0.8, 1, 2, "measured"]
    both = Runs(first.table.assign(stuck=[False, True]), runs.measurements)
    row = only_row(TABLE.make(both), dataset="cifar10")
    assert row["status"] == "1 of 2 diverged, 1 of 2 stuck"
    assert pd.isna(row["ours"])


@pytest.mark.parametrize(
    ("diverged", "stuck", "text"),
    [
        (3, 0, "diverged"),
        (0, 3, "stuck"),
        (1, 1, "1 of 3 diverged, 1 of 3 stuck"),
        (0, 1, "1 of 3 stuck"),
        (0, 0, ""),
    ],
)
def test_lost_seeds_in_words(diverged: int, stuck: int, text: str) -> None:
    assert lost_seeds(diverged, stuck, 3) == text

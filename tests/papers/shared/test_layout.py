"""Whatever the paper, a table is laid out from the columns before the printed numbers."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from softmax_temperature.papers.shared.layout import as_printed, is_comparison, layout, number, wide, with_deviation
from softmax_temperature.papers.shared.scorecard import profiles_with_results


@pytest.fixture
def table() -> pd.DataFrame:
    """Two tasks, one of which was run, with two methods; one metric is printed and the other is not."""
    names = ["task", "dataset", "network", "method", "metric", "published"]
    numbers = ["ours", "ours_sd", "seeds", "difference_in_standard_errors", "status", "cells"]
    here = [0.3, 0.01, 3]
    rows = [
        ["toy", "toy", "small", "CE", "ece", 0.25, *here, 4.2, "measured", "evaluation/CE"],
        ["toy", "toy", "small", "CE", "nll", None, *here, None, "measured", "evaluation/CE"],
        ["toy", "toy", "small", "FL", "ece", 0.25, *here, -0.42, "measured", "evaluation/FL"],
        ["toy", "toy", "small", "FL", "nll", None, *here, None, "measured", "evaluation/FL"],
        ["", "CIFAR-10", "small", "CE", "ece", 0.25, None, None, 0, None, "not run: profile paper", None],
        ["", "CIFAR-10", "small", "FL", "ece", 0.25, None, None, 0, None, "not run: profile paper", None],
    ]
    return pd.DataFrame(rows, columns=[*names, *numbers])


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.25, "0.2500"), (-0.00001, "0.0000"), (1, "1.0000"), (56, "56"), (123.456, "123.46"), (None, "–")],
)
def test_a_number(value: float | None, text: str) -> None:
    assert number(value) == text


def test_a_number_of_a_paper_has_its_own_digits() -> None:
    assert [as_printed(value) for value in (-0.0287, 2.5, float("nan"))] == ["−0.0287", "2.5", "–"]


def test_a_mean_without_a_deviation_stands_alone() -> None:
    assert [with_deviation(0.5, sd) for sd in (0.125, None)] == ["0.5000 ± 0.1250", "0.5000"]


def test_the_last_name_becomes_columns_and_the_others_rows(table: pd.DataFrame) -> None:
    measured = layout(table).measured
    assert list(measured.columns) == ["CE", "FL"]
    assert measured.index.names == ["dataset", "network", "metric"]
    assert measured.index.to_list() == [("toy", "small", "ece"), ("toy", "small", "nll")]


def test_a_number_stands_beside_the_printed_one_with_its_difference(table: pd.DataFrame) -> None:
    first, second = layout(table).measured.loc[("toy", "small", "ece")]
    assert (first.ours, first.printed, first.difference) == ("0.3000 ± 0.0100", "0.2500", "+4.2")
    assert (first.verdict, first.cells) == ("above", "evaluation/CE")
    assert (second.difference, second.verdict) == ("−0.4", "alike")


def test_a_number_that_is_not_printed_has_no_difference(table: pd.DataFrame) -> None:
    number = layout(table).measured.loc[("toy", "small", "nll"), "CE"]
    assert (number.printed, number.difference, number.verdict) == ("–", "", "")


def test_a_notebook_shows_the_same_as_one_table(table: pd.DataFrame) -> None:
    rows = wide(table.assign(differs=["half of it"] * 4 + [None] * 2)).to_dict("records")
    row = {"dataset": "toy", "network": "small", "metric": "ece", "differs": "half of it", "runs": "n = 3"}
    row |= {"CE": "0.3000 ± 0.0100; printed 0.2500; +4.2 s.e.", "FL": "0.3000 ± 0.0100; printed 0.2500; −0.4 s.e."}
    assert rows[0] == row | {"status": "–"}
    assert rows[2]["CE"] == "0.2500"
    assert (rows[2]["status"], rows[2]["runs"]) == ("not run: profile paper", "–")


def test_what_was_not_run_stands_apart_with_its_reason(table: pd.DataFrame) -> None:
    made = layout(table)
    assert made.not_run.index.to_list() == [("CIFAR-10", "small", "ece", "not run: profile paper")]
    assert made.printed_alone == 2


def test_the_count_is_said_once_where_it_is_one(table: pd.DataFrame) -> None:
    assert layout(table).count == "n = 3"
    table.loc[table.index[0], "seeds"] = 2
    assert layout(table).count == ""


def test_a_diverged_run_says_so(table: pd.DataFrame) -> None:
    lost = table.assign(ours=None, status="diverged", seeds=0, diverged_seeds=3)
    assert layout(lost).measured.iloc[0, 0].ours == "diverged"
    assert layout(lost).count == "n = 0, 3 diverged"


def test_runs_that_names_do_not_tell_apart_keep_their_own(table: pd.DataFrame) -> None:
    here = table[table["task"] != ""]
    both = pd.concat([here, here.assign(task="toy-longer")])
    assert layout(both).measured.index.names == ["task", "dataset", "network", "metric"]


def test_without_a_metric_there_is_one_column() -> None:
    numbers = {"quantity": ["seconds"], "published": [56.0], "ours": [54.0], "ours_sd": [2.0], "seeds": [4]}
    ((number,),) = layout(pd.DataFrame(numbers)).measured.to_numpy()
    # (54 - 56) / (2 / √4)
    assert (number.ours, number.difference, number.verdict) == ("54 ± 2.0000", "−2.0", "alike")


@pytest.mark.parametrize("profile", profiles_with_results(Path(__file__).parents[3] / "results"))
def test_every_number_of_the_committed_results_has_its_place(profile: str, project_root: Path) -> None:
    for path in sorted((project_root / "results" / profile).glob("*/tables/*.csv")):
        table = pd.read_csv(path)
        if is_comparison(table):
            made = layout(table)
            places = sum(int(part.notna().to_numpy().sum()) for part in (made.measured, made.not_run))
            assert places == len(table), path

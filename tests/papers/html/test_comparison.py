"""Whatever the paper, a table is laid out from the columns before the printed numbers."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from softmax_temperature.papers.html.comparison import Layout, is_comparison, layout
from softmax_temperature.papers.html.model import Caption, Comparison
from softmax_temperature.papers.shared.scorecard import profiles_with_results


def arranged(numbers: pd.DataFrame) -> Layout:
    return layout(Comparison("table", "table.csv", Caption(""), numbers))


def test_the_last_name_becomes_columns_and_the_others_rows(table: pd.DataFrame, hostile: str) -> None:
    measured = arranged(table).measured
    assert list(measured.columns) == ["CE", hostile]
    assert measured.index.names == ["dataset", "network", "metric"]
    assert measured.index.to_list() == [("toy", "small", "ece"), ("toy", "small", "ece_after_scaling")]


def test_a_number_stands_beside_the_printed_one_with_its_difference(table: pd.DataFrame, hostile: str) -> None:
    first, second = arranged(table).measured.loc[("toy", "small", "ece")]
    assert (first.ours, first.printed, first.difference, first.verdict) == (
        "0.3000 ± 0.0100",
        "0.2500",
        "+4.2",
        "above",
    )
    assert (second.difference, second.verdict) == ("−0.4", "alike")
    assert (first.cells, second.cells) == ("focal/evaluation/toy/CE", f"focal/evaluation/toy/{hostile}")


def test_a_number_may_come_from_cells_of_several_names_or_of_none_that_is_known(table: pd.DataFrame) -> None:
    table["cells"] = "focal/training/a; focal/training/b"
    assert arranged(table).measured.iloc[0, 0].cells == "focal/training/a; focal/training/b"
    assert arranged(table.drop(columns="cells")).measured.iloc[0, 0].cells == ""


def test_what_nothing_is_printed_of_has_no_difference(table: pd.DataFrame) -> None:
    number = arranged(table).measured.loc[("toy", "small", "ece_after_scaling"), "CE"]
    assert (number.printed, number.difference, number.verdict) == ("–", "", "")


def test_what_was_not_run_stands_apart_with_its_reason(table: pd.DataFrame) -> None:
    made = arranged(table)
    assert made.not_run.index.to_list() == [("CIFAR-10", "small", "ece", "not run: profile paper")]
    assert made.printed_alone == 2


def test_the_count_is_said_once_where_it_is_one(table: pd.DataFrame) -> None:
    assert arranged(table).count == "n = 3"
    table.loc[table.index[0], "seeds"] = 2
    assert arranged(table).count == ""


def test_a_diverged_run_is_said_to_be(table: pd.DataFrame) -> None:
    table["ours"] = None
    table["status"] = "diverged"
    assert arranged(table).measured.iloc[0, 0].ours == "diverged"


def test_runs_that_names_do_not_tell_apart_keep_their_own(table: pd.DataFrame) -> None:
    here = table[table["task"] != ""]
    both = pd.concat([here, here.assign(task="toy-longer")])
    assert arranged(both).measured.index.names == ["task", "dataset", "network", "metric"]


def test_without_a_metric_there_is_one_column() -> None:
    numbers = {"quantity": ["seconds"], "published": [56.0], "ours": [54.0], "ours_sd": [2.0], "seeds": [4]}
    ((number,),) = arranged(pd.DataFrame(numbers)).measured.to_numpy()
    # (54 - 56) / (2 / √4)
    assert (number.ours, number.difference, number.verdict) == ("54 ± 2.0000", "−2.0", "alike")


@pytest.mark.parametrize("profile", profiles_with_results(Path(__file__).parents[3] / "results"))
def test_every_number_of_the_committed_results_has_its_place(profile: str, project_root: Path) -> None:
    for path in sorted((project_root / "results" / profile).glob("*/tables/*.csv")):
        table = pd.read_csv(path)
        if is_comparison(table):
            made = arranged(table)
            places = sum(int(part.notna().to_numpy().sum()) for part in (made.measured, made.not_run))
            assert places == len(table), path

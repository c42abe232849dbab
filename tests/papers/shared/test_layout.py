"""Whatever the paper, a table is laid out from the columns before the printed numbers."""

from pathlib import Path

import pandas as pd
import pytest

from softmax_temperature.papers.shared.comparison import number, wide
from softmax_temperature.papers.shared.scorecard import profiles_with_results
from softmax_temperature.papers.shared.sources import Linked


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


def test_ours_stands_beside_printed_and_the_last_name_becomes_columns(table: pd.DataFrame) -> None:
    shown = wide(table.assign(differs=["half of it"] * 4 + [None] * 2))
    columns = ["dataset", "network", "metric", "CE", "CE, printed", "FL", "FL, printed", "differs", "runs", "status"]
    assert list(shown.columns) == columns
    first, second, absent = shown.to_dict("records")
    names = {"dataset": "toy", "network": "small", "differs": "half of it", "runs": "n = 3", "status": "–"}
    ours = {"CE": "30.00 ± 1.00", "CE, printed": "25.00 (+4.2 s.e.)", "FL": "30.00 ± 1.00"}
    assert first == names | ours | {"metric": "ece (%)", "FL, printed": "25.00 (−0.4 s.e.)"}
    assert [first[name].cells for name in ("CE", "FL")] == ["evaluation/CE", "evaluation/FL"]
    assert second == names | dict.fromkeys(("CE", "FL"), "0.3000 ± 0.0100") | {
        "metric": "nll",
        **dict.fromkeys(("CE, printed", "FL, printed"), "–"),
    }
    assert (absent["CE"], absent["CE, printed"]) == ("–", "25.00")
    assert (absent["status"], absent["runs"]) == ("not run: profile paper", "–")


def test_a_diverged_run_says_so(table: pd.DataFrame) -> None:
    lost = wide(table.assign(ours=None, status="diverged", seeds=0, diverged_seeds=3)).iloc[0]
    assert (lost["CE"], lost["runs"]) == ("diverged", "n = 0, 3 diverged")


def test_without_a_metric_there_is_one_column_of_ours() -> None:
    numbers = {"quantity": ["seconds"], "published": [56.0], "ours": [54.0], "ours_sd": [2.0], "seeds": [4]}
    (row,) = wide(pd.DataFrame(numbers)).to_dict("records")
    # (54 - 56) / (2 / √4)
    assert (row["ours"], row["printed"]) == ("54 ± 2.0000", "56 (−2.0 s.e.)")


@pytest.mark.parametrize("profile", profiles_with_results(Path(__file__).parents[3] / "results"))
def test_every_number_of_the_committed_results_has_its_place(profile: str, project_root: Path) -> None:
    for path in sorted((project_root / "results" / profile).glob("*/tables/*.csv")):
        table = pd.read_csv(path)
        if {"ours", "published"} <= set(table.columns):
            ours = table["ours"].notna().sum() + table.reindex(columns=["status"])["status"].eq("diverged").sum()
            assert sum(isinstance(text, Linked) for text in wide(table).to_numpy().ravel()) == ours, path

"""Tables that compare our numbers with printed ones are right and easy to read."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from softmax_temperature.papers.shared.layout import narrowest, number, wide
from softmax_temperature.papers.shared.results import profiles_with_results
from softmax_temperature.papers.shared.sources import Linked
from softmax_temperature.papers.shared.tables import beside_printed, lost_seeds

KEYS = ["task", "dataset", "network", "metric"]
COLUMNS = [
    "published",
    "ours",
    "seeds",
    "diverged_seeds",
    "difference_in_standard_errors",
    "status",
]


def made(
    printed_runs: int | None = None, *, printed_only: bool = False, **changes: object
) -> pd.DataFrame:
    """A table with one number of ours, over four seeds, and two printed numbers."""
    ours = {
        "task": "toy",
        "dataset": "a",
        "network": "n",
        "metric": "ece",
        "ours": 0.3,
        "ours_sd": 0.02,
    }
    ours |= {"seeds": 4, "runs": 5, "diverged_seeds": 1} | changes
    printed = {
        "dataset": ["a", "b"],
        "network": "n",
        "metric": "ece",
        "published": [0.25, 0.5],
        "published_sd": 0.03,
    }
    return beside_printed(
        pd.DataFrame([ours]),
        pd.DataFrame(printed),
        KEYS,
        columns=COLUMNS,
        profiles=lambda *_: ("paper",),
        printed_runs=printed_runs,
        printed_only=printed_only,
    )


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({}, 5),  # The difference is 0.05 / (0.02 / sqrt(4)).
        (
            {"printed_runs": 3},
            2.5,
        ),  # The error is sqrt(0.02² / 4 + 0.03² / 3) = 0.02.
        ({"seeds": 1, "ours_sd": np.nan, "error": 0.025}, 2),
        ({"seeds": 1, "ours_sd": np.nan}, np.nan),
        ({"ours_sd": 0.0}, np.nan),
    ],
)
def test_the_difference_is_in_standard_errors(
    changes: dict[str, float], difference: float
) -> None:
    assert made(**changes)["difference_in_standard_errors"][0] == pytest.approx(
        difference, nan_ok=True
    )


def test_printed_numbers_that_were_not_run_come_last_or_are_left_out() -> None:
    last = made().iloc[1][["task", "dataset", "published", "seeds", "status"]]
    assert last.tolist() == ["", "b", 0.5, 0, "not run: profile paper"]
    assert made(dataset="ours")["task"].tolist() == ["toy", "", ""]
    assert made(dataset="ours", printed_only=True)["task"].tolist() == ["", ""]


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ((0, 0, 3), ""),
        ((3, 0, 3), "diverged"),
        ((0, 3, 3), "stuck"),
        ((1, 2, 3), "1 of 3 diverged, 2 of 3 stuck"),
    ],
)
def test_lost_seeds(counts: tuple[int, int, int], said: str) -> None:
    assert lost_seeds(*counts) == said
    lost = made(
        seeds=0,
        ours=np.nan,
        diverged_seeds=counts[0],
        stuck_seeds=counts[1],
        runs=counts[2],
    )
    assert lost["status"][0] == (said if sum(counts[:2]) == counts[2] else "no value")


def test_a_value_that_no_finished_run_has_is_shown_as_such_in_its_row() -> None:
    rows = [
        {"metric": "ece", "ours": 0.3, "ours_sd": 0.02, "seeds": 3},
        {"metric": "s99_accuracy", "ours": np.nan, "ours_sd": np.nan, "seeds": 0},
    ]
    about = {"task": "toy", "dataset": "a", "network": "n", "runs": 3}
    table = beside_printed(
        pd.DataFrame([{**about, "diverged_seeds": 0, **row} for row in rows]),
        pd.DataFrame(columns=[*KEYS[1:], "published"]),
        KEYS,
        columns=COLUMNS,
        profiles=lambda *_: ("paper",),
    )
    assert table["status"].tolist() == ["measured", "no value"]
    laid_out = wide(table, across="metric")
    (shown,) = laid_out.to_dict("records")
    assert shown["accuracy above 99 % confidence (%)"] == "no value"
    assert shown["runs"].startswith("n = 3: ECE")
    assert shown["runs"].endswith("n = 0: accuracy above 99 % confidence (%)")


def test_the_width_of_a_table_is_that_of_its_longest_words_and_numbers() -> None:
    table = pd.DataFrame({"data set": ["CIFAR-10", "a b"], "ours": ["1.0 ± 0.2", ""]})
    assert narrowest(table) == 3 + len("CIFAR-10") + 3 + len("1.0 ± 0.2")
    assert narrowest(table.rename(columns={"ours": "ours, in percent"})) == 23


def test_numbers_have_four_digits_or_five() -> None:
    texts = {
        0.25: "0.2500",
        -0.00001: "0.0000",
        1: "1.0000",
        56: "56",
        123.456: "123.46",
        None: "–",
    }
    assert {value: number(value) for value in texts} == texts


@pytest.fixture
def table() -> pd.DataFrame:
    """A table of two methods and two tasks; only one of the tasks was run.

    Of the two metrics, only one has printed numbers.
    """
    names = [
        *KEYS[:3],
        "method",
        "metric",
        "published",
        "ours",
        "ours_sd",
        "seeds",
        *COLUMNS[-2:],
        "cells",
    ]
    rows = [
        [
            "toy",
            "toy",
            "small",
            method,
            metric,
            printed,
            0.3,
            0.01,
            3,
            difference,
            "measured",
            f"evaluation/{method}",
        ]
        for method, apart in (("CE", 4.2), ("FL", -0.42))
        for metric, printed, difference in (("ece", 0.25, apart), ("nll", None, None))
    ]
    absent = [0.25, None, None, 0, None, "not run: profile paper", None]
    rows += [
        ["", "CIFAR-10", "small", method, "ece", *absent] for method in ("CE", "FL")
    ]
    return pd.DataFrame(rows, columns=names)


def test_ours_is_shown_next_to_printed_and_methods_become_columns(
    table: pd.DataFrame,
) -> None:
    shown = wide(table.assign(differs=["half of it"] * 4 + [None] * 2), "method")
    columns = [
        "dataset",
        "network",
        "metric",
        "CE",
        "CE, printed",
        "FL",
        "FL, printed",
        "differs",
        "runs",
        "status",
    ]
    assert list(shown.columns) == columns
    first, second, absent = shown.to_dict("records")
    names = {
        "dataset": "toy",
        "network": "small",
        "differs": "half of it",
        "runs": "n = 3",
        "status": "–",
    }
    ours = {
        "CE": "30.00 ± 1.00",
        "CE, printed": "25.00 (+4.2 s.e.)",
        "FL": "30.00 ± 1.00",
    }
    assert first == names | ours | {
        "metric": "ECE (%)",
        "FL, printed": "25.00 (−0.4 s.e.)",
    }
    assert [first[name].cells for name in ("CE", "FL")] == [
        "evaluation/CE",
        "evaluation/FL",
    ]
    ours = dict.fromkeys(("CE", "FL"), "0.3000 ± 0.0100") | dict.fromkeys(
        ("CE, printed", "FL, printed"), "–"
    )
    assert second == names | ours | {"metric": "NLL"}
    assert (absent["CE"], absent["CE, printed"]) == ("–", "25.00")
    assert (absent["status"], absent["runs"]) == ("not run: profile paper", "–")


def test_counts_that_differ_name_their_columns(table: pd.DataFrame) -> None:
    runs = wide(table.assign(seeds=[4, 3, 2, 3, 0, 0]), "method")["runs"]
    assert runs.tolist() == ["n = 4: CE; n = 2: FL", "n = 3", "–"]


def test_a_diverged_run_is_marked(table: pd.DataFrame) -> None:
    lost = wide(
        table.assign(ours=None, status="diverged", seeds=0, diverged_seeds=3), "method"
    ).iloc[0]
    assert (lost["CE"], lost["runs"]) == ("diverged", "n = 0, 3 diverged")


def test_without_a_metric_there_is_one_column_of_ours() -> None:
    numbers = {
        "quantity": ["seconds"],
        "published": [56.0],
        "ours": [54.0],
        "ours_sd": [2.0],
        "seeds": [4],
    }
    (row,) = wide(pd.DataFrame(numbers), None).to_dict("records")
    # The difference is (54 - 56) / (2 / √4).
    assert (row["ours"], row["printed"]) == ("54 ± 2.0000", "56 (−2.0 s.e.)")


@pytest.mark.parametrize(
    "profile", profiles_with_results(Path(__file__).parents[3] / "results")
)
def test_every_number_of_the_committed_results_has_its_place(
    profile: str, project_root: Path
) -> None:
    for path in sorted((project_root / "results" / profile).glob("*/tables/*.csv")):
        table = pd.read_csv(path)
        if {"ours", "published"} <= set(table.columns):
            status = table.reindex(columns=["status"])["status"]
            instead = status.isin(["diverged", "no value"])
            ours = table["ours"].notna().sum() + instead.sum()
            across = next(
                (name for name in ("method", "mode", "row") if name in table), None
            )
            assert (
                sum(
                    isinstance(text, Linked)
                    for text in wide(table, across).to_numpy().ravel()
                )
                == ours
            ), path

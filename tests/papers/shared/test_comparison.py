"""The engine of the tables, by hand."""

import numpy as np
import pandas as pd
import pytest

from softmax_temperature.papers.shared.comparison import beside_printed, lost_seeds

KEYS = ["task", "dataset", "network", "metric"]
COLUMNS = ["published", "ours", "seeds", "diverged_seeds", "difference_in_standard_errors", "status"]


def made(**changes: object) -> pd.DataFrame:
    """One number of ours, over four seeds, beside two printed ones."""
    ours = {"task": "toy", "dataset": "a", "network": "n", "metric": "ece", "ours": 0.3, "ours_sd": 0.02}
    ours |= {"seeds": 4, "runs": 5, "diverged_seeds": 1}
    printed = {"dataset": ["a", "b"], "network": "n", "metric": "ece", "published": [0.25, 0.5], "published_sd": 0.03}
    options = {"printed_runs": changes.pop("printed_runs", None), "printed_only": changes.pop("printed_only", False)}
    return beside_printed(
        pd.DataFrame([ours | changes]),
        pd.DataFrame(printed),
        KEYS,
        columns=COLUMNS,
        profile=lambda *_: "paper",
        **options,
    )


def test_the_difference_is_in_standard_errors_over_seeds() -> None:
    # 0.05 over 0.02 / sqrt(4); with three printed runs the error is sqrt(0.02² / 4 + 0.03² / 3) = 0.02.
    assert made()["difference_in_standard_errors"][0] == pytest.approx(5)
    assert made(printed_runs=3)["difference_in_standard_errors"][0] == pytest.approx(2.5)


def test_a_single_seed_has_its_own_standard_error_or_none() -> None:
    assert made(seeds=1, ours_sd=np.nan, error=0.025)["difference_in_standard_errors"][0] == pytest.approx(2)
    assert np.isnan(made(seeds=1, ours_sd=np.nan)["difference_in_standard_errors"][0])
    assert np.isnan(made(ours_sd=0.0)["difference_in_standard_errors"][0])


def test_a_printed_number_that_was_not_run_says_which_profile_would() -> None:
    row = made().iloc[1]
    assert row[["task", "dataset", "published", "seeds", "status"]].tolist() == [
        "",
        "b",
        0.5,
        0,
        "not run: profile paper",
    ]


def test_a_number_that_is_not_printed_may_be_left_out() -> None:
    assert made(dataset="ours")["task"].tolist() == ["toy", "", ""]
    assert made(dataset="ours", printed_only=True)["task"].tolist() == ["", ""]


@pytest.mark.parametrize(
    ("counts", "said"),
    [((0, 0, 3), ""), ((3, 0, 3), "diverged"), ((0, 3, 3), "stuck"), ((1, 2, 3), "1 of 3 diverged, 2 of 3 stuck")],
)
def test_lost_seeds(counts: tuple[int, int, int], said: str) -> None:
    assert lost_seeds(*counts) == said
    lost = made(seeds=0, ours=np.nan, diverged_seeds=counts[0], stuck_seeds=counts[1], runs=counts[2])
    assert lost["status"][0] == (said if sum(counts[:2]) == counts[2] else "measured")

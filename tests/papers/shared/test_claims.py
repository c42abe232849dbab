"""A claim is never silently absent, and its interval is Student's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from softmax_temperature.papers.shared.claims import (
    DOES_NOT_HOLD,
    HOLDS,
    NOT_TESTED,
    Claim,
    Evidence,
    NotTested,
    claims_table,
    judge_all,
    mean_with_interval,
)


def claim(name: str, outcome: Evidence | NotTested) -> Claim[int]:
    return Claim(name, "Table 1", f"{name} is so.", "a > b", lambda _: outcome, published=0.5)


CLAIMS = (
    claim("yes", Evidence(True, 0.25, 3, "accuracy", sd=0.1, low=0.2, high=0.3)),
    claim("no", Evidence(False, -0.25, 1, "r")),
    claim("unknown", NotTested("one repeat only")),
)


def test_every_claim_has_a_row_in_its_order() -> None:
    rows = judge_all("paper", CLAIMS, 0, profile="smoke")
    assert [row["verdict"] for row in rows] == [HOLDS, DOES_NOT_HOLD, NOT_TESTED]
    assert rows[0]["value"] == 0.25
    assert rows[2]["value"] is None
    assert rows[2]["note"] == "one repeat only"
    assert len({frozenset(row) for row in rows}) == 1, "all rows have the same keys"


def test_the_readers_table_shows_what_there_is() -> None:
    table = claims_table(judge_all("paper", CLAIMS, 0, profile="smoke"))
    assert table["ours"].tolist() == ["0.250 ± 0.100 [0.200, 0.300] accuracy (n = 3)", "-0.250 r (n = 1)", "–"]


@pytest.mark.parametrize(
    ("outcome", "shown"),
    [
        (Evidence(False, 0.1, 3, "accuracy", low=-0.1, high=0.3), "does not hold (interval includes 0)"),
        (
            Evidence(False, 0.01, 3, "accuracy", low=0.005, high=0.015, bounds=(-0.01, 0.01)),
            "does not hold (interval includes 0.01)",
        ),
        (Evidence(False, 0.03, 3, "accuracy", low=-0.01, high=0.06, bounds=()), "does not hold"),
        (Evidence(False, -0.2, 3, "accuracy", low=-0.3, high=-0.1), "does not hold"),
        (Evidence(False, 0.1, 1, "accuracy"), "does not hold"),
        (Evidence(True, 0.0, 3, "accuracy", low=-0.1, high=0.1), "holds"),
        (NotTested("no run"), "not tested"),
    ],
)
def test_too_few_runs_are_told_from_runs_that_speak_against(outcome: Evidence | NotTested, shown: str) -> None:
    (row,) = judge_all("paper", (claim("some", outcome),), 0, profile="collection")
    assert claims_table([row])["verdict"].tolist() == [shown]
    assert row["verdict"] in (HOLDS, DOES_NOT_HOLD, NOT_TESTED)


@pytest.mark.parametrize(
    ("profile", "heading"),
    [("mini", "verdict (directions only)"), ("smoke", "verdict (directions only)"), ("paper", "verdict")],
)
def test_the_table_of_a_small_profile_says_that_it_judges_directions(profile: str, heading: str) -> None:
    assert heading in claims_table(judge_all("paper", CLAIMS, 0, profile=profile))


def test_interval_is_students() -> None:
    values = np.random.default_rng(0).normal(size=7)
    mean = mean_with_interval(values)
    low, high = stats.t.interval(0.90, 6, loc=values.mean(), scale=stats.sem(values))
    assert (mean.low, mean.high) == pytest.approx((low, high))
    assert mean.sd == pytest.approx(values.std(ddof=1))


def test_one_value_has_no_interval() -> None:
    with pytest.raises(ValueError, match="n >= 2"):
        mean_with_interval(np.ones(1))

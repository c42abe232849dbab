"""A claim is never silently absent, and its interval is Student's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from softmax_temperature.claims import (
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


def test_interval_is_students() -> None:
    values = np.random.default_rng(0).normal(size=7)
    mean = mean_with_interval(values)
    low, high = stats.t.interval(0.90, 6, loc=values.mean(), scale=stats.sem(values))
    assert (mean.low, mean.high) == pytest.approx((low, high))
    assert mean.sd == pytest.approx(values.std(ddof=1))


def test_one_value_has_no_interval() -> None:
    with pytest.raises(ValueError, match="n >= 2"):
        mean_with_interval(np.ones(1))

"""Verdicts at, above and below a bound; what decides among parts; pooling over tasks; no claim is silently absent."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from softmax_temperature.papers.shared.claims import (
    CONTRADICTED,
    HOLDS,
    INCONCLUSIVE,
    NOT_TESTED,
    Claim,
    Criterion,
    Measurement,
    NotTested,
    above,
    below,
    claims_table,
    equivalent,
    judge_all,
    most,
    not_worse,
    texts,
)
from softmax_temperature.papers.shared.statistics import (
    Drawn,
    OverTasks,
    Quantity,
    Share,
    Task,
)

AROUND = np.array([-0.1, 0.0, 0.1])
"""Of standard deviation 0.1: the interval's half width is t(0.95, 2) * 0.1 / sqrt(3) = 0.1686."""


def seeds(center: float, *, own: bool = True) -> Task:
    return Task(f"task at {center:g}", tuple((center + AROUND).tolist()), own)


def claim(criterion: Criterion, found: Measurement | NotTested) -> Claim[int]:
    return Claim("a", "Table 1", "A beats B.", "A minus B.", criterion, lambda _: found, published=0.5)


def judged(criterion: Criterion, *parts: Quantity, profile: str = "paper", **missing: str) -> dict[str, Any]:
    found = Measurement({f"part {number}": part for number, part in enumerate(parts)}, "accuracy", missing=missing)
    (row,) = judge_all("focal", (claim(criterion, found),), 0, profile=profile)
    return row


@pytest.mark.parametrize(
    ("criterion", "center", "verdict"),
    [
        (above(0.3), 0.5, HOLDS),
        (above(0.3), 0.4, INCONCLUSIVE),
        (above(0.3), 0.3, INCONCLUSIVE),
        (above(0.3), 0.1, CONTRADICTED),
        (below(0.3), 0.1, HOLDS),
        (below(0.3), 0.5, CONTRADICTED),
        (not_worse(0.2), 0.0, HOLDS),
        (not_worse(0.2), -0.1, INCONCLUSIVE),
        (not_worse(0.2), -0.4, CONTRADICTED),
        (equivalent(0.2), 0.01, HOLDS),
        (equivalent(0.2), 0.1, INCONCLUSIVE),
        (equivalent(0.1), 0.0, INCONCLUSIVE),  # Wider than the region: it sticks out on both sides.
        (equivalent(0.2), -0.5, CONTRADICTED),
    ],
)
def test_the_interval_against_the_bound_decides(criterion: Criterion, center: float, verdict: str) -> None:
    row = judged(criterion, OverTasks((seeds(center),)))
    assert row["verdict"] == verdict
    assert row["bounds"] == list(criterion.bounds)


def test_a_bound_that_is_the_intervals_end_is_not_passed() -> None:
    assert judged(above(0.5), Drawn(0.6, (0.5,) * 9 + (0.7,) * 9, 3))["verdict"] == INCONCLUSIVE
    assert judged(below(0.5), Drawn(0.6, (0.5,) * 9 + (0.7,) * 9, 3))["verdict"] == CONTRADICTED


def test_an_inconclusive_row_says_how_many_seeds_would_decide() -> None:
    row = judged(above(), OverTasks((seeds(0.1),)))
    half = {n: stats.t.ppf(0.95, n - 1) * 0.1 / n**0.5 for n in (4, 5)}
    assert half[4] > 0.1 > half[5]
    assert (row["verdict"], row["n_needed"], row["each"]) == (INCONCLUSIVE, 5, "seeds")
    assert claims_table([row])["verdict"].tolist() == ["inconclusive (5 seeds would decide)"]
    assert judged(above(), OverTasks((seeds(0.0),)))["n_needed"] is None, "a mean on the bound is never decided"


def test_one_value_decides_nothing() -> None:
    row = judged(above(), OverTasks((Task("cifar10", (0.5,)),)))
    assert (row["verdict"], row["n_needed"], row["low"]) == (INCONCLUSIVE, None, None)
    assert row["note"] == "one value has no interval"


def test_tasks_are_pooled_as_a_hand_computes_it() -> None:
    # Means 0.1, 0.2, 0.6: their mean is 0.3, their variance (0.04 + 0.01 + 0.09) / 2 = 0.07.
    found = OverTasks(tuple(Task(str(mean), (mean - 0.9, mean + 0.9)) for mean in (0.1, 0.2, 0.6))).estimate()
    half = 2.919986 * (0.07 / 3) ** 0.5
    assert [found.value, found.sd, found.low, found.high] == pytest.approx([0.3, 0.07**0.5, 0.3 - half, 0.3 + half])
    assert found.n == 6


def test_two_tasks_that_agree_are_not_lost_to_one_degree_of_freedom() -> None:
    found = OverTasks((seeds(0.3), seeds(0.6))).estimate()
    half = 2.919986 * 0.1 / 3**0.5
    assert [found.low, found.high] == pytest.approx([0.3 - half, 0.6 + half]), "from the lowest end to the highest"


def test_a_task_that_the_paper_lacks_is_shown_and_not_pooled() -> None:
    part = OverTasks((seeds(0.5), seeds(-0.5, own=False)))
    row = judged(above(), part)
    assert (row["verdict"], row["value"], row["n"]) == (HOLDS, pytest.approx(0.5), 3)
    assert [task["pooled"] for task in row["tasks"]] == [True, False]
    assert judged(above(), OverTasks((seeds(0.5, own=False),)))["verdict"] == NOT_TESTED
    assert judged(above(), part, profile="mini")["n"] == 6, "directions are shown on what is there"


def test_all_parts_must_hold_and_the_least_decides() -> None:
    assert judged(above(), OverTasks((seeds(0.5),)), OverTasks((seeds(0.6),)))["verdict"] == HOLDS
    row = judged(above(), OverTasks((seeds(0.5),)), OverTasks((seeds(0.1),)))
    assert (row["verdict"], row["unit"]) == (INCONCLUSIVE, "accuracy, part 1")
    row = judged(above(), OverTasks((seeds(0.5),)), OverTasks((seeds(-0.5),)))
    assert (row["verdict"], row["value"]) == (CONTRADICTED, pytest.approx(-0.5))


def test_one_of_many_parts_contradicts_at_a_corrected_level_only() -> None:
    parts = [OverTasks((seeds(center),)) for center in (-0.17, 0.5, 0.5, 0.5)]
    assert judged(above(), parts[0])["verdict"] == CONTRADICTED
    row = judged(above(), *parts)
    assert (row["verdict"], row["level"]) == (INCONCLUSIVE, pytest.approx(0.975))
    assert row["low"] < 0 < row["high"], "the interval that is shown is the one that decides"


def test_a_claim_that_some_part_makes_needs_one() -> None:
    parts = [OverTasks((seeds(center),)) for center in (-0.5, 0.6)]
    assert judged(above(some=True), *parts)["verdict"] == HOLDS
    assert judged(above(some=True), parts[0], parts[0])["verdict"] == CONTRADICTED


def test_a_missing_part_leaves_a_claim_open_but_not_a_contradiction() -> None:
    row = judged(above(), OverTasks((seeds(0.5),)), cosine="not trained")
    assert (row["verdict"], row["n_needed"]) == (INCONCLUSIVE, None)
    assert row["note"] == "not judged: cosine: not trained"
    assert judged(above(), OverTasks((seeds(-0.5),)), cosine="not trained")["verdict"] == CONTRADICTED


def test_shares_have_the_exact_interval() -> None:
    # All of n: the lower end p solves p^n = 0.05.
    assert Share(4, 4).estimate().low == pytest.approx(0.05**0.25)
    row = judged(most(), Share(4, 4))
    assert (row["verdict"], row["n_needed"]) == (INCONCLUSIVE, 5)
    assert judged(most(), Share(5, 5))["verdict"] == HOLDS
    assert judged(most(), Share(0, 5))["verdict"] == CONTRADICTED


def test_equal_values_of_a_grid_differ_by_rounding() -> None:
    found = OverTasks((Task("cifar10", (1.1, 1.1, 1.1)),), resolution=0.1).estimate()
    assert found.sd == pytest.approx(0.1 / 12**0.5)


def test_values_from_choices_on_the_others_have_a_wider_interval() -> None:
    task = Task("cifar10", (0.1, 0.2, 0.3))
    plain, left_out = (OverTasks((task,), left_out=side).estimate() for side in (False, True))
    assert plain.low is not None
    assert left_out.low is not None
    # Nadeau and Bengio: 1/3 + 1/2 in the place of 1/3.
    assert (0.2 - left_out.low) / (0.2 - plain.low) == pytest.approx((5 / 2) ** 0.5)


def test_every_claim_has_a_row_in_its_order() -> None:
    found = Measurement({"all": OverTasks((seeds(0.5),))}, "accuracy")
    rows = judge_all("focal", (claim(above(), found), claim(above(), NotTested("one repeat"))), 0, profile="smoke")
    assert [row["verdict"] for row in rows] == [HOLDS, NOT_TESTED]
    assert (rows[1]["value"], rows[1]["note"]) == (None, "one repeat")
    assert len({frozenset(row) for row in rows}) == 1, "all rows have the same keys"
    table = claims_table(rows)
    assert "verdict (directions only)" in table
    assert table["ours"].tolist() == ["50.00 ± 10.00 [33.14, 66.86] points of accuracy (n = 3 seeds)", "–"]
    assert table["must lie"].tolist() == ["above 0", "–"]


def test_interval_is_students() -> None:
    values = np.random.default_rng(0).normal(size=7)
    found = OverTasks((Task("", tuple(values)),)).estimate()
    low, high = stats.t.interval(0.90, 6, loc=values.mean(), scale=stats.sem(values))
    assert (found.low, found.high) == pytest.approx((low, high))


def test_a_reader_sees_shares_in_points_and_other_numbers_as_they_are() -> None:
    row = judged(above(0.01), OverTasks((seeds(0.5),)), OverTasks((seeds(0.6),)))
    said = texts(row)
    assert said["ours"] == "50.00 ± 10.00 [33.14, 66.86] points of accuracy, part 0 (n = 3 seeds)"
    assert (said["printed"], said["must lie"], said["note"]) == ("50", "above 1", "part 0 +50.0, part 1 +60.0")
    assert said["criterion"].endswith("holds if the 90 % interval lies above 1 points of accuracy.")
    for unit, shown in (("of an epoch", "% of an epoch"), ("share of predictions", "% of predictions")):
        assert f" {shown} (n" in texts(row | {"unit": unit})["ours"]
    said = texts(row | {"unit": "nats"})
    assert said["ours"] == "0.500 ± 0.100 [0.331, 0.669] nats (n = 3 seeds)"
    assert (said["printed"], said["must lie"]) == ("0.5", "above 0.01")

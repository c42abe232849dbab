"""Choosing makes nothing look better, and a rate at the end of its grid decides
nothing.
"""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from softmax_temperature.papers.shared.claims import (
    CONTRADICTED,
    HOLDS,
    INCONCLUSIVE,
    NOT_TESTED,
    judge_all,
)
from softmax_temperature.papers.temperature_check.claims import CLAIMS
from softmax_temperature.papers.temperature_check.measures import (
    argmax_draws,
    common_slope,
)

from .conftest import RATES, SEEDS, TEMPERATURES, make_records, run, sweep

WRN, GRU, FLAT = (0.6, 0.8, 0.7, 0.5), (0.5, 0.6, 0.85, 0.7), (0.7,) * 4
DEPENDENCE, PLACES = "accuracy-depends-on-temperature", "best-depends-on-architecture"
Rows = list[dict[str, Any]]


def noisy(name: str, accuracies: tuple[float, ...], **others: Any) -> Rows:
    return sweep(name, accuracies, noise=0.004, **others)


def pairs(effect: float, norm: float = 30.0) -> Rows:
    return [
        run(
            "wrn-pairs",
            1.0,
            rate,
            seed,
            0.7 - effect * (1 - c) - 0.03 * (rate != 0.1),
            start=f"pair-{c}",
        )
        | {"correlation": c, "initial_logit_norm": norm * (1 - c)}
        for c in (1.0, 0.0)
        for rate in RATES
        for seed in SEEDS
    ]


def judged(name: str, *rows: Rows) -> dict[str, Any]:
    found, claims = (
        make_records(*rows, dataset="cifar10"),
        [one for one in CLAIMS if one.id == name],
    )
    (row,) = judge_all("temperature_check", claims, found, profile="study")
    return row


@pytest.mark.parametrize(
    ("name", "verdict", "value"),
    [
        (DEPENDENCE, HOLDS, 0.3),
        ("accuracy-depends-weakly-on-logit-norm", HOLDS, 0.01 - 0.15),
        ("not-a-matter-of-confidence", HOLDS, 0.3),
        ("not-a-matter-of-confidence-at-the-start", NOT_TESTED, None),
        (
            "tuning-helps-every-architecture",
            CONTRADICTED,
            0.0,
        ),  # The GRU is best at 1, whichever seeds choose.
        (PLACES, HOLDS, 1.0),
        ("small-peaks-higher", HOLDS, 0.1),
    ],
)
def test_the_records_of_known_answers(name: str, verdict: str, value: float) -> None:
    row = judged(name, noisy("wrn", WRN), noisy("gru", GRU, seed=1), pairs(0.01))
    assert (row["verdict"], row["value"]) == (
        verdict,
        value if value is None else pytest.approx(value, abs=0.01),
    )


@pytest.mark.parametrize(("effect", "verdict"), [(0.1, HOLDS), (0.001, CONTRADICTED)])
def test_networks_that_start_as_one_function_may_still_differ(
    effect: float, verdict: str
) -> None:
    rows = sweep(
        "wrn-same",
        [0.7 - effect * (place > 1) for place in TEMPERATURES],
        start="norm-1",
    )
    assert judged("not-a-matter-of-confidence-at-the-start", rows)["verdict"] == verdict


def test_confirmations_are_judged_where_a_sweep_has_them() -> None:
    fresh = [
        row | {"start": "confirmed-plain", "seed": 10 + row["seed"]}
        for row in noisy("wrn", WRN)
    ]
    fresh = [row for row in fresh if row["learning_rate"] == 0.1]
    both = (noisy("wrn", FLAT), fresh)
    assert judged(DEPENDENCE, *both)["verdict"] == HOLDS
    assert judged("small-spreads-more", *both)["n"] == len(SEEDS), (
        "those that rates were chosen on do not count"
    )


def test_a_seed_is_judged_at_the_choice_of_the_other_seeds() -> None:
    # Seed 0 alone is best at 0.1, by far: with its own numbers, 0.1 would be the best
    # choice for every seed. The others choose 1 for it, and with it 0.1 for each other.
    accuracies = dict.fromkeys(SEEDS, (0.5, 0.6)) | {0: (0.9, 0.1)}
    rows = [
        run("wrn", place, rate, seed, accuracy - 0.03 * (rate != 0.1))
        for seed, pair in accuracies.items()
        for place, accuracy in zip((0.1, 1.0), pair, strict=True)
        for rate in RATES
    ]
    others = len(SEEDS) - 1
    expected = ((0.1 - 0.9) + others * (0.5 - 0.6)) / len(SEEDS)
    assert judged(DEPENDENCE, rows)["value"] == pytest.approx(expected)


def test_a_flat_sweep_depends_on_nothing() -> None:
    flat = (noisy("wrn", FLAT), noisy("gru", FLAT, seed=1))
    assert judged(DEPENDENCE, *flat)["verdict"] == CONTRADICTED
    for name in (
        "not-a-matter-of-confidence",
        "tuning-helps-every-architecture",
        PLACES,
    ):
        assert judged(name, *flat)["verdict"] != HOLDS


def test_a_strong_effect_of_the_norm_is_not_weak_and_small_norms_cannot_tell() -> None:
    name = "accuracy-depends-weakly-on-logit-norm"
    assert judged(name, noisy("wrn", WRN), pairs(0.4))["verdict"] == CONTRADICTED
    row = judged(name, noisy("wrn", WRN), pairs(0.01, norm=3.3))
    assert (row["verdict"], "cannot show more than one regime" in row["note"]) == (
        NOT_TESTED,
        True,
    )


@pytest.mark.parametrize("rate", [RATES[0], RATES[-1]])
def test_a_learning_rate_at_the_end_of_its_grid_decides_nothing(rate: float) -> None:
    ended = noisy("wrn", WRN, best_rate=rate)
    at_no, next_to = (
        "rate is inside its grid at no β",
        "rate is at the end of its grid next to",
    )
    for name, says in (
        (DEPENDENCE, at_no),
        ("tuning-helps-every-architecture", at_no),
        (PLACES, next_to),
    ):
        row = judged(name, ended)
        assert (row["verdict"], says in row["note"]) == (NOT_TESTED, True)
    assert (
        judged(DEPENDENCE, ended, noisy("gru", GRU, seed=1))["verdict"] == INCONCLUSIVE
    ), "one cannot be judged"


def test_a_best_place_at_the_end_of_the_grid_is_no_place() -> None:
    row = judged(PLACES, noisy("wrn", WRN), noisy("gru", (0.4, 0.5, 0.6, 0.7), seed=1))
    assert (row["verdict"], "at the end of its grid" in row["note"]) == (
        NOT_TESTED,
        True,
    )


def test_draws_of_the_best_place_spread_over_a_plateau_and_keep_to_a_peak() -> None:
    peak = pd.DataFrame(
        [[0.5, 0.8, 0.5], [0.501, 0.801, 0.5]], columns=[0.1, 1.0, 10.0]
    )
    assert np.mean(argmax_draws(peak) == 0) > 0.99
    flat = pd.DataFrame([[0.5, 0.51, 0.5], [0.51, 0.5, 0.5]], columns=[0.1, 1.0, 10.0])
    assert set(argmax_draws(flat)) == {-1.0, 0.0, 1.0}


def test_spread_that_falls_with_the_inverse_temperature_is_instability() -> None:
    row = judged(
        "small-spreads-more",
        *(noisy(f"net{number}", WRN, seed=number) for number in range(6)),
    )
    assert (row["verdict"], row["note"]) == (HOLDS, "24 spreads in 6 sweeps")


def test_a_common_slope_by_hand() -> None:
    # Two sweeps on lines of slope 2 and 4, of the same spread in x: 3 together, misses
    # of 1 on either side.
    table = pd.DataFrame(
        {"sweep": [*"aabb"], "x": [-1.0, 1, -1, 1], "y": [-2.0, 2, 6, 14]}
    )
    assert common_slope(table) == pytest.approx((3.0, (4 / 1 / 4) ** 0.5, 1))

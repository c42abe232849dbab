"""Choosing makes nothing look better, and a rate at the end of its grid decides nothing."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from softmax_temperature.papers.shared.claims import CONTRADICTED, HOLDS, INCONCLUSIVE, NOT_TESTED, judge_all
from softmax_temperature.papers.temperature_check.claims import CLAIMS
from softmax_temperature.papers.temperature_check.measures import argmax_draws, common_slope
from softmax_temperature.papers.temperature_check.records import Records

from .conftest import facts, run

TEMPERATURES, RATES, SEEDS = (0.01, 0.1, 1.0, 10.0), (0.01, 0.1, 1.0), range(5)
WRN, GRU = (0.6, 0.8, 0.7, 0.5), (0.5, 0.6, 0.85, 0.7)


def sweep(name: str, accuracies: tuple[float, ...], *, best_rate: float = 0.1, seed: int = 0) -> list[dict[str, Any]]:
    """Trainings whose best learning rate is given, and whose spread falls with the inverse temperature."""
    generator = np.random.default_rng(seed)
    rows = []
    for place, accuracy in zip(TEMPERATURES, accuracies, strict=True):
        for rate in RATES:
            for number, noise in enumerate(generator.normal(size=len(SEEDS)) * 0.004 / (1 + np.log10(100 * place))):
                found = accuracy - 0.03 * (rate != best_rate) + noise
                rows.append(run(name, place, rate, number, found))
    return rows


def pairs(name: str, effect: float, norm: float = 30.0) -> list[dict[str, Any]]:
    return [
        run(name, 1.0, rate, seed, 0.7 - effect * place - 0.03 * (rate != 0.1) + 0.001 * seed, **about)
        for place, (correlation, size) in enumerate([(1.0, 0.0), (0.0, norm)])
        for about in [{"start": f"pair-{correlation}", "correlation": correlation, "initial_logit_norm": size}]
        for rate in RATES
        for seed in SEEDS
    ]


def records(*rows: list[dict[str, Any]]) -> Records:
    runs = pd.DataFrame([row for some in rows for row in some])
    names = runs["sweep"].unique()
    sweeps = pd.DataFrame([facts(name, name.partition("-")[0]) | {"dataset": "cifar10"} for name in names])
    empty = pd.DataFrame()
    early = pd.DataFrame(
        columns=["moment", "network", "inverse_temperature", "drift", "dynamics", "logit_norm", "images"]
    )
    return Records(runs, sweeps, empty, empty, early, early)


def judged(name: str, found: Records) -> dict[str, Any]:
    (row,) = judge_all("temperature_check", [one for one in CLAIMS if one.id == name], found, profile="study")
    return row


@pytest.fixture
def study() -> Records:
    return records(sweep("wrn", WRN), sweep("gru", GRU, seed=1), pairs("wrn-pairs", 0.01))


@pytest.mark.parametrize(
    ("name", "verdict", "value"),
    [
        ("accuracy-depends-on-temperature", HOLDS, 0.3),
        ("accuracy-depends-weakly-on-logit-norm", HOLDS, 0.01 - 0.15),
        ("not-a-matter-of-confidence", HOLDS, 0.3),
        ("tuning-helps-every-architecture", CONTRADICTED, 0.0),  # The GRU is best at 1, whichever seeds choose.
        ("best-depends-on-architecture", HOLDS, 1.0),
        ("small-peaks-higher", HOLDS, 0.1),
    ],
)
def test_the_records_of_known_answers(study: Records, name: str, verdict: str, value: float) -> None:
    row = judged(name, study)
    assert (row["verdict"], row["value"]) == (verdict, pytest.approx(value, abs=0.01))


@pytest.mark.parametrize(("effect", "verdict"), [(0.1, HOLDS), (0.001, CONTRADICTED)])
def test_networks_that_start_as_one_function_may_still_differ(study: Records, effect: float, verdict: str) -> None:
    name = "not-a-matter-of-confidence-at-the-start"
    assert judged(name, study)["verdict"] == NOT_TESTED
    rows = [
        run(
            "wrn-same",
            place,
            rate,
            seed,
            0.7 - effect * (place > 1) - 0.03 * (rate != 0.1) + 0.001 * seed,
            start="norm-1",
        )
        for place in TEMPERATURES
        for rate in RATES
        for seed in SEEDS
    ]
    assert judged(name, records(rows))["verdict"] == verdict


def test_confirmations_are_judged_where_a_sweep_has_them() -> None:
    flat = sweep("wrn", (0.7,) * 4)
    fresh = [
        row | {"start": "confirmed-plain", "seed": 10 + row["seed"]}
        for row in sweep("wrn", WRN)
        if row["learning_rate"] == 0.1
    ]
    assert judged("accuracy-depends-on-temperature", records(flat, fresh))["verdict"] == HOLDS


def test_a_flat_sweep_depends_on_nothing() -> None:
    flat = records(sweep("wrn", (0.7,) * 4), sweep("gru", (0.7,) * 4, seed=1))
    assert judged("accuracy-depends-on-temperature", flat)["verdict"] == CONTRADICTED
    for name in ("not-a-matter-of-confidence", "tuning-helps-every-architecture", "best-depends-on-architecture"):
        assert judged(name, flat)["verdict"] != HOLDS


def test_a_strong_effect_of_the_norm_is_not_weak_and_small_norms_cannot_tell() -> None:
    strong = records(sweep("wrn", WRN), pairs("wrn-pairs", 0.4))
    assert judged("accuracy-depends-weakly-on-logit-norm", strong)["verdict"] == CONTRADICTED
    small = records(sweep("wrn", WRN), pairs("wrn-pairs", 0.01, norm=3.3))
    row = judged("accuracy-depends-weakly-on-logit-norm", small)
    assert (row["verdict"], "cannot show more than one regime" in row["note"]) == (NOT_TESTED, True)


@pytest.mark.parametrize("rate", [RATES[0], RATES[-1]])
def test_a_learning_rate_at_the_end_of_its_grid_decides_nothing(rate: float) -> None:
    ended = records(sweep("wrn", WRN, best_rate=rate))
    for name in ("accuracy-depends-on-temperature", "tuning-helps-every-architecture", "best-depends-on-architecture"):
        row = judged(name, ended)
        assert row["verdict"] == NOT_TESTED
        assert "the chosen learning rate is at the end of its grid" in row["note"]
    one = records(sweep("wrn", WRN, best_rate=rate), sweep("gru", GRU, seed=1))
    assert judged("accuracy-depends-on-temperature", one)["verdict"] == INCONCLUSIVE, "one sweep cannot be judged"


def test_a_best_place_at_the_end_of_the_grid_is_no_place() -> None:
    rising = records(sweep("wrn", WRN), sweep("gru", (0.4, 0.5, 0.6, 0.7), seed=1))
    row = judged("best-depends-on-architecture", rising)
    assert (row["verdict"], "at the end of its grid" in row["note"]) == (NOT_TESTED, True)


def test_draws_of_the_best_place_spread_over_a_plateau_and_keep_to_a_peak() -> None:
    peak = pd.DataFrame([[0.5, 0.8, 0.5], [0.501, 0.801, 0.5]], columns=[0.1, 1.0, 10.0])
    assert np.mean(argmax_draws(peak) == 0) > 0.99
    flat = pd.DataFrame([[0.5, 0.51, 0.5], [0.51, 0.5, 0.5]], columns=[0.1, 1.0, 10.0])
    assert set(argmax_draws(flat)) == {-1.0, 0.0, 1.0}


def test_spread_that_falls_with_the_inverse_temperature_is_instability() -> None:
    many = [sweep(f"net{number}", WRN, seed=number) for number in range(6)]
    row = judged("small-spreads-more", records(*many))
    assert row["verdict"] == HOLDS
    assert row["note"] == "24 spreads in 6 sweeps"


def test_a_common_slope_by_hand() -> None:
    # Two sweeps on lines of slope 2 and 4, of the same spread in x: 3 together, misses of 1 on either side.
    table = pd.DataFrame({"sweep": [*"aabb"], "x": [-1.0, 1, -1, 1], "y": [-2.0, 2, 6, 14]})
    slope, error = common_slope(table)
    assert [slope, error] == pytest.approx([3.0, (4 / 1 / 4) ** 0.5])

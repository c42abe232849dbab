"""Choices do not bias verdicts; a best rate at the end of its grid does not count."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ruamel.yaml import YAML

from softmax_temperature.papers.shared.claims import (
    CONTRADICTED,
    HOLDS,
    INCONCLUSIVE,
    NOT_TESTED,
    judge_all,
)
from softmax_temperature.papers.temperature_check.claims import CLAIMS
from softmax_temperature.papers.temperature_check.logit_norms import (
    minus_half,
    why_one_regime,
)

from .conftest import (
    RATES,
    SEEDS,
    TEMPERATURES,
    Row,
    confirmed,
    make_runs,
    pair,
    sweep,
    training,
)

WRN = (0.6, 0.8, 0.7, 0.5)
GRU = (0.5, 0.6, 0.85, 0.7)
FLAT = (0.7,) * 4
DEPENDENCE = "accuracy-depends-on-temperature"
PLACES = "best-depends-on-architecture"
NORM = "accuracy-depends-weakly-on-logit-norm"
LONG_NORM = f"{NORM}-after-50-epochs"
SPREAD = "small-spreads-more"
TUNING = "tuning-helps-every-architecture"


def noisy(name: str, accuracies: tuple[float, ...], **others: Any) -> list[Row]:
    return sweep(name, accuracies, noise=0.004, **others)


def pairs(effect: float, norm: float = 30.0) -> list[Row]:
    """Runs that start as pairs with correlation 1 or 0; the accuracies differ by
    `effect`.
    """
    rows = []
    for correlation in (1.0, 0.0):
        start = pair(correlation, norm=norm * (1 - correlation))
        for rate in RATES:
            accuracy = 0.7 - effect * (1 - correlation) - 0.03 * (rate != 0.1)
            rows += [
                training("wrn-pairs", 1.0, rate, seed, accuracy, **start)
                for seed in SEEDS
            ]
    return rows


def judged(name: str, *groups: list[Row]) -> dict[str, Any]:
    claims = [claim for claim in CLAIMS if claim.id == name]
    runs = make_runs(*groups)
    (row,) = judge_all("temperature_check", claims, runs, profile="study")
    return row


@pytest.mark.parametrize(
    ("name", "verdict", "value"),
    [
        (DEPENDENCE, HOLDS, 0.3),
        (NORM, HOLDS, 0.01 - 0.15),
        ("not-a-matter-of-confidence", HOLDS, 0.3),
        # The GRU is best at 1, whichever seeds the choice is made on.
        (TUNING, CONTRADICTED, 0.0),
        (PLACES, HOLDS, 1.0),
        ("small-peaks-higher", HOLDS, 0.1),
    ],
)
def test_runs_of_known_answers(name: str, verdict: str, value: float) -> None:
    row = judged(name, noisy("wrn", WRN), noisy("gru", GRU, seed=1), pairs(0.01))
    assert row["verdict"] == verdict
    assert row["value"] == pytest.approx(value, abs=0.01)


@pytest.mark.parametrize(("effect", "verdict"), [(0.1, HOLDS), (0.001, CONTRADICTED)])
def test_networks_that_start_as_one_function_may_still_differ(
    effect: float, verdict: str
) -> None:
    accuracies = [0.7 - effect * (place > 1) for place in TEMPERATURES]
    rows = sweep("wrn-same", accuracies, start="norm", start_norm=1.0)
    row = judged("not-a-matter-of-confidence-at-the-start", rows)
    assert row["verdict"] == verdict


def test_a_network_with_its_own_start_says_nothing_of_one_shared_start() -> None:
    row = judged("not-a-matter-of-confidence-at-the-start", noisy("wrn-same", WRN))
    assert row["verdict"] == NOT_TESTED


def test_confirmations_are_judged_where_a_sweep_has_them() -> None:
    fresh = [
        confirmed(row, 10 + row["seed"])
        for row in noisy("wrn", WRN)
        if row["learning_rate"] == 0.1
    ]
    both = (noisy("wrn", FLAT), fresh)
    assert judged(DEPENDENCE, *both)["verdict"] == HOLDS
    spread = judged("small-spreads-more", *both)
    assert spread["n"] == len(SEEDS)  # Seeds used to choose rates do not count.
    assert all("/confirmation/" in cell for cell in spread["cells"])


def test_a_seed_is_judged_at_the_choice_of_the_other_seeds() -> None:
    # Inverse temperature 0.1 is best only for seed 0, but there by a wide margin. If a
    # seed's own numbers counted, 0.1 would be chosen for every seed. Because they do
    # not count, 1 is chosen for seed 0, and 0.1 for the other seeds.
    accuracies = dict.fromkeys(SEEDS, (0.5, 0.6)) | {0: (0.9, 0.1)}
    rows = [
        training("wrn", place, rate, seed, accuracy - 0.03 * (rate != 0.1))
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
    for name in ("not-a-matter-of-confidence", TUNING, PLACES):
        assert judged(name, *flat)["verdict"] != HOLDS


def test_a_strong_effect_of_the_norm_is_not_weak() -> None:
    row = judged(NORM, noisy("wrn", WRN), pairs(0.4))
    assert row["verdict"] == CONTRADICTED


def test_norms_within_one_regime_do_not_test_the_claim() -> None:
    row = judged(NORM, noisy("wrn", WRN), pairs(0.01, norm=3.3))
    assert row["verdict"] == NOT_TESTED
    assert "norms from 0 to 3.3 cannot show more than one regime" in row["note"]


@pytest.mark.parametrize(
    ("smallest", "largest", "are_two"),
    [(1.0, 10.0, True), (1.01, 10.0, False), (1.0, 9.99, False)],
)
def test_norms_show_two_regimes_if_they_reach_from_1_to_10(
    smallest: float, largest: float, are_two: bool
) -> None:
    norms = {"start_value": [0.1, 1.0], "initial_logit_norm": [smallest, largest]}
    reason = why_one_regime(pd.DataFrame(norms), "start_value")
    assert (reason == "") == are_two


def test_an_effect_of_the_norm_is_not_tested_without_a_sweep_of_temperatures() -> None:
    row = judged(NORM, noisy("gru", GRU), pairs(0.01))
    assert row["verdict"] == NOT_TESTED
    assert "no sweep of inverse temperatures to compare with" in row["note"]


def test_one_mean_minus_half_of_another_by_hand() -> None:
    # The first values have variance 2, and the halves of the second values have
    # variance 8 / 4 = 2. Multiplied by 1 / 2 + 1 / 1, each becomes a squared standard
    # error of 3. The difference has 2 degrees of freedom.
    part = minus_half(np.array([1.0, 3.0]), np.array([4.0, 8.0]))
    assert (part.value, part.error) == pytest.approx((-1.0, 6**0.5))
    assert (part.degrees, part.n) == (2, 2)


@pytest.mark.parametrize("rate", [RATES[0], RATES[-1]])
@pytest.mark.parametrize("name", [DEPENDENCE, TUNING, PLACES])
def test_a_learning_rate_at_the_end_of_its_grid_decides_nothing(
    rate: float, name: str
) -> None:
    row = judged(
        name, noisy("wrn", WRN, best_rate=rate), noisy("gru", GRU, best_rate=rate)
    )
    assert row["verdict"] == NOT_TESTED
    assert "a chosen learning rate inside its grid" in row["note"]


def test_a_sweep_that_cannot_be_judged_leaves_the_claim_open() -> None:
    ended = noisy("wrn", WRN, best_rate=RATES[0])
    row = judged(DEPENDENCE, ended, noisy("gru", GRU, seed=1))
    assert row["verdict"] == INCONCLUSIVE
    assert (
        "wrn, cifar10: no run has a chosen learning rate inside its grid"
        in (row["note"])
    )


def test_a_sweep_on_other_data_counts_only_if_there_is_none_of_the_papers() -> None:
    other = noisy("gru", FLAT, seed=1, dataset="digits")
    assert judged(DEPENDENCE, noisy("wrn", WRN), other)["verdict"] == HOLDS
    (task,) = judged(DEPENDENCE, other)["tasks"]
    assert (task["task"], task["pooled"]) == ("GRU, digits", False)


def test_a_best_value_at_the_end_of_the_grid_does_not_count() -> None:
    rising = noisy("gru", (0.4, 0.5, 0.6, 0.7), seed=1)
    row = judged(PLACES, noisy("wrn", WRN), rising)
    assert row["verdict"] == NOT_TESTED
    assert "at the end of its grid" in row["note"]


def test_the_note_names_best_places_and_why_another_has_none() -> None:
    rising = noisy("vit", (0.4, 0.5, 0.6, 0.7), seed=2)
    groups = (noisy("wrn", WRN), noisy("gru", GRU, seed=1), rising)
    note = judged(PLACES, *groups)["note"]
    assert note.startswith(
        "wrn, cifar10: 0.1, GRU, cifar10: 1; vit, cifar10 left out: the best inverse "
        "temperature is at the end of its grid"
    )


def spreading(name: str, *spreads: float, **others: Any) -> list[Row]:
    """Runs of two seeds at each inverse temperature, with accuracies of 0.7 plus and
    minus a spread.
    """
    return [
        training(name, place, rate, seed, 0.7 + sign * spread - 0.1 * (rate != 0.1))
        | others
        for place, spread in zip(TEMPERATURES, spreads, strict=True)
        for rate in RATES
        for seed, sign in ((1, -1), (2, 1))
    ]


FALLING = (0.081, 0.04, 0.02, 0.01)


def test_spread_that_falls_in_each_sweep_is_instability() -> None:
    steady = spreading("net0", *FALLING), spreading("net1", 0.06, 0.03, 0.0151, 0.0075)
    assert judged(SPREAD, *steady)["verdict"] == HOLDS


def test_a_sweep_whose_spread_does_not_fall_leaves_instability_open() -> None:
    # One regression over all four sweeps would have a slope clearly below 0, but each
    # sweep is judged by itself.
    steady = [spreading(f"net{number}", *FALLING) for number in range(3)]
    flat = spreading("net3", 0.05, 0.052, 0.051, 0.0505)
    row = judged(SPREAD, *steady, flat)
    assert row["verdict"] == INCONCLUSIVE
    assert row["unit"] == "log spread per decade, net3, cifar10"


def test_networks_on_different_data_are_not_two_architectures() -> None:
    images = noisy("wrn", WRN)
    texts = noisy("gru", GRU, seed=1, dataset="imdb")
    row = judged(PLACES, images, texts)
    assert row["verdict"] == NOT_TESTED
    assert "no two of these share the dataset: wrn, cifar10; GRU, imdb" in row["note"]
    # A third network, which is trained on the images, forms a pair with the first.
    assert judged(PLACES, images, texts, noisy("vit", GRU, seed=2))["verdict"] == HOLDS


@pytest.mark.parametrize(
    ("gains", "verdict"),
    [
        ((0.04, 0.02), HOLDS),
        ((0.004, 0.004), CONTRADICTED),
        # The gain is two points on average, but the second network gains nothing.
        ((0.04, 0.0), INCONCLUSIVE),
    ],
)
def test_tuning_is_key_if_networks_gain_more_than_a_point_on_average(
    gains: tuple[float, float], verdict: str
) -> None:
    rows = [
        sweep(f"net{number}", (0.5, 0.7 + gain, 0.7, 0.5), noise=0.0001, seed=number)
        for number, gain in enumerate(gains)
    ]
    row = judged("tuning-is-key", *rows)
    assert row["verdict"] == verdict
    assert row["value"] == pytest.approx(sum(gains) / 2, abs=0.001)


def long_norms(effect: float, *, rate: float = 0.1) -> list[Row]:
    """Runs of 50 epochs that start with three logit norms.

    The best learning rate at the largest norm is `rate`.
    """
    rows = []
    for norm, loss, best in ((0.0, 0.0, 0.1), (1.0, 0.0, 0.1), (100.0, effect, rate)):
        start = {"start": "norm", "start_norm": norm, "initial_logit_norm": norm}
        rows += [
            training(
                f"net-norm-{norm:g}",
                1.0,
                tried,
                seed,
                0.7 - loss - 0.03 * (tried != best),
                epochs=50.0,
                **start,
            )
            for tried in RATES
            for seed in SEEDS
        ]
    return rows


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        (long_norms(0.01), HOLDS),
        (long_norms(0.1), CONTRADICTED),
        # The best rate at norm 100 is at the end of the grid, so a rate beyond it might
        # lose less accuracy.
        (long_norms(0.01, rate=RATES[-1]), INCONCLUSIVE),
    ],
)
def test_norms_after_50_epochs_are_judged_with_rates_of_their_own(
    rows: list[Row], verdict: str
) -> None:
    assert judged(LONG_NORM, rows)["verdict"] == verdict


def test_both_claims_on_norms_are_judged_side_by_side() -> None:
    rows = noisy("wrn", WRN), pairs(0.01), long_norms(0.1)
    assert judged(NORM, *rows)["verdict"] == HOLDS
    assert judged(LONG_NORM, *rows)["verdict"] == CONTRADICTED


def test_each_norm_after_50_epochs_is_a_sweep_of_its_own(project_root: Path) -> None:
    # If a sweep of 50 epochs had two norms, it would also count towards the claim about
    # five epochs.
    profile = YAML(typ="safe").load(
        (project_root / "profiles/temperature_check.yaml").read_text(encoding="utf-8")
    )
    norms = [
        each["logit_norms"]
        for each in profile["temperature_check"]["sweeps"].values()
        if each.get("recipe", {}).get("epochs") == 50
    ]
    assert norms == [[0], [1], [10], [30], [100]]


def test_norms_after_five_epochs_say_nothing_of_50() -> None:
    assert judged(LONG_NORM, pairs(0.01))["verdict"] == NOT_TESTED
    row = judged(NORM, noisy("net", WRN), long_norms(0.1))
    assert row["verdict"] == NOT_TESTED


def test_a_sweep_is_judged_by_its_network_and_not_by_its_name() -> None:
    vgg = noisy("gru", GRU, architecture="vgg", batch_norm=False)
    row = judged(DEPENDENCE, vgg)
    assert [task["task"] for task in row["tasks"]] == [
        "VGG without batch norm, cifar10"
    ]


def test_a_sweep_that_is_called_norms_sets_no_norm() -> None:
    plain = [
        training("wrn-norms", 1.0, 0.1, seed, 0.7 + 0.1 * (norm > 1))
        | {"initial_logit_norm": norm, "sweep": f"wrn-norms-{norm}"}
        for norm in (0.1, 30.0)
        for seed in SEEDS
    ]
    row = judged(NORM, noisy("wrn", WRN), plain)
    assert row["verdict"] == NOT_TESTED
    assert "no run for a sweep of norms" in row["note"]

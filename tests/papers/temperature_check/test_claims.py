"""Each claim holds where its criterion says so, fails where it does not, and says why where it cannot be judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from softmax_temperature.papers.shared.claims import Evidence, NotTested
from softmax_temperature.papers.temperature_check.claims import CLAIMS
from softmax_temperature.papers.temperature_check.records import Records

from .conftest import SEEDS, TEMPERATURES, run, sweep_rows

JUDGES = {claim.id: claim.judge for claim in CLAIMS}


def judged(name: str, records: Records) -> Evidence:
    outcome = JUDGES[name](records)
    assert isinstance(outcome, Evidence), outcome
    return outcome


@pytest.mark.parametrize(
    ("name", "holds", "value"),
    [
        ("accuracy-depends-on-temperature", True, 0.2),
        ("accuracy-depends-weakly-on-logit-norm", True, 0.02),
        ("not-a-matter-of-confidence", True, 0.2),
        ("tuning-helps-every-architecture", False, 0.0),  # The GRU is best at 1.
        ("best-depends-on-architecture", True, 10.0),
        ("small-peaks-higher", False, -0.25),
    ],
)
def test_the_records_of_known_answers(records: Records, name: str, holds: bool, value: float) -> None:
    evidence = judged(name, records)
    assert evidence.holds is holds
    assert evidence.value == pytest.approx(value)


def test_a_flat_sweep_depends_on_nothing(make_records: Callable[..., Records]) -> None:
    flat = make_records(sweep_rows("wrn", dict.fromkeys(TEMPERATURES, 0.8)))
    for name in ("accuracy-depends-on-temperature", "not-a-matter-of-confidence", "tuning-helps-every-architecture"):
        assert not judged(name, flat).holds


def test_a_strong_effect_of_the_norm_is_not_weak(make_records: Callable[..., Records]) -> None:
    rows = sweep_rows("wrn", {0.1: 0.80, 1.0: 0.75})
    rows += [
        run("wrn-pairs", 1.0, 1.0, seed, accuracy, start=f"pair-{c:g}", correlation=c)
        for c, accuracy in ((1.0, 0.80), (0.0, 0.70))
        for seed in SEEDS
    ]
    assert not judged("accuracy-depends-weakly-on-logit-norm", make_records(rows)).holds


def test_tuning_helps_where_every_sweep_gains(make_records: Callable[..., Records]) -> None:
    rows = sweep_rows("wrn", {0.1: 0.80, 1.0: 0.75}) + sweep_rows("gru", {0.1: 0.70, 1.0: 0.79, 10.0: 0.85})
    evidence = judged("tuning-helps-every-architecture", make_records(rows))
    assert evidence.holds
    assert evidence.value == pytest.approx(0.05)


def test_spread_over_seeds(make_records: Callable[..., Records]) -> None:
    def spreading(sign: int) -> Records:
        rows = [
            run("wrn", beta, 1.0, seed, 0.7 + (seed - 1.5) * 0.01 * (6 + sign * place))
            for place, beta in enumerate((0.01, 0.03, 0.1, 0.3, 1.0, 3.0))
            for seed in SEEDS
        ]
        return make_records(rows)

    falling, rising = judged("small-spreads-more", spreading(-1)), judged("small-spreads-more", spreading(+1))
    assert (falling.value, rising.value) == pytest.approx((-1, 1))
    assert falling.holds
    assert not rising.holds


LOST = {"diverged": True, "validation_accuracy": None, "test_accuracy": None, "scaled_nll": None}


def test_seeds_that_all_diverged_have_no_spread(make_records: Callable[..., Records]) -> None:
    rows = [
        run("wrn", beta, 1.0, seed, 0.7 + (seed - 1.5) * 0.01 * place)
        for place, beta in enumerate((0.1, 0.3, 1.0, 3.0), start=1)
        for seed in SEEDS
    ]
    lost = [run("wrn", 10.0, 1.0, seed, 0.0, **LOST) for seed in SEEDS]
    evidence = judged("small-spreads-more", make_records(rows + lost))
    assert (evidence.value, evidence.n) == (pytest.approx(1), 4)


def test_a_sweep_whose_worst_has_no_nll_is_named(make_records: Callable[..., Records]) -> None:
    whole = sweep_rows("gru", {0.1: 0.80, 1.0: 0.75})
    lost = sweep_rows("wrn", {0.1: 0.80, 1.0: 0.75}) + [run("wrn", 10.0, 1.0, seed, 0.0, **LOST) for seed in SEEDS]
    evidence = judged("not-a-matter-of-confidence", make_records(whole + lost))
    assert evidence.note.endswith("not measured, all diverged at the worst")
    assert evidence.note.count("not measured") == 1


@pytest.mark.parametrize("name", JUDGES)
def test_without_trainings_nothing_is_judged(records: Records, name: str) -> None:
    nothing = replace(records, runs=records.runs.iloc[:0], sweeps=records.sweeps.iloc[:0])
    assert isinstance(JUDGES[name](nothing), NotTested)


def test_divergence_counts_as_guessing(make_records: Callable[..., Records]) -> None:
    rows = sweep_rows("wrn", {0.1: 0.80, 1.0: 0.75}) + [run("wrn", 10.0, 1.0, seed, 0.0, **LOST) for seed in SEEDS]
    evidence = judged("accuracy-depends-on-temperature", make_records(rows))
    assert evidence.value == pytest.approx(0.7)

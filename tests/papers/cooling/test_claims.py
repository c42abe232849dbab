"""Verdicts follow from the runs' last ten epochs, lost runs, schedules and modes."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from scipy import stats

from softmax_temperature.papers.cooling.claims import CLAIMS
from softmax_temperature.papers.cooling.study import SCHEDULES, SMOOTH, tidied
from softmax_temperature.papers.shared.claims import (
    CONTRADICTED,
    HOLDS,
    INCONCLUSIVE,
    NOT_TESTED,
    judge_all,
)
from softmax_temperature.papers.shared.factors import Where, where
from softmax_temperature.papers.shared.printed import published
from softmax_temperature.papers.shared.runs import Runs, long_form
from tests.papers.cooling.conftest import (
    COST,
    Rows,
    Run,
    changed,
    cooling,
    measured_anew,
    merged,
    segmentation,
    study_of,
)
from tests.papers.unchanged import unchanged

SEEDS = range(5)
EPOCHS = 50
MEASURED = (1, *range(EPOCHS - 11, EPOCHS + 1))
"""The epochs with values. Claims read the last ten; others would only take time."""
GAINS = {"none": 0.0, "last_layer": 0.045, "periodic": 0.045, "distributed": 0.029}
"""Gain in accuracy of each mode without a learning-rate schedule.

With a piecewise schedule the gain is less than half of this; with a smooth schedule
there is none.
"""
FACTORS = ("last_layer-0.5", "last_layer-0.75", "last_layer-1.25")
LAST_LAYER = where(experiment="vgg", mode="last_layer")
OF_OTHER_STUDIES = (
    "factors-up-to-1-help-on-cifar100",
    "factors-above-1-diverge-on-cifar100",
    "cooling-each-batch-brings-nothing",
    "last-layer-helps-under-each-change",
)
"""Claims about CIFAR-100 and the ablations, for which this study has no runs."""


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    with unchanged(_runs()) as made:
        yield made


def _runs() -> Runs:
    """A study in which all claims hold, except those that its runs cannot decide."""
    names = [
        Run("vgg", schedule, arm, seed)
        for schedule in SCHEDULES
        for arm in GAINS
        for seed in SEEDS
    ]
    names += [Run("factors", "none", arm, seed) for arm in FACTORS for seed in SEEDS]
    names += [Run("crelu", "none", arm, seed) for arm in GAINS for seed in SEEDS]
    lost = [
        run
        for run in names
        if run.arm == "last_layer-1.25"
        or (run.experiment, run.arm) == ("crelu", "none")
    ]
    scores = {
        arm: tuple(
            (0.2 + gain + 0.001 * seed * (1 + gain), 0.7 + gain + 0.002 * seed * gain)
            for seed in SEEDS
        )
        for arm, gain in (("none", 0.0), ("last_layer", 0.01))
    }
    cheap = COST.assign(share=[0.0040, 0.0041, 0.0042])
    study = study_of(names, lost, _values, segmentation(scores), cost=cheap)
    of_ade20k = where(task="segmentation")
    study = changed(study, of_ade20k, dataset="ade20k", classes=150)
    return changed(study, ~of_ade20k, epochs_done=EPOCHS)


def _values(run: Run) -> Rows:
    share = {"none": 1.0, "piecewise": 0.4}.get(run.schedule, 0.0)
    gain = 0.04 if run.arm in FACTORS else GAINS[run.arm] * share
    jitter = 0.0005 * ((run.seed * (3 + len(run.arm))) % 5)
    first = (0.747 if run.schedule == "none" else 0.78) + jitter
    ece = (0.3 if run.arm == "none" else 0.05) + jitter
    applied = (1.5 if run.arm == "periodic" else 1.2) + 0.01 * run.seed
    rows: Rows = []
    for epoch in MEASURED:
        # Cooling is more accurate after every epoch except the last one, so a verdict
        # from that epoch alone would be wrong.
        reached = first + gain * (epoch < EPOCHS)
        rows.append({"split": "test", "epoch": epoch, "accuracy": reached, "ece": ece})
        if run.arm != "none":
            rows.append(cooling(epoch, applied, applied**epoch))
    return merged(rows)


def judged(runs: Runs, *names: str) -> dict[str, dict[str, Any]]:
    claims = [claim for claim in CLAIMS if claim.id in names or not names]
    rows = judge_all("cooling", claims, runs, profile="cooling_full")
    return {row["id"]: row for row in rows}


def verdict(runs: Runs, name: str) -> dict[str, Any]:
    """The row of the judged claim with this id."""
    return judged(runs, name)[name]


def shifted(runs: Runs, by: float, which: Where) -> Runs:
    return measured_anew(runs, "accuracy", lambda rows: rows["value"] + by, which)


def test_all_claims_hold_for_runs_like_the_papers(runs: Runs) -> None:
    rows = judged(runs)
    assert len(rows) == len(CLAIMS)
    verdicts = {name: row["verdict"] for name, row in rows.items()}
    elsewhere = dict.fromkeys(OF_OTHER_STUDIES, NOT_TESTED)
    assert verdicts == dict.fromkeys(rows, HOLDS) | elsewhere


def test_accuracy_is_the_mean_of_ten_epochs_and_the_note_has_the_last_one(
    runs: Runs,
) -> None:
    row = verdict(runs, "last-layer-helps-without-schedule")
    assert row["value"] == pytest.approx(0.9 * 0.045, abs=0.001), (
        "expected the gain of nine in ten epochs"
    )
    assert row["note"] == "last epoch alone +0.000"


@pytest.mark.parametrize(
    ("name", "by", "which"),
    [
        (
            "periodic-helps-with-piecewise-schedule",
            -0.1,
            where(mode="periodic", schedule="piecewise"),
        ),
        (
            "distributed-gains-nothing-with-smooth-schedule",
            0.1,
            where(mode="distributed"),
        ),
        (
            "distributed-gains-nothing-with-smooth-schedule",
            -0.1,
            where(mode="distributed"),
        ),
        (
            "last-layer-is-on-par-on-all-schedules",
            -0.05,
            where(mode="last_layer", schedule="linear"),
        ),
        ("no-schedule-is-needed", 0.1, where(mode="none", schedule="linear")),
        ("last-layer-is-best", 0.1, where(mode="periodic")),
        (
            "distributed-is-outperformed",
            0.1,
            where(mode="distributed", schedule="none"),
        ),
        ("factors-up-to-1-help", -0.1, where(factor=0.5)),
    ],
)
def test_a_claim_is_contradicted_if_its_runs_are_reversed(
    runs: Runs, name: str, by: float, which: Where
) -> None:
    assert verdict(shifted(runs, by, which), name)["verdict"] == CONTRADICTED


def test_a_lost_training_counts_as_guessing_and_is_named(runs: Runs) -> None:
    lost = changed(runs, LAST_LAYER, overflowed=True)
    row = verdict(lost, "last-layer-helps-without-schedule")
    assert row["verdict"] == CONTRADICTED
    assert "counted as guessing: Last layer 5 of 5 diverged" in row["note"]


def test_redistribution_below_temperature_1_is_not_comparable(runs: Runs) -> None:
    low = changed(runs, where(mode="periodic"), max_temperature=0.1)
    periodic = verdict(low, "periodic-helps-without-schedule")
    assert periodic["verdict"] == NOT_TESTED
    assert verdict(low, "last-layer-helps-without-schedule")["verdict"] == HOLDS


@pytest.mark.parametrize(
    ("factors", "name"),
    [
        ({"factor": 0.5}, "last layer Cooling"),
        ({"mode": "distributed"}, "last layer Cooling"),
    ],
)
def test_an_arm_is_judged_by_its_values_and_not_by_its_name(
    runs: Runs, factors: dict[str, Any], name: str
) -> None:
    # The profile and the names of the cells still call this arm "last_layer".
    runs = runs.only(
        where(role="table_1", schedule="none") & ~where(mode="distributed")
    )
    other = changed(runs, LAST_LAYER, **factors)
    row = verdict(other, "last-layer-helps-without-schedule")
    assert row["verdict"] == NOT_TESTED
    assert f"no run with {name}" in row["note"]
    assert "/last_layer/" in other.select(where(**factors))["cell"].iloc[0]


def test_a_part_is_judged_by_its_factor_and_not_by_the_arms_name(
    runs: Runs,
) -> None:
    other = changed(runs, where(factor=0.5), factor=0.25)
    parts = {task["part"] for task in verdict(other, "factors-up-to-1-help")["tasks"]}
    assert parts == {"factor 0.25", "factor 0.75", "factor 1"}


def test_an_uncooled_arm_with_another_loss_is_no_baseline(runs: Runs) -> None:
    other = changed(runs, where(mode="none"), loss="focal", gamma="3")
    row = verdict(other, "last-layer-helps-without-schedule")
    assert row["verdict"] == NOT_TESTED
    assert "no run with no Cooling" in row["note"]


@pytest.mark.parametrize(
    "name",
    [
        "distributed-is-on-par-on-all-schedules",
        "no-schedule-is-needed",
        "last-layer-is-best",
    ],
)
def test_a_claim_about_all_schedules_is_not_tested_until_all_were_trained(
    runs: Runs, name: str
) -> None:
    fewer = runs.only(~where(schedule="linear"))
    row = verdict(fewer, name)
    assert row["verdict"] == NOT_TESTED
    assert "parts are missing: " in row["note"]
    # One schedule with the opposite result is enough to contradict the claim.
    worse = where(schedule="cosine", mode=("distributed", "last_layer"))
    better = where(schedule="cosine", mode="none")
    turned = shifted(shifted(fewer, -0.1, worse), 0.1, better)
    assert verdict(turned, name)["verdict"] == CONTRADICTED


def test_a_training_that_collapses_diverges(runs: Runs) -> None:
    # In our studies, runs with factor 1.25 stay finite, but their accuracy ends at 24 %
    # after a peak of 80 %.
    finite = changed(runs, where(factor=1.25), overflowed=False)
    name = "factors-above-1-diverge"
    assert verdict(finite, name)["verdict"] == CONTRADICTED
    curve = {epoch: 0.8 if epoch < 20 else 0.24 for epoch in range(1, EPOCHS + 1)}
    collapsed = with_training_accuracy(finite, where(factor=1.25), curve)
    row = verdict(collapsed, name)
    assert row["verdict"] == HOLDS
    assert row["value"] == 1.0


def with_training_accuracy(
    runs: Runs, which: Where, curve: Mapping[int, float]
) -> Runs:
    """The study, with training accuracies per epoch added to the runs that `which`
    selects.
    """
    rows = [
        {"run": run, "split": "train", "epoch": epoch, "scaled": False, "accuracy": one}
        for run in runs.select(which).index
        for epoch, one in curve.items()
    ]
    values = pd.concat([runs.measurements, long_form(pd.DataFrame(rows))])
    return tidied(replace(runs, measurements=values))


def test_smooth_schedules_that_share_seeds_are_averaged_within_a_seed(
    runs: Runs,
) -> None:
    """If a seed's gain is the same on four schedules, five seeds give five values, not
    20.
    """
    name = "last-layer-gains-nothing-with-smooth-schedule"
    by_seed = (-0.012, -0.006, 0.006, 0.012, 0.016)
    spread = runs
    for seed, gain in enumerate(by_seed):
        spread = shifted(spread, gain, LAST_LAYER & SMOOTH & where(seed=seed))
    row = verdict(spread, name)
    gains = pd.Series(by_seed)
    half = stats.t.ppf(0.95, 4) * gains.std() / 5**0.5
    assert half > 0.01
    assert row["verdict"] == INCONCLUSIVE
    assert row["n"] == 5
    assert row["high"] - row["low"] == pytest.approx(2 * half, rel=0.1)
    # If the gains were counted as 20 independent values, they would wrongly pass as
    # equivalent to 0.
    many = pd.Series(by_seed * 4)
    alone = stats.t.ppf(0.95, 19) * many.std() / 20**0.5
    assert abs(many.mean()) + alone < 0.01


def test_last_layer_is_best_only_if_it_is_within_a_point_on_every_schedule(
    runs: Runs,
) -> None:
    name = "last-layer-is-best"
    assert verdict(runs, name)["verdict"] == HOLDS
    # Last layer Cooling is two points worse than distributed Cooling on one schedule,
    # but on average less than half a point worse.
    behind = where(mode="distributed", schedule="piecewise")
    level = {"none": 0.016, "piecewise": 0.0064 + 0.02}
    runs = shifted(runs, level["none"], where(mode="distributed", schedule="none"))
    row = verdict(shifted(runs, level["piecewise"], behind), name)
    assert row["verdict"] == CONTRADICTED
    assert row["unit"].endswith("against Distributed, Piecewise Const")


def test_periodic_cooling_that_never_redistributed_is_named(runs: Runs) -> None:
    never = changed(runs, where(mode="periodic"), max_temperature=1e30)
    row = verdict(never, "last-layer-is-best")
    assert "30 of 30 trainings with Periodically redistributed Cooling" in row["note"]


@pytest.mark.parametrize(
    ("name", "by", "which", "expected"),
    [
        ("factors-up-to-1-matter-little", 0.02, where(factor=0.5), CONTRADICTED),
        ("factors-up-to-1-matter-little", -0.02, where(factor=0.75), CONTRADICTED),
        (
            "distributed-is-outperformed-with-crelu",
            0.05,
            where(experiment="crelu", mode="distributed"),
            CONTRADICTED,
        ),
        # The order of the modes with ReLU implies nothing about their order with CReLU,
        # and vice versa.
        (
            "distributed-is-outperformed-with-crelu",
            0.05,
            where(experiment="vgg", mode="distributed"),
            HOLDS,
        ),
        (
            "distributed-is-outperformed",
            0.05,
            where(experiment="crelu", mode="distributed"),
            HOLDS,
        ),
    ],
)
def test_factors_and_the_order_with_crelu_are_judged(
    runs: Runs, name: str, by: float, which: Where, expected: str
) -> None:
    assert verdict(shifted(runs, by, which), name)["verdict"] == expected


def test_cifar100_has_claims_of_its_own(runs: Runs) -> None:
    names = ("factors-up-to-1-help", "factors-above-1-diverge")
    for name in names:
        assert verdict(runs, f"{name}-on-cifar100")["verdict"] == NOT_TESTED
    other = changed(runs, dataset="cifar100-99", classes=100)
    for name in names:
        assert verdict(other, f"{name}-on-cifar100")["verdict"] == HOLDS
        assert verdict(other, name)["verdict"] == NOT_TESTED


def test_only_an_overflow_with_redistribution_contradicts_and_others_are_noted(
    runs: Runs,
) -> None:
    name = "redistribution-prevents-overflow"
    once = changed(runs, LAST_LAYER & where(seed=0, schedule="none"), overflowed=True)
    row = verdict(once, name)
    assert row["verdict"] == HOLDS
    assert "Last layer 1 of 35 trainings overflowed" in row["note"]
    periodic = where(mode="periodic", schedule="cosine")
    lost = changed(runs, periodic, overflowed=True)
    assert verdict(lost, name)["verdict"] == CONTRADICTED


ABLATIONS = ("adam", "warm-up", "decay", "augmented")


@pytest.fixture(scope="module")
def ablations() -> Iterator[Runs]:
    with unchanged(_ablations()) as made:
        yield made


def _ablations() -> Runs:
    """Runs of profile cooling_ablations in which Cooling helps with every change."""
    pairs = [("vgg", arm) for arm in ("none", "last_layer")]
    pairs += [(name, arm) for name in ABLATIONS for arm in ("none", "last_layer")]
    pairs += [("each-batch", "last_layer-each-batch")]
    names = [Run(name, "none", arm, seed) for name, arm in pairs for seed in range(3)]
    study = study_of(names, [], _of_ablations, [])
    return changed(study, epochs_done=EPOCHS, train_images=10_000)


def _of_ablations(run: Run) -> Rows:
    gain = 0.0 if run.arm == "none" else 0.03 + 0.002 * run.seed
    return [
        {"split": "test", "epoch": epoch, "accuracy": 0.6 + gain} for epoch in MEASURED
    ]


def test_a_run_of_the_ablations_is_judged(ablations: Runs) -> None:
    helps = verdict(ablations, "last-layer-helps-under-each-change")
    assert helps["verdict"] == HOLDS
    assert {task["part"] for task in helps["tasks"]} == {
        "Adam",
        "warm-up",
        "weight decay",
        "augmentation",
        "Cooling after each batch",
    }
    nothing = verdict(ablations, "cooling-each-batch-brings-nothing")
    assert nothing["verdict"] == HOLDS
    assert nothing["value"] == pytest.approx(0)
    assert nothing["n"] == 3


@pytest.mark.parametrize("experiment", ABLATIONS)
def test_a_change_under_which_cooling_does_not_help_contradicts(
    ablations: Runs, experiment: str
) -> None:
    cooled = where(experiment=experiment, mode="last_layer")
    row = verdict(
        shifted(ablations, -0.06, cooled), "last-layer-helps-under-each-change"
    )
    assert row["verdict"] == CONTRADICTED
    fewer = ablations.only(~where(experiment=experiment))
    row = verdict(fewer, "last-layer-helps-under-each-change")
    assert row["verdict"] == NOT_TESTED


def test_two_changes_at_once_are_none_of_the_ablations(ablations: Runs) -> None:
    both = changed(ablations, where(experiment="adam"), weight_decay=0.0005)
    row = verdict(both, "last-layer-helps-under-each-change")
    assert row["verdict"] == NOT_TESTED
    assert "missing: Adam" in row["note"]


def test_a_gain_from_cooling_after_each_batch_contradicts(ablations: Runs) -> None:
    better = shifted(ablations, 0.02, where(experiment="each-batch"))
    row = verdict(better, "cooling-each-batch-brings-nothing")
    assert row["verdict"] == CONTRADICTED
    assert row["value"] == pytest.approx(0.02)


def test_segmentation_of_other_data_is_shown_and_not_judged(runs: Runs) -> None:
    glyphs = changed(runs, where(task="segmentation"), dataset="glyphs")
    row = verdict(glyphs, "segmentation-iou")
    assert row["verdict"] == NOT_TESTED
    assert [(task["task"], task["n"]) for task in row["tasks"]] == [("glyphs", 5)]


def test_quoted_numbers_are_the_printed_ones() -> None:
    rows = published("cooling", "Table 1")
    names = rows["method"].str.replace(" | LR schedule: ", "/")
    printed = pd.Series(rows["value"].astype(float).to_numpy() / 100, names)
    pairs = {
        "no-schedule-is-needed": ("Last layer/None", "No Cooling/Linear"),
        "distributed-is-outperformed": ("Last layer/None", "Distributed/None"),
    }
    modes = {
        "distributed": "Distributed",
        "periodic": "Periodically redistributed",
        "last-layer": "Last layer",
    }
    schedules = {
        "without-schedule": "None",
        "with-piecewise-schedule": "Piecewise Const",
    }
    for slug, mode in modes.items():
        for ending, schedule in schedules.items():
            sides = (f"{mode}/{schedule}", f"No Cooling/{schedule}")
            pairs[f"{slug}-helps-{ending}"] = sides
    quoted = {claim.id: claim.published for claim in CLAIMS if claim.id in pairs}
    differences = {
        claim: printed[first] - printed[second]
        for claim, (first, second) in pairs.items()
    }
    assert quoted == pytest.approx(differences)

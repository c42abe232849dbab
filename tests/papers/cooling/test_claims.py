"""Verdicts follow the runs: the last ten epochs, what is lost, schedules and modes that
cannot be compared.
"""

from typing import Any

import pandas as pd
import pytest

from softmax_temperature.papers.cooling.claims import CLAIMS
from softmax_temperature.papers.cooling.study import SCHEDULES
from softmax_temperature.papers.shared.claims import (
    CONTRADICTED,
    HOLDS,
    INCONCLUSIVE,
    NOT_TESTED,
    judge_all,
)
from softmax_temperature.papers.shared.factors import Where, where
from softmax_temperature.papers.shared.printed import published
from softmax_temperature.papers.shared.runs import Runs
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

SEEDS = range(5)
EPOCHS = 50
GAINS = {"none": 0.0, "last_layer": 0.045, "periodic": 0.045, "distributed": 0.029}
"""The gain of each without a schedule; less than half of it with a piecewise one,
nothing with a smooth one.
"""
FACTORS = ("last_layer-0.5", "last_layer-0.75", "last_layer-1.25")
LAST_LAYER = where(experiment="vgg", mode="last_layer")


@pytest.fixture
def runs() -> Runs:
    """A study in which everything is as the paper says."""
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
    for epoch in range(1, EPOCHS + 1):
        # The last epoch alone says the opposite of the last ten.
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
    """The row of one claim."""
    return judged(runs, name)[name]


def shifted(runs: Runs, by: float, which: Where) -> Runs:
    return measured_anew(runs, "accuracy", lambda rows: rows["value"] + by, which)


def test_runs_like_the_papers_hold(runs: Runs) -> None:
    rows = judged(runs)
    assert len(rows) == len(CLAIMS)
    verdicts = {name: row["verdict"] for name, row in rows.items()}
    assert verdicts == dict.fromkeys(rows, HOLDS)


def test_accuracy_is_the_mean_of_the_last_ten_epochs_and_the_last_stands_beside(
    runs: Runs,
) -> None:
    row = verdict(runs, "last-layer-helps-without-schedule")
    assert row["value"] == pytest.approx(0.9 * 0.045, abs=0.001), (
        "nine of ten epochs have the gain"
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
def test_a_claim_is_contradicted_when_its_runs_are_turned(
    runs: Runs, name: str, by: float, which: Where
) -> None:
    assert verdict(shifted(runs, by, which), name)["verdict"] == CONTRADICTED


def test_a_lost_training_counts_as_guessing_and_is_named(runs: Runs) -> None:
    lost = changed(runs, LAST_LAYER, overflowed=True)
    row = verdict(lost, "last-layer-helps-without-schedule")
    assert row["verdict"] == CONTRADICTED
    assert "counted as guessing: Last layer 5 of 5 diverged" in row["note"]


def test_redistribution_below_temperature_1_is_not_comparable(runs: Runs) -> None:
    rows = judged(changed(runs, where(mode="periodic"), max_temperature=0.1))
    assert rows["periodic-helps-without-schedule"]["verdict"] == NOT_TESTED
    assert rows["last-layer-helps-without-schedule"]["verdict"] == HOLDS


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
    # The profile still calls it "last_layer", and its cells are named after it.
    runs = runs.only(
        where(role="table_1", schedule="none") & ~where(mode="distributed")
    )
    other = changed(runs, LAST_LAYER, **factors)
    row = verdict(other, "last-layer-helps-without-schedule")
    assert row["verdict"] == NOT_TESTED
    assert f"no run with {name}" in row["note"]
    assert "/last_layer/" in other.select(where(**factors))["cell"].iloc[0]


def test_a_factor_that_another_name_promised_is_the_part_that_is_judged(
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


def test_schedules_that_were_not_trained_leave_all_schedules_open(runs: Runs) -> None:
    fewer = runs.only(~where(schedule="linear"))
    row = verdict(fewer, "distributed-is-on-par-on-all-schedules")
    assert row["verdict"] == INCONCLUSIVE
    assert "not judged: Linear: not trained" in row["note"]


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

"""Verdicts follow the records: worked out by hand, turned by turning the records, and open where these are silent."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from softmax_temperature.papers.cooling.claims import CLAIMS
from softmax_temperature.papers.cooling.records import Records
from softmax_temperature.papers.cooling.tables import SPECS, Printed, printed_numbers
from softmax_temperature.papers.shared.claims import DOES_NOT_HOLD, HOLDS, NOT_TESTED, judge_all
from softmax_temperature.papers.shared.tables import published

MAIN = ("vgg", "digits")
UNSCHEDULED, PIECEWISE = {"experiment": MAIN, "schedule": "none"}, {"experiment": "vgg", "schedule": "piecewise"}
COSINE = {"experiment": "vgg", "schedule": "cosine"}
Turn = tuple[str, str | None, float, dict[str, Any]]
TURNS: dict[str, Turn] = {
    # What is added to which column of which rows, so that the claim no longer holds; no column: 1 for divergence.
    **{
        f"{slug}-{name}": ("runs", "test_accuracy", by, {**where, "arm": slug.replace("-", "_")})
        for slug in ("distributed", "periodic", "last-layer")
        for name, by, where in (
            ("helps-without-schedule", -0.1, UNSCHEDULED),
            ("helps-with-piecewise-schedule", -0.1, PIECEWISE),
            ("gains-nothing-with-smooth-schedule", 0.05, COSINE),
        )
    },
    "no-schedule-is-needed": ("runs", "test_accuracy", -0.05, {**UNSCHEDULED, "arm": "last_layer"}),
    "last-layer-is-best": ("runs", "test_accuracy", 0.1, {"arm": "periodic"}),
    "factors-up-to-1-help": ("runs", "test_accuracy", -0.1, {"arm": "last_layer-0.5"}),
    "factors-above-1-diverge": ("runs", None, 0, {"arm": "last_layer-1.25", "seed": 1}),
    "crelu-diverges-without-cooling": ("runs", None, 0, {"experiment": "crelu", "arm": "none", "seed": 1}),
    "crelu-trains-with-cooling": ("runs", None, 1, {"experiment": "crelu", "arm": "periodic", "seed": 1}),
    "larger-factors-heat-faster": ("temperatures", "applied", 200, {"arm": "last_layer-0.75", "cooling": 1}),
    "segmentation-iou": ("segmentation", "mean_iou", -0.1, {"arm": "last_layer", "epoch": 2}),
    "segmentation-accuracy": ("segmentation", "pixel_accuracy", -0.1, {"arm": "last_layer", "epoch": 2}),
    "cooling-is-cheap": ("cost", "share", 0.01, {"mode": "periodic"}),
}


def judged(records: Records) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in judge_all("cooling", CLAIMS, records, profile="test")}


def test_all_hold_on_records_that_meet_every_criterion(records: Records) -> None:
    """They are like the paper's, but that last layer Cooling is ahead of periodic Cooling with every schedule."""
    rows = judged(records)
    assert len(rows) == len(CLAIMS)
    assert {name: row["verdict"] for name, row in rows.items()} == dict.fromkeys(rows, HOLDS)


def test_the_papers_own_numbers_do_not_make_the_last_layer_the_best(records: Records) -> None:
    runs = records.runs.copy()
    for table, place in (("table_1", "vgg"), ("table_2", "crelu")):
        spec = SPECS[table]
        assert isinstance(spec, Printed)
        numbers = printed_numbers(spec)
        numbers = numbers[numbers["activation"] == ("crelu" if place == "crelu" else "relu")]
        means = numbers.set_index(["schedule", "mode"])["published"]
        rows = runs["experiment"] == place
        runs.loc[rows, "test_accuracy"] = [means[key] for key in runs.loc[rows, ["schedule", "arm"]].itertuples(False)]
    row = judged(replace(records, runs=runs[runs["experiment"].isin(["vgg", "crelu"])]))["last-layer-is-best"]
    assert row["verdict"] == DOES_NOT_HOLD
    assert row["value"] == pytest.approx(-0.004 / 7)
    assert row["note"].startswith("against Distributed +0.010, against Periodically redistributed -0.001")


@pytest.mark.parametrize("name", [claim.id for claim in CLAIMS])
def test_each_turns_with_its_records(records: Records, changed: Callable[..., Records], name: str) -> None:
    table, column, by, where = TURNS[name]
    assert judged(changed(records, table, column, by, **where))[name]["verdict"] == DOES_NOT_HOLD


def test_a_gain_is_paired_over_settings_and_seeds(records: Records) -> None:
    row = judged(records)["last-layer-helps-without-schedule"]
    # 0.048, 0.049 and 0.050 on one, 0.030, 0.031 and 0.032 on the other; trainings of a seed are not independent.
    differences = [0.039, 0.040, 0.041]
    low, high = stats.t.interval(0.90, 2, loc=0.04, scale=stats.sem(differences))
    assert [row[name] for name in ("value", "n", "low", "high")] == pytest.approx([0.04, 3, low, high])


def test_schedules_of_one_seed_are_no_independent_pairs(records: Records) -> None:
    row = judged(records)["last-layer-gains-nothing-with-smooth-schedule"]
    # Means over the four schedules: 0.00125, and 0.001 more with each seed.
    assert [row["n"], row["value"], row["sd"]] == pytest.approx([3, 0.00225, 0.001])


def test_a_training_that_diverged_counts_as_guessing(records: Records, changed: Callable[..., Records]) -> None:
    lost = changed(records, "runs", None, 1, experiment="vgg", schedule="none", arm="periodic", seed=2)
    row = judged(lost)["periodic-helps-without-schedule"]
    # One of ten classes: 0.1 - 0.749 in place of 0.794 - 0.749.
    assert row["value"] == pytest.approx((0.043 + 0.044 + 0.1 - 0.749) / 3)
    assert row["verdict"] == DOES_NOT_HOLD
    assert row["note"] == "counted as guessing: Periodically redistributed 1 of 3 diverged"


def test_a_training_that_got_stuck_counts_as_guessing_and_is_called_so(
    records: Records, changed: Callable[..., Records]
) -> None:
    lost = changed(records, "runs", "stuck", 1, experiment="vgg", schedule="none", arm="none", seed=2)
    rows = judged(lost)
    assert rows["last-layer-helps-without-schedule"]["note"] == "counted as guessing: No Cooling 1 of 6 stuck"
    assert rows["factors-up-to-1-help"]["note"].endswith("; counted as guessing: No Cooling 1 of 3 stuck")
    # 0.1 in place of 0.749.
    gains = [0.023, 0.024, 0.774 - 0.1]
    assert rows["factors-up-to-1-help"]["value"] == pytest.approx(sum(gains) / 3)


def test_one_smooth_schedule_that_gains_more_than_a_point_is_enough(
    records: Records, changed: Callable[..., Records]
) -> None:
    gained = changed(records, "runs", "test_accuracy", 0.012, **COSINE, arm="last_layer")
    row = judged(gained)["last-layer-gains-nothing-with-smooth-schedule"]
    assert row["high"] < 0.01
    assert row["verdict"] == DOES_NOT_HOLD
    assert row["note"] == "Cosine +0.015, Exp Decay Fast +0.003, Exp Decay Slow +0.001, Linear +0.002"


def test_smooth_schedules_that_cooling_harms_gain_nothing(records: Records, changed: Callable[..., Records]) -> None:
    harmed = changed(records, "runs", "test_accuracy", -0.2, **COSINE, arm="distributed")
    assert judged(harmed)["distributed-gains-nothing-with-smooth-schedule"]["verdict"] == HOLDS


def test_no_schedule_is_compared_with_the_best_one(records: Records, changed: Callable[..., Records]) -> None:
    row = judged(records)["no-schedule-is-needed"]
    # Linear is the best without Cooling, 0.787 to 0.789, against 0.795, 0.797 and 0.799.
    assert [row["value"], row["sd"], row["n"]] == pytest.approx([0.009, 0.001, 3])
    assert row["note"] == "best schedule: Linear"
    better = changed(records, "runs", "test_accuracy", 0.01, experiment="vgg", schedule="piecewise", arm="none")
    row = judged(better)["no-schedule-is-needed"]
    assert (row["note"], row["value"]) == ("best schedule: Piecewise Const", pytest.approx(0.006))


def test_the_best_variant_is_judged_against_the_closer_one(records: Records) -> None:
    row = judged(records)["last-layer-is-best"]
    # Six schedules and CReLU, three seeds; periodic is behind by 2, 2, 2, 2, 5, 2 and 2 tenths of a point.
    assert [row["value"], row["n"]] == pytest.approx([0.017 / 7, 3])
    assert row["unit"] == "accuracy, against Periodically redistributed"


def test_the_worst_factor_speaks_for_all(records: Records) -> None:
    row = judged(records)["factors-up-to-1-help"]
    # 0.770 + 0.002 seed, against 0.747 + 0.001 seed of Table 1.
    assert [row["value"], row["n"]] == pytest.approx([0.024, 3])
    assert row["unit"] == "accuracy, factor 0.5"
    assert row["note"] == "cifar10 0.5: +0.024, cifar10 0.75: +0.034, cifar10 1: +0.049"


def test_the_factor_that_fails_is_shown_not_the_one_of_the_smallest_mean(
    records: Records, changed: Callable[..., Records]
) -> None:
    spread = changed(records, "runs", "test_accuracy", 0.2, experiment="factors", arm="last_layer-0.75", seed=2)
    row = judged(spread)["factors-up-to-1-help"]
    assert row["verdict"] == DOES_NOT_HOLD
    assert row["unit"] == "accuracy, factor 0.75", "its mean is larger than that of factor 0.5, its interval includes 0"
    assert row["low"] < 0 < row["value"]


def test_periodic_cooling_that_never_was_is_no_rival(records: Records) -> None:
    cold = replace(records, arms=records.arms.assign(max_temperature=1000.0))
    row = judged(cold)["last-layer-is-best"]
    assert row["verdict"] == NOT_TESTED, "ahead of distributed Cooling, and nothing to compare with otherwise"
    assert "Last layer and Periodically redistributed" in row["note"]
    behind = cold.runs["arm"].eq("distributed")
    cold.runs.loc[behind, "test_accuracy"] += 0.2
    row = judged(cold)["last-layer-is-best"]
    assert (row["verdict"], row["unit"]) == (DOES_NOT_HOLD, "accuracy, against Distributed")
    assert "left out: Periodically redistributed: 21 of 21 never redistributed" in row["note"]


def test_the_best_variant_needs_each_other_one_and_names_the_first_that_is_missing(records: Records) -> None:
    alone = replace(records, runs=records.runs[records.runs["arm"].isin(["none", "last_layer"])])
    row = judged(alone)["last-layer-is-best"]
    assert row["verdict"] == NOT_TESTED
    assert "Last layer and Distributed" in row["note"]


def test_the_dearest_mode_speaks_for_the_cost(records: Records) -> None:
    row = judged(records)["cooling-is-cheap"]
    assert [row["value"], row["n"], row["unit"]] == [pytest.approx(0.015), 3, "of an epoch, Distributed"]
    assert row["note"].endswith(
        "Last layer on cpu 0.0050, Distributed on cpu 0.0150, Periodically redistributed on cpu 0.0100"
    )


def test_shares_say_what_they_count(records: Records, changed: Callable[..., Records]) -> None:
    row = judged(changed(records, "runs", None, 1, experiment="crelu", arm="periodic", seed=1))[
        "crelu-trains-with-cooling"
    ]
    assert [row["value"], row["n"]] == pytest.approx([8 / 9, 9])
    assert row["note"] == "Periodically redistributed 1 of 3 diverged"


def test_a_stuck_network_neither_diverges_nor_trains(records: Records, changed: Callable[..., Records]) -> None:
    without = records.runs["experiment"].eq("crelu") & records.runs["arm"].eq("none")
    stuck = replace(records, runs=records.runs.assign(diverged=records.runs["diverged"] & ~without))
    stuck = changed(stuck, "runs", "stuck", 1, experiment="crelu", arm="none")
    row = judged(stuck)["crelu-diverges-without-cooling"]
    assert (row["verdict"], row["value"], row["note"]) == (DOES_NOT_HOLD, 0, "No Cooling 3 of 3 stuck")
    cooled = changed(records, "runs", "stuck", 1, experiment="crelu", arm="last_layer", seed=0)
    row = judged(cooled)["crelu-trains-with-cooling"]
    assert (row["verdict"], row["note"]) == (DOES_NOT_HOLD, "Last layer 1 of 3 stuck")


def test_a_factor_above_1_that_is_stuck_has_not_diverged(records: Records, changed: Callable[..., Records]) -> None:
    one = {"arm": "last_layer-1.25", "seed": 1}
    stuck = changed(changed(records, "runs", None, 0, **one), "runs", "stuck", 1, **one)
    row = judged(stuck)["factors-above-1-diverge"]
    assert (row["verdict"], row["value"]) == (DOES_NOT_HOLD, pytest.approx(2 / 3))
    assert row["note"] == "cifar10 1.25: 2 of 3 diverged, 1 of 3 stuck"


def test_coolings_that_did_nothing_are_counted(records: Records, changed: Callable[..., Records]) -> None:
    assert judged(records)["factors-above-1-diverge"]["note"] == "cifar10 1.25: 3 of 3 diverged"
    idle = changed(records, "temperatures", "at_bound", 1, arm="last_layer-1.25", cooling=(2, 3, 4), seed=(0, 1))
    assert judged(idle)["factors-above-1-diverge"]["note"] == (
        "cifar10 1.25: 3 of 3 diverged; Cooling did nothing, for want of a best temperature, 6 of 18 times"
    )


def test_epochs_of_the_first_hot_temperature(records: Records) -> None:
    row = judged(records)["larger-factors-heat-faster"]
    # After epochs 5 and 6: products of 160, and of 80 and 160.
    assert [row["value"], row["n"]] == pytest.approx([-1, 3])
    # Of one seed the slow one never gets there, as after an earlier end: the epoch after its last, 7 in place of 6.
    slow = records.temperatures["arm"].eq("last_layer-0.75") & records.temperatures["seed"].eq(0)
    late = records.temperatures.assign(applied=records.temperatures["applied"].where(~slow, 1.0))
    row = judged(replace(records, temperatures=late))["larger-factors-heat-faster"]
    assert [row["value"], row["n"]] == pytest.approx([-4 / 3, 3])
    assert row["note"] == "maximal temperature 100; never exceeded, the epoch after the last counted: Last layer 1 of 3"
    cold = replace(records, arms=records.arms.assign(max_temperature=1000.0))
    assert "exceeds the maximal temperature" in judged(cold)["larger-factors-heat-faster"]["note"]
    below_one = replace(records, arms=records.arms.assign(max_temperature=0.2))
    row = judged(below_one)["larger-factors-heat-faster"]
    assert row["verdict"] == NOT_TESTED
    assert row["note"].startswith("no experiment of this profile redistributes temperatures above 1; ")


def test_segmentation_is_paired_by_seed(records: Records) -> None:
    row = judged(records)["segmentation-iou"]
    # 0.410 - 0.400, and 0.422 - 0.410.
    assert [row["value"], row["n"], row["unit"]] == [pytest.approx(0.011), 2, "mean IoU"]


@pytest.mark.parametrize(("name", "guess", "said"), [("iou", 0, "0"), ("accuracy", 1 / 11, "guessing")])
def test_a_u_net_that_diverged_counts_as_guessing(records: Records, name: str, guess: float, said: str) -> None:
    table = records.segmentation.copy()
    lost = table["arm"].eq("last_layer") & table["seed"].eq(1) & table["epoch"].eq(2)
    table.loc[lost, ["mean_iou", "pixel_accuracy"]] = np.nan
    row = judged(replace(records, segmentation=table))[f"segmentation-{name}"]
    without = {"iou": 0.41, "accuracy": 0.71}[name]
    assert [row["value"], row["n"]] == pytest.approx([(0.010 + guess - without) / 2, 2])
    assert row["note"] == f"counted as {said}: Last layer 1 of 2 diverged"


def test_one_pair_is_judged_by_its_value(records: Records, only: Callable[..., Records]) -> None:
    rows = judged(only(records, seed=0))
    row = rows["distributed-helps-without-schedule"]
    assert [row["value"], row["n"], row["low"], row["verdict"]] == [pytest.approx(0.029), 1, None, HOLDS]
    assert row["note"] == "one seed, no interval"


def test_what_is_missing_is_not_tested_and_named(records: Records, only: Callable[..., Records]) -> None:
    ablation = only(records, experiment=("adam", "focal"))
    rows = judged(replace(ablation, segmentation=records.segmentation[:0], cost=records.cost[:0]))
    assert {row["verdict"] for row in rows.values()} == {NOT_TESTED}, "only the main recipe counts"
    assert rows["periodic-helps-with-piecewise-schedule"]["note"] == (
        "no experiment of this profile trains Periodically redistributed and No Cooling with schedule Piecewise Const "
        "and one seed; profile cifar10 would test it"
    )
    assert "CReLU: No Cooling" in rows["crelu-diverges-without-cooling"]["note"]
    assert "factor above 1" in rows["factors-above-1-diverge"]["note"]
    assert "U-Net" in rows["segmentation-iou"]["note"]


def test_what_is_not_tested_names_a_profile_that_tests_it(
    records: Records, only: Callable[..., Records], project_root: Path
) -> None:
    some = replace(only(records, experiment="adam"), segmentation=records.segmentation[:0], cost=records.cost[:0])
    rows = judged(some)
    assert "`make bench` measures it" in rows.pop("cooling-is-cheap")["note"]
    for row in rows.values():
        named = set(re.findall(r"cifar10\w*|paper", row["note"].partition("; profile ")[2]))
        assert named, row["note"]
        for profile in named:
            assert (project_root / "profiles" / f"{profile}.yaml").is_file()


def test_a_quoted_number_is_the_printed_one(project_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project_root)
    spec = SPECS["table_1"]
    assert isinstance(spec, Printed)
    accuracy = printed_numbers(spec).pivot(index="schedule", columns="mode", values="published")
    second_table = SPECS["table_2"]
    assert isinstance(second_table, Printed)
    crelu = printed_numbers(second_table).query("activation == 'crelu'").set_index("mode")["published"]
    more = accuracy.sub(accuracy["none"], axis=0)
    section = (
        published("cooling", "Sec. 4.4 text").astype({"value": float}).set_index(["metric", "method"])["value"] / 100
    )
    text = published("cooling", "text").astype({"value": float}).set_index("metric")["value"]
    first, second = (text[text.index.str.startswith(name)].item() for name in ("epoch of first", "epoch when"))
    expected = {
        f"{mode.replace('_', '-')}-helps-{name}": more[mode][schedule]
        for mode in ("distributed", "periodic", "last_layer")
        for name, schedule in (("without-schedule", "none"), ("with-piecewise-schedule", "piecewise"))
    } | {
        "no-schedule-is-needed": accuracy["last_layer"]["none"] - accuracy["none"].drop("none").max(),
        # Every schedule of Table 1, and CReLU of Table 2, as often; in the claim to four digits.
        "last-layer-is-best": round(
            np.mean([*(accuracy["last_layer"] - accuracy["periodic"]), crelu["last_layer"] - crelu["periodic"]]), 4
        ),
        "larger-factors-heat-faster": first - second,
        "segmentation-iou": section["mIoU %", "Last layer Cooling"] - section["mIoU %", "No Cooling"],
        "segmentation-accuracy": np.diff(section["pixel accuracy %"]).item(),
        "cooling-is-cheap": text["Cooling cost as % of an epoch"] / 100,
    }
    quoted = {claim.id: claim.published for claim in CLAIMS if claim.published is not None}
    assert quoted == pytest.approx(expected)

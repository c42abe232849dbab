"""Verdicts follow the records: worked out by hand, turned by turning the records, and open where these are silent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from softmax_temperature.papers.focal.claims import CLAIMS
from softmax_temperature.papers.focal.records import Records
from softmax_temperature.papers.shared.claims import DOES_NOT_HOLD, HOLDS, NOT_TESTED, judge_all
from softmax_temperature.papers.shared.tables import published

CIFAR = "cifar10-resnet50"
TURNS: dict[str, tuple[tuple[str, str, float, dict[str, Any]], ...]] = {
    # What is added to which column of which rows, so that the claim no longer holds.
    "fl-3-calibrates": (("runs", "expected_calibration_error", 0.1, {"arm": "FL-3", "scaling": "none"}),),
    "flsd-53-calibrates": (("runs", "expected_calibration_error", 0.1, {"arm": "FLSD-53", "scaling": "none"}),),
    "fl-3-calibrates-after-scaling": (("runs", "expected_calibration_error", 0.1, {"arm": "FL-3", "scaling": "ece"}),),
    "flsd-53-calibrates-after-scaling": (
        ("runs", "expected_calibration_error", 0.1, {"arm": "FLSD-53", "scaling": "ece"}),
    ),
    "flsd-53-calibrates-on-texts": (
        ("runs", "expected_calibration_error", 0.1, {"arm": "FLSD-53", "scaling": "none", "task": "digits-small"}),
    ),
    "accuracy-is-kept": (("runs", "accuracy", -0.02, {"arm": "FLSD-53"}),),
    "flsd-53-temperature-near-one": (("runs", "temperature", 0.2, {"arm": "FLSD-53"}),),
    "ce-temperature-well-above-one": (("runs", "temperature", -0.9, {"arm": "CE"}),),
    "overfitting-is-of-the-wrong": (("history", "nll_right", 0.5, {"arm": "CE", "epoch": 7}),),
    "weight-norms-end-reversed": (("history", "weight_norm", 3, {"arm": "FL-3", "epoch": 7}),),
    "flsd-53-detects-outliers": (("ood", "auroc", -0.2, {"arm": "FLSD-53"}),),
    "scaling-does-not-help-outliers": (("ood", "auroc", 0.05, {"arm": "CE", "scaling": "ece"}),),
    "focal-is-less-confident-unscaled": (("runs", "confident_share", 0.5, {"arm": "FLSD-53", "scaling": "none"}),),
    "focal-is-more-confident-scaled": (("runs", "confident_share", -0.5, {"arm": "FLSD-53", "scaling": "ece"}),),
    "early-stopping-does-not-save-ce": (
        ("early_stopping", "expected_calibration_error", 0.1, {"arm": "FLSD-53", "criterion": "nll"}),
    ),
    "translation-focal-temperature-is-one": (("translation_runs", "temperature", 0.1, {"arm": "LS"}),),
    "translation-ce-temperature-is-not-one": (("translation_runs", "temperature", -0.2, {"arm": "CE"}),),
    "translation-focal-calibrates": (("translation_runs", "ece", 0.03, {"arm": "FL"}),),
    "translation-focal-bleu": (("translation_runs", "best_bleu", 0.03, {"arm": "LS"}),),
    "translation-calibrated-where-good": (
        ("translation_curves", "bleu", 0.1, {"temperature": 0.8}),
        ("translation_curves", "temperature", -0.2, {"temperature": 0.8}),
    ),
}


def judged(records: Records) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in judge_all("focal", CLAIMS, records, profile="test")}


def test_all_hold_on_records_like_the_papers(records: Records) -> None:
    rows = judged(records)
    assert len(rows) == len(CLAIMS)
    assert {name: row["verdict"] for name, row in rows.items()} == dict.fromkeys(rows, HOLDS)


@pytest.mark.parametrize("name", [claim.id for claim in CLAIMS])
def test_each_turns_with_its_records_alone(records: Records, shifted: Callable[..., Records], name: str) -> None:
    for table, column, by, where in TURNS[name]:
        records = shifted(records, table, column, by, **where)
    assert judged(records)[name]["verdict"] == DOES_NOT_HOLD


def test_a_difference_is_paired_over_tasks_and_seeds(records: Records) -> None:
    row = judged(records)["fl-3-calibrates"]
    differences = np.array([0.02 - 0.05, 0.03 - 0.07, 0.04 - 0.10, 0.05 - 0.12])
    low, high = stats.t.interval(0.90, 3, loc=-0.05, scale=stats.sem(differences))
    assert [row[name] for name in ("value", "n", "low", "high")] == pytest.approx([-0.05, 4, low, high])


def test_texts_are_judged_alone(
    records: Records, shifted: Callable[..., Records], only: Callable[..., Records]
) -> None:
    row = judged(records)["flsd-53-calibrates-on-texts"]
    assert [row["value"], row["n"]] == pytest.approx([-0.055, 2])
    elsewhere = {"arm": "FLSD-53", "scaling": "none", "task": CIFAR}
    worse = shifted(records, "runs", "expected_calibration_error", 1.0, **elsewhere)
    assert judged(worse)["flsd-53-calibrates-on-texts"]["verdict"] == HOLDS
    for silent in (only(records, task=CIFAR), replace(records, tasks=records.tasks.drop(columns="embeddings"))):
        row = judged(silent)["flsd-53-calibrates-on-texts"]
        assert (row["verdict"], row["note"]) == (NOT_TESTED, "no task of this profile is on texts")


def test_an_interval_across_zero_does_not_hold(records: Records, shifted: Callable[..., Records]) -> None:
    # Differences of -0.03, -0.04, +0.02 and +0.01: lower on average, but not beyond doubt.
    where = {"arm": "FL-3", "scaling": "none", "task": "digits-small"}
    row = judged(shifted(records, "runs", "expected_calibration_error", 0.08, **where))["fl-3-calibrates"]
    assert row["value"] == pytest.approx(-0.01)
    assert row["verdict"] == DOES_NOT_HOLD


def test_a_gain_of_accuracy_is_measured_against_one_point(records: Records) -> None:
    row = judged(records)["accuracy-is-kept"]
    assert [row["value"], row["low"], row["high"]] == pytest.approx([-0.002] * 3)


def test_overfitting_by_hand(records: Records, shifted: Callable[..., Records]) -> None:
    row = judged(records)["overfitting-is-of-the-wrong"]
    # From epoch 3, where the NLL is least, to 7: 4 - 2, and 4.1 - 2 for seed 1, on two tasks.
    assert [row["value"], row["n"]] == pytest.approx([2.05, 4])
    assert row["note"] == "right samples -0.060 nats; 4 of 4 runs overfit"
    falling = shifted(records, "history", "nll", -0.19, epoch=7)  # It ends at 0.41, within 5 % of the least.
    row = judged(falling)["overfitting-is-of-the-wrong"]
    assert row["verdict"] == NOT_TESTED
    assert row["note"] == "no run's test NLL ends at 1.05 times its minimum: nothing is overfitted"


def test_weight_norms_that_were_never_higher_do_not_end_reversed(
    records: Records, shifted: Callable[..., Records]
) -> None:
    row = judged(records)["weight-norms-end-reversed"]
    assert [row["value"], row["n"]] == pytest.approx([-1, 4])
    assert row["note"] == "early +1.000 [1.000, 1.000]"
    always_lower = shifted(records, "history", "weight_norm", -3, arm="FL-3")
    assert judged(always_lower)["weight-norms-end-reversed"]["verdict"] == DOES_NOT_HOLD


def test_out_of_distribution_sets_of_a_run_are_averaged(records: Records) -> None:
    row = judged(records)["flsd-53-detects-outliers"]
    assert [row["value"], row["n"]] == pytest.approx([0.1, 2])


def test_early_stopping_reports_its_worst_criterion(records: Records, shifted: Callable[..., Records]) -> None:
    where = {"arm": "FLSD-53", "criterion": "ece"}
    row = judged(shifted(records, "early_stopping", "expected_calibration_error", 0.01, **where))[
        "early-stopping-does-not-save-ce"
    ]
    assert row["value"] == pytest.approx(-0.01)
    assert row["unit"] == "ECE, criterion ece"
    assert row["verdict"] == HOLDS


def test_one_pair_is_judged_by_its_bootstrap(records: Records, only: Callable[..., Records]) -> None:
    rows = judged(only(records, task=CIFAR, seed=0))
    row = rows["fl-3-calibrates"]
    assert [row[name] for name in ("value", "low", "high", "n")] == pytest.approx([-0.03, -0.035, -0.025, 1])
    assert row["note"] == "one seed, interval over test samples"
    assert rows["fl-3-calibrates-after-scaling"]["note"] == "one seed, no interval", "none was recorded"
    assert rows["ce-temperature-well-above-one"]["verdict"] == HOLDS
    assert rows["ce-temperature-well-above-one"]["low"] is None


def test_one_pair_whose_bootstrap_crosses_zero_does_not_hold(
    records: Records, only: Callable[..., Records], shifted: Callable[..., Records]
) -> None:
    one = shifted(only(records, task=CIFAR, seed=0), "differences", "high", 0.1)
    assert judged(one)["fl-3-calibrates"]["verdict"] == DOES_NOT_HOLD


def test_diverged_runs_do_not_count(records: Records) -> None:
    arm = records.trainings["arm"] == "FL-3"
    records.trainings.loc[arm & (records.trainings["task"] == CIFAR), "diverged"] = True
    row = judged(records)["fl-3-calibrates"]
    assert [row["value"], row["n"]] == pytest.approx([-0.065, 2])
    records.trainings.loc[arm, "diverged"] = True
    rows = judged(records)
    for name in ("fl-3-calibrates", "fl-3-calibrates-after-scaling", "weight-norms-end-reversed"):
        assert (rows[name]["verdict"], rows[name]["note"]) == (NOT_TESTED, "every run of FL-3 diverged")


def test_what_is_missing_is_not_tested_and_named(records: Records, only: Callable[..., Records]) -> None:
    reference = judged(only(records, arm="CE"))
    assert reference["flsd-53-calibrates"]["note"] == "no task of this profile trains FLSD-53"
    assert reference["early-stopping-does-not-save-ce"]["note"] == "no task of this profile trains FLSD-53"
    assert reference["ce-temperature-well-above-one"]["verdict"] == HOLDS
    inside = judged(only(records, task="digits-small"))
    for name in ("flsd-53-detects-outliers", "scaling-does-not-help-outliers"):
        assert inside[name]["note"] == "no task of this profile has an out-of-distribution set"
    variants = judged(only(records, task="cifar10-resnet50-mean"))
    of_tasks = [row for name, row in variants.items() if not name.startswith("translation-")]
    assert {row["verdict"] for row in of_tasks} == {NOT_TESTED}, "only the main recipe counts"


def test_a_quoted_number_is_the_printed_one(project_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project_root)
    rows = pd.concat([published("focal", name) for name in ("Table 1", "Table 2")])
    texts = rows[rows["dataset"].isin(["20 Newsgroups", "SST Binary"]) & (rows["metric"] == "ece")]
    on_texts = texts.astype({"value": float}).groupby("method")["value"].mean() / 100
    rows = rows[(rows["dataset"] == "CIFAR-10") & (rows["model"] == "ResNet-50")]
    printed = rows.astype({"value": float}).pivot(index="metric", columns="method", values="value")
    more = printed.sub(printed["CE"], axis=0) / 100
    expected = {
        "fl-3-calibrates": more["FL-3"]["ece"],
        "flsd-53-calibrates": more["FLSD-53"]["ece"],
        "fl-3-calibrates-after-scaling": more["FL-3"]["ece_after_scaling"],
        "flsd-53-calibrates-after-scaling": more["FLSD-53"]["ece_after_scaling"],
        "flsd-53-calibrates-on-texts": on_texts["FLSD-53"] - on_texts["CE"],
        "accuracy-is-kept": -more["FLSD-53"]["error"],
        "flsd-53-temperature-near-one": printed["FLSD-53"]["temperature"],
        "ce-temperature-well-above-one": printed["CE"]["temperature"],
        **_quoted_of_translation(),
    }
    quoted = {claim.id: claim.published for claim in CLAIMS if claim.published is not None}
    assert quoted == pytest.approx(expected)


def _quoted_of_translation() -> dict[str, float]:
    rows = published("focal", "text of appendix K").astype({"value": float})
    printed = rows.pivot(index="metric", columns="method", values="value")
    bleu = printed.loc["best test BLEU over temperatures"]
    return {
        "translation-focal-temperature-is-one": printed.loc["optimal T (validation)", "FL"],
        "translation-focal-bleu": bleu["FL"] - bleu[["CE", "LS"]].max(),
    }

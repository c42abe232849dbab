"""Verdicts follow the records: the last ten epochs, what is lost, schedules and modes that cannot be compared."""

from dataclasses import fields, replace
from typing import Any

import pandas as pd
import pytest

from softmax_temperature.papers.cooling.claims import CLAIMS
from softmax_temperature.papers.cooling.records import Records
from softmax_temperature.papers.cooling.selection import SCHEDULES
from softmax_temperature.papers.shared.claims import CONTRADICTED, HOLDS, INCONCLUSIVE, NOT_TESTED, judge_all
from softmax_temperature.papers.shared.tables import published

SEEDS, EPOCHS = range(5), 50
ARMS = {"none": 0.0, "last_layer": 0.045, "periodic": 0.045, "distributed": 0.029}
"""What each gains without a schedule; half a point less than that with a piecewise one, nothing with a smooth one."""
FACTORS = {"last_layer-0.5": 0.5, "last_layer-0.75": 0.75, "last_layer-1.25": 1.25}


@pytest.fixture
def records() -> Records:
    """Of a study in which everything is as the paper says."""
    arms = [{"arm": arm, "mode": arm, "factor": None if arm == "none" else 1.0} for arm in ARMS]
    arms += [{"arm": arm, "mode": "last_layer", "factor": factor} for arm, factor in FACTORS.items()]
    runs = [("vgg", schedule, arm, seed) for schedule in SCHEDULES for arm in ARMS for seed in SEEDS]
    runs += [("vgg", "none", arm, seed) for arm in FACTORS for seed in SEEDS]
    runs += [("crelu", "none", arm, seed) for arm in ARMS for seed in SEEDS]
    tables = {
        "experiments": [_experiment("vgg", "relu", "table_1"), _experiment("crelu", "crelu", "table_2")],
        "arms": [{**arm, "max_temperature": 100.0, "reset_temperature": 100.0, **_PLAIN} for arm in arms],
        "runs": [_run(*run) for run in runs],
        "history": [row for run in runs for row in _history(*run)],
        "temperatures": [row for run in runs for row in _temperatures(*run)],
        "segmentation": [
            {"arm": arm, "seed": seed, "epoch": 1, "dataset": "ade20k", "classes": 150, "temperature": 1.0}
            | {"mean_iou": 0.2 + gain + 0.001 * seed * (1 + gain), "pixel_accuracy": 0.7 + gain + 0.002 * seed * gain}
            for arm, gain in (("none", 0.0), ("last_layer", 0.01))
            for seed in SEEDS
        ],
        "cost": [
            {"device": "cpu", "mode": mode, "share": share, "rounds": 3}
            for mode, share in (("last_layer", 0.0040), ("distributed", 0.0041), ("periodic", 0.0042))
        ],
    }
    made = {name: pd.DataFrame(rows) for name, rows in tables.items()}
    return Records(**{each.name: made.get(each.name, pd.DataFrame()) for each in fields(Records)})


_PLAIN = {"refit": "whole", "period": "epoch", "optimizer_state": "keep", "loss": "cross_entropy"}


def _experiment(name: str, activation: str, role: str) -> dict[str, Any]:
    about = {"experiment": name, "dataset": "cifar10", "network": f"small-vgg-{activation}", "activation": activation}
    return {**about, "role": role, "change": "", "printed_model": "", "classes": 10}


def _gain(schedule: str, arm: str) -> float:
    if arm in FACTORS:
        return 0.04
    return ARMS[arm] * {"none": 1.0, "piecewise": 0.4}.get(schedule, 0.0)


def _lost(experiment: str, arm: str) -> bool:
    return arm == "last_layer-1.25" or (experiment, arm) == ("crelu", "none")


def _names(experiment: str, schedule: str, arm: str, seed: int) -> dict[str, Any]:
    return {"experiment": experiment, "schedule": schedule, "arm": arm, "seed": seed}


def _run(experiment: str, schedule: str, arm: str, seed: int) -> dict[str, Any]:
    lost = _lost(experiment, arm)
    accuracy = {"test_accuracy": None if lost else 0.5}
    return {**_names(experiment, schedule, arm, seed), "diverged": lost, "stuck": False, **accuracy}


def _history(experiment: str, schedule: str, arm: str, seed: int) -> list[dict[str, Any]]:
    base = 0.747 if schedule == "none" else 0.78
    jitter = 0.0005 * ((seed * (3 + len(arm))) % 5)
    names = {**_names(experiment, schedule, arm, seed), "split": "test"}
    return [
        # The last epoch alone says the opposite of the last ten.
        {**names, "epoch": epoch, "accuracy": base + (_gain(schedule, arm) if epoch < EPOCHS else 0) + jitter}
        | {"ece": (0.3 if arm == "none" else 0.05) + jitter}
        for epoch in range(1, EPOCHS + 1)
    ]


def _temperatures(experiment: str, schedule: str, arm: str, seed: int) -> list[dict[str, Any]]:
    factor = 1.5 if arm == "periodic" else 1.2
    return [
        {**_names(experiment, schedule, arm, seed), "cooling": epoch, "epoch": epoch, "at_bound": False}
        | {"applied": factor + 0.01 * seed, "total": (factor + 0.01 * seed) ** epoch}
        for epoch in range(1, EPOCHS + 1)
        if arm != "none"
    ]


def judged(records: Records, *names: str) -> dict[str, dict[str, Any]]:
    claims = [claim for claim in CLAIMS if claim.id in names or not names]
    return {row["id"]: row for row in judge_all("cooling", claims, records, profile="study")}


def shifted(records: Records, by: float, **where: Any) -> Records:
    history = records.history.copy()
    chosen = pd.Series(True, history.index)
    for name, value in where.items():
        chosen &= history[name] == value
    history.loc[chosen, "accuracy"] += by
    return replace(records, history=history)


def test_records_like_the_papers_hold(records: Records) -> None:
    rows = judged(records)
    assert len(rows) == len(CLAIMS)
    assert {name: row["verdict"] for name, row in rows.items()} == dict.fromkeys(rows, HOLDS)


def test_accuracy_is_the_mean_of_the_last_ten_epochs_and_the_last_stands_beside(records: Records) -> None:
    row = judged(records, "last-layer-helps-without-schedule")["last-layer-helps-without-schedule"]
    assert row["value"] == pytest.approx(0.9 * 0.045, abs=0.001), "nine of ten epochs have the gain"
    assert row["note"] == "last epoch alone +0.000"


@pytest.mark.parametrize(
    ("name", "by", "where"),
    [
        ("periodic-helps-with-piecewise-schedule", -0.1, {"arm": "periodic", "schedule": "piecewise"}),
        ("distributed-gains-nothing-with-smooth-schedule", 0.1, {"arm": "distributed"}),
        ("distributed-gains-nothing-with-smooth-schedule", -0.1, {"arm": "distributed"}),
        ("last-layer-is-on-par-on-all-schedules", -0.05, {"arm": "last_layer", "schedule": "linear"}),
        ("no-schedule-is-needed", 0.1, {"arm": "none", "schedule": "linear"}),
        ("last-layer-is-best", 0.1, {"arm": "periodic"}),
        ("distributed-is-outperformed", 0.1, {"arm": "distributed", "schedule": "none"}),
        ("factors-up-to-1-help", -0.1, {"arm": "last_layer-0.5"}),
    ],
)
def test_each_is_contradicted_when_its_records_are_turned(
    records: Records, name: str, by: float, where: dict[str, str]
) -> None:
    assert judged(shifted(records, by, **where), name)[name]["verdict"] == CONTRADICTED


def test_a_lost_training_counts_as_guessing_and_is_named(records: Records) -> None:
    name = "last-layer-helps-without-schedule"
    lost = records.runs["diverged"] | ((records.runs["arm"] == "last_layer") & (records.runs["experiment"] == "vgg"))
    row = judged(replace(records, runs=records.runs.assign(diverged=lost)), name)[name]
    assert row["verdict"] == CONTRADICTED
    assert "counted as guessing: Last layer 5 of 5 diverged" in row["note"]


def test_too_few_trainings_that_diverged_decide_nothing(records: Records) -> None:
    name = "crelu-diverges-without-cooling"
    row = judged(replace(records, runs=records.runs[records.runs["seed"] < 3]), name)[name]
    assert (row["verdict"], row["n_needed"]) == (INCONCLUSIVE, 5)


def test_redistribution_below_temperature_1_is_not_comparable(records: Records) -> None:
    cold = replace(records, arms=records.arms.assign(max_temperature=0.1))
    rows = judged(cold)
    assert rows["periodic-helps-without-schedule"]["verdict"] == NOT_TESTED
    assert rows["last-layer-helps-without-schedule"]["verdict"] == HOLDS


def test_schedules_that_were_not_trained_leave_all_schedules_open(records: Records) -> None:
    name = "distributed-is-on-par-on-all-schedules"
    row = judged(replace(records, runs=records.runs[records.runs["schedule"] != "linear"]), name)[name]
    assert row["verdict"] == INCONCLUSIVE
    assert "not judged: Linear: not trained" in row["note"]


def test_segmentation_of_other_data_is_shown_and_not_judged(records: Records) -> None:
    glyphs = replace(records, segmentation=records.segmentation.assign(dataset="glyphs"))
    row = judged(glyphs, "segmentation-iou")["segmentation-iou"]
    assert (row["verdict"], row["tasks"][0]["task"], row["tasks"][0]["n"]) == (NOT_TESTED, "glyphs", 5)


def test_quoted_numbers_are_the_printed_ones(project_root: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project_root)
    rows = published("cooling", "Table 1")
    values = rows.assign(value=rows["value"].astype(float)).set_index("method")["value"] / 100
    names = {"distributed": "Distributed", "periodic": "Periodically redistributed", "last-layer": "Last layer"}
    quoted = {claim.id: claim.published for claim in CLAIMS}
    for slug, name in names.items():
        for where, schedule in (("without-schedule", "None"), ("with-piecewise-schedule", "Piecewise Const")):
            gain = values[f"{name} | LR schedule: {schedule}"] - values[f"No Cooling | LR schedule: {schedule}"]
            assert quoted[f"{slug}-helps-{where}"] == pytest.approx(gain)
    best = values["Last layer | LR schedule: None"] - values["No Cooling | LR schedule: Linear"]
    assert quoted["no-schedule-is-needed"] == pytest.approx(best)
    distributed = values["Last layer | LR schedule: None"] - values["Distributed | LR schedule: None"]
    assert quoted["distributed-is-outperformed"] == pytest.approx(distributed)

"""Verdicts follow the records: the last ten epochs, what is lost, schedules and modes
that cannot be compared.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from softmax_temperature.papers.cooling.records import Records
from softmax_temperature.papers.cooling.selection import SCHEDULES

from softmax_temperature.papers.cooling.claims import CLAIMS
from softmax_temperature.papers.shared.claims import (
    CONTRADICTED,
    HOLDS,
    INCONCLUSIVE,
    NOT_TESTED,
    judge_all,
)
from softmax_temperature.papers.shared.tables import published

SEEDS, EPOCHS = range(5), 50
ARMS = {"none": 0.0, "last_layer": 0.045, "periodic": 0.045, "distributed": 0.029}
"""What each gains without a schedule; half a point less than that with a piecewise one,
nothing with a smooth one.
"""
FACTORS = ("last_layer-0.5", "last_layer-0.75", "last_layer-1.25")
RUN = ["experiment", "schedule", "arm", "seed"]


@pytest.fixture
def records(records: Records) -> Records:
    """Of a study in which everything is as the paper says."""
    names = [
        ("vgg", schedule, arm, seed)
        for schedule in SCHEDULES
        for arm in ARMS
        for seed in SEEDS
    ]
    names += [("factors", "none", arm, seed) for arm in FACTORS for seed in SEEDS]
    names += [("crelu", "none", arm, seed) for arm in ARMS for seed in SEEDS]
    lost = [
        arm == "last_layer-1.25" or (net, arm) == ("crelu", "none")
        for net, _, arm, _ in names
    ]
    segmentation = [
        {"arm": arm, "seed": seed, "mean_iou": 0.2 + gain + 0.001 * seed * (1 + gain)}
        | {"pixel_accuracy": 0.7 + gain + 0.002 * seed * gain}
        for arm, gain in (("none", 0.0), ("last_layer", 0.01))
        for seed in SEEDS
    ]
    return replace(
        records,
        runs=pd.DataFrame(names, columns=RUN).assign(
            diverged=lost, stuck=False, test_accuracy=0.5
        ),
        history=pd.DataFrame([row for run in names for row in _history(*run)]),
        temperatures=pd.DataFrame(
            [row for run in names if run[2] != "none" for row in _temperatures(*run)]
        ),
        segmentation=pd.DataFrame(segmentation).assign(
            epoch=1, dataset="ade20k", classes=150
        ),
        cost=records.cost.assign(share=[0.0040, 0.0041, 0.0042]),
    )


def _history(*run: Any) -> list[dict[str, Any]]:
    _, schedule, arm, seed = run
    share = {"none": 1.0, "piecewise": 0.4}.get(schedule, 0.0)
    gain = 0.04 if arm in FACTORS else ARMS[arm] * share
    jitter = 0.0005 * ((seed * (3 + len(arm))) % 5)
    first = (0.747 if schedule == "none" else 0.78) + jitter
    row = {
        **dict(zip(RUN, run, strict=True)),
        "split": "test",
        "ece": (0.3 if arm == "none" else 0.05) + jitter,
    }
    # The last epoch alone says the opposite of the last ten.
    return [
        row | {"epoch": epoch, "accuracy": first + gain * (epoch < EPOCHS)}
        for epoch in range(1, EPOCHS + 1)
    ]


def _temperatures(*run: Any) -> list[dict[str, Any]]:
    applied = (1.5 if run[2] == "periodic" else 1.2) + 0.01 * run[3]
    row = {**dict(zip(RUN, run, strict=True)), "applied": applied, "at_bound": False}
    return [
        row | {"cooling": epoch, "epoch": epoch, "total": applied**epoch}
        for epoch in range(1, EPOCHS + 1)
    ]


def judged(records: Records, *names: str) -> dict[str, dict[str, Any]]:
    claims = [claim for claim in CLAIMS if claim.id in names or not names]
    return {
        row["id"]: row for row in judge_all("cooling", claims, records, profile="study")
    }


def shifted(records: Records, by: float, **where: Any) -> Records:
    history = records.history.copy()
    chosen = np.logical_and.reduce(
        [history[name] == value for name, value in where.items()]
    )
    history.loc[chosen, "accuracy"] += by
    return replace(records, history=history)


def test_records_like_the_papers_hold(records: Records) -> None:
    rows = judged(records)
    assert len(rows) == len(CLAIMS)
    assert {name: row["verdict"] for name, row in rows.items()} == dict.fromkeys(
        rows, HOLDS
    )


def test_accuracy_is_the_mean_of_the_last_ten_epochs_and_the_last_stands_beside(
    records: Records,
) -> None:
    row = judged(records, "last-layer-helps-without-schedule")[
        "last-layer-helps-without-schedule"
    ]
    assert row["value"] == pytest.approx(0.9 * 0.045, abs=0.001), (
        "nine of ten epochs have the gain"
    )
    assert row["note"] == "last epoch alone +0.000"


@pytest.mark.parametrize(
    ("name", "by", "where"),
    [
        (
            "periodic-helps-with-piecewise-schedule",
            -0.1,
            {"arm": "periodic", "schedule": "piecewise"},
        ),
        ("distributed-gains-nothing-with-smooth-schedule", 0.1, {"arm": "distributed"}),
        (
            "distributed-gains-nothing-with-smooth-schedule",
            -0.1,
            {"arm": "distributed"},
        ),
        (
            "last-layer-is-on-par-on-all-schedules",
            -0.05,
            {"arm": "last_layer", "schedule": "linear"},
        ),
        ("no-schedule-is-needed", 0.1, {"arm": "none", "schedule": "linear"}),
        ("last-layer-is-best", 0.1, {"arm": "periodic"}),
        (
            "distributed-is-outperformed",
            0.1,
            {"arm": "distributed", "schedule": "none"},
        ),
        ("factors-up-to-1-help", -0.1, {"arm": "last_layer-0.5"}),
    ],
)
def test_each_is_contradicted_when_its_records_are_turned(
    records: Records, name: str, by: float, where: dict[str, str]
) -> None:
    assert judged(shifted(records, by, **where), name)[name]["verdict"] == CONTRADICTED


def test_a_lost_training_counts_as_guessing_and_is_named(records: Records) -> None:
    name = "last-layer-helps-without-schedule"
    lost = records.runs["diverged"] | (
        (records.runs["arm"] == "last_layer") & (records.runs["experiment"] == "vgg")
    )
    row = judged(replace(records, runs=records.runs.assign(diverged=lost)), name)[name]
    assert row["verdict"] == CONTRADICTED
    assert "counted as guessing: Last layer 5 of 5 diverged" in row["note"]


def test_redistribution_below_temperature_1_is_not_comparable(records: Records) -> None:
    cold = replace(records, arms=records.arms.assign(max_temperature=0.1))
    rows = judged(cold)
    assert rows["periodic-helps-without-schedule"]["verdict"] == NOT_TESTED
    assert rows["last-layer-helps-without-schedule"]["verdict"] == HOLDS


def test_schedules_that_were_not_trained_leave_all_schedules_open(
    records: Records,
) -> None:
    name = "distributed-is-on-par-on-all-schedules"
    row = judged(
        replace(records, runs=records.runs[records.runs["schedule"] != "linear"]), name
    )[name]
    assert row["verdict"] == INCONCLUSIVE
    assert "not judged: Linear: not trained" in row["note"]


def test_segmentation_of_other_data_is_shown_and_not_judged(records: Records) -> None:
    glyphs = replace(
        records, segmentation=records.segmentation.assign(dataset="glyphs")
    )
    row = judged(glyphs, "segmentation-iou")["segmentation-iou"]
    assert (row["verdict"], row["tasks"][0]["task"], row["tasks"][0]["n"]) == (
        NOT_TESTED,
        "glyphs",
        5,
    )


def test_quoted_numbers_are_the_printed_ones() -> None:
    rows = published("cooling", "Table 1")
    printed = dict(
        zip(
            rows["method"].str.replace(" | LR schedule: ", "/"),
            rows["value"].astype(float) / 100,
            strict=True,
        )
    )
    pairs = {"no-schedule-is-needed": ("Last layer/None", "No Cooling/Linear")}
    pairs |= {"distributed-is-outperformed": ("Last layer/None", "Distributed/None")}
    names = {
        "distributed": "Distributed",
        "periodic": "Periodically redistributed",
        "last-layer": "Last layer",
    }
    for slug, name in names.items():
        for where, schedule in (
            ("without-schedule", "None"),
            ("with-piecewise-schedule", "Piecewise Const"),
        ):
            pairs[f"{slug}-helps-{where}"] = (
                f"{name}/{schedule}",
                f"No Cooling/{schedule}",
            )
    quoted = {claim.id: claim.published for claim in CLAIMS if claim.id in pairs}
    assert quoted == {
        claim: pytest.approx(printed[one] - printed[other])
        for claim, (one, other) in pairs.items()
    }

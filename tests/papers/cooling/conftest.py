"""Small records whose tables and verdicts can be worked out by hand."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from softmax_temperature.papers.cooling.records import Records

SEEDS = (0, 1, 2)
EPOCHS = 6
MODES = ("none", "distributed", "periodic", "last_layer")
TABLE_1 = {  # Test accuracy of seed 0, in the order of MODES.
    "cosine": (0.786, 0.783, 0.786, 0.788),
    "exponential_fast": (0.770, 0.768, 0.770, 0.772),
    "exponential_slow": (0.777, 0.773, 0.775, 0.777),
    "linear": (0.787, 0.784, 0.786, 0.788),
    "none": (0.747, 0.776, 0.790, 0.795),
    "piecewise": (0.780, 0.785, 0.788, 0.790),
}


class Run(NamedTuple):
    experiment: str
    schedule: str
    arm: str
    seed: int


ACCURACY: dict[
    tuple[str, str, str], float | None
] = {  # Of seed 0; None where every seed diverges.
    **{
        ("vgg", schedule, mode): row[i]
        for schedule, row in TABLE_1.items()
        for i, mode in enumerate(MODES)
    },
    ("crelu", "none", "none"): None,
    ("crelu", "none", "distributed"): 0.797,
    ("crelu", "none", "periodic"): 0.842,
    ("crelu", "none", "last_layer"): 0.844,
    ("factors", "none", "last_layer-0.5"): 0.770,
    ("factors", "none", "last_layer-0.75"): 0.780,
    ("factors", "none", "last_layer-1.25"): None,
    ("digits", "none", "none"): 0.90,
    ("digits", "none", "last_layer"): 0.93,
    ("adam", "none", "none"): 0.70,
    ("adam", "none", "last_layer"): 0.72,
    ("each-batch", "none", "last_layer-each-batch"): 0.79,
    ("rate-0.001", "none", "none"): 0.60,
    ("rate-0.001", "none", "last_layer"): 0.65,
    ("rate-0.1", "none", "none"): None,
    ("rate-0.1", "none", "last_layer"): 0.75,
    ("rescaled", "none", "distributed-rescaled"): 0.781,
    ("focal", "none", "none-focal"): 0.74,
    ("focal", "none", "last_layer-focal"): 0.75,
}
APPLIED = (
    0.5,
    4.0,
    10.0,
    2.0,
    4.0,
    2.0,
)  # At each Cooling: products 0.5, 2, 20, 40, 160, 320.


def accuracy(run: Run) -> float | None:
    """Without Cooling 0.1 points more with each seed, with Cooling 0.2: differences
    grow by 0.1.
    """
    first = ACCURACY[run[:3]]
    return (
        None
        if first is None
        else first + (0.001 if run.arm.startswith("none") else 0.002) * run.seed
    )


@pytest.fixture
def records() -> Records:
    runs = [Run(*place, seed) for place in ACCURACY for seed in SEEDS]
    good = [run for run in runs if accuracy(run) is not None]
    cooled = [run for run in runs if not run.arm.startswith("none")]
    return Records(
        runs=_frame(runs, lambda run: [_run(accuracy(run))]),
        experiments=_experiments(),
        arms=_arms(),
        history=_frame(good, _history),
        temperatures=_frame(cooled, _temperatures),
        norms=_frame(good, _norms),
        segmentation=_segmentation(),
        theory_checks=pd.DataFrame(),
        cost=_cost(),
    )


@pytest.fixture(autouse=True)
def _in_the_project(project_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project_root)


def only(records: Records, **wanted: Any) -> Records:
    """The records cut down to some rows of every table, for instance to one experiment
    or seed.
    """
    return replace(
        records,
        **{
            name: table[_chosen(table, wanted)] for name, table in vars(records).items()
        },
    )


def lost(records: Records, how: str, **where: Any) -> Records:
    """The records with some trainings "diverged" or "stuck"."""
    runs = records.runs.copy()
    runs.loc[_chosen(runs, where), [how, "test_accuracy"]] = True, None
    return replace(records, runs=runs)


def _chosen(table: pd.DataFrame, wanted: dict[str, Any]) -> pd.Series:
    known = {name: value for name, value in wanted.items() if name in table}
    return (table[list(known)] == pd.Series(known, dtype=object)).all(axis="columns")


def _frame(
    runs: list[Run], rows: Callable[[Run], list[dict[str, Any]]]
) -> pd.DataFrame:
    return pd.DataFrame([{**run._asdict(), **row} for run in runs for row in rows(run)])


def _run(value: float | None) -> dict[str, Any]:
    return {"diverged": value is None, "stuck": False, "test_accuracy": value}


def _experiments() -> pd.DataFrame:
    rows: list[tuple[Any, ...]] = [
        (
            "vgg",
            "cifar10",
            "small-vgg",
            "table_1",
            None,
            "small VGG (6 conv + 2 dense), ReLU",
        ),
        (
            "crelu",
            "cifar10",
            "small-vgg-crelu",
            "table_2",
            None,
            "small VGG, CReLU, no LR schedule",
        ),
        ("factors", "cifar10", "small-vgg", "figure_1", None, None),
        ("digits", "digits", "tiny", "table_1", None, None),
        ("adam", "cifar10", "small-vgg", "ablation", "Adam", None),
        ("each-batch", "cifar10", "small-vgg", "ablation", "period of one batch", None),
        ("rate-0.001", "cifar10", "small-vgg", "ours", "learning rate 0.001", None),
        ("rate-0.1", "cifar10", "small-vgg", "ours", "learning rate 0.1", None),
        ("rescaled", "cifar10", "small-vgg", "ours", "momentum rescaled", None),
        ("focal", "cifar10", "small-vgg", "ours", "focal loss", None),
    ]
    table = pd.DataFrame(
        rows,
        columns=["experiment", "dataset", "network", "role", "change", "printed_model"],
    )
    activation = np.where(table["experiment"] == "crelu", "crelu", "relu")
    return table.assign(activation=activation, classes=10, train_images=49500)


def _arms() -> pd.DataFrame:
    names = [
        "none",
        "last_layer",
        "distributed",
        "periodic",
        "last_layer-0.5",
        "last_layer-0.75",
        "last_layer-1.25",
    ]
    names += [
        "last_layer-each-batch",
        "distributed-rescaled",
        "none-focal",
        "last_layer-focal",
    ]
    table = pd.DataFrame(
        {"arm": names, "mode": [name.partition("-")[0] for name in names]}
    )
    factor = [
        float(name.rpartition("-")[2]) if name[-1].isdigit() else 1.0 for name in names
    ]
    table = table.assign(
        factor=factor, period=["1" if "batch" in name else "epoch" for name in names]
    )
    table.loc[table["mode"] == "none", ["factor", "period"]] = None
    table["max_temperature"] = table["reset_temperature"] = table["mode"].map(
        {"periodic": 100.0}
    )
    return table.assign(
        loss=["focal" if "focal" in name else "cross_entropy" for name in names]
    )


def _history(run: Run) -> list[dict[str, Any]]:
    last = accuracy(run)
    assert last is not None
    return [
        {
            "epoch": epoch,
            "split": split,
            "accuracy": last - 0.05 * (EPOCHS - epoch) + better,
            "ece": 0.01 * epoch,
        }
        for split, better in (("train", 0.1), ("validation", 0.0), ("test", 0.0))
        for epoch in range(1, EPOCHS + 1)
    ]


def _temperatures(run: Run) -> list[dict[str, Any]]:
    """The arm of factor 0.75 heats half as fast in the fifth epoch: products 0.5, 2,
    20, 40, 80, 160.
    """
    rows, total = [], 1.0
    for number, applied in enumerate(APPLIED, start=1):
        factor = (
            applied / 2 if run.arm == "last_layer-0.75" and number == 5 else applied
        )
        total *= factor
        rows.append(
            {
                "cooling": number,
                "epoch": number,
                "applied": factor,
                "total": total,
                "at_bound": False,
            }
        )
    return rows


def _norms(run: Run) -> list[dict[str, Any]]:
    grown = [
        (2.0 if run.arm.startswith("none") else 1.0) ** epoch
        for epoch in range(1, EPOCHS + 1)
    ]
    return [
        {
            "epoch": epoch,
            "logit_norm": each,
            "weight_norm": 10 * each,
            "gradient_norm": 1 / each,
        }
        for epoch, each in enumerate(grown, start=1)
    ]


def _cost() -> pd.DataFrame:
    """On one device, distributed Cooling the most expensive."""
    rows = pd.DataFrame(
        {"mode": ["last_layer", "distributed", "periodic"], "seconds": [0.1, 0.3, 0.2]}
    )
    return rows.assign(
        device="cpu", epoch_seconds=20.0, size="small VGG", share=rows["seconds"] / 20
    )


def _segmentation() -> pd.DataFrame:
    rows = [
        ("none", 0, 0.400, 0.700),
        ("none", 1, 0.410, 0.710),
        ("last_layer", 0, 0.410, 0.710),
        ("last_layer", 1, 0.422, 0.720),
    ]
    last = pd.DataFrame(
        rows, columns=["arm", "seed", "mean_iou", "pixel_accuracy"]
    ).assign(epoch=2)
    first = last.assign(epoch=1, mean_iou=0.1, pixel_accuracy=0.2)
    return pd.concat([first, last], ignore_index=True).assign(
        dataset="camvid", classes=11
    )

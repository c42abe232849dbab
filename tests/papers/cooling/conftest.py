"""Small records whose tables and verdicts can be worked out by hand."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

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


ACCURACY: dict[tuple[str, str, str], float | None] = {  # Of seed 0; None where every seed diverges.
    **{("vgg", schedule, mode): row[i] for schedule, row in TABLE_1.items() for i, mode in enumerate(MODES)},
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
ECE = {"none": 0.2, "distributed": 0.06, "periodic": 0.05, "last_layer": 0.04}
APPLIED = (0.5, 4.0, 10.0, 2.0, 4.0, 2.0)  # At each Cooling: products 0.5, 2, 20, 40, 160, 320.


def accuracy(run: Run) -> float | None:
    """Without Cooling 0.1 points more with each seed, with Cooling 0.2: differences grow by 0.1."""
    first = ACCURACY[run[:3]]
    return None if first is None else first + (0.001 if run.arm.startswith("none") else 0.002) * run.seed


@pytest.fixture
def records() -> Records:
    runs = [Run(*place, seed) for place in ACCURACY for seed in SEEDS]
    good = [run for run in runs if accuracy(run) is not None]
    cooled = [run for run in runs if not run.arm.startswith("none")]
    return Records(
        runs=pd.DataFrame([_run(run) for run in runs]),
        experiments=_experiments(),
        arms=_arms(),
        history=_frame(good, _history),
        temperatures=_frame(cooled, _temperatures),
        norms=_frame(good, _norms),
        segmentation=_segmentation(),
        theory_checks=pd.DataFrame([{"statement": "Lemma 3.3", "network": "VGG", "predicted": 0.1, "measured": 0.1}]),
        cost=_cost(),
    )


@pytest.fixture
def only() -> Callable[..., Records]:
    """Cuts records down to some rows of every table, for instance to one experiment or seed."""

    def cut(records: Records, **wanted: Any) -> Records:
        return replace(records, **{name: _rows(table, wanted) for name, table in vars(records).items()})

    return cut


@pytest.fixture
def changed() -> Callable[..., Records]:
    """Adds a number to a column of some rows of one table, or sets a truth value to it.

    Runs diverge, or do not, if no column is named, and get stuck with that column.
    """

    def change(records: Records, name: str, column: str | None, by: float, **where: Any) -> Records:
        table: pd.DataFrame = getattr(records, name).copy()
        rows = _rows(table, where).index
        assert len(rows), "something must change"
        if column in (None, "stuck"):
            table.loc[rows, column or "diverged"], table.loc[rows, "test_accuracy"] = bool(by), None if by else 0.7
        elif table[column].dtype == bool:
            table.loc[rows, column] = bool(by)
        else:
            table.loc[rows, column] += by
        return replace(records, **{name: table})

    return change


@pytest.fixture
def pixels(tmp_path: Path) -> Path:
    """Where a test may put the pixels of the panel."""
    return tmp_path / "segmentation.safetensors"


def _rows(table: pd.DataFrame, wanted: dict[str, Any]) -> pd.DataFrame:
    for column, value in wanted.items():
        if column in table:
            table = table[table[column].isin(value if isinstance(value, tuple) else (value,))]
    return table


def _frame(runs: list[Run], rows: Callable[[Run], list[dict[str, Any]]]) -> pd.DataFrame:
    return pd.DataFrame([{**run._asdict(), **row} for run in runs for row in rows(run)])


def _run(run: Run) -> dict[str, Any]:
    value = accuracy(run)
    lost = value is None
    ece = None if lost else ECE.get(run.arm, 0.1)
    about = {"diverged": lost, "stuck": False, "epochs_done": 2 if lost else EPOCHS, "test_nll": None if lost else 0.7}
    return {
        **run._asdict(),
        **about,
        "test_accuracy": value,
        "train_accuracy": value,
        "test_ece": ece,
        "temperature": 1.0,
    }


def _experiments() -> pd.DataFrame:
    vgg = {"dataset": "cifar10", "network": "small-vgg", "activation": "relu", "change": None, "printed_model": None}
    printed = {"printed_model": "small VGG (6 conv + 2 dense), ReLU"}
    crelu = {"network": "small-vgg-crelu", "activation": "crelu", "printed_model": "small VGG, CReLU, no LR schedule"}
    rows: list[dict[str, Any]] = [
        {"experiment": "vgg", **vgg, **printed, "role": "table_1"},
        {"experiment": "crelu", **vgg, **crelu, "role": "table_2"},
        {"experiment": "factors", **vgg, "role": "figure_1"},
        {"experiment": "digits", **vgg, "dataset": "digits", "network": "tiny", "role": "table_1"},
        {"experiment": "adam", **vgg, "role": "ablation", "change": "Adam"},
        {"experiment": "each-batch", **vgg, "role": "ablation", "change": "period of one batch"},
        {"experiment": "rate-0.001", **vgg, "role": "ours", "change": "learning rate 0.001"},
        {"experiment": "rate-0.1", **vgg, "role": "ours", "change": "learning rate 0.1"},
        {"experiment": "rescaled", **vgg, "role": "ours", "change": "momentum rescaled"},
        {"experiment": "focal", **vgg, "role": "ours", "change": "focal loss"},
    ]
    sizes = {"classes": 10, "parameters": 550570, "train_images": 49500, "validation_images": 100, "test_images": 1000}
    return pd.DataFrame([{**row, **sizes, "epochs": EPOCHS, "planned_epochs": 50} for row in rows])


def _arms() -> pd.DataFrame:
    cooled = {"factor": 1.0, "period": "epoch", "loss": "cross_entropy"}
    last, bounds = {"mode": "last_layer", **cooled}, {"max_temperature": 100.0, "reset_temperature": 100.0}
    rows: list[dict[str, Any]] = [
        {"arm": "none", "mode": "none", "loss": "cross_entropy"},
        {"arm": "last_layer", **last},
        {"arm": "distributed", "mode": "distributed", **cooled},
        {"arm": "periodic", "mode": "periodic", **cooled, **bounds},
        {"arm": "last_layer-0.5", **last, "factor": 0.5},
        {"arm": "last_layer-0.75", **last, "factor": 0.75},
        {"arm": "last_layer-1.25", **last, "factor": 1.25},
        {"arm": "last_layer-each-batch", **last, "period": "1"},
        {"arm": "distributed-rescaled", "mode": "distributed", **cooled},
        {"arm": "none-focal", "mode": "none", "loss": "focal"},
        {"arm": "last_layer-focal", **last, "loss": "focal"},
    ]
    return pd.DataFrame(rows)


def _history(run: Run) -> list[dict[str, Any]]:
    last = accuracy(run)
    assert last is not None
    return [
        {"epoch": epoch, "split": split, "accuracy": last - 0.05 * (EPOCHS - epoch) + better, "ece": 0.01 * epoch}
        for split, better in (("train", 0.1), ("validation", 0.0), ("test", 0.0))
        for epoch in range(1, EPOCHS + 1)
    ]


def _temperatures(run: Run) -> list[dict[str, Any]]:
    """The arm of factor 0.75 heats half as fast in the fifth epoch: products 0.5, 2, 20, 40, 80, 160."""
    rows, total = [], 1.0
    for number, applied in enumerate(APPLIED, start=1):
        factor = applied / 2 if run.arm == "last_layer-0.75" and number == 5 else applied
        total *= factor
        rows.append({"cooling": number, "epoch": number, "applied": factor, "total": total, "at_bound": False})
    return rows


def _norms(run: Run) -> list[dict[str, Any]]:
    grows = 2.0 if run.arm.startswith("none") else 1.0
    return [
        {
            "epoch": epoch,
            "logit_norm": grows**epoch,
            "weight_norm": 10 * grows**epoch,
            "gradient_norm": 1 / grows**epoch,
        }
        for epoch in range(1, EPOCHS + 1)
    ]


def _cost() -> pd.DataFrame:
    """On one device, distributed Cooling the dearest."""
    common = {"device": "cpu", "epoch_seconds": 20.0, "rounds": 3, "size": "small VGG"}
    seconds = {"last_layer": 0.1, "distributed": 0.3, "periodic": 0.2}
    return pd.DataFrame(
        [{**common, "mode": mode, "seconds": each, "share": each / 20} for mode, each in seconds.items()]
    )


def _segmentation() -> pd.DataFrame:
    final = {"none": (0.400, 0.700), "last_layer": (0.410, 0.710)}
    rows = [
        {"arm": arm, "seed": seed, "epoch": epoch, "mean_iou": iou, "pixel_accuracy": accuracy, "temperature": 1.0}
        for arm, (last_iou, last_accuracy) in final.items()
        for seed in (0, 1)
        for epoch, iou, accuracy in (
            (1, 0.1, 0.2),
            (2, last_iou + 0.01 * seed + (0.002 * seed if arm != "none" else 0), last_accuracy + 0.01 * seed),
        )
    ]
    return pd.DataFrame(rows).assign(dataset="camvid", classes=11)

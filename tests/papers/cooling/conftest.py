"""Small studies, with tables and verdicts worked out by hand."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from softmax_temperature.papers.cooling.study import tidied
from softmax_temperature.papers.shared.factors import ALL, Where
from softmax_temperature.papers.shared.runs import Runs, long_form
from tests.papers.unchanged import unchanged

SEEDS = (0, 1, 2)
EPOCHS = 6
MODES = ("none", "distributed", "periodic", "last_layer")
TABLE_1 = {  # Seed 0's test accuracy by schedule, in the order of MODES.
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


Rows = list[dict[str, Any]]

ACCURACY: dict[tuple[str, str, str], float | None] = {
    # The accuracy of seed 0, or None if every seed diverges.
    **{
        ("vgg", schedule, mode): row[place]
        for schedule, row in TABLE_1.items()
        for place, mode in enumerate(MODES)
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

UNCOOLED = {
    "mode": "none",
    "factor": np.nan,
    "max_temperature": np.nan,
    "reset_temperature": np.nan,
    "refit": np.nan,
    "period": np.nan,
    "optimizer_state": np.nan,
    "loss": "cross_entropy",
    "gamma": np.nan,
}
COOLED = {
    "factor": 1.0,
    "refit": "whole",
    "period": "epoch",
    "optimizer_state": "keep",
}
LAST_LAYER = UNCOOLED | COOLED | {"mode": "last_layer"}
DISTRIBUTED = LAST_LAYER | {"mode": "distributed"}
LIMITS = {"max_temperature": 100.0, "reset_temperature": 100.0}
FOCAL = {"loss": "focal", "gamma": "3"}
ARMS: dict[str, dict[str, Any]] = {
    "none": UNCOOLED,
    "last_layer": LAST_LAYER,
    "distributed": DISTRIBUTED,
    "periodic": LAST_LAYER | LIMITS | {"mode": "periodic"},
    "last_layer-0.5": LAST_LAYER | {"factor": 0.5},
    "last_layer-0.75": LAST_LAYER | {"factor": 0.75},
    "last_layer-1.25": LAST_LAYER | {"factor": 1.25},
    "last_layer-each-batch": LAST_LAYER | {"period": "1"},
    "distributed-rescaled": DISTRIBUTED | {"optimizer_state": "rescale"},
    "none-focal": UNCOOLED | FOCAL,
    "last_layer-focal": LAST_LAYER | FOCAL,
}
"""The factors of each arm, keyed by the arm's name in the profile."""

CLASSIFICATION = {
    "task": "classification",
    "dataset": "cifar10",
    "network": "small-vgg",
    "activation": "relu",
    "printed_model": None,
    "warmup": 0.0,
    "optimizer": "sgd",
    "learning_rate": 0.01,
    "weight_decay": 0.0,
    "crop_padding": 0,
    "flip": False,
    "classes": 10,
    "parameters": 1000,
    "train_images": 49500,
    "validation_images": 500,
    "test_images": 10000,
    "epochs": EPOCHS,
    "planned_epochs": EPOCHS,
}
CRELU = {"network": "small-vgg-crelu", "activation": "crelu"}
VGG_MODEL = "small VGG (6 conv + 2 dense), ReLU"
CRELU_MODEL = "small VGG, CReLU, no LR schedule"
EXPERIMENTS: dict[str, dict[str, Any]] = {
    "vgg": {"role": "table_1", "printed_model": VGG_MODEL},
    "crelu": CRELU | {"role": "table_2", "printed_model": CRELU_MODEL},
    "factors": {"role": "figure_1"},
    "digits": {"role": "table_1", "dataset": "digits", "network": "tiny"},
    "adam": {"role": "ablation", "optimizer": "adam"},
    "warm-up": {"role": "ablation", "warmup": 2.0},
    "decay": {"role": "ablation", "weight_decay": 0.0005},
    "augmented": {"role": "ablation", "crop_padding": 4, "flip": True},
    "each-batch": {"role": "ablation"},
    "rate-0.001": {"role": "ours", "learning_rate": 0.001},
    "rate-0.1": {"role": "ours", "learning_rate": 0.1},
    "rescaled": {"role": "ours"},
    "focal": {"role": "ours"},
}
SEGMENTATION = {
    "task": "segmentation",
    "dataset": "camvid",
    "network": "u-net",
    "experiment": "segmentation",
    "role": "section_4_4",
    "schedule": "none",
    "classes": 11,
    "train_images": None,
}
SCORES = {  # Mean IoU and pixel accuracy of seeds 0 and 1.
    "none": ((0.400, 0.700), (0.410, 0.710)),
    "last_layer": ((0.410, 0.710), (0.422, 0.720)),
}
APPLIED = (0.5, 4.0, 10.0, 2.0, 4.0, 2.0)
"""Temperatures of the Cooling steps; their products are 0.5, 2, 20, 40, 160, 320."""
COST = pd.DataFrame(
    {
        "device": "cpu",
        "mode": ["last_layer", "distributed", "periodic"],
        "seconds": [0.1, 0.3, 0.2],
        "epoch_seconds": 20.0,
        "share": [0.005, 0.015, 0.01],
        "size": "small VGG",
    }
)
"""Times on one device; distributed Cooling is the most expensive."""


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    with unchanged(_runs()) as made:
        yield made


def _runs() -> Runs:
    names = [Run(*place, seed) for place in ACCURACY for seed in SEEDS]
    lost = [run for run in names if accuracy(run) is None]
    return study_of(names, lost, values, segmentation())


@pytest.fixture(autouse=True)
def _in_the_project(project_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project_root)


def study_of(
    names: Iterable[Run],
    lost: Iterable[Run],
    values_of: Callable[[Run], Rows],
    segmented: Iterable[tuple[dict[str, Any], Rows]],
    *,
    cost: pd.DataFrame = COST,
) -> Runs:
    """A study made of runs with the given values.

    Args:
        names: Names of the classification runs.
        lost: The runs that diverged.
        values_of: Function that returns a run's values by split and epoch.
        segmented: Factors and values of the segmentation runs.
        cost: Table of measured times.
    """
    diverged = set(lost)
    made = [(factors_of(run, run in diverged), values_of(run)) for run in names]
    made += segmented
    rows = [
        {"run": number, "scaled": False, **row}
        for number, (_, measured) in enumerate(made)
        for row in measured
    ]
    table = pd.DataFrame([factors for factors, _ in made]).rename_axis(index="run")
    tables = {"theory_checks": pd.DataFrame(), "cost": cost}
    return tidied(Runs(table, long_form(pd.DataFrame(rows)), tables))


def factors_of(run: Run, diverged: bool) -> dict[str, Any]:
    """The factors of a classification run, as a row."""
    return {
        "study": "made",
        **CLASSIFICATION,
        **EXPERIMENTS[run.experiment],
        **ARMS[run.arm],
        **run._asdict(),
        "overflowed": diverged,
        "epochs_done": EPOCHS,
        "cell": f"cooling/training/{'/'.join(map(str, run))}",
    }


def accuracy(run: Run) -> float | None:
    """Accuracy of a run after its last epoch; None if the run diverges.

    Each further seed adds 0.1 points without Cooling and 0.2 points with it, so
    Cooling's gain grows by 0.1 points per seed.
    """
    first = ACCURACY[run[:3]]
    if first is None:
        return None
    step = 0.001 if run.arm.startswith("none") else 0.002
    return first + step * run.seed


def values(run: Run) -> Rows:
    """Values of a run whose accuracy rises by 5 points in each epoch."""
    last = accuracy(run)
    rows = [] if last is None else history(run, last)
    if not run.arm.startswith("none"):
        rows += temperatures(run)
    return merged(rows)


def history(run: Run, last: float) -> Rows:
    """Each epoch's accuracy (10 points higher on training data), ECE and norms."""
    growth = 2.0 if run.arm.startswith("none") else 1.0
    rows: Rows = []
    for epoch in range(1, EPOCHS + 1):
        reached = last - 0.05 * (EPOCHS - epoch)
        norm = growth**epoch
        train = {"accuracy": reached + 0.1, "all_weights_norm": 10 * norm}
        rows += [
            {"split": "train", "epoch": epoch, "gradient_norm": 1 / norm, **train},
            {
                "split": "validation",
                "epoch": epoch,
                "accuracy": reached,
                "logit_norm": norm,
            },
            {
                "split": "test",
                "epoch": epoch,
                "accuracy": reached,
                "ece": 0.01 * epoch,
            },
        ]
    return rows


def temperatures(run: Run, applied: Iterable[float] = APPLIED) -> Rows:
    """Values recorded for one Cooling step per epoch.

    In epoch 5, the arm with factor 0.75 applies half the temperature that the other
    arms apply, so its products are 0.5, 2, 20, 40, 80 and 160.
    """
    rows: Rows = []
    total = 1.0
    for epoch, correction in enumerate(applied, start=1):
        is_slow = run.arm == "last_layer-0.75" and epoch == 5
        factor = correction / 2 if is_slow else correction
        total *= factor
        rows.append(cooling(epoch, factor, total))
    return rows


def cooling(epoch: int, applied: float, total: float) -> dict[str, Any]:
    """Values recorded for one Cooling step."""
    return {
        "split": "validation",
        "epoch": epoch,
        "coolings": epoch,
        "applied_temperature": applied,
        "temperature": total,
        "at_bound": 0.0,
    }


def segmentation(
    scores: Mapping[str, tuple[tuple[float, float], ...]] = SCORES,
) -> list[tuple[dict[str, Any], Rows]]:
    """Segmentation runs of two epochs, whose scores are low after the first epoch."""
    made = []
    for arm, by_seed in scores.items():
        for seed, (mean_iou, pixel_accuracy) in enumerate(by_seed):
            row = {
                **factors_of(Run("vgg", "none", arm, seed), diverged=False),
                **SEGMENTATION,
                "epochs_done": 2,
                "cell": f"cooling/segmentation/{arm}/{seed}",
            }
            row["printed_model"] = None
            measured = [
                {"split": "test", "epoch": 1, "mean_iou": 0.1, "pixel_accuracy": 0.2},
                {
                    "split": "test",
                    "epoch": 2,
                    "mean_iou": mean_iou,
                    "pixel_accuracy": pixel_accuracy,
                },
            ]
            made.append((row, measured))
    return made


def merged(rows: Rows) -> Rows:
    """The rows, merged into one row per split and epoch."""
    by_place: dict[tuple[str, int], dict[str, Any]] = {}
    for row in rows:
        by_place.setdefault((row["split"], row["epoch"]), {}).update(row)
    return list(by_place.values())


def changed(runs: Runs, which: Where = ALL, **columns: Any) -> Runs:
    """The study, with columns replaced in the rows of the runs that `which` selects."""
    table = runs.table.copy()
    chosen = which.mask(table)
    for name, value in columns.items():
        table[name] = table[name].astype(object).mask(chosen, value)
    return tidied(replace(runs, table=table.infer_objects()))


def measured_anew(
    runs: Runs,
    metric: str,
    change: Callable[[pd.DataFrame], Any],
    which: Where = ALL,
) -> Runs:
    """The study, with the values of a metric changed for the runs that `which` selects.

    `change` gets all measured rows and returns the new values.
    """
    rows = runs.measurements
    chosen = rows["run"].isin(runs.select(which).index) & (rows["metric"] == metric)
    values = rows["value"].where(~chosen, rows.assign(value=change(rows))["value"])
    return tidied(replace(runs, measurements=rows.assign(value=values)))


def stuck(runs: Runs, which: Where) -> Runs:
    """The study, with accuracy at chance level in the runs that `which` selects."""
    return measured_anew(runs, "accuracy", lambda _: 0.1, which)

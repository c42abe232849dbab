"""Runs of sweeps for which the verdicts are known."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from softmax_temperature.papers.shared.runs import Runs, long_form
from softmax_temperature.papers.temperature_check.study import tidied
from tests.papers.unchanged import unchanged

TEMPERATURES = (0.01, 0.1, 1.0, 10.0)
RATES = (0.01, 0.1, 1.0)
SEEDS = range(4)
COURSES = ["run", "moment", "time", "loss", "change", "drift"]
COLUMNS = (
    "task",
    "sweep",
    "dataset",
    "network",
    "architecture",
    "batch_norm",
    "learning_rate",
    "inverse_temperature",
    "mode",
    "start",
    "start_norm",
    "correlation",
    "dynamics",
    "seed",
    "role",
    "epochs",
    "classes",
    "smooth",
    "unit_time",
    "logit_time",
    "drift_rate",
    "diverged",
    "epochs_done",
    "initial_logit_norm",
    "train_samples",
    "cell",
)

Row = dict[str, Any]


def training(
    sweep: str,
    inverse_temperature: float,
    rate: float,
    seed: int,
    accuracy: float,
    **others: Any,
) -> Row:
    """The row of a training run, with its factors, outcomes and metrics.

    The first word of the sweep's name is the kind of network. A little noise, which
    depends only on the seed, is added to the accuracy.
    """
    accuracy += 0.001 * (seed - 1.5)
    kind = sweep.partition("-")[0]
    return {
        "task": "training",
        "sweep": sweep,
        "dataset": "cifar10",
        "network": kind,
        "architecture": kind,
        "batch_norm": False,
        "learning_rate": rate,
        "inverse_temperature": inverse_temperature,
        "mode": "none",
        "start": "own",
        "seed": seed,
        "role": "tuning",
        "classes": 10,
        "diverged": False,
        "epochs": 5.0,
        "epochs_done": 5,
        "initial_logit_norm": 2.0,
        "train_samples": 100,
        "validation": {"accuracy": accuracy},
        "test": {
            "accuracy": accuracy,
            "nll": 2 - accuracy,
            "ece": 0.05,
            "confidence": 0.9,
        },
        "scaled": {
            "nll": 1.5 - accuracy,
            "ece": 0.01,
            "temperature": 2.0,
            "at_bound": 0.0,
        },
        **others,
    }


def confirmed(row: Row, seed: int) -> Row:
    """The same training run with a fresh seed, as a confirmation run."""
    return {**row, "role": "confirmation", "seed": seed}


def lost(row: Row) -> Row:
    """The same training run, but it diverged and therefore has no metrics."""
    return {**row, "diverged": True, "validation": {}, "test": {}, "scaled": {}}


def sweep(
    name: str,
    accuracies: Sequence[float],
    *,
    best_rate: float = 0.1,
    noise: float = 0.0,
    seed: int = 0,
    **others: Any,
) -> list[Row]:
    """Training runs at four inverse temperatures; one learning rate is the best.

    The noise falls as the inverse temperature rises.
    """
    generator = np.random.default_rng(seed)
    rows = []
    for place, accuracy in zip(TEMPERATURES, accuracies, strict=True):
        scale = noise / (1 + np.log10(100 * place))
        for rate in RATES:
            shifts = generator.normal(size=len(SEEDS)) * scale
            mean = accuracy - 0.03 * (rate != best_rate)
            rows += [
                training(name, place, rate, number, mean + shift, **others)
                for number, shift in enumerate(shifts)
            ]
    return rows


def cell_of(row: Row) -> str:
    """The name of the cell of a training run or of a gradient flow."""
    folder = "confirmation" if row.get("role") == "confirmation" else row["task"]
    place = f"{row.get('sweep', row['network'])}/{row['inverse_temperature']:g}"
    return f"temperature_check/{folder}/{place}/{row['start']}/{row['seed']}"


def make_runs(*groups: list[Row]) -> Runs:
    """A study of training runs and of gradient flows.

    A row has the columns of `COLUMNS`. Its entries "train", "validation", "test" and
    "scaled" are metrics; those in "scaled" are for test data after temperature scaling.
    Its entry "course" lists the observations along a gradient flow.
    """
    table = []
    values = []
    courses = []
    for number, row in enumerate(row for group in groups for row in group):
        table.append({"cell": cell_of(row), **row})
        at = {"run": number, "epoch": row["epochs_done"], "scaled": False}
        values += [
            {**at, "split": split, **row.get(split, {})}
            for split in ("validation", "test", "train")
        ]
        values.append({**at, "split": "test", "scaled": True, **row.get("scaled", {})})
        courses += [{"run": number, **moment} for moment in row.get("course", [])]
    runs = Runs(
        pd.DataFrame(table, columns=COLUMNS).rename_axis(index="run"),
        long_form(pd.DataFrame(values)),
        {"courses": pd.DataFrame(courses, columns=COURSES)},
    )
    return tidied(runs)


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    with unchanged(_runs()) as made:
        yield made


def _runs() -> Runs:
    """Sweeps of two architectures: "wrn" is best at 0.1, "gru" at 1.

    There are also "wrn" pairs with three logit norms, and a network with Cooling.
    """
    pairs = [
        training("wrn-pairs", 1.0, 0.1, seed, 0.75 - 0.01 * place, **start)
        for place, start in enumerate(
            (pair(1.0, norm=0.0), pair(0.9, norm=3.0), pair(0.0, norm=30.0))
        )
        for seed in SEEDS
    ]
    cooled = [
        {
            **training("wrn", 1.0, 0.1, seed, 0.76, mode="last_layer"),
            "validation": {"accuracy": 0.76, "temperature": 4.0},
        }
        for seed in SEEDS
    ]
    wrn = [described(row) for row in sweep("wrn", (0.70, 0.80, 0.75, 0.60))]
    return make_runs(wrn, sweep("gru", (0.50, 0.60, 0.85, 0.70)), pairs, cooled)


def pair(correlation: float, *, norm: float) -> Row:
    """The columns in which a run that starts as a pair differs from other runs."""
    return {
        "start": "pair",
        "correlation": correlation,
        "initial_logit_norm": norm,
    }


def described(row: Row) -> Row:
    """The run, with the heuristic's prediction if the inverse temperature is 1.

    The prediction is 20 at the best learning rate, and 90 at the other rates.
    """
    if row["inverse_temperature"] != 1:
        return row
    predicted = 20 if row["learning_rate"] == 0.1 else 90
    return {**row, "train": {"heuristic_inverse_temperature": predicted}}

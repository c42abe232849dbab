"""Records of sweeps whose answers are known."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from softmax_temperature.papers.temperature_check.records import Records

TEMPERATURES = (0.01, 0.1, 1.0, 10.0)
RATES = (0.1, 1.0)
SEEDS = range(4)


def run(
    sweep: str, inverse_temperature: float, rate: float, seed: int, accuracy: float, **others: Any
) -> dict[str, Any]:
    """A training; a little noise that depends on the seed alone."""
    noise = 0.001 * (seed - 1.5)
    row = {
        "sweep": sweep,
        "inverse_temperature": inverse_temperature,
        "learning_rate": rate,
        "start": "plain",
        "seed": seed,
        "correlation": np.nan,
        "diverged": False,
        "epochs_done": 5,
        "initial_logit_norm": 2.0,
        "validation_accuracy": accuracy + noise,
        "test_accuracy": accuracy + noise,
        "test_nll": 2.0 - accuracy + noise,
        "test_ece": 0.05,
        "confidence": 0.9,
        "temperature": 2.0,
        "at_bound": False,
        "scaled_nll": 1.5 - accuracy + noise,
        "scaled_ece": 0.01,
        "cooled_temperature": np.nan,
    }
    return row | others


def sweep_rows(sweep: str, accuracies: dict[float, float]) -> list[dict[str, Any]]:
    """Trainings of a sweep; the second learning rate is always the better one, by three points."""
    return [
        run(sweep, inverse_temperature, rate, seed, accuracy - (0.03 if rate == RATES[0] else 0.0))
        for inverse_temperature, accuracy in accuracies.items()
        for rate in RATES
        for seed in SEEDS
    ]


def facts(sweep: str, architecture: str) -> dict[str, Any]:
    row = {"sweep": sweep, "dataset": "digits", "network": sweep, "architecture": architecture, "classes": 10}
    row |= {"parameters": 1000, "epochs": 5, "train_samples": 100, "validation_samples": 50}
    return row | {"test_samples": 200}


@pytest.fixture
def make_records() -> Callable[..., Records]:
    def make(rows: list[dict[str, Any]], heuristic: pd.DataFrame | None = None) -> Records:
        runs = pd.DataFrame(rows)
        names = list(dict.fromkeys(runs["sweep"]))
        sweeps = pd.DataFrame([facts(name, name.split("-")[0].upper()) for name in names])
        empty = pd.DataFrame(columns=["sweep", "inverse_temperature", "learning_rate", "start", "seed", "predicted"])
        return Records(
            runs, sweeps, pd.DataFrame(), empty if heuristic is None else heuristic, pd.DataFrame(), pd.DataFrame()
        )

    return make


@pytest.fixture
def records(make_records: Callable[..., Records]) -> Records:
    """Two architectures: "wrn" is best at 0.1, "gru" at 1; pairs of "wrn" with three logit norms; one cooled."""
    rows = sweep_rows("wrn", {0.01: 0.70, 0.1: 0.80, 1.0: 0.75, 10.0: 0.60})
    rows += sweep_rows("gru", {0.01: 0.50, 0.1: 0.60, 1.0: 0.85, 10.0: 0.70})
    rows += [
        run(
            "wrn-pairs",
            1.0,
            1.0,
            seed,
            0.75 - 0.01 * place,
            start=f"pair-{c:g}",
            correlation=c,
            initial_logit_norm=norm,
        )
        for place, (c, norm) in enumerate([(1.0, 0.0), (0.9, 3.0), (0.0, 30.0)])
        for seed in SEEDS
    ]
    rows += [run("wrn", 1.0, 1.0, seed, 0.76, start="cooled", cooled_temperature=4.0) for seed in SEEDS]
    heuristic = pd.DataFrame(
        [
            {"sweep": "wrn", "inverse_temperature": 1.0, "learning_rate": rate, "start": "plain", "seed": seed}
            | {"predicted": 20.0 if rate == RATES[1] else 90.0, "low": 5.0, "high": 60.0, "inside": True}
            for rate in RATES
            for seed in SEEDS
        ]
    )
    return make_records(rows, heuristic)

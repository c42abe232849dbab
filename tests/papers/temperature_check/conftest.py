"""Records of sweeps whose answers are known."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from softmax_temperature.papers.temperature_check.records import Records

TEMPERATURES, RATES, SEEDS = (0.01, 0.1, 1.0, 10.0), (0.01, 0.1, 1.0), range(4)


def run(
    sweep: str,
    inverse_temperature: float,
    rate: float,
    seed: int,
    accuracy: float,
    **others: Any,
) -> Any:
    """A training; a little noise that depends on the seed alone."""
    accuracy += 0.001 * (seed - 1.5)
    row = {
        "sweep": sweep,
        "inverse_temperature": inverse_temperature,
        "learning_rate": rate,
        "start": "plain",
    }
    row |= {
        "seed": seed,
        "correlation": np.nan,
        "diverged": False,
        "epochs_done": 5,
        "initial_logit_norm": 2.0,
    }
    row |= {
        "validation_accuracy": accuracy,
        "test_accuracy": accuracy,
        "test_nll": 2 - accuracy,
        "test_ece": 0.05,
    }
    row |= {
        "confidence": 0.9,
        "temperature": 2.0,
        "at_bound": False,
        "scaled_nll": 1.5 - accuracy,
    }
    return row | {"scaled_ece": 0.01, "cooled_temperature": np.nan} | others


def sweep(
    name: str,
    accuracies: Sequence[float],
    *,
    best_rate: float = 0.1,
    noise: float = 0.0,
    seed: int = 0,
    **others: Any,
) -> list[dict[str, Any]]:
    """Trainings whose best learning rate is given, and whose noise falls with the
    inverse temperature.
    """
    generator = np.random.default_rng(seed)
    return [
        run(
            name,
            place,
            rate,
            number,
            accuracy - 0.03 * (rate != best_rate) + each,
            **others,
        )
        for place, accuracy in zip(TEMPERATURES, accuracies, strict=True)
        for rate in RATES
        for number, each in enumerate(
            generator.normal(size=len(SEEDS)) * noise / (1 + np.log10(100 * place))
        )
    ]


def make_records(
    *rows: list[dict[str, Any]], dataset: str = "digits", heuristic: Any = None
) -> Records:
    """Records of trainings; the first word of a sweep's name is its architecture."""
    runs = pd.DataFrame([row for some in rows for row in some])
    facts = {
        "dataset": dataset,
        "network": "net",
        "classes": 10,
        "parameters": 1000,
        "epochs": 5,
    }
    sweeps = [
        {"sweep": name, "architecture": name.partition("-")[0], **facts}
        for name in runs["sweep"].unique()
    ]
    names = [
        "sweep",
        "inverse_temperature",
        "learning_rate",
        "start",
        "seed",
        "predicted",
    ]
    early = [
        "moment",
        "network",
        "inverse_temperature",
        "drift",
        "dynamics",
        "logit_norm",
        "images",
    ]
    empty = (
        pd.DataFrame(),
        pd.DataFrame(heuristic, columns=names),
        *[pd.DataFrame(columns=early)] * 2,
    )
    return Records(runs, pd.DataFrame(sweeps), *empty)


@pytest.fixture
def records() -> Records:
    """Two architectures: "wrn" is best at 0.1, "gru" at 1; pairs of "wrn" with three
    logit norms; one cooled.
    """
    pairs = [
        run(
            "wrn-pairs",
            1.0,
            0.1,
            seed,
            0.75 - 0.01 * place,
            start=f"pair-{c:g}",
            correlation=c,
            initial_logit_norm=n,
        )
        for place, (c, n) in enumerate([(1.0, 0.0), (0.9, 3.0), (0.0, 30.0)])
        for seed in SEEDS
    ]
    cooled = [
        run("wrn", 1.0, 0.1, seed, 0.76, start="cooled", cooled_temperature=4.0)
        for seed in SEEDS
    ]
    heuristic = [
        ("wrn", 1.0, rate, "plain", seed, 20 if rate == 0.1 else 90)
        for rate in RATES
        for seed in SEEDS
    ]
    own = (
        sweep("wrn", (0.70, 0.80, 0.75, 0.60)),
        sweep("gru", (0.50, 0.60, 0.85, 0.70)),
    )
    return make_records(*own, pairs, cooled, heuristic=heuristic)

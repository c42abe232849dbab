"""Small records whose tables and verdicts can be worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import pandas as pd
import pytest

from softmax_temperature.papers.focal.records import Records

CIFAR, DIGITS, MEAN = "cifar10-resnet50", "digits-small", "cifar10-resnet50-mean"
SEEDS = (0, 1)
EPOCHS = 7  # The first three are early: 3 / 7 = 150 / 350.


class Run(NamedTuple):
    task: str
    arm: str
    seed: int


LOST = (Run(CIFAR, "Brier", 1), Run(DIGITS, "Brier", 0), Run(DIGITS, "Brier", 1))
"""The runs that diverged."""

ECE = {  # As trained, of seeds 0 and 1.
    (CIFAR, "CE"): (0.05, 0.07),
    (CIFAR, "Brier"): (0.02, 0.50),
    (CIFAR, "FL-3"): (0.02, 0.03),
    (CIFAR, "FLSD-53"): (0.015, 0.025),
    (DIGITS, "CE"): (0.10, 0.12),
    (DIGITS, "Brier"): (0.50, 0.50),
    (DIGITS, "FL-3"): (0.04, 0.05),
    (DIGITS, "FLSD-53"): (0.05, 0.06),
    (DIGITS, "MMCE"): (0.08, 0.09),
    (DIGITS, "MMCE-written"): (0.09, 0.12),
    (MEAN, "CE"): (0.04, 0.08),
    (MEAN, "FL-3"): (0.03, 0.04),
}
AFTER = {"CE": 0.012, "Brier": 0.011, "MMCE": 0.01, "MMCE-written": 0.01, "FL-3": 0.009, "FLSD-53": 0.008}
TEMPERATURES = {"CE": (2.4, 2.6), "FL-3": (1.0, 1.2)}  # Of seeds 0 and 1; 1.1 for the others.
CONFIDENT = {"none": {"CE": 0.9, "FLSD-53": 0.5}, "ece": {"CE": 0.3, "FLSD-53": 0.6}}
TRANSLATION = {  # ECE as trained, temperature, and BLEU at TRANSLATED; of seed 0, seed 1 being 0.01 and 0.001 more.
    "CE": (0.06, 1.2, (0.24, 0.25, 0.26)),
    "LS": (0.03, 1.0, (0.24, 0.27, 0.25)),
    "FL": (0.01, 1.0, (0.24, 0.29, 0.25)),
}
TRANSLATED = (0.8, 1.0, 1.2)
NLL = (1.0, 0.6, 0.4, 0.45, 0.5, 0.55, 0.6)  # Of cross-entropy on test data: best at epoch 3.
NLL_RIGHT = (0.5, 0.3, 0.2, 0.18, 0.16, 0.15, 0.14)
NLL_WRONG = (2.0, 2.0, 2.0, 2.5, 3.0, 3.5, 4.0)


@pytest.fixture
def records() -> Records:
    runs = [Run(task, arm, seed) for task, arm in ECE for seed in SEEDS]
    kept = [run for run in runs if run not in LOST]
    main = [run for run in runs if run.task != MEAN]
    empty = pd.DataFrame()
    return Records(
        # A diverged run may have left rows behind; they must not count.
        runs=pd.DataFrame([_measured(run, scaling) for run in runs for scaling in ("none", "ece")]),
        tasks=_tasks(),
        trainings=pd.DataFrame([_training(run) for run in runs]),
        history=_frame(kept, _history),
        gradient_norms=_frame(main, _gradient_norms),
        reliability=_frame(main, _reliability),
        differences=pd.DataFrame([_difference(run) for run in main if run.arm != "CE"]),
        early_stopping=_frame(main, _early_stopping),
        ood=_frame([run for run in main if run.task == CIFAR], _ood),
        roc=_frame([run for run in main if run.task == CIFAR], _roc),
        shift=_frame([run for run in main if run.task == CIFAR], _shift),
        panels=_frame([run for run in kept if run in main and run.seed == 0], _panels),
        linear_history=empty,
        linear_mistakes=empty,
        linear_boundary=empty,
        linear_points=empty,
        translation_runs=pd.DataFrame([_translation(arm, seed) for arm in TRANSLATION for seed in SEEDS]),
        translation_curves=pd.DataFrame(
            [row for arm in TRANSLATION for seed in SEEDS for row in _translation_curve(arm, seed)]
        ),
        translation_history=empty,
        theory_checks=empty,
    )


@pytest.fixture
def only() -> Callable[..., Records]:
    """Cuts records down to some rows of every table, for instance to one task or seed."""

    def cut(records: Records, **wanted: Any) -> Records:
        return replace(records, **{name: _rows(table, wanted) for name, table in vars(records).items()})

    return cut


@pytest.fixture
def shifted() -> Callable[..., Records]:
    """Adds a number to a column of some rows of one table."""

    def shift(records: Records, name: str, column: str, by: float, **where: Any) -> Records:
        table: pd.DataFrame = getattr(records, name).copy()
        table.loc[_rows(table, where).index, column] += by
        return replace(records, **{name: table})

    return shift


def _rows(table: pd.DataFrame, wanted: dict[str, Any]) -> pd.DataFrame:
    for column, value in wanted.items():
        if column in table:
            table = table[table[column] == value]
    return table


def _frame(runs: list[Run], rows: Callable[[Run], list[dict[str, Any]]]) -> pd.DataFrame:
    return pd.DataFrame([{**run._asdict(), **row} for run in runs for row in rows(run)])


def _tasks() -> pd.DataFrame:
    cifar = {"dataset": "cifar10", "network": "resnet50", "printed_dataset": "CIFAR-10", "printed_network": "ResNet-50"}
    cifar |= {"embeddings": None}
    # Stands for a task on texts, too.
    digits = {"dataset": "digits", "network": "small", "printed_dataset": None, "printed_network": None}
    digits |= {"embeddings": "learned"}
    about = {"variant": None, "variant_of": None, "train_images": 900, "epochs": EPOCHS, "planned_epochs": 350}
    about |= {"classes": 10, "differs": None, "select": "last"}
    rows = [
        {"task": CIFAR, **cifar, **about},
        {"task": DIGITS, **digits, **about},
        {"task": MEAN, **cifar, **about, "variant": "mean reduction", "variant_of": CIFAR},
    ]
    return pd.DataFrame(rows)


def _training(run: Run) -> dict[str, Any]:
    lost = run in LOST
    return {**run._asdict(), "epochs": EPOCHS, "epochs_done": 2 if lost else EPOCHS, "diverged": lost}


def _measured(run: Run, scaling: str) -> dict[str, Any]:
    ece = ECE[run.task, run.arm][run.seed] if scaling == "none" else AFTER[run.arm] + 0.001 * run.seed
    errors = {f"{name}_calibration_error": ece for name in ("expected", "adaptive", "classwise", "maximum")}
    low = {f"{name}_low": value - 0.01 for name, value in errors.items()}
    high = {f"{name}_high": value + 0.01 for name, value in errors.items()}
    others = {
        "temperature": 1.0 if scaling == "none" else TEMPERATURES.get(run.arm, (1.1, 1.1))[run.seed],
        "at_bound": False,
        "accuracy": 0.95 - 0.001 * run.seed - (0.002 if run.arm == "FLSD-53" else 0),
        "top5_accuracy": 0.99,
        "negative_log_likelihood": 0.3,
        "noise_floor": 0.005,
        "confident_share": CONFIDENT[scaling].get(run.arm, 0.4),
        "confident_accuracy": 0.99,
    }
    return {**run._asdict(), "evaluated": "last", "scaling": scaling, **errors, **low, **high, **others}


def _history(run: Run) -> list[dict[str, Any]]:
    return [
        {
            "epoch": epoch,
            "split": split,
            "nll": nll,
            "nll_right": right,
            "nll_wrong": wrong + 0.1 * run.seed * (epoch == EPOCHS),
            "entropy": 0.3,
            "entropy_right": 0.2,
            "entropy_wrong": 1.0,
            "accuracy": 0.5 + 0.05 * epoch,
            "ece": 0.01 * epoch,
            "weight_norm": 10 + (0 if run.arm == "CE" else 1 if epoch <= 3 else -1) + run.seed,
            "feature_norm": 20 if run.arm == "CE" else 15,
        }
        for split in ("train", "test")
        for epoch, (nll, right, wrong) in enumerate(zip(NLL, NLL_RIGHT, NLL_WRONG, strict=True), start=1)
    ]


def _gradient_norms(run: Run) -> list[dict[str, Any]]:
    left, right = {"low": 0.01, "high": 0.1}, {"low": 0.1, "high": 1.0}
    counts = (10, 30) if run.arm == "CE" else (30, 10)
    return [
        {"epoch": epoch, **edges, "count": count}
        for epoch in (1, 2, 4)
        for edges, count in zip((left, right), counts, strict=True)
    ]


def _reliability(_: Run) -> list[dict[str, Any]]:
    return [
        {"epoch": epoch, "low": k / 25, "high": (k + 1) / 25, "count": k, "accuracy": k / 25, "confidence": k / 25}
        for epoch in (2, 4, 6, 7)
        for k in range(25)
    ]


def _difference(run: Run) -> dict[str, Any]:
    about = {"reference": "CE", "scaling": "none", "metric": "expected_calibration_error"}
    value = ECE[run.task, run.arm][run.seed] - ECE[run.task, "CE"][run.seed]
    return {**run._asdict(), **about, "value": value, "low": value - 0.005, "high": value + 0.005}


def _early_stopping(run: Run) -> list[dict[str, Any]]:
    ece = {"last": 0.06, "accuracy": 0.05, "nll": 0.04, "ece": 0.03}
    lower = 0.02 if run.arm == "FLSD-53" else 0
    return [
        {"criterion": name, "epoch": 5, "accuracy": 0.9, "expected_calibration_error": value - lower + 0.001 * run.seed}
        for name, value in ece.items()
    ]


def _ood(run: Run) -> list[dict[str, Any]]:
    return [
        {"ood": ood, "scaling": scaling, "samples": 100, "auroc": 0.8 + gain + better + 0.01 * run.seed}
        for ood, gain in (("svhn", 0.0), ("gaussian-noise", 0.02))
        for scaling, better in (("none", 0.1 if run.arm == "FLSD-53" else 0), ("ece", -0.01))
    ]


def _roc(_: Run) -> list[dict[str, Any]]:
    return [
        {"ood": ood, "scaling": scaling, "false_positive_rate": x, "true_positive_rate": x**0.25}
        for ood in ("svhn", "gaussian-noise")
        for scaling in ("none", "ece")
        for x in (0.0, 0.5, 1.0)
    ]


def _shift(run: Run) -> list[dict[str, Any]]:
    about = {"shifted": "cinic10", "samples": 100, "accuracy": 0.6 + 0.1 * run.seed}
    return [
        {**about, "scaling": scaling, "expected_calibration_error": ece}
        for scaling, ece in (("none", 0.3), ("ece", 0.2))
    ]


def _panels(run: Run) -> list[dict[str, Any]]:
    """Image 40 is right by cross-entropy alone, 9 is wrong by all, 7 right by all."""
    return [
        {"image": image, "scaling": scaling, "label": 3, "predicted": predicted, "confidence": confidence}
        for image, predicted in ((40, 3 if run.arm == "CE" else 8), (9, 8), (7, 3))
        for scaling, confidence in (("none", 0.91), ("ece", 0.64))
    ]


def _translation(arm: str, seed: int) -> dict[str, Any]:
    ece, temperature, bleu = TRANSLATION[arm]
    more = 0.001 * seed
    highest = max(bleu)
    return {
        "arm": arm,
        "seed": seed,
        "dataset": "wmt14_en_de",
        "diverged": False,
        "temperature": temperature,
        "ece": ece + 0.01 * seed,
        "ece_after_scaling": 0.008 + more,
        "bleu": bleu[1] + more,
        "bleu_after_scaling": bleu[TRANSLATED.index(temperature)] + more,
        "best_bleu": highest + more,
        "best_bleu_temperature": TRANSLATED[bleu.index(highest)],
    }


def _translation_curve(arm: str, seed: int) -> list[dict[str, Any]]:
    _, temperature, scores = TRANSLATION[arm]
    return [
        {"arm": arm, "seed": seed, "temperature": at, "bleu": bleu, "validation_ece": 0.01 + abs(at - temperature)}
        for at, bleu in zip(TRANSLATED, scores, strict=True)
    ]

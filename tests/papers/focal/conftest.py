"""Small records whose tables, figures and verdicts can be worked out by hand."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, NamedTuple

import pandas as pd
import pytest

from softmax_temperature.papers.focal.records import Records

CIFAR, DIGITS, MEAN = "cifar10-resnet50", "digits-small", "cifar10-resnet50-mean"
SEEDS = (0, 1)
EPOCHS = 7


class Run(NamedTuple):
    task: str
    arm: str
    seed: int


LOST = (Run(CIFAR, "Brier", 1), Run(DIGITS, "Brier", 0), Run(DIGITS, "Brier", 1))
"""The runs that diverged."""

ECE = {  # As trained, of seeds 0 and 1.
    CIFAR: {"CE": (0.05, 0.07), "Brier": (0.02, 0.50), "FL-3": (0.02, 0.03), "FLSD-53": (0.015, 0.025)},
    DIGITS: {"CE": (0.10, 0.12), "Brier": (0.50, 0.50), "FL-3": (0.04, 0.05), "FLSD-53": (0.05, 0.06)}
    | {"MMCE": (0.08, 0.09), "MMCE-written": (0.09, 0.12)},
    MEAN: {"CE": (0.04, 0.08), "FL-3": (0.03, 0.04)},
}
AFTER = {"CE": 0.012, "Brier": 0.011, "MMCE": 0.01, "MMCE-written": 0.01, "FL-3": 0.009, "FLSD-53": 0.008}
TEMPERATURES = {"CE": (2.4, 2.6), "FL-3": (1.0, 1.2)}  # Of seeds 0 and 1; 1.1 for the others.
TRANSLATION = {  # ECE as trained, temperature, and BLEU at TRANSLATED; of seed 0, seed 1 being 0.01 and 0.001 more.
    "CE": (0.06, 1.2, (0.24, 0.25, 0.26)),
    "LS": (0.03, 1.0, (0.24, 0.27, 0.25)),
    "FL": (0.01, 1.0, (0.24, 0.29, 0.25)),
}
TRANSLATED = (0.8, 1.0, 1.2)
NLL = (1.0, 0.6, 0.4, 0.45, 0.5, 0.55, 0.6)  # Of cross-entropy on test data: best at epoch 3.
NLL_WRONG = (2.0, 2.0, 2.0, 2.5, 3.0, 3.5, 4.0)


def made_of(tables: dict[str, Any]) -> Records:
    """Records with some tables, the others empty."""
    frames = {name: pd.DataFrame(rows) for name, rows in tables.items()}
    return Records(**{each.name: frames.get(each.name, pd.DataFrame()) for each in fields(Records)})


@pytest.fixture
def records() -> Records:
    runs = [Run(task, arm, seed) for task, arms in ECE.items() for arm in arms for seed in SEEDS]
    kept = [run for run in runs if run not in LOST]
    cifar = [run for run in kept if run.task == CIFAR]
    main = [run for run in kept if run.task != MEAN]
    rows: dict[str, tuple[list[Run], Callable[[Run], list[dict[str, Any]]]]] = {
        "runs": (runs, _measured),  # A diverged run may have left rows behind; they must not count.
        "trainings": (runs, lambda run: [{"epochs": EPOCHS, "diverged": run in LOST}]),
        "history": (kept, _history),
        "gradient_norms": (main, _gradient_norms),
        "reliability": (main, _reliability),
        "early_stopping": (main, _early_stopping),
        "ood": (cifar, _ood),
        "roc": (cifar, _roc),
        "shift": (cifar, _shift),
        "panels": ([run for run in main if run.seed == 0], _panels),
    }
    tables: dict[str, Any] = {
        name: [{**run._asdict(), **row} for run in some for row in of(run)] for name, (some, of) in rows.items()
    }
    pairs = [(arm, seed) for arm in TRANSLATION for seed in SEEDS]
    tables |= {"tasks": _tasks(), "translation_runs": [_translation(*pair) for pair in pairs]}
    return made_of(tables | {"translation_curves": [row for pair in pairs for row in _translation_curve(*pair)]})


def _tasks() -> list[dict[str, Any]]:
    cifar = {"dataset": "cifar10", "network": "resnet50", "printed_dataset": "CIFAR-10", "printed_network": "ResNet-50"}
    # Stands for a task on texts, too.
    digits = {"dataset": "digits", "network": "small", "printed_dataset": None, "printed_network": None}
    about = {"variant": None, "variant_of": None, "epochs": EPOCHS, "planned_epochs": 350, "classes": 10}
    about |= {"differs": None, "select": "last", "embeddings": None}
    return [
        {"task": CIFAR, **cifar, **about},
        {"task": DIGITS, **digits, **about, "embeddings": "learned"},
        {"task": MEAN, **cifar, **about, "variant": "mean reduction", "variant_of": CIFAR},
    ]


def _measured(run: Run) -> list[dict[str, Any]]:
    rows = []
    for scaling in ("none", "ece"):
        ece = ECE[run.task][run.arm][run.seed] if scaling == "none" else AFTER[run.arm] + 0.001 * run.seed
        row: dict[str, Any] = {"evaluated": "last", "scaling": scaling, "at_bound": False}
        for name in ("expected", "adaptive", "classwise", "maximum"):
            error = f"{name}_calibration_error"
            row |= {error: ece, f"{error}_low": ece - 0.01, f"{error}_high": ece + 0.01}
        row["temperature"] = 1.0 if scaling == "none" else TEMPERATURES.get(run.arm, (1.1, 1.1))[run.seed]
        row["accuracy"] = 0.95 - 0.001 * run.seed - (0.002 if run.arm == "FLSD-53" else 0)
        row |= {"top5_accuracy": 0.99, "negative_log_likelihood": 0.3, "noise_floor": 0.005}
        rows.append(row | {"confident_share": 0.4, "confident_accuracy": 0.99})
    return rows


def _history(run: Run) -> list[dict[str, Any]]:
    return [
        {"epoch": epoch, "split": split, "nll": nll, "nll_right": 0.2, "entropy": 0.3, "entropy_right": 0.2}
        | {"nll_wrong": wrong + 0.1 * run.seed * (epoch == EPOCHS), "entropy_wrong": 1.0}
        | {"accuracy": 0.5 + 0.05 * epoch, "ece": 0.01 * epoch, "feature_norm": 20 if run.arm == "CE" else 15}
        | {"weight_norm": 10 + (0 if run.arm == "CE" else 1 if epoch <= 3 else -1) + run.seed}
        for split in ("train", "test")
        for epoch, (nll, wrong) in enumerate(zip(NLL, NLL_WRONG, strict=True), start=1)
    ]


def _gradient_norms(run: Run) -> list[dict[str, Any]]:
    return [
        {"epoch": epoch, "low": low, "high": 10 * low, "count": count}
        for epoch in (1, 2, 4)
        for low, count in zip((0.01, 0.1), (10, 30) if run.arm == "CE" else (30, 10), strict=True)
    ]


def _reliability(_: Run) -> list[dict[str, Any]]:
    return [
        {"epoch": epoch, "low": k / 25, "high": (k + 1) / 25, "count": k, "accuracy": k / 25}
        for epoch in (2, 4, 6, 7)
        for k in range(25)
    ]


def _early_stopping(run: Run) -> list[dict[str, Any]]:
    lower = 0.02 if run.arm == "FLSD-53" else 0
    return [
        {"criterion": name, "epoch": 5, "accuracy": 0.9, "expected_calibration_error": value - lower + 0.001 * run.seed}
        for name, value in (("last", 0.06), ("accuracy", 0.05), ("nll", 0.04), ("ece", 0.03))
    ]


def _ood(run: Run) -> list[dict[str, Any]]:
    return [
        {"ood": ood, "scaling": scaling, "samples": 100, "auroc": 0.8 + gain + better + 0.01 * run.seed}
        for ood, gain in (("svhn", 0.0), ("gaussian-noise", 0.02))
        for scaling, better in (("none", 0.1 if run.arm == "FLSD-53" else 0), ("ece", -0.01))
    ]


def _roc(run: Run) -> list[dict[str, Any]]:
    points = [{"false_positive_rate": x, "true_positive_rate": x**0.25} for x in (0.0, 0.5, 1.0)]
    return [{"ood": row["ood"], "scaling": row["scaling"], **point} for row in _ood(run) for point in points]


def _shift(run: Run) -> list[dict[str, Any]]:
    row = {"shifted": "cinic10", "samples": 100, "accuracy": 0.6 + 0.1 * run.seed}
    return [{**row, "scaling": name, "expected_calibration_error": ece} for name, ece in (("none", 0.3), ("ece", 0.2))]


def _panels(run: Run) -> list[dict[str, Any]]:
    """Image 40 is right by cross-entropy alone, 9 is wrong by all, 7 right by all."""
    return [
        {"image": image, "scaling": scaling, "label": 3, "predicted": predicted, "confidence": confidence}
        for image, predicted in ((40, 3 if run.arm == "CE" else 8), (9, 8), (7, 3))
        for scaling, confidence in (("none", 0.91), ("ece", 0.64))
    ]


def _translation(arm: str, seed: int) -> dict[str, Any]:
    ece, temperature, bleu = TRANSLATION[arm]
    row = {"arm": arm, "seed": seed, "dataset": "wmt14_en_de", "diverged": False, "temperature": temperature}
    row |= {"ece": ece + 0.01 * seed, "ece_after_scaling": 0.008 + 0.001 * seed, "bleu": bleu[1] + 0.001 * seed}
    row |= {"bleu_after_scaling": bleu[TRANSLATED.index(temperature)] + 0.001 * seed}
    return row | {"best_bleu": max(bleu) + 0.001 * seed, "best_bleu_temperature": TRANSLATED[bleu.index(max(bleu))]}


def _translation_curve(arm: str, seed: int) -> list[dict[str, Any]]:
    _, temperature, scores = TRANSLATION[arm]
    return [
        {"arm": arm, "seed": seed, "temperature": at, "bleu": bleu, "validation_ece": 0.01 + abs(at - temperature)}
        for at, bleu in zip(TRANSLATED, scores, strict=True)
    ]

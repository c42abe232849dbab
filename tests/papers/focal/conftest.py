"""A small study, with tables and figures worked out by hand."""

from collections.abc import Iterator
from typing import Any

import pytest

from softmax_temperature.papers.shared.runs import Runs
from tests.papers.focal.made_runs import run, runs_of
from tests.papers.unchanged import unchanged

CIFAR, DIGITS, MEAN = "cifar10-resnet50", "digits-small", "cifar10-resnet50-mean"
EPOCHS = 7
LOST = ((CIFAR, "Brier", 1), (DIGITS, "Brier", 0), (DIGITS, "Brier", 1))
"""The runs that diverged; their values must not count."""
ECE = {
    CIFAR: {
        "CE": (0.05, 0.07),
        "Brier": (0.02, 0.50),
        "FL-3": (0.02, 0.03),
        "FLSD-53": (0.015, 0.025),
    },
    DIGITS: {
        "CE": (0.10, 0.12),
        "Brier": (0.50, 0.50),
        "FL-3": (0.04, 0.05),
        "FLSD-53": (0.05, 0.06),
        "MMCE": (0.08, 0.09),
        "MMCE-written": (0.09, 0.12),
    },
    MEAN: {"CE": (0.04, 0.08), "FL-3": (0.03, 0.04)},
}
"""ECE of seeds 0 and 1 before scaling."""
AFTER = {
    "CE": 0.012,
    "Brier": 0.011,
    "MMCE": 0.01,
    "MMCE-written": 0.01,
    "FL-3": 0.009,
    "FLSD-53": 0.008,
}
TEMPERATURES = {"CE": (2.4, 2.6), "FL-3": (1.0, 1.2)}
"""Temperatures of seeds 0 and 1, keyed by loss; other losses have temperature 1.1."""
NLL = (1.0, 0.6, 0.4, 0.45, 0.5, 0.55, 0.6)
"""The test NLL of cross-entropy by epoch: best at epoch 3."""
NLL_WRONG = (2.0, 2.0, 2.0, 2.5, 3.0, 3.5, 4.0)
STOPPED = {"accuracy": 2, "nll": 3, "ece": 4}
"""Epoch that each criterion chooses on validation data."""
TRANSLATION = {
    "CE": {"ece": 0.06, "temperature": 1.2, "bleu": 0.25, "scaled": 0.26, "best": 0.26},
    "LS": {"ece": 0.03, "temperature": 1.0, "bleu": 0.27, "scaled": 0.27, "best": 0.27},
    "FL": {"ece": 0.01, "temperature": 1.0, "bleu": 0.29, "scaled": 0.29, "best": 0.29},
}
"""The metrics of seed 0. For seed 1, ECE is 0.01 higher and BLEU is 0.001 higher."""
BLEU = {
    "CE": {0.8: 0.24, 1.0: 0.25, 1.2: 0.26},
    "LS": {0.8: 0.24, 1.0: 0.27, 1.2: 0.25},
    "FL": {0.8: 0.24, 1.0: 0.29, 1.2: 0.25},
}
_CIFAR_10 = {
    "dataset": "cifar10",
    "network": "resnet50",
    "printed_dataset": "CIFAR-10",
    "printed_network": "ResNet-50",
    "noise": "CIFAR-10-C",
}
_ABOUT: dict[str, dict[str, Any]] = {
    CIFAR: _CIFAR_10,
    # The tests also use this task in place of a task on texts.
    DIGITS: {"dataset": "digits", "network": "small", "embeddings": "learned"},
    MEAN: {**_CIFAR_10, "variant": "mean reduction", "variant_of": CIFAR},
}


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    with unchanged(_runs()) as made:
        yield made


def _runs() -> Runs:
    table = []
    values: list[dict[str, Any]] = []
    tables: dict[str, list[dict[str, Any]]] = {
        "gradient_norms": [],
        "reliability": [],
        "panels": [],
        "roc": [],
    }
    for experiment, arms in ECE.items():
        for arm in arms:
            for seed in (0, 1):
                number = len(table)
                lost = (experiment, arm, seed) in LOST
                about = {**_ABOUT[experiment], "diverged": lost}
                table.append(run(experiment, arm, seed, **about))
                values += _history(number, arm, seed)
                values += _evaluation(number, experiment, arm, seed)
                for name, rows in _samples(experiment, arm, seed).items():
                    tables[name] += [{"run": number, **row} for row in rows]
                if experiment == CIFAR:
                    values += _other_sets(number, arm, seed)
    models, scores, curves = _translation(len(table))
    return runs_of(
        [*table, *models], [*values, *scores], translation_curves=curves, **tables
    )


def _history(number: int, arm: str, seed: int) -> list[dict[str, Any]]:
    """Scores after each epoch; `_evaluation` gives test scores after the last epoch."""
    is_ce = arm == "CE"
    rows = []
    for epoch in range(1, EPOCHS + 1):
        at = {"run": number, "epoch": epoch}
        shared = {
            "nll_right": 0.2,
            "nll_wrong": NLL_WRONG[epoch - 1] + 0.1 * seed * (epoch == EPOCHS),
            "entropy": 0.3,
            "entropy_right": 0.2,
            "entropy_wrong": 1.0,
            "feature_norm": 20 if is_ce else 15,
            "weight_norm": 10 + (0 if is_ce else 1 if epoch <= 3 else -1) + seed,
        }
        scores = {
            "accuracy": 0.5 + 0.05 * epoch,
            "ece": 0.01 * epoch,
            "nll": NLL[epoch - 1],
        }
        best = {
            "accuracy": 0.9 + 0.01 * (epoch == STOPPED["accuracy"]),
            "nll": 1 - 0.1 * (epoch == STOPPED["nll"]),
            "ece": 1 - 0.1 * (epoch == STOPPED["ece"]),
        }
        rows.append(at | shared | scores | {"split": "train"})
        rows.append(at | best | {"split": "validation"})
        evaluated = {} if epoch == EPOCHS else scores
        rows.append(at | shared | evaluated | {"split": "test"})
    return rows


def _evaluation(
    number: int, experiment: str, arm: str, seed: int
) -> list[dict[str, Any]]:
    rows = []
    for scaled in (False, True):
        ece = AFTER[arm] + 0.001 * seed if scaled else ECE[experiment][arm][seed]
        temperature = TEMPERATURES.get(arm, (1.1, 1.1))[seed] if scaled else 1.0
        row = {
            "run": number,
            "epoch": EPOCHS,
            "scaled": scaled,
            "at_bound": False,
            "temperature": temperature,
            "accuracy": 0.95 - 0.001 * seed - 0.002 * (arm == "FLSD-53"),
            "top5_accuracy": 0.99,
            "nll": 0.6,
            "confident_share": 0.4,
            "confident_accuracy": 0.99,
            "noise_floor": 0.009 if scaled else 0.005,
        }
        for name in ("ece", "adaptive_ece", "classwise_ece", "mce"):
            row |= {name: ece, f"{name}_low": ece - 0.01, f"{name}_high": ece + 0.01}
        rows.append(row)
    by_likelihood = {"ece_by_nll": AFTER[arm] + 0.002, "temperature_by_nll": 1.5}
    rows[1] |= by_likelihood
    return rows


def _other_sets(number: int, arm: str, seed: int) -> list[dict[str, Any]]:
    """Values on out-of-distribution sets and on shifted images of the same classes."""
    rows = []
    for scaled in (False, True):
        at = {"run": number, "epoch": EPOCHS, "scaled": scaled}
        gain = -0.01 if scaled else 0.1 * (arm == "FLSD-53")
        for name in ("svhn", "gaussian-noise"):
            auroc = 0.8 + 0.02 * (name == "gaussian-noise") + gain + 0.01 * seed
            rows.append(at | {"split": name, "auroc": auroc, "samples": 100})
        moved = {"accuracy": 0.6 + 0.1 * seed, "ece": 0.2 if scaled else 0.3}
        rows.append(at | {"split": "cinic10", **moved})
    return rows


def _samples(experiment: str, arm: str, seed: int) -> dict[str, list[dict[str, Any]]]:
    """Tables of a run: gradient norms, bins, ROC curves, and predictions of seed 0."""
    if experiment == MEAN:
        return {}
    return {
        "gradient_norms": _gradient_norms(arm),
        "reliability": _reliability(),
        "roc": _roc() if experiment == CIFAR else [],
        "panels": _panels(arm) if seed == 0 else [],
    }


def _gradient_norms(arm: str) -> list[dict[str, Any]]:
    rows = []
    for epoch in (1, 2, 4):
        for low in (0.01, 0.1):
            count = 10 if (low < 0.1) == (arm == "CE") else 30
            rows.append({"epoch": epoch, "low": low, "high": 10 * low, "count": count})
    return rows


def _reliability() -> list[dict[str, Any]]:
    rows = []
    for epoch in (2, 4, 6, 7):
        for place in range(25):
            ends = {"low": place / 25, "high": (place + 1) / 25}
            rows.append(
                {"epoch": epoch, "count": place, "accuracy": place / 25, **ends}
            )
    return rows


def _roc() -> list[dict[str, Any]]:
    rows = []
    for scaling in ("none", "ece"):
        for name in ("svhn", "gaussian-noise"):
            for rate in (0.0, 0.5, 1.0):
                point = {"false_positive_rate": rate, "true_positive_rate": rate**0.25}
                rows.append({"scaling": scaling, "ood": name, **point})
    return rows


def _panels(arm: str) -> list[dict[str, Any]]:
    """Predictions for three images: 7 is right, 9 is wrong, and 40 is right only for
    CE.
    """
    rows = []
    for scaling, confidence in (("none", 0.91), ("ece", 0.64)):
        for image in (40, 9, 7):
            is_right = image == 7 or (image == 40 and arm == "CE")
            row = {"scaling": scaling, "image": image, "label": 3}
            predicted = 3 if is_right else 8
            rows.append(row | {"predicted": predicted, "confidence": confidence})
    return rows


Parts = tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]


def _translation(first: int) -> Parts:
    """Translation runs (appendix K), with values and with curves over temperatures."""
    table = []
    values = []
    curves = []
    for arm, score in TRANSLATION.items():
        for seed in (0, 1):
            number = first + len(table)
            more = 0.001 * seed
            data = {"task": "translation", "dataset": "wmt14_en_de"}
            network = {"network": "Transformer"}
            name = "translation-wmt14_en_de"
            table.append(run(name, arm, seed, **data, **network))
            at = {"run": number, "epoch": EPOCHS}
            plain = {
                "ece": score["ece"] + 0.01 * seed,
                "bleu": score["bleu"] + more,
                "best_bleu": score["best"] + more,
                "best_bleu_temperature": score["temperature"],
            }
            scaled = {
                "scaled": True,
                "ece": 0.008 + more,
                "bleu": score["scaled"] + more,
                "temperature": score["temperature"],
            }
            values += [at | plain, at | scaled]
            for temperature, bleu in BLEU[arm].items():
                ece = 0.01 + abs(temperature - score["temperature"])
                row = {"run": number, "temperature": temperature, "bleu": bleu}
                curves.append(row | {"validation_ece": ece})
    return table, values, curves

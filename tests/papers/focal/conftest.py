"""Small records whose tables, figures and verdicts can be worked out by hand."""

from dataclasses import fields
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from softmax_temperature.papers.focal.records import Records

CIFAR, DIGITS, MEAN = "cifar10-resnet50", "digits-small", "cifar10-resnet50-mean"
EPOCHS = 7
TEXTS = dict.fromkeys(
    (
        "variant",
        "variant_of",
        "printed_dataset",
        "printed_network",
        "differs",
        "embeddings",
    ),
    "",
)
"""What a task says about itself in words; nothing."""


LOST = ((CIFAR, "Brier", 1), (DIGITS, "Brier", 0), (DIGITS, "Brier", 1))
"""The runs that diverged."""
ECE = {  # As trained, of seeds 0 and 1.
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
    }
    | {"MMCE": (0.08, 0.09), "MMCE-written": (0.09, 0.12)},
    MEAN: {"CE": (0.04, 0.08), "FL-3": (0.03, 0.04)},
}
AFTER = {
    "CE": 0.012,
    "Brier": 0.011,
    "MMCE": 0.01,
    "MMCE-written": 0.01,
    "FL-3": 0.009,
    "FLSD-53": 0.008,
}
TEMPERATURES = {
    "CE": (2.4, 2.6),
    "FL-3": (1.0, 1.2),
}  # Of seeds 0 and 1; 1.1 for the others.
_SCORES = ["bleu", "bleu_after_scaling", "best_bleu"]
TRANSLATION = (
    pd.DataFrame(  # Of seed 0; of seed 1 errors are 0.01 and scores 0.001 more.
        [
            ("CE", 0.06, 1.2, 0.25, 0.26, 0.26, 1.2),
            ("LS", 0.03, 1.0, *[0.27] * 3, 1.0),
            ("FL", 0.01, 1.0, *[0.29] * 3, 1.0),
        ],
        columns=["arm", "ece", "temperature", *_SCORES, "best_bleu_temperature"],
    )
)
BLEU = pd.DataFrame(
    {"temperature": [0.8, 1.0, 1.2], "CE": [0.24, 0.25, 0.26], "LS": [0.24, 0.27, 0.25]}
)
BLEU["FL"] = [0.24, 0.29, 0.25]
NLL = (
    1.0,
    0.6,
    0.4,
    0.45,
    0.5,
    0.55,
    0.6,
)  # Of cross-entropy on test data: best at epoch 3.
NLL_WRONG = (2.0, 2.0, 2.0, 2.5, 3.0, 3.5, 4.0)


def made_of(**tables: Any) -> Records:
    """Records with some tables, the others empty."""
    return Records(
        **{
            each.name: pd.DataFrame(tables.get(each.name, []))
            for each in fields(Records)
        }
    )


def crossed(*tables: pd.DataFrame, **values: Any) -> pd.DataFrame:
    """A row for every combination, of the rows of a table too."""
    made = pd.DataFrame(product(*values.values()), columns=list(values))
    return tables[0].merge(made, how="cross") if tables else made


@pytest.fixture
def records() -> Records:
    arms = pd.DataFrame(
        [{"task": task, "arm": arm} for task, arms in ECE.items() for arm in arms]
    )
    runs = crossed(arms, seed=[0, 1])
    runs["diverged"] = [tuple(run) in LOST for run in runs.to_numpy().tolist()]
    kept = runs[~runs["diverged"]].drop(columns="diverged")
    cifar, main = kept[kept["task"] == CIFAR], kept[kept["task"] != MEAN]
    epochs = pd.DataFrame(
        {"epoch": range(1, EPOCHS + 1), "nll": NLL, "nll_wrong": NLL_WRONG}
    )
    about = {
        "nll_right": 0.2,
        "entropy": 0.3,
        "entropy_right": 0.2,
        "entropy_wrong": 1.0,
    }
    history = (
        crossed(kept, split=["train", "test"])
        .merge(epochs, how="cross")
        .assign(**about)
    )
    epoch, is_ce = history["epoch"], history["arm"] == "CE"
    norms = crossed(main, epoch=[1, 2, 4], low=[0.01, 0.1])
    counts = np.where((norms["low"] < 0.1) == (norms["arm"] == "CE"), 10, 30)
    bins = crossed(main, epoch=[2, 4, 6, 7], count=range(25))
    stopped = pd.DataFrame(
        {
            "criterion": ["last", "accuracy", "nll", "ece"],
            "ece": [0.06, 0.05, 0.04, 0.03],
        }
    )
    stopped = main.merge(stopped, how="cross").assign(epoch=5, accuracy=0.9)
    better = 0.02 * (stopped["arm"] == "FLSD-53")
    ood = crossed(cifar, ood=["svhn", "gaussian-noise"], scaling=["none", "ece"])
    gain = np.where(ood["scaling"] == "ece", -0.01, 0.1 * (ood["arm"] == "FLSD-53"))
    points = pd.DataFrame(
        {
            "false_positive_rate": [0.0, 0.5, 1.0],
            "true_positive_rate": [0.0, 0.5**0.25, 1.0],
        }
    )
    shift = crossed(cifar, scaling=["none", "ece"])
    moved = shift["scaling"].map({"none": 0.3, "ece": 0.2})
    # Image 40 is right by cross-entropy alone, 9 is wrong by all, 7 right by all.
    panels = crossed(main[main["seed"] == 0], image=[40, 9, 7], scaling=["none", "ece"])
    is_right = (panels["image"] == 7) | (
        (panels["image"] == 40) & (panels["arm"] == "CE")
    )
    sure = panels["scaling"].map({"none": 0.91, "ece": 0.64})
    models = crossed(TRANSLATION, seed=[0, 1])
    models = models.assign(
        dataset="wmt14_en_de", diverged=False, ece=models["ece"] + 0.01 * models["seed"]
    )
    models["ece_after_scaling"] = 0.008 + 0.001 * models["seed"]
    best = models[["arm", "seed", "temperature"]].rename(
        columns={"temperature": "best"}
    )
    curves = best.merge(
        BLEU.melt("temperature", var_name="arm", value_name="bleu"), on="arm"
    )
    return made_of(
        tasks=_tasks(),
        runs=[
            row for run in runs.to_dict("records") for row in _measured(run)
        ],  # Diverged ones must not count.
        trainings=runs.assign(epochs=EPOCHS),
        history=history.assign(
            nll_wrong=history["nll_wrong"] + 0.1 * history["seed"] * (epoch == EPOCHS),
            accuracy=0.5 + 0.05 * epoch,
            ece=0.01 * epoch,
            feature_norm=np.where(is_ce, 20, 15),
            weight_norm=10
            + np.where(is_ce, 0, np.where(epoch <= 3, 1, -1))
            + history["seed"],
        ),
        gradient_norms=norms.assign(high=10 * norms["low"], count=counts),
        reliability=bins.assign(
            low=bins["count"] / 25,
            high=(bins["count"] + 1) / 25,
            accuracy=bins["count"] / 25,
        ),
        early_stopping=stopped.assign(
            expected_calibration_error=stopped["ece"] - better + 0.001 * stopped["seed"]
        ),
        ood=ood.assign(
            auroc=0.8
            + 0.02 * (ood["ood"] == "gaussian-noise")
            + gain
            + 0.01 * ood["seed"],
            samples=100,
        ),
        roc=ood.merge(points, how="cross"),
        shift=shift.assign(
            shifted="cinic10",
            accuracy=0.6 + 0.1 * shift["seed"],
            expected_calibration_error=moved,
        ),
        panels=panels.assign(
            label=3, predicted=np.where(is_right, 3, 8), confidence=sure
        ),
        translation_runs=models.drop(columns=_SCORES).join(
            models[_SCORES].add(0.001 * models["seed"], axis=0)
        ),
        translation_curves=curves.assign(
            validation_ece=0.01 + (curves["temperature"] - curves["best"]).abs()
        ),
    )


def _tasks() -> list[dict[str, Any]]:
    cifar = {
        "dataset": "cifar10",
        "network": "resnet50",
        "printed_dataset": "CIFAR-10",
        "printed_network": "ResNet-50",
    }
    about = TEXTS | {
        "epochs": EPOCHS,
        "planned_epochs": 350,
        "classes": 10,
        "select": "last",
    }
    return [
        about | {"task": CIFAR} | cifar,
        # Stands for a task on texts, too.
        about
        | {
            "task": DIGITS,
            "dataset": "digits",
            "network": "small",
            "embeddings": "learned",
        },
        about
        | {"task": MEAN, "variant": "mean reduction", "variant_of": CIFAR}
        | cifar,
    ]


def _measured(run: dict[Any, Any]) -> list[dict[str, Any]]:
    arm, seed, rows = run["arm"], run["seed"], []
    for scaling in ("none", "ece"):
        ece = (
            ECE[run["task"]][arm][seed]
            if scaling == "none"
            else AFTER[arm] + 0.001 * seed
        )
        row = {**run, "evaluated": "last", "scaling": scaling, "at_bound": False}
        for name in ("expected", "adaptive", "classwise", "maximum"):
            error = f"{name}_calibration_error"
            row |= {error: ece, f"{error}_low": ece - 0.01, f"{error}_high": ece + 0.01}
        row["temperature"] = (
            1.0 if scaling == "none" else TEMPERATURES.get(arm, (1.1, 1.1))[seed]
        )
        row["accuracy"] = 0.95 - 0.001 * seed - 0.002 * (arm == "FLSD-53")
        row |= {
            "top5_accuracy": 0.99,
            "negative_log_likelihood": 0.3,
            "confident_share": 0.4,
        }
        rows.append(
            row
            | {
                "confident_accuracy": 0.99,
                "noise_floor": 0.005 if scaling == "none" else 0.009,
            }
        )
    return rows

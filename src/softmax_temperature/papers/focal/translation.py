"""The rows of the paper's translation experiment (appendix K), gathered from the cells of stage train-translation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.stages.train_translation import OUTPUT, UNSCALED, trainings
from softmax_temperature.training.translation.scores import best_temperature

if TYPE_CHECKING:
    from softmax_temperature.params import Params
    from softmax_temperature.runner.artifacts import Artifact

RUN_COLUMNS = (
    *("arm", "seed", "dataset", "train_pairs", "test_pairs", "parameters", "epochs", "epochs_done", "diverged"),
    *("temperature", "ece", "ece_after_scaling", "accuracy", "bleu", "bleu_after_scaling", "best_bleu"),
    "best_bleu_temperature",
)
CURVE_COLUMNS = ("arm", "seed", "temperature", "bleu", "validation_ece")
HISTORY_COLUMNS = ("arm", "seed", "epoch", "loss", "nll", "accuracy", "ece")


def translation_tables(params: Params) -> dict[str, pd.DataFrame]:
    """The tables of the trainings, by the name of their file; without rows where the section is left out.

    translation_runs: RUN_COLUMNS, a row for each training. Temperature is that of least validation ECE; ece, accuracy
        (of next tokens) and bleu are of test data, as trained and divided by it; best_bleu is the highest over all
        temperatures that were tried. Fractions. Empty from temperature on where a training diverged.
    translation_curves: CURVE_COLUMNS, a row for each training and temperature of Figure K.1.
    translation_history: HISTORY_COLUMNS, a row for each training and epoch: the loss of training; nll, accuracy and ece
        of validation data.

    Args:
        params: declare which cells are read; a missing one is an error, another one is not read.
    """
    section = params.focal.translation
    runs: list[dict[str, Any]] = []
    curves: list[dict[str, Any]] = []
    history: list[dict[str, Any]] = []
    for arm, seed in trainings(section):
        assert section is not None, "there are trainings"
        names, artifact = {"arm": arm, "seed": seed}, open_artifact(OUTPUT / f"{arm}/{seed}")
        record = artifact.json("record.json")
        history += [{**names, **row} for row in record["history"]]
        runs.append({**names, "dataset": section.dataset, **_about(record)})
        if not record["diverged"]:
            runs[-1] |= _results(artifact)
            curves += [{**names, **row} for row in _curve(artifact, section.temperatures)]
    return {
        "translation_runs": pd.DataFrame(runs, columns=list(RUN_COLUMNS)),
        "translation_curves": pd.DataFrame(curves, columns=list(CURVE_COLUMNS)),
        "translation_history": pd.DataFrame(history, columns=list(HISTORY_COLUMNS)),
    }


def _about(record: dict[str, Any]) -> dict[str, Any]:
    pairs = {f"{split}_pairs": record["pairs"][split] for split in ("train", "test")}
    return {**pairs, **{name: record[name] for name in ("parameters", "epochs", "epochs_done", "diverged")}}


def _results(artifact: Artifact) -> dict[str, Any]:
    """What a training that did not diverge came to."""
    rows = artifact.json("calibration.json")
    best = best_temperature(row for row in rows if row["split"] == "validation")
    test = {row["temperature"]: row for row in rows if row["split"] == "test"}
    bleu = {row["temperature"]: row["bleu"] for row in artifact.json("bleu.json")}
    highest = max(bleu, key=lambda temperature: bleu[temperature])
    return {
        "temperature": best,
        "ece": test[UNSCALED]["ece"],
        "ece_after_scaling": test[best]["ece"],
        "accuracy": test[UNSCALED]["accuracy"],
        "bleu": bleu[UNSCALED],
        "bleu_after_scaling": bleu[best],
        "best_bleu": bleu[highest],
        "best_bleu_temperature": highest,
    }


def _curve(artifact: Artifact, temperatures: list[float]) -> list[dict[str, Any]]:
    rows = artifact.json("calibration.json")
    ece = {row["temperature"]: row["ece"] for row in rows if row["split"] == "validation"}
    bleu = {row["temperature"]: row["bleu"] for row in artifact.json("bleu.json")}
    return [{"temperature": at, "bleu": bleu[at], "validation_ece": ece[at]} for at in temperatures]

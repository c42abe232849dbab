"""The records of the translation experiment (appendix K), gathered from the cells of stage train-translation."""

from __future__ import annotations

from typing import Any

import pandas as pd

from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import Artifact, open_artifact
from softmax_temperature.stages.train_translation import OUTPUT, UNSCALED, trainings
from softmax_temperature.training.translation.scores import best_temperature

RUN_COLUMNS = (
    *("arm", "seed", "dataset", "train_pairs", "test_pairs", "parameters", "epochs", "epochs_done", "diverged"),
    *("temperature", "ece", "ece_after_scaling", "accuracy", "bleu", "bleu_after_scaling", "best_bleu"),
    "best_bleu_temperature",
)
CURVE_COLUMNS = ("arm", "seed", "temperature", "bleu", "validation_ece")
HISTORY_COLUMNS = ("arm", "seed", "epoch", "loss", "nll", "accuracy", "ece")


def translation_tables(params: Params) -> dict[str, pd.DataFrame]:
    """The tables of the declared trainings, by the name of their file; without rows where the section is left out.

    translation_runs: RUN_COLUMNS, one row per training. Temperature is that of least validation ECE; ece, accuracy (of
        next tokens) and bleu are of test data, as trained and divided by it; best_bleu is the highest over all
        temperatures that were tried. Fractions. Empty from temperature on where a training diverged.
    translation_curves: CURVE_COLUMNS, one row per training and temperature of Figure K.1.
    translation_history: HISTORY_COLUMNS, one row per training and epoch: the loss of training; nll, accuracy and ece of
        validation data.
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
        run = {**names, **record, "dataset": section.dataset}
        run |= {f"{split}_pairs": record["pairs"][split] for split in ("train", "test")}
        if not record["diverged"]:
            results, curve = _results(artifact, section.temperatures)
            run |= results
            curves += [{**names, **row} for row in curve]
        runs.append(run)
    return {
        "translation_runs": pd.DataFrame(runs, columns=list(RUN_COLUMNS)),
        "translation_curves": pd.DataFrame(curves, columns=list(CURVE_COLUMNS)),
        "translation_history": pd.DataFrame(history, columns=list(HISTORY_COLUMNS)),
    }


def _results(artifact: Artifact, temperatures: list[float]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The results of a training that did not diverge, and its curve over temperatures."""
    rows = artifact.json("calibration.json")
    validation, test = (
        {row["temperature"]: row for row in rows if row["split"] == split} for split in ("validation", "test")
    )
    bleu = {row["temperature"]: row["bleu"] for row in artifact.json("bleu.json")}
    best, highest = best_temperature(validation.values()), max(bleu, key=lambda temperature: bleu[temperature])
    run = {
        "temperature": best,
        "ece": test[UNSCALED]["ece"],
        "ece_after_scaling": test[best]["ece"],
        "accuracy": test[UNSCALED]["accuracy"],
        "bleu": bleu[UNSCALED],
        "bleu_after_scaling": bleu[best],
        "best_bleu": bleu[highest],
        "best_bleu_temperature": highest,
    }
    return run, [{"temperature": at, "bleu": bleu[at], "validation_ece": validation[at]["ece"]} for at in temperatures]

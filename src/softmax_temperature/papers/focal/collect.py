"""Gathering the paper's records in one folder: what the notebook, the report and a reader without data start from."""

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from softmax_temperature.papers.focal.claims import CLAIMS
from softmax_temperature.papers.focal.records import (
    QUALITATIVE_ARMS,
    RUN,
    SCALED,
    SHIFT_COLUMNS,
    SLUG,
    Records,
    early_stopping,
)
from softmax_temperature.papers.focal.tables import TABLES
from softmax_temperature.papers.focal.theory import theory_checks
from softmax_temperature.papers.shared.records import write_pixels, write_results
from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import Artifact, open_artifact
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.folders import PREPARED
from softmax_temperature.stages import evaluate_focal, fetch, focal_linear, train_focal, train_translation
from softmax_temperature.stages.training_sets import image_set
from softmax_temperature.training.translation.scores import best_temperature

STAGES = (fetch, train_focal, evaluate_focal, focal_linear, train_translation)
"""What the results rest on."""
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "differences": (*RUN, "scaling", "metric", "value", "low", "high"),
    "ood": (*RUN, "scaling", "ood", "samples", "auroc"),
    "roc": (*RUN, "scaling", "ood", "false_positive_rate", "true_positive_rate"),
    "shift": SHIFT_COLUMNS,
    "gradient_norms": (*RUN, "epoch", "low", "high", "count"),
    "reliability": (*RUN, "epoch", "low", "high", "count", "accuracy", "confidence"),
    "panels": (*RUN, "scaling", "image", "label", "predicted", "confidence", "true_probability"),
    "translation_runs": (
        *("arm", "seed", "dataset", "train_pairs", "test_pairs", "parameters", "epochs", "epochs_done", "diverged"),
        *("temperature", "ece", "ece_after_scaling", "accuracy", "bleu", "bleu_after_scaling", "best_bleu"),
        "best_bleu_temperature",
    ),
    "translation_curves": ("arm", "seed", "temperature", "bleu", "validation_ece"),
    "translation_history": ("arm", "seed", "epoch", "loss", "nll", "accuracy", "ece"),
}
"""The columns of tables that may have no rows."""
_DIGITS = 6  # Of the linear model, after the point: far below what a figure shows, and half the size of the files.


def collect(params: Params, folder: Path) -> None:
    """Write records, tables, claims and metrics.

    Args:
        params: declare which cells are read; a missing one is an error, another one is not read.
        folder: `results/<profile>/focal`.
    """
    trainings = {cell.name: open_artifact(train_focal.OUTPUT / cell.name) for cell in train_focal.cells(params)}
    evaluated = {cell.name: open_artifact(evaluate_focal.OUTPUT / cell.name) for cell in evaluate_focal.cells(params)}
    progress = _progress(trainings)
    if progress["diverged"].all():
        what = "every training diverged: there is nothing to tabulate"
        raise InputError(what, where=str(train_focal.OUTPUT), remedy="Lower focal.recipe.lr.")
    history, runs = _rows(trainings, "history"), _rows(evaluated, "runs")
    panels, pixels = choose_panels(params, trainings, runs)
    made = {
        "runs": runs,
        "tasks": _tasks(params, trainings),
        "trainings": progress,
        "history": history,
        **{name: _rows(trainings, name) for name in ("gradient_norms", "reliability")},
        "differences": _rows(evaluated, "differences").assign(reference=evaluate_focal.REFERENCE),
        "early_stopping": early_stopping(history),
        **{name: _rows(evaluated, name) for name in ("ood", "roc", "shift")},
        "panels": panels,
        **linear_tables(params),
        **translation_tables(params),
        "theory_checks": theory_checks(),
    }
    write_pixels(folder / "tables" / "panels.safetensors", pixels)
    write_results(
        folder, SLUG, params.profile, made=made, form=Records, tables=TABLES, claims=CLAIMS,
        code=[*(stage.__name__ for stage in STAGES), __name__],
    )  # fmt: skip


def _frame(name: str, rows: list[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(COLUMNS[name]))


def _names(cell: str) -> dict[str, Any]:
    task, arm, seed = cell.split("/")
    return {"task": task, "arm": arm, "seed": int(seed)}


def _rows(artifacts: Mapping[str, Artifact], name: str) -> pd.DataFrame:
    """The rows of one file of every cell, each with the cell's names."""
    rows = [{**_names(cell), **row} for cell, one in artifacts.items() for row in one.json(f"{name}.json")]
    return pd.DataFrame(rows) if rows else _frame(name, rows)


def _progress(trainings: Mapping[str, Artifact]) -> pd.DataFrame:
    columns = ("epochs", "epochs_done", "selected_epoch", "diverged")
    records = {cell: one.json("record.json") for cell, one in trainings.items()}
    return pd.DataFrame([{**_names(cell), **{name: one[name] for name in columns}} for cell, one in records.items()])


def _tasks(params: Params, trainings: Mapping[str, Artifact]) -> pd.DataFrame:
    rows = []
    for task, about in params.focal.tasks.items():
        first = trainings[f"{task}/{params.focal.arms_of(task)[0]}/0"].json("record.json")
        recipe = params.focal.recipe.changed(about.recipe)
        row: dict[str, Any] = {"task": task}
        row |= {name: getattr(about, name) for name in ("dataset", "network", "printed_dataset", "printed_network")}
        row["differs"] = about.differs
        row["variant"] = "" if about.variant_of is None else task.removeprefix(f"{about.variant_of}-")
        row["variant_of"] = about.variant_of
        row |= {name: first[name] for name in ("classes", "parameters", "noise")}
        row |= {"embeddings": _embeddings(first["embeddings"]), "select": about.select}
        row |= {"epochs": recipe.epochs, "planned_epochs": recipe.planned_epochs}
        rows.append(row | {f"{split}_images": count for split, count in first["samples"].items()})
    return pd.DataFrame(rows)


def _embeddings(about: dict[str, Any] | None) -> str | None:
    """Where the word vectors of a task come from, in words; None for images."""
    if about is None:
        return None
    if about["covered"] is None:
        return "learned"
    share = f"{about['covered']:.1%} of {about['words']:,} words, {about['covered_tokens']:.1%} of the text"
    return f"{Path(about['file']).name}, {share}, {'tuned' if about['step'] else 'frozen'}"


def choose_panels(
    params: Params, trainings: Mapping[str, Artifact], runs: pd.DataFrame
) -> tuple[pd.DataFrame, dict[str, NDArray[np.uint8]]]:
    """Predictions of the losses of Figure H.1 on images that all of them get right, then on some that all get wrong.

    Of each kind the first of the test split are taken, half of `focal.evaluation.panels`, by the first seed: the choice
    favours no loss.

    Args:
        params: declare the tasks.
        trainings: by the name of their cell.
        runs: as in `Records`, for the temperatures.

    Returns:
        The rows of `panels.csv`, for the first seed of every main task; and by task the pixels
        (images, height, width, channels) in the order of the images' first appearance.
    """
    temperatures = runs.set_index([*RUN, "scaling"])["temperature"].to_dict()
    rows: list[dict[str, Any]] = []
    pixels: dict[str, NDArray[np.uint8]] = {}
    half = params.focal.evaluation.panels // 2
    for task, about in params.focal.tasks.items():
        arms = [arm for arm in QUALITATIVE_ARMS if (task, arm, 0, SCALED) in temperatures]
        if about.variant_of or about.text or not half or not arms:
            continue
        stored = {arm: trainings[f"{task}/{arm}/0"].tensors("logits.safetensors") for arm in arms}
        labels = stored[arms[0]]["test.labels"]
        right = torch.stack([some["test.logits"].argmax(1) == labels for some in stored.values()])
        images = [image for kind in (right, ~right) for image in kind.all(0).nonzero().flatten()[:half].tolist()]
        for arm, scaling in product(arms, ("none", SCALED)):
            logits = stored[arm]["test.logits"][images].double() / temperatures[task, arm, 0, scaling]
            for image, row in zip(images, torch.softmax(logits, dim=1), strict=True):
                names = {"task": task, "arm": arm, "seed": 0, "scaling": scaling, "image": image}
                found = {"label": int(labels[image]), "predicted": int(row.argmax()), "confidence": float(row.max())}
                rows.append(names | found | {"true_probability": float(row[labels[image]])})
        test = image_set(open_artifact(PREPARED / about.dataset), "test", params.data.root)
        pixels[task] = test.inputs[images].permute(0, 2, 3, 1).numpy()
    return _frame("panels", rows), pixels


def linear_tables(params: Params) -> dict[str, pd.DataFrame]:
    """The tables of appendix C, by the name of their file.

    linear_history: loss, seed, epoch (from 1), weight_norm, logit_norm (mean over test points).
    linear_mistakes: loss, seed, confidence; one row per misclassified test point, after the last epoch.
    linear_boundary: loss, seed, weight_0, weight_1, test_accuracy; after the last epoch. There is no bias.
    linear_points: x_0, x_1, label; the test points of seed 0, which all losses share.
    """
    history, mistakes, boundary = [], [], []
    points: dict[str, NDArray[Any]] = {}
    for cell in focal_linear.cells(params):
        artifact = open_artifact(focal_linear.OUTPUT / cell.name, kind="focal_linear")
        stored = artifact.tensors(focal_linear.TENSORS)
        loss, _, seed = cell.name.rpartition("/")
        names = {"loss": loss, "seed": int(seed)}
        tensors = {name: some.double().round(decimals=_DIGITS).numpy() for name, some in stored.items()}
        norms = {name: tensors[name] for name in ("weight_norm", "logit_norm")}
        history.append(pd.DataFrame({**names, "epoch": range(1, len(norms["weight_norm"]) + 1), **norms}))
        mistakes.append(pd.DataFrame({**names, "confidence": tensors["misclassified_confidence"]}))
        weights = {f"weight_{place}": weight for place, weight in enumerate(tensors["weights"])}
        boundary.append({**names, **weights, "test_accuracy": artifact.json("record.json")["accuracy"]["test"]})
        if not points and seed == "0":
            x_0, x_1 = tensors["test_points"].T
            points = {"x_0": x_0, "x_1": x_1, "label": stored["test_labels"].numpy()}
    return {
        "linear_history": pd.concat(history, ignore_index=True),
        "linear_mistakes": pd.concat(mistakes, ignore_index=True),
        "linear_boundary": pd.DataFrame(boundary),
        "linear_points": pd.DataFrame(points),
    }


def translation_tables(params: Params) -> dict[str, pd.DataFrame]:
    """The tables of appendix K, by the name of their file; without rows where the section is left out.

    translation_runs: one row per training. Temperature is that of least validation ECE; ece, accuracy (of next tokens)
        and bleu are of test data, as trained and divided by it; best_bleu is the highest over all temperatures that
        were tried. Fractions. Empty from temperature on where a training diverged.
    translation_curves: one row per training and temperature of Figure K.1.
    translation_history: one row per training and epoch: the loss of training; nll, accuracy and ece of validation data.
    """
    section = params.focal.translation
    made: dict[str, list[dict[str, Any]]] = {f"translation_{name}": [] for name in ("runs", "curves", "history")}
    runs, curves, history = made.values()
    for arm, seed in train_translation.trainings(section):
        assert section is not None, "there are trainings"
        names, artifact = {"arm": arm, "seed": seed}, open_artifact(train_translation.OUTPUT / f"{arm}/{seed}")
        record = artifact.json("record.json")
        history += [{**names, **row} for row in record["history"]]
        run = {**names, **record, "dataset": section.dataset}
        run |= {f"{split}_pairs": record["pairs"][split] for split in ("train", "test")}
        if not record["diverged"]:
            results, curve = _translated(artifact, section.temperatures)
            run |= results
            curves += [{**names, **row} for row in curve]
        runs.append(run)
    return {name: _frame(name, rows) for name, rows in made.items()}


def _translated(artifact: Artifact, temperatures: list[float]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The results of a training that did not diverge, and its curve over temperatures."""
    rows = artifact.json("calibration.json")
    validation, test = (
        {row["temperature"]: row for row in rows if row["split"] == split} for split in ("validation", "test")
    )
    bleu = {row["temperature"]: row["bleu"] for row in artifact.json("bleu.json")}
    best, highest = best_temperature(validation.values()), max(bleu, key=lambda temperature: bleu[temperature])
    one = train_translation.UNSCALED
    run = {"temperature": best, "ece": test[one]["ece"], "ece_after_scaling": test[best]["ece"]}
    run |= {"accuracy": test[one]["accuracy"], "bleu": bleu[one], "bleu_after_scaling": bleu[best]}
    run |= {"best_bleu": bleu[highest], "best_bleu_temperature": highest}
    return run, [{"temperature": at, "bleu": bleu[at], "validation_ece": validation[at]["ece"]} for at in temperatures]

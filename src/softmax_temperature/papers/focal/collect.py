"""Gathering the paper's records in one folder: what the notebook, the report and a
reader without data start from.
"""

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from softmax_temperature.losses.propositions import theory_checks
from softmax_temperature.papers.focal import records as paper
from softmax_temperature.papers.focal.records import COLUMNS, RUN, SCALED, SLUG
from softmax_temperature.papers.shared.records import (
    named_rows,
    names_of,
    write_pixels,
    write_results,
)
from softmax_temperature.params import Params
from softmax_temperature.params.focal import REFERENCE
from softmax_temperature.runner.artifacts import Artifact
from softmax_temperature.runner.errors import InputError
from softmax_temperature.stages import LOGITS
from softmax_temperature.stages.fetch import fetch
from softmax_temperature.stages.focal import train_focal
from softmax_temperature.stages.focal_appendices import (
    TENSORS,
    focal_linear,
    train_translation,
)
from softmax_temperature.stages.focal_evaluation import evaluate_focal
from softmax_temperature.training.prepared_sets import image_set
from softmax_temperature.training.translation.scores import UNSCALED, best_temperature
from softmax_temperature.training.word_embeddings import described

STAGES = (fetch, train_focal, evaluate_focal, focal_linear, train_translation)
"""What the results rest on."""
# Of the linear model, after the point: far below what a figure shows, and half the size
# of the files.
_DIGITS = 6


def collect(params: Params, folder: Path) -> None:
    """Write records, tables, claims and metrics into a folder; a missing cell of the
    parameters is an error.
    """
    trainings, evaluated = train_focal.results(params), evaluate_focal.results(params)
    logs = {cell: one.json("record.json") for cell, one in trainings.items()}
    columns = [*RUN, "epochs", "epochs_done", "selected_epoch", "diverged"]
    progress = pd.DataFrame([log | names_of(cell, RUN) for cell, log in logs.items()])[
        columns
    ]
    if progress["diverged"].all():
        what = "every training diverged: there is nothing to tabulate"
        raise InputError(
            what, where=str(train_focal.output), remedy="Lower focal.recipe.lr."
        )
    made = {
        **{
            name: _rows(trainings, name)
            for name in ("history", "gradient_norms", "reliability")
        },
        **{
            name: _rows(evaluated, name)
            for name in ("runs", "differences", "ood", "roc", "shift")
        },
        **linear_tables(params),
        **translation_tables(params),
        "tasks": pd.DataFrame(
            [_task(params, task, logs) for task in params.focal.tasks]
        ),
        "trainings": progress,
        "theory_checks": theory_checks(),
    }
    made["differences"]["reference"] = REFERENCE
    made["early_stopping"] = paper.early_stopping(made["history"])
    made["panels"], pixels = choose_panels(params, trainings, made["runs"])
    write_pixels(folder / "tables" / "panels.safetensors", pixels)
    write_results(
        folder,
        SLUG,
        params.profile,
        made=made,
        code=[*(stage.module for stage in STAGES), __name__],
    )


def _rows(artifacts: Mapping[str, Artifact], name: str) -> pd.DataFrame:
    """The rows of one file of every cell, each with the cell's names."""
    rows = named_rows(
        (names_of(cell, RUN), one.json(f"{name}.json"))
        for cell, one in artifacts.items()
    )
    return rows if len(rows) else pd.DataFrame(columns=COLUMNS[name])


def _task(
    params: Params, task: str, logs: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    about, log = (
        params.focal.tasks[task],
        logs[f"{task}/{params.focal.arms_of(task)[0]}/0"],
    )
    recipe = params.focal.recipe.changed(about.recipe)
    names = ("dataset", "network", "printed_dataset", "printed_network", "differs")
    row = {"task": task} | {name: getattr(about, name) for name in names}
    row |= {
        "variant": task.removeprefix(f"{about.variant_of}-") if about.variant_of else ""
    }
    row |= {"variant_of": about.variant_of} | {
        name: log[name] for name in ("classes", "parameters", "noise")
    }
    row |= {"embeddings": described(log["embeddings"]), "select": about.select}
    row |= {"epochs": recipe.epochs, "planned_epochs": recipe.planned_epochs}
    return row | {f"{split}_images": count for split, count in log["samples"].items()}


def choose_panels(
    params: Params, trainings: Mapping[str, Artifact], runs: pd.DataFrame
) -> tuple[pd.DataFrame, dict[str, NDArray[np.uint8]]]:
    """Predictions on the first test images that all losses of Figure H.1 get right, and
    wrong; by task their pixels.

    Half of `focal.evaluation.panels` are of each kind, by the first seed: the choice
        favours no loss.
    """
    temperatures = runs.set_index([*RUN, "scaling"])["temperature"].to_dict()
    rows: list[tuple[Any, ...]] = []
    pixels: dict[str, NDArray[np.uint8]] = {}
    half = params.focal.evaluation.panels // 2
    for task, about in params.focal.tasks.items():
        arms = [
            arm
            for arm in paper.QUALITATIVE_ARMS
            if (task, arm, 0, SCALED) in temperatures
        ]
        if about.variant_of or about.text or not half or not arms:
            continue
        stored = {arm: trainings[f"{task}/{arm}/0"].tensors(LOGITS) for arm in arms}
        labels = stored[arms[0]]["test.labels"]
        right = torch.stack(
            [some["test.logits"].argmax(1) == labels for some in stored.values()]
        )
        images = [
            image
            for kind in (right, ~right)
            for image in kind.all(0).nonzero().flatten()[:half].tolist()
        ]
        for arm, scaling in product(arms, ("none", SCALED)):
            logits = (
                stored[arm]["test.logits"][images].double()
                / temperatures[task, arm, 0, scaling]
            )
            for image, probs in zip(images, torch.softmax(logits, dim=1), strict=True):
                label, predicted = int(labels[image]), int(probs.argmax())
                numbers = (
                    image,
                    label,
                    predicted,
                    float(probs[predicted]),
                    float(probs[label]),
                )
                rows.append((task, arm, 0, scaling, *numbers))
        test = image_set(fetch.result(about.dataset), "test", params.data.root)
        pixels[task] = test.inputs[images].permute(0, 2, 3, 1).numpy()
    return pd.DataFrame(rows, columns=list(COLUMNS["panels"])), pixels


def linear_tables(params: Params) -> dict[str, pd.DataFrame]:
    """The tables of appendix C, by the name of their file."""
    tables: dict[str, list[pd.DataFrame]] = {
        name: [] for name in ("history", "mistakes", "boundary", "points")
    }
    history, mistakes, boundary, points = tables.values()
    for cell, artifact in focal_linear.results(params).items():
        stored = artifact.tensors(TENSORS)
        values = {
            name: some.double().round(decimals=_DIGITS).numpy()
            for name, some in stored.items()
        }
        loss, _, seed = cell.rpartition("/")
        names = {"loss": loss, "seed": int(seed)}
        norms = {name: values[name] for name in ("weight_norm", "logit_norm")}
        history.append(
            pd.DataFrame(
                {**names, "epoch": range(1, len(norms["weight_norm"]) + 1), **norms}
            )
        )
        mistakes.append(
            pd.DataFrame({**names, "confidence": values["misclassified_confidence"]})
        )
        weights = dict(zip(("weight_0", "weight_1"), values["weights"], strict=True))
        accuracy = artifact.json("record.json")["accuracy"]["test"]
        boundary.append(pd.DataFrame([{**names, **weights, "test_accuracy": accuracy}]))
        if not points:  # Those of seed 0.
            both = pd.DataFrame(values["test_points"], columns=["x_0", "x_1"])
            points.append(both.assign(label=stored["test_labels"].numpy()))
    return {
        f"linear_{name}": pd.concat(some, ignore_index=True)
        for name, some in tables.items()
    }


def translation_tables(params: Params) -> dict[str, pd.DataFrame]:
    """The tables of appendix K, by the name of their file; without rows where the
    section is left out.
    """
    section = params.focal.translation
    made: dict[str, list[Any]] = {
        f"translation_{name}": [] for name in ("runs", "curves", "history")
    }
    runs, curves, history = made.values()
    for arm, seed in section.trainings() if section else ():
        assert section, "there are trainings"
        names, artifact = (
            {"arm": arm, "seed": seed},
            train_translation.result(arm, seed),
        )
        record = artifact.json("record.json")
        history.append((names, record["history"]))
        run = record | {
            f"{split}_pairs": record["pairs"][split] for split in ("train", "test")
        }
        if not record["diverged"]:
            bleu = {
                row["temperature"]: row["bleu"] for row in artifact.json("bleu.json")
            }
            scores = {
                (row["split"], row["temperature"]): row
                for row in artifact.json("calibration.json")
            }
            best = best_temperature(
                row for row in scores.values() if row["split"] == "validation"
            )
            one, highest = UNSCALED, max(bleu, key=lambda at: bleu[at])
            plain, scaled = scores["test", one], scores["test", best]
            run |= {
                "temperature": best,
                "ece": plain["ece"],
                "ece_after_scaling": scaled["ece"],
            }
            run |= {
                "accuracy": plain["accuracy"],
                "bleu": bleu[one],
                "bleu_after_scaling": bleu[best],
            }
            run |= {"best_bleu": bleu[highest], "best_bleu_temperature": highest}
            ece = {at: scores["validation", at]["ece"] for at in section.temperatures}
            curves.append(
                (
                    names,
                    [
                        {"temperature": at, "bleu": bleu[at], "validation_ece": ece[at]}
                        for at in ece
                    ],
                )
            )
        runs.append((names, [run | {"dataset": section.dataset}]))
    return {name: named_rows(cells, COLUMNS[name]) for name, cells in made.items()}

"""Collect the runs of the focal paper from its stages' cells."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic_core import to_jsonable_python

from softmax_temperature.losses.propositions import theory_checks
from softmax_temperature.papers.focal.panels import PIXELS, with_panels
from softmax_temperature.papers.focal.study import CLASSIFICATION, SLUG
from softmax_temperature.papers.shared.collecting import (
    DeclaredRun,
    MeasuredRun,
    gather_study,
)
from softmax_temperature.papers.shared.records import (
    write_pixels,
    write_study,
)
from softmax_temperature.papers.shared.runs import (
    DATA_MISSING,
    NOT_RUN,
    REASON,
    SEED,
    Runs,
    gamma_text,
)
from softmax_temperature.params import Params
from softmax_temperature.params.focal import TranslationTask
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.runner.artifacts import Artifact
from softmax_temperature.runner.errors import InputError
from softmax_temperature.stages import part_of
from softmax_temperature.stages.fetch import fetch
from softmax_temperature.stages.focal import train_focal
from softmax_temperature.stages.focal_appendices import (
    TENSORS,
    focal_linear,
    train_translation,
)
from softmax_temperature.stages.focal_evaluation import evaluate_focal
from softmax_temperature.stages.inputs import without_missing
from softmax_temperature.training.translation.scores import UNSCALED, best_temperature
from softmax_temperature.training.word_embeddings import described

STAGES = (fetch, train_focal, evaluate_focal, focal_linear, train_translation)
"""The stages that produce the results."""
MEASURED_COLUMNS = {
    "differences": ("scaling", "metric", "value", "low", "high"),
    "roc": ("scaling", "ood", "false_positive_rate", "true_positive_rate"),
    "gradient_norms": ("epoch", "low", "high", "count"),
    "reliability": ("epoch", "low", "high", "count", "accuracy", "confidence"),
    "panels": (
        "scaling",
        "image",
        "label",
        "predicted",
        "confidence",
        "true_probability",
    ),
    "linear_mistakes": ("confidence",),
    "linear_points": ("x_0", "x_1", "label"),
    "translation_curves": ("temperature", "bleu", "validation_ece"),
}
"""Maps each measured table whose rows belong to runs to its columns."""
NAMES = {
    "expected_calibration_error": "ece",
    "negative_log_likelihood": "nll",
    "maximum_calibration_error": "mce",
    "adaptive_calibration_error": "adaptive_ece",
    "classwise_calibration_error": "classwise_ece",
    "debiased_calibration_error": "debiased_ece",
}
"""Maps the name of a metric in the evaluation to its name in the table of values."""
_ENDS = ("", "_low", "_high")
"""The suffixes of a metric and of the two ends of its interval."""
_ABOUT_ROW = {"evaluated", "scaling", "ood", "shifted"}
"""The columns of the evaluation that identify a row."""
_BY_LIKELIHOOD = "_by_nll"
"""Suffix of a metric at the temperature with the lowest validation NLL."""
_ON_THIS_MACHINE = ("vectors_sha256", "noise_archive")
"""Parameters of a run that depend on files that another machine may lack.

They are left out of the declared parameters.
"""
# The linear model's values are rounded to this many decimal places. A figure cannot
# show more, and rounding halves the size of the tables with these values.
_DIGITS = 6

Row = Mapping[str, Any]


def collect(params: Params, folder: Path) -> None:
    """Write runs, tables, claims and metrics of the study into the paper's folder.

    Raises:
        InputError: If the data of a declared run are available, but the run is neither
            in a cell on this machine nor recorded in the folder (`gather` makes one
            exception); or if the runs of all classifiers diverged.
    """
    runs = gather_study(
        folder, SLUG, params, declared_runs, read_run, tables=MEASURED_COLUMNS
    )
    if runs is None:
        return
    runs = _with_missing_outliers(runs, params)
    diverged = CLASSIFICATION.select(runs.table)["diverged"]
    if len(diverged) and diverged.all():
        raise InputError(
            "every training run diverged, so no table can be made",
            where=str(train_focal.output),
            remedy="Lower focal.recipe.lr.",
        )
    pixels = folder / "tables" / PIXELS
    runs, pictures = with_panels(runs, params, pixels)
    write_pixels(pixels, pictures)
    write_study(
        folder,
        SLUG,
        params.profile,
        runs=runs,
        tables={"theory_checks": theory_checks()},
        code=[*(stage.module for stage in STAGES), __name__],
    )


def _with_missing_outliers(runs: Runs, params: Params) -> Runs:
    """Add the missing out-of-distribution sets to the table `not_run` of `runs`.

    The tasks themselves run without these sets.
    """
    possible = without_missing(params).focal.tasks
    missing: dict[tuple[str, str], dict[str, Any]] = {}
    for run in declared_classifiers(params):
        experiment = run.factors["experiment"]
        if experiment not in possible:
            continue
        here = possible[experiment].out_of_distribution
        for name in params.focal.tasks[experiment].out_of_distribution:
            if name not in here:
                row = {**run.factors, "other_set": name, REASON: DATA_MISSING}
                missing.setdefault((experiment, name), row)
    if not missing:
        return runs
    rows = pd.DataFrame(missing.values()).drop(columns=SEED)
    parts = [table for table in (runs.tables.get(NOT_RUN), rows) if table is not None]
    not_run = pd.concat(parts, ignore_index=True)
    return replace(runs, tables={**runs.tables, NOT_RUN: not_run})


def declared_runs(params: Params) -> Iterator[DeclaredRun]:
    """The runs of classifiers, linear models and translation that `params` declare."""
    yield from declared_classifiers(params)
    yield from declared_linear(params)
    yield from declared_translation(params)


def declared_classifiers(params: Params) -> Iterator[DeclaredRun]:
    """The declared runs of classifiers: every task with all its losses and seeds."""
    section = params.focal
    parameters = {cell.name: cell.parameters for cell in train_focal.cells(params)}
    for name, arm_name, seed in section.trainings():
        task = section.tasks[name]
        arm = section.arm_of(name, arm_name)
        recipe = section.recipe_of(name, arm_name)
        variant = None
        if task.variant_of is not None:
            variant = name.removeprefix(f"{task.variant_of}-")
        factors = {
            "task": "classification",
            "dataset": task.dataset,
            "network": task.network,
            "architecture": params.networks[task.network].architecture,
            **loss_factors(arm.loss, arm.options),
            **recipe_factors(recipe),
            "seed": seed,
            "experiment": name,
            "variant": variant,
            "variant_of": task.variant_of,
            "printed_dataset": task.printed_dataset,
            "printed_network": task.printed_network,
            "differs": task.differs,
            "select": task.select,
            "epochs": recipe.epochs,
            "planned_epochs": recipe.planned_epochs,
            "bootstrap": section.evaluation.bootstrap,
        }
        cell = f"{name}/{arm_name}/{seed}"
        compared = {
            name: value
            for name, value in parameters[cell].items()
            if name not in _ON_THIS_MACHINE
        }
        yield DeclaredRun(train_focal, cell, factors, compared)


def declared_linear(params: Params) -> Iterator[DeclaredRun]:
    """The declared linear models of appendix C; none if `params` lack them."""
    section = params.focal.linear
    if section is None:
        return
    parameters = {cell.name: cell.parameters for cell in focal_linear.cells(params)}
    for name, seed in section.trainings():
        gamma = section.gammas[name]
        loss = loss_factors("focal", {"gamma": gamma})
        if gamma == 0:
            loss = loss_factors("cross_entropy", {})
        factors = {
            "task": "linear",
            "dataset": "clusters",
            "network": "linear",
            "architecture": "linear",
            **loss,
            "learning_rate": section.lr,
            "seed": seed,
            "experiment": "linear",
            "epochs": section.epochs,
            "planned_epochs": section.epochs,
        }
        cell = f"{name}/{seed}"
        yield DeclaredRun(focal_linear, cell, factors, parameters[cell])


def declared_translation(params: Params) -> Iterator[DeclaredRun]:
    """The declared translation models of appendix K; none if `params` lack them."""
    section = params.focal.translation
    if section is None:
        return
    for name, seed in section.trainings():
        arm = section.arms[name]
        factors = {
            "task": "translation",
            "dataset": section.dataset,
            "network": "Transformer",
            "architecture": "transformer",
            **loss_factors(arm.loss, arm.options),
            **recipe_factors(section.recipe),
            "seed": seed,
            "experiment": f"translation-{section.dataset}",
            "epochs": section.recipe.epochs,
            "planned_epochs": section.recipe.planned_epochs,
        }
        # Do not take the parameters from the stage's cells: those parameters contain a
        # digest of the data files, and this machine may lack these files.
        parameters = {"task": part_of(section, TranslationTask), "arm": arm}
        yield DeclaredRun(
            train_translation,
            f"{name}/{seed}",
            factors,
            to_jsonable_python(parameters),
        )


def loss_factors(loss: str, options: Row) -> dict[str, Any]:
    """The factors of a loss, from its name and options.

    For a schedule, the factor `gamma` consists of the schedule's gammas, as in "531".
    For sample-dependent focal loss, it is the name of the policy, such as "53".
    """
    remaining = dict(options)
    factors = dict.fromkeys(
        ("gamma", "smoothing", "milestones", "mmce_form", "mmce_weight", "options")
    )
    if loss == "focal":
        factors["gamma"] = gamma_text(remaining.pop("gamma"))
    elif loss == "label_smoothing":
        factors["smoothing"] = remaining.pop("smoothing")
    elif loss == "sample_dependent_focal":
        factors["gamma"] = remaining.pop("policy", "53")
    elif loss == "scheduled_focal":
        gammas = [f"{gamma:g}" for gamma in remaining.pop("gammas")]
        is_short = all(len(gamma) == 1 for gamma in gammas)
        factors["gamma"] = ("" if is_short else ", ").join(gammas)
        factors["milestones"] = ", ".join(map(str, remaining.pop("milestones")))
    elif loss == "mmce":
        is_released = remaining.pop("as_released", False)
        factors["mmce_form"] = "released" if is_released else "written"
        factors["mmce_weight"] = remaining.pop("weight", 2.0)
    if remaining:
        factors["options"] = json.dumps(remaining, sort_keys=True)
    return {"loss": loss, **factors}


def recipe_factors(recipe: Recipe) -> dict[str, Any]:
    """The factors that `recipe` sets."""
    return {
        "schedule": recipe.schedule.name,
        "warmup": recipe.schedule.warmup,
        "optimizer": recipe.optimizer,
        "learning_rate": recipe.lr,
        "weight_decay": recipe.weight_decay,
        "batch_size": recipe.batch_size,
        "reduction": recipe.reduction,
        "clip_norm": recipe.clip_norm,
        "crop_padding": recipe.crop_padding,
        "flip": recipe.flip,
    }


def read_run(run: DeclaredRun, artifact: Artifact) -> MeasuredRun:
    """Read the facts, the values and the measured tables of a run from its cell."""
    readers: dict[Any, Callable[[DeclaredRun, Artifact], MeasuredRun]] = {
        train_focal.name: _classifier,
        focal_linear.name: _linear_model,
        train_translation.name: _translation_model,
    }
    return readers[run.stage.name](run, artifact)


def _classifier(run: DeclaredRun, artifact: Artifact) -> MeasuredRun:
    """Read a classifier's run from its training cell and its evaluation cell."""
    record = artifact.json("record.json")
    evaluation = evaluate_focal.result(run.cell)
    facts = {
        "classes": record["classes"],
        "parameters": record["parameters"],
        "noise": record["noise"],
        "embeddings": described(record["embeddings"]),
        **{f"{split}_images": count for split, count in record["samples"].items()},
        "epochs_done": record["epochs_done"],
        "selected_epoch": record["selected_epoch"],
        "diverged": record["diverged"],
    }
    rows = artifact.json("history.json")
    rows += values_of_evaluation(
        evaluation.json("runs.json"),
        select=run.factors["select"],
        epochs_done=record["epochs_done"],
        selected_epoch=record["selected_epoch"],
        ood=evaluation.json("ood.json"),
        shift=evaluation.json("shift.json"),
    )
    tables = {
        "differences": [
            {**row, "metric": _renamed(row["metric"])}
            for row in evaluation.json("differences.json")
        ],
        "roc": evaluation.json("roc.json"),
        "gradient_norms": artifact.json("gradient_norms.json"),
        "reliability": artifact.json("reliability.json"),
    }
    return MeasuredRun(facts, merged(rows), tables)


def values_of_evaluation(
    rows: Iterable[Row],
    *,
    select: str,
    epochs_done: int,
    selected_epoch: int,
    ood: Iterable[Row],
    shift: Iterable[Row],
) -> list[dict[str, Any]]:
    """Turn the evaluation of one run into rows of values.

    Args:
        rows: One row of metrics on test data per scaling and evaluated epoch. The
            evaluated epochs are the selected one and the last one.
        select: The kind of epoch that the experiment selects, "last" or
            "best_validation".
        epochs_done: The number of the last epoch.
        selected_epoch: The number of the selected epoch.
        ood: One row of scores per out-of-distribution set and scaling, after the
            selected epoch.
        shift: One row of metrics per shifted set and scaling, after the selected epoch.
    """
    values = []
    for row in rows:
        is_selected = row["evaluated"] == select
        epoch = selected_epoch if is_selected else epochs_done
        about = {key: value for key, value in row.items() if key != "samples"}
        values.append(_value_row("test", epoch, about))
    values += [_value_row(row["ood"], selected_epoch, row) for row in ood]
    values += [_value_row(row["shifted"], selected_epoch, row) for row in shift]
    return values


def _value_row(split: str, epoch: int, row: Row) -> dict[str, Any]:
    """Turn a row of the evaluation into a row of values.

    Metrics at the temperature with the lowest validation NLL get a suffix.
    """
    ending = _BY_LIKELIHOOD if row["scaling"] == "nll" else ""
    metrics = {
        f"{_renamed(name)}{ending}": value
        for name, value in row.items()
        if name not in _ABOUT_ROW
    }
    scaled = row["scaling"] != "none"
    return {"split": split, "epoch": epoch, "scaled": scaled, **metrics}


def _renamed(metric: str) -> str:
    """Our name for `metric`, a metric of the evaluation or an end of its interval."""
    for end in _ENDS:
        name = metric.removesuffix(end)
        if name in NAMES:
            return NAMES[name] + metric.removeprefix(name)
    return metric


def merged(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Merge the rows that agree in split, epoch and `scaled`.

    If several of these rows have a value for the same metric, the last value wins. For
    instance, both the history and the evaluation have the accuracy after the last
    epoch.
    """
    by_place: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        place = (row["split"], row["epoch"], row.get("scaled", False))
        by_place.setdefault(place, {}).update(row)
    return list(by_place.values())


def _linear_model(run: DeclaredRun, artifact: Artifact) -> MeasuredRun:
    stored = artifact.tensors(TENSORS)
    values = {
        name: tensor.double().round(decimals=_DIGITS).tolist()
        for name, tensor in stored.items()
    }
    norms = zip(values["weight_norm"], values["logit_norm"], strict=True)
    rows: list[dict[str, Any]] = []
    for epoch, (weight_norm, logit_norm) in enumerate(norms, start=1):
        norm = {"weight_norm": weight_norm, "logit_norm": logit_norm}
        rows.append({"split": "test", "epoch": epoch, **norm})
    last = len(rows)
    first_weight, second_weight = values["weights"]
    rows[-1]["accuracy"] = artifact.json("record.json")["accuracy"]["test"]
    rows[-1]["weight_0"] = first_weight
    rows[-1]["weight_1"] = second_weight
    confidences = values["misclassified_confidence"]
    tables: dict[str, list[Any]] = {
        "linear_mistakes": [{"confidence": value} for value in confidences]
    }
    if run.factors["loss"] == "cross_entropy" and run.factors["seed"] == 0:
        points = pd.DataFrame(values["test_points"], columns=["x_0", "x_1"])
        points = points.assign(label=stored["test_labels"].numpy())
        tables["linear_points"] = points.to_dict("records")
    facts = {"epochs_done": last, "selected_epoch": last, "diverged": False}
    return MeasuredRun(facts, rows, tables)


def _translation_model(run: DeclaredRun, artifact: Artifact) -> MeasuredRun:
    record = artifact.json("record.json")
    facts = {
        "parameters": record["parameters"],
        "train_pairs": record["pairs"]["train"],
        "test_pairs": record["pairs"]["test"],
        "epochs_done": record["epochs_done"],
        "selected_epoch": record["selected_epoch"],
        "diverged": record["diverged"],
    }
    names = ("epoch", "loss", "nll", "accuracy", "ece")
    rows: list[dict[str, Any]] = [
        {"split": "validation", **{name: row[name] for name in names}}
        for row in record["history"]
    ]
    if record["diverged"]:
        return MeasuredRun(facts, rows)
    assert run.parameters, "a translation is declared with its parameters"
    bleu = {row["temperature"]: row["bleu"] for row in artifact.json("bleu.json")}
    scores = {
        (row["split"], row["temperature"]): row
        for row in artifact.json("calibration.json")
    }
    validation = [row for row in scores.values() if row["split"] == "validation"]
    best = best_temperature(validation)
    highest = max(bleu, key=lambda temperature: bleu[temperature])
    place = {"split": "test", "epoch": record["selected_epoch"]}
    plain_scores = scores["test", UNSCALED]
    rows.append(
        {
            **place,
            "ece": plain_scores["ece"],
            "accuracy": plain_scores["accuracy"],
            "bleu": bleu[UNSCALED],
            "best_bleu": bleu[highest],
            "best_bleu_temperature": highest,
        }
    )
    rows.append(
        {
            **place,
            "scaled": True,
            "ece": scores["test", best]["ece"],
            "bleu": bleu[best],
            "temperature": best,
        }
    )
    curves = [
        {
            "temperature": temperature,
            "bleu": bleu[temperature],
            "validation_ece": scores["validation", temperature]["ece"],
        }
        for temperature in run.parameters["task"]["temperatures"]
    ]
    return MeasuredRun(facts, rows, {"translation_curves": curves})

"""Collect the runs of the cosine-classifier paper from its stages' cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from softmax_temperature.cosine_classifier import TemperatureGrid
from softmax_temperature.heuristic.tables import curve
from softmax_temperature.papers.classifier_temperature.study import (
    FITTED,
    MEASURED_COLUMNS,
    SLUG,
)
from softmax_temperature.papers.shared.collecting import (
    DeclaredRun,
    MeasuredRun,
    gather_study,
)
from softmax_temperature.papers.shared.files import read_csv, write_results
from softmax_temperature.papers.shared.records import (
    table_path,
    write_study,
)
from softmax_temperature.papers.shared.runs import RUN, Runs
from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import Artifact, find_artifacts
from softmax_temperature.runner.cells import Cell
from softmax_temperature.stages.classifier_temperature import (
    describe,
    rescaling,
    search,
)
from softmax_temperature.stages.embeddings import embed
from softmax_temperature.stages.fetch import fetch
from softmax_temperature.stages.heuristic import grids, heuristic
from softmax_temperature.stages.pretraining import pretrain

STAGES = (fetch, pretrain, embed, describe, search, rescaling, heuristic)
"""The stages that produce the results."""
HEURISTIC_FILE = "heuristic.json"


def collect(params: Params, folder: Path) -> None:
    """Write runs, tables, claims and metrics of the study into the paper's folder.

    Raises:
        InputError: If a declared run is neither in a cell on this machine nor recorded
            in the folder.
    """
    runs = gather_study(
        folder, SLUG, params, declared_runs, read_run, tables=MEASURED_COLUMNS
    )
    if runs is None:
        return
    write_study(
        folder,
        SLUG,
        params.profile,
        runs=runs,
        tables=_fitted_tables(folder, runs),
        code=[*(stage.module for stage in STAGES), __name__],
    )


def _fitted_tables(folder: Path, runs: Runs) -> dict[str, pd.DataFrame]:
    """Read the tables of the `heuristic` stage, and copy its file `heuristic.json`.

    If the stage's cell is not on this machine or has fewer pairs than `runs`, keep the
    tables and the file that are recorded in `folder`.
    """
    pairs = int((runs.table["task"] == "pair").sum())
    if not list(find_artifacts(heuristic.output)):
        return {name: read_csv(table_path(folder, name)) for name in FITTED}
    fitted = heuristic.result(".")
    if len(fitted.about["parameters"]["pairs"]) < pairs:
        return {name: read_csv(table_path(folder, name)) for name in FITTED}
    write_results(folder / HEURISTIC_FILE, fitted.json(HEURISTIC_FILE))
    return {name: pd.read_csv(fitted.path(f"{name}.csv")) for name in FITTED}


def declared_runs(params: Params) -> Iterator[DeclaredRun]:
    """The runs that `params` declare: searches, pairs, and the runs of Figure 2."""
    section = params.classifier_temperature
    temperatures = section.search.inverse_temperatures
    # The values of a search are means over its repeats, so the repeats have no separate
    # seeds.
    searched = [
        {"inverse_temperature": temperature, "seed": None}
        for temperature in temperatures
    ]
    places = [_place(params, *pair) for pair in params.embedded_pairs()]
    plans = {cell.name: cell.parameters for cell in search.cells(params)}
    for place in places:
        cell = f"{place['dataset']}/{place['backbone']}"
        factors = {"task": "search", **place, **_search_factors(params)}
        yield DeclaredRun(search, cell, factors, plans[cell], searched)
    for joined in heuristic.cells(params):
        factors = {"task": "pair", **_search_factors(params)}
        yield DeclaredRun(heuristic, joined.name, factors, joined.parameters, places)
    trained = [
        {"inverse_temperature": temperature, "seed": repeat}
        for repeat in range(section.rescaling.repeats)
        for temperature in temperatures
    ]
    for arm in rescaling.cells(params):
        factors = {"task": "rescaling", **_rescaling_factors(params, arm)}
        yield DeclaredRun(rescaling, arm.name, factors, arm.parameters, trained)


def _place(params: Params, dataset: str, backbone: str) -> dict[str, Any]:
    """The factors that all runs on one data set and backbone share."""
    weights = params.backbones[backbone].weights
    return {"dataset": dataset, "backbone": backbone, "weights": weights}


def _search_factors(params: Params) -> dict[str, Any]:
    """The factors that all searches and pairs share."""
    plan = params.classifier_temperature.search
    return {
        "loss": "rescaled",
        "optimizer": "sgd",
        "learning_rate": plan.lr,
        "epochs": plan.epochs,
        "repeats": plan.repeats,
    }


def _rescaling_factors(params: Params, arm: Cell) -> dict[str, Any]:
    """The factors that all runs of one arm of Figure 2 share."""
    section = params.classifier_temperature.rescaling
    return {
        **_place(params, section.dataset, section.backbone),
        "loss": arm.plan["loss"],
        "optimizer": arm.plan["optimizer"],
        "learning_rate": arm.plan["grid"].lr,
        "epochs": section.epochs,
        "repeats": 1,
    }


def read_run(run: DeclaredRun, artifact: Artifact) -> MeasuredRun:
    """Read the values of all runs in a cell; for pairs, read the table of pairs."""
    if run.stage is search:
        return MeasuredRun({}, _searches(artifact, run.factors["epochs"]))
    if run.stage is rescaling:
        return MeasuredRun({}, _rescalings(artifact, run.factors["epochs"]))
    pairs = pd.read_csv(artifact.path("pairs.csv")).to_dict("records")
    return MeasuredRun({}, [], {"pairs": _numbered(pairs)})


def _searches(artifact: Artifact, epochs: int) -> list[dict[str, Any]]:
    """The values of each run in a cell of the `search` stage, as means over repeats."""
    at = {"epoch": epochs}
    test = []
    validation = []
    for row in pd.DataFrame(curve(*grids(artifact))).to_dict("records"):
        accuracies = {
            "best_accuracy": row["test_accuracy"],
            "best_epoch": row["test_epoch"],
            "accuracy_at_validation_best": row["test_accuracy_at_validation_best"],
        }
        test.append({"split": "test", **at, **accuracies})
        accuracies = {"best_accuracy": row["validation_accuracy"]}
        validation.append({"split": "validation", **at, **accuracies})
    return [*_numbered(test), *_numbered(validation)]


def _rescalings(artifact: Artifact, epochs: int) -> list[dict[str, Any]]:
    """The test accuracy after the best epoch, by repeat and inverse temperature."""
    record = artifact.json("record.json")
    curves = artifact.tensors("curves.safetensors")["test"]
    grid = TemperatureGrid(
        tuple(record["inverse_temperatures"]), curves, record["rows"]
    )
    accuracies = grid.accuracy.double().round(decimals=6).ravel().tolist()
    return _numbered(
        [
            {"split": "test", "epoch": epochs, "best_accuracy": accuracy}
            for accuracy in accuracies
        ]
    )


def _numbered(rows: Sequence[Mapping[Any, Any]]) -> list[dict[str, Any]]:
    """Add a column `run` that numbers the rows from 0."""
    return [{RUN: number, **row} for number, row in enumerate(rows)]

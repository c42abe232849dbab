"""Gathering the paper's records in one folder: what the notebook, the report and a reader without data start from."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.focal import tables
from softmax_temperature.papers.focal.claims import CLAIMS
from softmax_temperature.papers.focal.linear_tables import linear_tables
from softmax_temperature.papers.focal.panels import choose_panels
from softmax_temperature.papers.focal.records import SLUG, read_records
from softmax_temperature.papers.focal.table_specs import SPECS
from softmax_temperature.papers.focal.tables import table_k1
from softmax_temperature.papers.focal.theory import theory_checks
from softmax_temperature.papers.focal.translation import translation_tables
from softmax_temperature.papers.shared.claims import judge_all
from softmax_temperature.papers.shared.deviations import deviations
from softmax_temperature.papers.shared.tables import write_csv
from softmax_temperature.runner.artifacts import atomic_file, open_artifact, write_json
from softmax_temperature.runner.errors import InputError
from softmax_temperature.stages import evaluate_focal, fetch, focal_linear, train_focal, train_translation

if TYPE_CHECKING:
    from softmax_temperature.params import Params
    from softmax_temperature.runner.artifacts import Artifact

STAGES = (fetch, train_focal, evaluate_focal, focal_linear, train_translation)
"""What the results rest on."""

_NAMES = ("task", "arm", "seed")
_COLUMNS = MappingProxyType(
    {
        "differences": (*_NAMES, "scaling", "metric", "value", "low", "high"),
        "ood": (*_NAMES, "scaling", "ood", "samples", "auroc"),
        "roc": (*_NAMES, "scaling", "ood", "false_positive_rate", "true_positive_rate"),
        "gradient_norms": (*_NAMES, "epoch", "low", "high", "count"),
        "reliability": (*_NAMES, "epoch", "low", "high", "count", "accuracy", "confidence"),
    }
)
"""The columns of tables that may have no rows."""


def collect(params: Params, folder: Path) -> None:
    """Write records, tables, claims and metrics.

    Args:
        params: declare which cells are read; a missing one is an error, another one is not read.
        folder: `results/<profile>/focal`.
    """
    trainings = {cell.name: open_artifact(train_focal.OUTPUT / cell.name) for cell in train_focal.cells(params)}
    if all(_progress(one)["diverged"] for one in trainings.values()):
        what = "every training diverged: there is nothing to tabulate"
        raise InputError(what, where=str(train_focal.OUTPUT), remedy="Lower focal.recipe.lr.")
    write_csv(folder / "runs.csv", _evaluated(params, "runs"))
    made = {
        "tasks": _tasks(params, trainings),
        "trainings": pd.DataFrame([{**_names(name), **_progress(one)} for name, one in trainings.items()]),
        **{name: _rows(trainings, name) for name in ("history", "gradient_norms", "reliability")},
        "differences": _evaluated(params, "differences").assign(reference=evaluate_focal.REFERENCE),
        **{name: _evaluated(params, name) for name in ("ood", "roc")},
        **linear_tables(params),
        **translation_tables(params),
        "theory_checks": theory_checks(),
    }
    made["early_stopping"] = early_stopping(made["history"])
    made["panels"], pixels = choose_panels(params, trainings)
    for name, table in made.items():
        write_csv(folder / "tables" / f"{name}.csv", table)
    if pixels:
        with atomic_file(folder / "tables" / "panels.npz") as file:
            np.savez_compressed(file, **pixels)  # type: ignore[arg-type]
    records = read_records(folder)
    for name in SPECS:
        write_csv(folder / "tables" / f"{name}.csv", tables.table(records, name))
    write_csv(folder / "tables" / "table_k1.csv", table_k1(records))
    write_csv(folder / "tables" / "not_in_a_table.csv", tables.not_in_a_table())
    write_csv(folder / "tables" / "ablation.csv", tables.ablation(records))
    write_csv(
        folder / "tables" / "deviations.csv",
        deviations(_modules()),
    )
    rows = judge_all(SLUG, CLAIMS, records, profile=params.profile)
    write_json(folder / "claims.json", rows)
    write_json(folder / "metrics.json", {row["id"]: {"value": row["value"], "verdict": row["verdict"]} for row in rows})


def early_stopping(history: pd.DataFrame) -> pd.DataFrame:
    """Table J.1: the epoch that validation data choose by each criterion, and what the test data say there.

    Args:
        history: as in `records`.

    Returns:
        task, arm, seed, criterion ("last", "accuracy", "nll", "ece"), epoch, and of the test data accuracy,
        expected_calibration_error and negative_log_likelihood. The first of equally good epochs is chosen.
    """
    validation, test = (history[history["split"] == split] for split in ("validation", "test"))
    key = list(_NAMES)
    chosen = {
        "last": validation.groupby(key, sort=False)["epoch"].max(),
        **{
            name: validation.loc[better(validation.groupby(key, sort=False)[name])].set_index(key)["epoch"]
            for name, better in (("accuracy", _highest), ("nll", _lowest), ("ece", _lowest))
        },
    }
    epochs = pd.concat(chosen, names=["criterion"]).rename("epoch").reset_index()
    found = epochs.merge(test, on=[*key, "epoch"], how="left", validate="many_to_one")
    long_names = {"ece": "expected_calibration_error", "nll": "negative_log_likelihood"}
    columns = [*key, "criterion", "epoch", "accuracy", *long_names.values()]
    renamed: pd.DataFrame = found.rename(columns=long_names)[columns]
    return renamed


def _highest(values: Any) -> Any:
    return values.idxmax()


def _lowest(values: Any) -> Any:
    return values.idxmin()


def _names(cell: str) -> dict[str, Any]:
    task, arm, seed = cell.split("/")
    return {"task": task, "arm": arm, "seed": int(seed)}


def _progress(training: Artifact) -> dict[str, Any]:
    record = training.json("record.json")
    return {name: record[name] for name in ("epochs", "epochs_done", "selected_epoch", "diverged")}


def _rows(artifacts: dict[str, Artifact], name: str) -> pd.DataFrame:
    """The rows of one file of every cell, each with the cell's names."""
    rows = [{**_names(cell), **row} for cell, one in artifacts.items() for row in one.json(f"{name}.json")]
    return pd.DataFrame(rows, columns=None if rows else list(_COLUMNS.get(name, _NAMES)))


def _evaluated(params: Params, name: str) -> pd.DataFrame:
    cells = evaluate_focal.cells(params)
    return _rows({cell.name: open_artifact(evaluate_focal.OUTPUT / cell.name) for cell in cells}, name)


def _tasks(params: Params, trainings: dict[str, Artifact]) -> pd.DataFrame:
    rows = []
    for task, place in params.focal.tasks.items():
        first = trainings[f"{task}/{params.focal.arms_of(task)[0]}/0"].json("record.json")
        variant = "" if place.variant_of is None else task.removeprefix(f"{place.variant_of}-")
        row: dict[str, Any] = {"task": task, "dataset": place.dataset, "network": place.network}
        row |= {name: getattr(place, name) for name in ("printed_dataset", "printed_network", "differs")}
        row |= {"variant": variant, "variant_of": place.variant_of}
        row |= {name: first[name] for name in ("classes", "parameters", "noise")}
        row |= {"embeddings": _embeddings(first["embeddings"]), "select": place.select}
        recipe = params.focal.recipe.changed(place.recipe)
        row |= {"epochs": recipe.epochs, "planned_epochs": recipe.planned_epochs}
        rows.append(row | {f"{split}_images": count for split, count in first["samples"].items()})
    return pd.DataFrame(rows)


def _embeddings(about: dict[str, Any] | None) -> str | None:
    """Where the word vectors of a task come from, in words; None for images."""
    if about is None:
        return None
    if about["covered"] is None:
        return "learned"
    share, how = f"{about['covered']:.1%} of {about['words']:,} words", "tuned" if about["step"] else "frozen"
    return f"{Path(about['file']).name}, {share}, {how}"


def _modules() -> list[str]:
    """The modules that the results rest on."""
    return [stage.run.__module__ for stage in STAGES] + [tables.__name__]

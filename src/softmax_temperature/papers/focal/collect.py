"""Gathering the paper's records in one folder: what the notebook, the report and a reader without data start from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd

from softmax_temperature.papers.focal import tables
from softmax_temperature.papers.focal.claims import CLAIMS
from softmax_temperature.papers.focal.linear_tables import linear_tables
from softmax_temperature.papers.focal.panels import choose_panels
from softmax_temperature.papers.focal.records import SLUG, Records
from softmax_temperature.papers.focal.selection import RUN
from softmax_temperature.papers.focal.table_specs import SPECS
from softmax_temperature.papers.focal.tables import table_k1
from softmax_temperature.papers.focal.theory import theory_checks
from softmax_temperature.papers.focal.translation import translation_tables
from softmax_temperature.papers.shared.collect import write_results
from softmax_temperature.papers.shared.records import write_pixels
from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import Artifact, open_artifact
from softmax_temperature.runner.errors import InputError
from softmax_temperature.stages import evaluate_focal, fetch, focal_linear, train_focal, train_translation

STAGES = (fetch, train_focal, evaluate_focal, focal_linear, train_translation)
"""What the results rest on."""
_COLUMNS = MappingProxyType(
    {
        "differences": (*RUN, "scaling", "metric", "value", "low", "high"),
        "ood": (*RUN, "scaling", "ood", "samples", "auroc"),
        "roc": (*RUN, "scaling", "ood", "false_positive_rate", "true_positive_rate"),
        "gradient_norms": (*RUN, "epoch", "low", "high", "count"),
        "reliability": (*RUN, "epoch", "low", "high", "count", "accuracy", "confidence"),
    }
)
"""The columns of tables that may have no rows."""
_LONG_NAMES = MappingProxyType({"ece": "expected_calibration_error", "nll": "negative_log_likelihood"})


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
    history = _rows(trainings, "history")
    panels, pixels = choose_panels(params, trainings)
    made = {
        "runs": _rows(evaluated, "runs"),
        "tasks": _tasks(params, trainings),
        "trainings": progress,
        "history": history,
        **{name: _rows(trainings, name) for name in ("gradient_norms", "reliability")},
        "differences": _rows(evaluated, "differences").assign(reference=evaluate_focal.REFERENCE),
        "early_stopping": early_stopping(history),
        **{name: _rows(evaluated, name) for name in ("ood", "roc")},
        "panels": panels,
        **linear_tables(params),
        **translation_tables(params),
        "theory_checks": theory_checks(),
    }
    write_pixels(folder / "tables" / "panels.safetensors", pixels)
    write_results(
        folder, SLUG, params.profile, made=made, form=Records, tables=_tables, claims=CLAIMS,
        code=[*(stage.__name__ for stage in STAGES), __name__],
    )  # fmt: skip


def early_stopping(history: pd.DataFrame) -> pd.DataFrame:
    """Table J.1: the epoch that validation data choose by each criterion, and the test metrics at that epoch.

    Args:
        history: as in `records`.

    Returns:
        task, arm, seed, criterion ("last", "accuracy", "nll", "ece"), epoch, and of the test data accuracy,
        expected_calibration_error and negative_log_likelihood. The first of equally good epochs is chosen.
    """
    validation, test = (history[history["split"] == split] for split in ("validation", "test"))
    groups = validation.groupby(RUN, sort=False)
    best = {"accuracy": groups["accuracy"].idxmax(), "nll": groups["nll"].idxmin(), "ece": groups["ece"].idxmin()}
    chosen = {name: validation.loc[rows].set_index(RUN)["epoch"] for name, rows in best.items()}
    epochs = pd.concat({"last": groups["epoch"].max(), **chosen}, names=["criterion"]).rename("epoch").reset_index()
    found = epochs.merge(test, on=[*RUN, "epoch"], how="left", validate="many_to_one").rename(columns=_LONG_NAMES)
    table: pd.DataFrame = found[[*RUN, "criterion", "epoch", "accuracy", *_LONG_NAMES.values()]]
    return table


def _tables(records: Records) -> dict[str, pd.DataFrame]:
    made = {name: tables.table(records, name) for name in SPECS}
    made |= {"table_k1": table_k1(records), "not_in_a_table": tables.not_in_a_table()}
    return made | {"ablation": tables.ablation(records)}


def _names(cell: str) -> dict[str, Any]:
    task, arm, seed = cell.split("/")
    return {"task": task, "arm": arm, "seed": int(seed)}


def _progress(trainings: Mapping[str, Artifact]) -> pd.DataFrame:
    columns = ("epochs", "epochs_done", "selected_epoch", "diverged")
    records = {cell: one.json("record.json") for cell, one in trainings.items()}
    return pd.DataFrame([{**_names(cell), **{name: one[name] for name in columns}} for cell, one in records.items()])


def _rows(artifacts: Mapping[str, Artifact], name: str) -> pd.DataFrame:
    """The rows of one file of every cell, each with the cell's names."""
    rows = [{**_names(cell), **row} for cell, one in artifacts.items() for row in one.json(f"{name}.json")]
    return pd.DataFrame(rows, columns=None if rows else list(_COLUMNS.get(name, RUN)))


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
    share, how = f"{about['covered']:.1%} of {about['words']:,} words", "tuned" if about["step"] else "frozen"
    return f"{Path(about['file']).name}, {share}, {how}"

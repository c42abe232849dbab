"""Hand-made runs of the focal paper, in the form in which a study stores them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.focal.collect import MEASURED_COLUMNS, loss_factors
from softmax_temperature.papers.focal.study import tidied
from softmax_temperature.papers.shared.factors import Where
from softmax_temperature.papers.shared.runs import Runs, long_form

LOSSES: dict[str, tuple[str, dict[str, Any]]] = {
    "CE": ("cross_entropy", {}),
    "Brier": ("brier", {}),
    "MMCE": ("mmce", {"as_released": True}),
    "MMCE-written": ("mmce", {"as_released": False}),
    "LS-0.05": ("label_smoothing", {"smoothing": 0.05}),
    "LS-0.1": ("label_smoothing", {"smoothing": 0.1}),
    "LS": ("label_smoothing", {"smoothing": 0.1}),
    "FL": ("focal", {"gamma": 1.0}),
    "FL-1": ("focal", {"gamma": 1.0}),
    "FL-2": ("focal", {"gamma": 2.0}),
    "FL-3": ("focal", {"gamma": 3.0}),
    "FLSD-53": ("sample_dependent_focal", {"policy": "53"}),
}
"""Losses and their options, keyed by the names of the arms in a profile."""
ABOUT: dict[str, Any] = dict.fromkeys(
    (
        "variant",
        "variant_of",
        "printed_dataset",
        "printed_network",
        "differs",
        "embeddings",
        "noise",
        "select",
    )
)
"""Columns that describe an experiment, all empty."""


def run(
    experiment: str,
    arm: str,
    seed: int,
    *,
    task: str = "classification",
    loss: tuple[str, dict[str, Any]] | None = None,
    **about: Any,
) -> dict[str, Any]:
    """The row of a run; its loss follows from the arm's name unless `loss` is given."""
    stage = {"classification": "training"}.get(task, task)
    place = f"{experiment}/{arm}" if task == "classification" else arm
    last = about.get("epochs_done", 7)
    return {
        **ABOUT,
        "task": task,
        "experiment": experiment,
        "network": "net",
        **loss_factors(*(loss or LOSSES[arm])),
        "seed": seed,
        "select": "last",
        "classes": 10,
        "epochs": last,
        "planned_epochs": 350,
        "epochs_done": last,
        "selected_epoch": last,
        "diverged": False,
        "cell": f"focal/{stage}/{place}/{seed}",
        **about,
    }


def runs_of(
    table: Iterable[Mapping[str, Any]],
    values: Iterable[Mapping[str, Any]],
    **tables: Iterable[Mapping[str, Any]],
) -> Runs:
    """Runs made of rows, values (on the test split by default) and other tables."""
    rows = [{"split": "test", "scaled": False, **row} for row in values]
    shapes = {name: ["run", *columns] for name, columns in MEASURED_COLUMNS.items()}
    made = {
        name: pd.DataFrame(tables.get(name, ()), columns=columns)
        for name, columns in shapes.items()
    }
    checks = pd.DataFrame(columns=["what", "predicted", "measured"])
    plain = pd.DataFrame(list(table)).rename_axis(index="run")
    long = long_form(pd.DataFrame(rows))
    return tidied(Runs(plain, long, {**made, "theory_checks": checks}))


def shifted(
    runs: Runs,
    metric: str,
    by: float,
    *,
    among: Where,
    scaled: bool | None = None,
    split: str | None = None,
    epoch: int | None = None,
) -> Runs:
    """The runs, with `by` added to one metric of the runs that `among` selects."""
    values = runs.measurements.copy()
    chosen = values["run"].isin(runs.select(among).index) & (values["metric"] == metric)
    for name, value in {"scaled": scaled, "split": split, "epoch": epoch}.items():
        if value is not None:
            chosen &= values[name] == value
    assert chosen.any(), "no value matches"
    values["value"] = np.where(chosen, values["value"] + by, values["value"])
    return tidied(replace(runs, measurements=values))


def diverged(runs: Runs, among: Where) -> Runs:
    """The runs, with those that `among` selects marked as diverged."""
    lost = runs.table["diverged"] | among.mask(runs.table)
    return tidied(replace(runs, table=runs.table.assign(diverged=lost)))


def without(runs: Runs, among: Where) -> Runs:
    """The runs, without those that `among` selects."""
    return tidied(runs.only(~among))

"""The runs of a study: one row of factors per run, and its measured values.

`runs.csv` has one row per training run: its factors (`dataset`, `network`, `loss`,
`seed`, ...), facts about it (`diverged`, `epochs_done`), and `cell`, the name of the
cell that it comes from. `tables/values.csv` has the measured values, with one row per
run, split, epoch and `scaled` (whether the logits were scaled), and one column per
metric. `Runs.measurements` has the same values in long form, with one row per value. In
long form the file would be three times as large, because it would repeat the four keys
for every metric.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.shared.factors import Where
from softmax_temperature.papers.shared.files import read_csv, write_csv
from softmax_temperature.runner.errors import InputError

# The tables of a study have few rows and about forty columns, many of them texts. With
# Python's strings, tables and verdicts take two thirds of the time that they take with
# Arrow's strings, which pandas prefers if pyarrow is installed.
pd.set_option("mode.string_storage", "python")

RUN = "run"
CELL = "cell"
SEED = "seed"
DEVICE = "device"
"""The factor in which two executions of the same training run may differ.

Its value is "cpu" or an accelerator's name, and is missing if it was not recorded.
"""
KEYS = ["run", "split", "epoch", "scaled"]
LONG = [*KEYS, "metric", "value"]
NOT_RUN = "not_run"
"""The name of the table that lists the experiments without runs.

The table's columns are the experiments' factors and the reason. The table exists only
if an experiment was not run.
"""
REASON = "reason"
DATA_MISSING = "data missing"
"""The reason given for a result that is missing because data or weights are missing."""
NOT_TRAINED = "not trained"
"""The reason given for a result that is missing because its experiment was declared
after the study was recorded."""
RUNS_FILE = "runs.csv"
VALUES_FILE = "tables/values.csv"

GAMMA = "gamma"

FACTORS = (
    "study",
    "task",
    "dataset",
    "network",
    "architecture",
    "batch_norm",
    "activation",
    "loss",
    GAMMA,
    "smoothing",
    "milestones",
    "mmce_form",
    "mmce_weight",
    "options",
    "mode",
    "factor",
    "max_temperature",
    "reset_temperature",
    "refit",
    "period",
    "optimizer_state",
    "schedule",
    "warmup",
    "optimizer",
    "learning_rate",
    "weight_decay",
    "batch_size",
    "reduction",
    "clip_norm",
    "crop_padding",
    "flip",
    "inverse_temperature",
    "start",
    "start_norm",
    "correlation",
    "dynamics",
    "backbone",
    "weights",
    SEED,
    DEVICE,
)
"""The names of the factors of all papers; each paper's `runs.csv` has some of them.

`gamma` is text (see `gamma_text`); `milestones` are the epochs at which gamma changes.
`mmce_form` is "released" or "written": MMCE as in the authors' code, or as in their
text. `options` are the options of a user's own loss. `mode`, `factor` and the next five
are settings of Cooling. `start` names the kind of logits that a network starts with,
and `start_norm` is the norm that these logits are given, if any. `correlation` is the
correlation between the initial weights of the trained and the frozen network of a pair
(see `early_learning.pair`). `dynamics` distinguishes a network from its linearisation.
`weights` is the source of a backbone's weights.
"""


RECIPE = (
    "optimizer",
    "learning_rate",
    "warmup",
    "weight_decay",
    "crop_padding",
    "flip",
)
"""The factors in which two compared runs must agree, unless a contrast says otherwise.
"""


@dataclass(frozen=True)
class Runs:
    """The runs of a study.

    `table` has one row per run, with the run's factors, facts and cell; the index is
    `run`. `measurements` has the values in long form, with the columns `LONG`. `tables`
    maps file names to the measured tables that do not have one value per epoch (bins of
    a diagram, checks of a proposition). If such a table has a column `run`, each row
    belongs to that run; otherwise the table belongs to the whole study.
    """

    table: pd.DataFrame
    measurements: pd.DataFrame
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    def select(self, where: Where, *then: Where) -> pd.DataFrame:
        """The rows of `table` that match `where` and all further predicates.

        Claims select the same rows many times, so selections are cached.
        """
        asked = (where, *then)
        if asked not in self._selected:
            *before, last = asked
            rows = self.select(*before) if before else self.table
            self._selected[asked] = last.select(rows)
        return _own(self._selected[asked])

    def only(self, where: Where) -> Runs:
        """The runs that `where` selects, with their values and tables."""
        chosen = self.select(where)
        return replace(
            self,
            table=chosen,
            measurements=_of_runs(self.measurements, chosen.index),
            tables={
                name: _of_runs(table, chosen.index) if RUN in table else table
                for name, table in self.tables.items()
            },
        )

    def measured(
        self, metric: str, *, split: str | None = None, scaled: bool = False
    ) -> pd.DataFrame:
        """The values of one metric: columns `run`, `split`, `epoch` and `value`.

        Args:
            metric: The name of the metric.
            split: The split to return; None for all splits.
            scaled: Whether to return the values after temperature scaling instead of
                the values before it.
        """
        asked = (metric, split, scaled)
        if asked not in self._measured:
            rows = self._by_metric.get((metric, scaled), self.measurements[:0])
            if split is not None:
                rows = rows[rows["split"] == split]
            self._measured[asked] = rows[["run", "split", "epoch", "value"]]
        return _own(self._measured[asked])

    def wide(self, *metrics: str, split: str) -> pd.DataFrame:
        """Several metrics of one split, before scaling: one row per run and epoch."""
        rows = self.measurements[
            self.measurements["metric"].isin(metrics)
            & (self.measurements["split"] == split)
            & ~self.measurements["scaled"]
        ]
        table = rows.pivot(index=["run", "epoch"], columns="metric", values="value")
        return table.reindex(columns=list(metrics)).reset_index()

    @cached_property
    def _selected(self) -> dict[tuple[Where, ...], pd.DataFrame]:
        return {}

    @cached_property
    def _measured(self) -> dict[tuple[str, str | None, bool], pd.DataFrame]:
        return {}

    @cached_property
    def _by_metric(self) -> dict[tuple[str, bool], pd.DataFrame]:
        groups = self.measurements.groupby(
            ["metric", "scaled"], sort=False, observed=True
        )
        return {(str(metric), bool(scaled)): rows for (metric, scaled), rows in groups}


def read_runs(folder: Path, tables: Sequence[str] = ()) -> Runs:
    """Read the runs of a study from a paper's folder, and check them.

    Args:
        folder: `results/<study>/<paper>`.
        tables: The names of the other measured tables, whose files are in `tables/`.

    Raises:
        InputError: If a file is missing, a run or a value occurs twice, or a value
            belongs to no run.
    """
    table = read_csv(folder / RUNS_FILE, text=[GAMMA]).rename_axis(index=RUN)
    table = table.assign(study=folder.parent.name)
    wide = read_csv(folder / VALUES_FILE)
    names = list(tables)
    if (folder / "tables" / f"{NOT_RUN}.csv").is_file():
        names.append(NOT_RUN)
    read = {name: read_csv(folder / "tables" / f"{name}.csv") for name in names}
    runs = Runs(table, long_form(wide), read)
    check(runs, str(folder))
    return runs


def gamma_text(gamma: float | str | None) -> str | None:
    """The factor `gamma`: a number such as "3" or "0.5", or a policy such as "53".

    A policy says how gamma depends on the sample or on the epoch.
    """
    if gamma is None or isinstance(gamma, str):
        return gamma
    return f"{gamma:g}"


def cells_of(folder: Path) -> set[str]:
    """The names of the cells behind the runs in a paper's folder."""
    table = read_csv(folder / RUNS_FILE)
    return set(table[CELL]) if CELL in table else set()


def write_runs(folder: Path, runs: Runs) -> None:
    """Write runs, numbered from 0 in their order, into a paper's folder."""
    numbered = renumbered(runs)
    table = numbered.table.drop(columns="study", errors="ignore")
    counts = [name for name in map(str, table) if _is_count(name)]
    write_csv(folder / RUNS_FILE, table.astype(dict.fromkeys(counts, "Int64")))
    write_csv(folder / VALUES_FILE, wide_form(numbered.measurements))
    for name, table in numbered.tables.items():
        write_csv(folder / "tables" / f"{name}.csv", table)


def check(runs: Runs, where: str) -> None:
    """Raise an `InputError` if a run or a value occurs twice, or a value has no run."""
    names = [CELL, *training_factors(runs.table)]
    twice = runs.table[runs.table.duplicated(names)]
    if len(twice):
        raise InputError(
            f"{twice[CELL].iloc[0]}: two runs have the same factors",
            where=where,
            remedy="Run `dvc repro`.",
        )
    unknown = set(runs.measurements[RUN]) - set(runs.table.index)
    if unknown:
        raise InputError(
            f"run {min(unknown)}: has values but no row in runs.csv",
            where=where,
            remedy="Run `dvc repro`.",
        )
    if runs.measurements.duplicated(LONG[:-1]).any():
        row = runs.measurements[runs.measurements.duplicated(LONG[:-1])].iloc[0]
        raise InputError(
            f"run {row[RUN]}: duplicate value for {row['metric']!r}",
            where=where,
            remedy="Run `dvc repro`.",
        )


def training_factors(table: pd.DataFrame) -> list[str]:
    """The factors in `table` that distinguish training runs: all except the device."""
    return [name for name in FACTORS if name in table and name != DEVICE]


def long_form(wide: pd.DataFrame) -> pd.DataFrame:
    """Turn one row per run, split, epoch and `scaled` into one row per value."""
    if wide.empty:
        return pd.DataFrame(columns=LONG).astype({"scaled": bool, "value": float})
    filled = wide.assign(split=wide["split"].fillna(""))
    metrics = [name for name in map(str, wide) if name not in KEYS]
    filled[metrics] = filled[metrics].astype(float)
    rows = filled.melt(KEYS, metrics, "metric", "value").dropna(subset="value")
    rows = rows.astype({"scaled": bool, "metric": "category", "split": "category"})
    return rows.reset_index(drop=True)


def wide_form(values: pd.DataFrame) -> pd.DataFrame:
    """Turn one row per value into one row per run, split, epoch and `scaled`."""
    metrics = list(dict.fromkeys(values["metric"]))
    plain = values.astype({"metric": str, "split": str})
    table = plain.pivot(index=KEYS, columns="metric", values="value")
    return table.reindex(columns=metrics).sort_index().reset_index()


def cell_names(table: pd.DataFrame) -> list[str]:
    """The name of the cell of each run, without the seed."""
    return [cell.rpartition("/")[0] for cell in table[CELL]]


def renumbered(runs: Runs) -> Runs:
    """The same runs, numbered from 0 in the order of their rows."""
    numbers = pd.Series(np.arange(len(runs.table)), index=runs.table.index)

    def renamed(rows: pd.DataFrame) -> pd.DataFrame:
        return rows.assign(run=rows[RUN].map(numbers)) if RUN in rows else rows

    return Runs(
        runs.table.reset_index(drop=True).rename_axis(index=RUN),
        renamed(runs.measurements),
        {name: renamed(table) for name, table in runs.tables.items()},
    )


def _is_count(column: str) -> bool:
    """Whether a column contains whole numbers, according to its name."""
    counts = ("_images", "_samples", "_pairs")
    return column in {"parameters", SEED} or column.endswith(counts)


def _own(stored: pd.DataFrame) -> pd.DataFrame:
    """A view of `stored` that copies on write, so callers may change it."""
    return stored.copy(deep=False)


def _of_runs(rows: pd.DataFrame, runs: pd.Index[Any]) -> pd.DataFrame:
    return rows[rows[RUN].isin(runs)]

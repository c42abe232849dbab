"""Collect the runs of a study from this machine's cells and from recorded rows.

A run that is recorded in the paper's folder and still declared by the parameters is
kept even if this machine does not have its cell. A study can therefore grow on several
machines, and rows from a GPU and from a CPU form one table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from softmax_temperature.papers.shared import results
from softmax_temperature.papers.shared.files import DIGITS, rounded
from softmax_temperature.papers.shared.records import write_nothing
from softmax_temperature.papers.shared.runs import (
    CELL,
    DATA_MISSING,
    DEVICE,
    KEYS,
    LONG,
    NOT_RUN,
    NOT_TRAINED,
    REASON,
    RUN,
    RUNS_FILE,
    SEED,
    Runs,
    check,
    read_runs,
    renumbered,
)
from softmax_temperature.papers.shared.sources import RECORDS
from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import Artifact, find_artifacts
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.progress import say
from softmax_temperature.runner.timing import timing_of
from softmax_temperature.stages import Stage, label
from softmax_temperature.stages.inputs import without_missing

_NAMES_SHOWN = 5

Row = Mapping[str, Any]


@dataclass(frozen=True)
class DeclaredRun:
    """A run that the parameters declare, or several runs that share a cell.

    Attributes:
        stage: The stage that computes the cell.
        cell: The name of the cell in the stage.
        factors: The factors that all runs of the declaration share, and other facts
            from the parameters.
        parameters: The parameters of the cell; None if they depend on its inputs.
        variants: The other factors of each run, if one declaration describes several
            runs. If so, the measurements have a column `run`, which is the run's index
            in `variants`.
    """

    stage: Stage
    cell: str
    factors: Row
    parameters: Row | None = None
    variants: Sequence[Row] = ({},)

    @property
    def name(self) -> str:
        """The stage and the name of the cell, as one text."""
        return f"{label(self.stage.output)}/{self.cell}"


@dataclass(frozen=True)
class MeasuredRun:
    """The results that were read from a run's cell.

    Attributes:
        facts: The columns of `Runs.table` that the declaration does not give, such as
            the outcome, the epochs done and sizes.
        rows: The values. Each row has a split, an epoch and metrics, and optionally
            `scaled` and `run`.
        tables: The run's rows in each measured table, keyed by the name of the table's
            file.
    """

    facts: Row
    rows: Iterable[Row]
    tables: Mapping[str, Iterable[Row]] = field(default_factory=dict)


Read = Callable[[DeclaredRun, Artifact], MeasuredRun]


def gather_study(
    folder: Path,
    paper: str,
    params: Params,
    declare: Callable[[Params], Iterable[DeclaredRun]],
    read: Read,
    *,
    tables: Mapping[str, Sequence[str]] | None = None,
) -> Runs | None:
    """Collect the runs of a study that the parameters declare (see `gather`).

    If there are no runs because all data are missing, the function writes the paper's
    folder itself, with a list of the experiments that did not run.

    Args:
        folder: The paper's folder.
        paper: The paper's slug.
        params: The parameters.
        declare: Function that returns the runs that `params` declare.
        read: Function that reads a run from its cell.
        tables: As in `gather`.

    Returns:
        The runs; None if there are none.
    """
    runs = gather(
        folder,
        list(declare(params)),
        read,
        possible=list(declare(without_missing(params))),
        tables=tables,
    )
    if runs.table.empty:
        write_nothing(folder, paper, params.profile, runs)
        return None
    return runs


def gather(
    folder: Path,
    declared: Sequence[DeclaredRun],
    read: Read,
    *,
    possible: Sequence[DeclaredRun] | None = None,
    tables: Mapping[str, Sequence[str]] | None = None,
) -> Runs:
    """Collect the declared runs, in the order of their declaration.

    Runs without a cell on this machine, and runs whose data or weights are missing
    here, are taken from the rows that another machine recorded. If data are missing and
    no machine recorded the runs, the table `NOT_RUN` lists their experiments, one row
    each, without seeds. The table also lists experiments that were declared after
    another machine recorded the study and have not been trained yet.

    Args:
        folder: The paper's folder, which may hold another machine's runs.
        declared: The runs that the parameters declare.
        read: Function that reads a run from its cell.
        possible: The runs that the parameters still declare after `without_missing`;
            None means all of `declared`.
        tables: The columns of each measured table whose rows belong to runs, keyed by
            file name.

    Raises:
        InputError: If a run whose data are available is neither in a cell on this
            machine nor recorded in the folder. Experiments that lack all their seeds
            are not an error if at least one run is taken from the recorded rows.
    """
    shapes = tables or {}
    recorded = _recorded(folder, list(shapes))
    still = _still_declared(folder, recorded, declared)
    division = _divided(declared, declared if possible is None else possible, still)
    declared = division.chosen
    left_out = division.left_out
    here = {
        stage.output: {
            path.relative_to(stage.output).as_posix()
            for path in find_artifacts(stage.output)
        }
        for stage in {run.stage.output: run.stage for run in declared}.values()
    }
    parts = []
    missing = []
    counts = {"here": 0, "recorded": 0}
    for run in declared:
        is_here = run.cell in here[run.stage.output]
        if is_here and run.name not in division.recorded:
            cell = run.stage.result(run.cell)
            parts.append(_as_runs(run, read(run, cell), shapes, device_of(cell)))
            counts["here"] += len(run.variants)
        elif recorded is not None and run.name in still:
            parts.append(_rows_of(recorded, run))
            counts["recorded"] += len(run.variants)
        else:
            missing.append(run)
    untrained = _untrained(declared, missing) if counts["recorded"] else []
    _require_no_others(missing, untrained, declared)
    if untrained:
        say(
            f"{folder}: declared runs not trained yet: {_count(untrained)}, listed in "
            f"tables/{NOT_RUN}.csv; `dvc repro` trains them"
        )
    say(
        f"{folder}: runs collected: {counts['here']} from cells on this machine, "
        f"{counts['recorded']} from rows that another machine recorded"
    )
    runs = _checked(folder, parts, shapes)
    return _with_left_out(runs, left_out, untrained)


def _untrained(
    declared: Sequence[DeclaredRun], missing: Sequence[DeclaredRun]
) -> list[DeclaredRun]:
    """The missing runs of experiments for which no seed was collected.

    Experiments that lack only some seeds are left out: `gather` raises an error for
    such an experiment, because its mean would be over fewer seeds than declared.
    """
    absent = {run.name for run in missing}
    begun = {_experiment(run) for run in declared if run.name not in absent}
    return [run for run in missing if _experiment(run) not in begun]


def _require_no_others(
    missing: Sequence[DeclaredRun],
    untrained: Sequence[DeclaredRun],
    declared: Sequence[DeclaredRun],
) -> None:
    """Raise InputError if a run in `missing` is not in `untrained`."""
    names = {run.name for run in untrained}
    unrecorded = [run for run in missing if run.name not in names]
    if not unrecorded:
        return
    count = f"{_count(unrecorded)} of {_count(declared)} runs"
    cells = ", ".join(run.cell for run in unrecorded[:_NAMES_SHOWN])
    more = ", ..." if len(unrecorded) > _NAMES_SHOWN else ""
    raise InputError(
        f"{count} are neither in a cell here nor recorded: {cells}{more}",
        where=f"{unrecorded[0].stage.output}",
        remedy="Run `dvc repro`, or copy the results of the machine that ran them.",
    )


def _experiment(run: DeclaredRun) -> str:
    """The stage and the factors of `run`, without its seed, as text."""
    factors = {name: value for name, value in run.factors.items() if name != SEED}
    return repr((label(run.stage.output), sorted(factors.items())))


def _checked(
    folder: Path, parts: Sequence[Runs], shapes: Mapping[str, Sequence[str]]
) -> Runs | None:
    """Join the runs of all `parts` and check the result; None if there are no parts."""
    if not parts:
        return None
    runs = _together(parts, shapes)
    check(runs, str(folder))
    return runs


def _with_left_out(
    runs: Runs | None,
    left_out: Sequence[DeclaredRun],
    untrained: Sequence[DeclaredRun],
) -> Runs:
    """Return `runs` with the table of experiments that did not run, if there are any.

    If `runs` is None, the result contains no runs.
    """
    if left_out:
        say(f"declared runs left out ({DATA_MISSING}): {_count(left_out)}")
    parts = [
        _experiments(left_out).assign(**{REASON: DATA_MISSING}),
        _experiments(untrained).assign(**{REASON: NOT_TRAINED}),
    ]
    not_run = pd.concat([part for part in parts if len(part)] or parts[:1])
    not_run = not_run.reset_index(drop=True)
    factors = [name for name in not_run if name != REASON]
    if runs is None:
        nothing = pd.DataFrame(columns=[*factors, SEED, CELL]).rename_axis(index=RUN)
        return Runs(nothing, pd.DataFrame(columns=LONG), {NOT_RUN: not_run})
    if not_run.empty:
        return runs
    # Add columns for the factors that only the experiments without runs have.
    columns = list(dict.fromkeys([*runs.table, *factors]))
    table = runs.table.reindex(columns=columns)
    return replace(runs, table=table, tables={**runs.tables, NOT_RUN: not_run})


class _Division(NamedTuple):
    """Declared runs, grouped by whether their data are available.

    Attributes:
        chosen: The runs to gather.
        recorded: Names of recorded cells that read files that this machine lacks.
        left_out: The runs whose data or weights are missing.
    """

    chosen: list[DeclaredRun]
    recorded: set[str]
    left_out: list[DeclaredRun]


def _divided(
    declared: Sequence[DeclaredRun], possible: Sequence[DeclaredRun], still: Set[str]
) -> _Division:
    """Group the declared runs by whether their data are available.

    Args:
        declared: All declared runs.
        possible: The runs that the available files allow. If a run reads several files
            and some of them are missing, its parameters differ from those in
            `declared`.
        still: Names of the recorded cells that are still declared.
    """
    asked = _by_name(declared)
    here = _by_name(possible)
    division = _Division(chosen=[], recorded=set(), left_out=[])
    for name, runs in asked.items():
        if name in still and here.get(name) != runs:
            division.recorded.add(name)
            division.chosen.extend(runs)
        elif name in here:
            division.chosen.extend(here[name])
        else:
            division.left_out.extend(runs)
    return division


def _by_name(runs: Iterable[DeclaredRun]) -> dict[str, list[DeclaredRun]]:
    groups: dict[str, list[DeclaredRun]] = {}
    for run in runs:
        groups.setdefault(run.name, []).append(run)
    return groups


def _experiments(runs: Iterable[DeclaredRun]) -> pd.DataFrame:
    """The distinct factors of `runs` without their seeds, one row per experiment."""
    table = pd.DataFrame([run.factors for run in runs])
    table = table.drop(columns=SEED, errors="ignore")
    return table.drop_duplicates(ignore_index=True)


def device_of(cell: Artifact) -> str | None:
    """The device that a cell ran on: "cpu", or the accelerator's name.

    None if the cell has no timing on this machine.
    """
    timing = timing_of(cell.about)
    if timing is None:
        return None
    if timing["device"] == "cpu":
        return "cpu"
    return str(timing["machine"]["accelerator"])


def _recorded(folder: Path, tables: Sequence[str]) -> Runs | None:
    """Read the runs in `folder`; None if there are none in the current format."""
    if not (folder / RUNS_FILE).is_file():
        return None
    try:
        runs = read_runs(folder, tables)
    except InputError:
        return None
    # Leave out the recorded table of experiments that did not run, because `gather`
    # makes a new one.
    tables_of_runs = {
        name: table for name, table in runs.tables.items() if name != NOT_RUN
    }
    return replace(runs, tables=tables_of_runs)


def _still_declared(
    folder: Path, recorded: Runs | None, declared: Sequence[DeclaredRun]
) -> set[str]:
    """Names of the recorded cells that match a declared run in factors and parameters.

    If several runs share a cell, at least as many runs of the cell must be recorded as
    are declared.
    """
    if recorded is None:
        return set()
    records = results.read_json(folder / RECORDS) or {"cells": [], "parameters": {}}
    parameters = {
        f"{cell['stage']}/{cell['cell']}": records["parameters"][cell["parameters"]]
        for cell in records["cells"]
    }
    by_cell = dict(iter(recorded.table.groupby(CELL, sort=False)))
    return {
        run.name
        for run in declared
        if run.name in by_cell
        and _same_parameters(run, parameters.get(run.name))
        and len(_runs_of(by_cell[run.name], run)) >= len(run.variants)
    }


def _same_parameters(run: DeclaredRun, recorded: Row | None) -> bool:
    """Whether `run` was recorded with the parameters that are now declared.

    If the declared parameters are unknown, because they depend on the cell's inputs,
    any recorded parameters count as the same.
    """
    if recorded is None:
        return False
    return run.parameters is None or _agree(run.parameters, recorded)


def _agree(declared: Any, recorded: Any) -> bool:
    """Whether the parameters that both sides have are equal.

    A parameter that one side lacks is ignored, because only a change in the code can
    have added or removed it.
    """
    if not isinstance(declared, Mapping) or not isinstance(recorded, Mapping):
        return bool(declared == recorded)
    shared = set(declared) & set(recorded)
    return all(_agree(declared[name], recorded[name]) for name in shared)


def _rows_of(recorded: Runs, run: DeclaredRun) -> Runs:
    """The recorded rows of `run`, with the factors that are now declared."""
    of_cell = recorded.table[recorded.table[CELL] == run.name]
    table = _runs_of(of_cell, run)
    chosen = table.index
    measurements = recorded.measurements
    return Runs(
        # Use the declared factors, because those in a file are rounded.
        table.drop(columns="study").assign(**run.factors),
        measurements[measurements[RUN].isin(chosen)],
        {name: rows[rows[RUN].isin(chosen)] for name, rows in recorded.tables.items()},
    )


def _runs_of(of_cell: pd.DataFrame, run: DeclaredRun) -> pd.DataFrame:
    """The recorded runs of a cell that have the factors and a variant of `run`."""
    declared = {name: run.factors[name] for name in run.factors if name in of_cell}
    # Compare single values: a cell has few runs, and operations on columns are slow.
    is_same = [
        all(map(_equal, values, declared.values()))
        for values in of_cell[list(declared)].itertuples(index=False, name=None)
    ]
    table = of_cell[is_same]
    if any(run.variants):
        return _in_order(table, run.variants)
    return table


def _in_order(table: pd.DataFrame, variants: Sequence[Row]) -> pd.DataFrame:
    """The recorded runs of one cell that are still declared, in the declared order."""
    names = list(variants[0])
    recorded = {
        tuple(map(_key, values)): run
        for run, *values in table[names].itertuples(name=None)
    }
    keys = [tuple(_key(factors[name]) for name in names) for factors in variants]
    return table.loc[[recorded[key] for key in keys if key in recorded]]


def _key(value: Any) -> str:
    """Convert a factor's value to text; values equal in a file give equal texts."""
    if pd.isna(value):
        return ""
    if isinstance(value, int | float):
        return f"{rounded(float(value)):.{DIGITS}g}"
    return str(value)


def _count(declared: Iterable[DeclaredRun]) -> int:
    """Count the declared runs, including the variants that share a cell."""
    return sum(len(run.variants) for run in declared)


def _equal(recorded: Any, declared: Any) -> bool:
    """Whether a recorded factor is the declared one, as a file writes it."""
    return _key(recorded) == _key(declared) or str(recorded) == str(declared)


def _as_runs(
    run: DeclaredRun,
    measured: MeasuredRun,
    shapes: Mapping[str, Sequence[str]],
    device: str | None,
) -> Runs:
    """Convert the results read from the cell of `run` into runs, numbered from 0."""
    rows = [
        {**run.factors, **factors, DEVICE: device, **measured.facts, CELL: run.name}
        for factors in run.variants
    ]
    tables = {}
    for name, columns in shapes.items():
        numbered = [{RUN: 0, **row} for row in measured.tables.get(name, ())]
        tables[name] = pd.DataFrame(numbered, columns=[RUN, *columns])
    table = pd.DataFrame(rows).rename_axis(index=RUN)
    return Runs(table, _values(list(measured.rows)), tables)


def _values(rows: Sequence[Row]) -> pd.DataFrame:
    """The values in `rows`, metric by metric, in long form (see `Runs`)."""
    metrics = dict.fromkeys(name for row in rows for name in row if name not in KEYS)
    values = [
        (
            row.get(RUN, 0),
            row["split"],
            row["epoch"],
            row.get("scaled", False),
            metric,
            row[metric],
        )
        for metric in metrics
        for row in rows
        if metric in row
    ]
    table = pd.DataFrame(values, columns=LONG)
    return table.astype({"scaled": bool, "value": float}).dropna(subset="value")


def _together(parts: Sequence[Runs], shapes: Mapping[str, Sequence[str]]) -> Runs:
    """Join the runs of all `parts`, and number them in the order of the parts."""
    tables = []
    measurements = []
    extra_tables: dict[str, list[pd.DataFrame]] = {name: [] for name in shapes}
    count = 0
    for part in map(renumbered, parts):
        tables.append(part.table)
        measurements.append(
            part.measurements.assign(run=part.measurements[RUN] + count)
        )
        for name, rows in part.tables.items():
            extra_tables[name].append(rows.assign(run=rows[RUN] + count))
        count += len(part.table)
    plain = [
        rows.astype({"metric": object, "split": object})
        for rows in measurements
        if len(rows)
    ]
    if not plain:
        # If no run has a value, keep one empty table for its columns.
        plain = measurements[:1]
    return Runs(
        pd.concat(tables, ignore_index=True).rename_axis(index=RUN),
        pd.concat(plain, ignore_index=True),
        {
            name: _concatenated(rows, shapes[name])
            for name, rows in extra_tables.items()
        },
    )


def _concatenated(tables: list[pd.DataFrame], columns: Sequence[str]) -> pd.DataFrame:
    filled = [table for table in tables if len(table)]
    if not filled:
        return pd.DataFrame(columns=[RUN, *columns])
    return pd.concat(filled, ignore_index=True)

"""The tables of a paper, made from runs, stored in files, and laid out for readers.

A `Made` table is made by a function. A `Comparison` declares the runs, the metrics, and
the printed table to compare with. A comparison's columns are, in order: the keys that
identify a value, with our experiment first; `published`, and possibly `published_sd`
and `published_diverged`; `ours`, `ours_sd` and counts of seeds; the difference and
remarks; `status` and `cells`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.shared import runs as experiments
from softmax_temperature.papers.shared.factors import Where
from softmax_temperature.papers.shared.files import read_csv
from softmax_temperature.papers.shared.metrics import Measure
from softmax_temperature.papers.shared.runs import SEED, Runs, cell_names
from softmax_temperature.papers.shared.sources import CELLS, together

MEASURED = "measured"
NO_VALUE = "no value"
"""The status of a value that no finished run has.

For example, there is no accuracy above 99 % confidence if no prediction is that sure.
"""
DIVERGED = "diverged"
STUCK = "stuck"
NOT_RUN = "not run: "
DATA_MISSING = f"{NOT_RUN}{experiments.DATA_MISSING}"
PRINTED = "published"
OURS = "ours"
METRIC = "metric"
STATUS = "status"
DIFFERENCE = "difference_in_standard_errors"
SEEDS = ["seeds", "diverged_seeds", "stuck_seeds"]
"""The columns that count, for each value, the finished, diverged and stuck seeds."""


@dataclass(frozen=True, kw_only=True)
class Table(ABC):
    """A table of a paper.

    Attributes:
        name: The name of the table's file.
        lay_out: Function that turns the file's content into the table for readers.
        in_rows: Function that lays out the table with its methods in rows, for studies
            with so many methods that the other layout does not fit a page; None if the
            table has only one layout.
    """

    name: str
    lay_out: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table
    in_rows: Callable[[pd.DataFrame], pd.DataFrame] | None = None

    @abstractmethod
    def make(self, runs: Any) -> pd.DataFrame:
        """Make the table from the runs of a study."""

    def shown(self, folder: Path) -> pd.DataFrame:
        """Read the table from a paper's folder and lay it out for readers."""
        return self.lay_out(read_csv(folder / "tables" / f"{self.name}.csv"))


@dataclass(frozen=True, kw_only=True)
class Made(Table):
    """A table that a function makes.

    Attributes:
        by: The function that makes the table from the runs of a study.
        of: The experiments that the table covers; None if the table has no rows for
            experiments without data.
        names: The columns that identify an experiment.
    """

    by: Callable[[Any], pd.DataFrame]
    of: Where | None = None
    names: Sequence[str] = ()

    def make(self, runs: Any) -> pd.DataFrame:
        """Make the table, and add a row for each experiment whose data are missing.

        The table has a column `status` only if such a row was added.
        """
        table = self.by(runs)
        if self.of is None:
            return table
        missing = without_data(runs, self.of)
        if missing.empty:
            return table
        named = missing[list(self.names)].drop_duplicates()
        there = pd.MultiIndex.from_frame(table[list(self.names)].astype(str))
        is_there = pd.MultiIndex.from_frame(named.astype(str)).isin(there)
        named = named[~is_there]
        if named.empty:
            return table
        parts = [table.assign(status=MEASURED), named.assign(status=DATA_MISSING)]
        rows = pd.concat([part for part in parts if len(part)], ignore_index=True)
        return rows.reindex(columns=[*table, STATUS])


@dataclass(frozen=True)
class Number:
    """A metric in a table.

    Attributes:
        metric: The name of the metric in the table.
        of: The measure that gives the value of each run.
        about: Further columns that identify the value, with their content. For example,
            `other_set` names the out-of-distribution or shifted data set on which the
            metric was measured.
        error: The standard error of a single seed's value, if known.
    """

    metric: str
    of: Measure
    about: Mapping[str, str] = field(default_factory=dict)
    error: Measure | None = None


@dataclass(frozen=True, kw_only=True)
class Comparison(Table):
    """A table of our means over seeds beside the printed values.

    Attributes:
        of: The runs that the table covers.
        numbers: The metrics to average over the seeds of each value.
        keys: The columns that identify a value: the experiment, the data set, the
            network and others. The column `metric`, which follows these keys, also
            identifies a value but is not listed here.
        columns: The columns after the keys, except `status` and `cells`, which come
            last.
        printed: Function that returns the printed values, with the columns `published`,
            `metric` and all keys except the first.
        profiles: Function that takes the data set and the network of a printed value,
            and returns the names of the profiles that train this network on this data
            set. The first is the one to suggest to the reader.
        named: Function that takes rows, and returns them with the paper's names of data
            sets and networks.
        all_of: Boolean columns of the runs; in the table, each is true if it is true
            for all seeds.
        finish: Function that takes the runs and the joined table, and returns the
            finished table. It may add remarks, and remove differences from printed
            values.
        printed_runs: The number of runs behind each printed value, if known.
        printed_only: Whether to leave out values that the paper does not print.
    """

    of: Where
    numbers: Sequence[Number]
    keys: Sequence[str]
    columns: Sequence[str]
    printed: Callable[[], pd.DataFrame]
    profiles: Callable[..., tuple[str, ...]]
    named: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table
    all_of: Sequence[str] = ()
    finish: Callable[[Runs, pd.DataFrame], pd.DataFrame] = lambda _, table: table
    printed_runs: int | None = None
    printed_only: bool = False

    def make(self, runs: Runs) -> pd.DataFrame:
        """Make the table from the runs of a study."""
        chosen = runs.select(self.of)
        same = [key for key in self.keys[1:] if key in chosen]
        chosen = chosen.drop_duplicates([*same, SEED])
        keys = [*self.keys, METRIC]
        ours = means_over_seeds(
            runs,
            chosen,
            self.numbers,
            keys,
            named=self.named,
            all_of=self.all_of,
        )
        table = beside_printed(
            ours,
            self.printed(),
            keys,
            columns=[*self.columns, STATUS, CELLS],
            profiles=self.profiles,
            studies=studies_of(runs),
            printed_runs=self.printed_runs,
            printed_only=self.printed_only,
            missing=places_without_data(runs, self.of, self.named),
        )
        return self.finish(runs, table)


def places_without_data(
    runs: Runs,
    of: Where,
    named: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table,
) -> list[tuple[str, str]]:
    """The data set and network of each experiment without data, named as in the table.

    Args:
        runs: The runs of a study, with the table of experiments that did not run.
        of: The experiments that the table covers.
        named: Function that takes rows, and returns them with the table's names of data
            sets and networks.
    """
    chosen = without_data(runs, of)
    if chosen.empty:
        return []
    places = named(chosen)[["dataset", "network"]]
    return list(dict.fromkeys(places.itertuples(index=False, name=None)))


def without_data(runs: Runs, of: Where) -> pd.DataFrame:
    """The factors of the experiments in `of` that lack data or weights."""
    table = runs.tables.get(experiments.NOT_RUN)
    if table is None:
        return pd.DataFrame()
    table = table[table[experiments.REASON] == experiments.DATA_MISSING]
    # A factor that an experiment does not have is empty in the table.
    filled = table.astype(object).where(table.notna(), "")
    try:
        return filled[of.mask(table)]
    except ValueError:
        return pd.DataFrame()  # These experiments lack a factor that `of` tests.


def means_over_seeds(
    runs: Runs,
    chosen: pd.DataFrame,
    numbers: Sequence[Number],
    keys: Sequence[str],
    *,
    named: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table,
    all_of: Sequence[str] = (),
) -> pd.DataFrame:
    """Compute our means over finished seeds, one row per combination of `keys`.

    Returns:
        A table with these columns: the keys; `ours` and `ours_sd`; `seeds`, which
        counts the seeds that have a value; `runs`, `diverged_seeds` and `stuck_seeds`;
        `error`, if a metric has one; the columns `all_of`; and `cells`.
    """
    parts = []
    for number in numbers:
        error = np.nan if number.error is None else number.error.of(runs, chosen)
        parts.append(
            chosen.assign(
                metric=number.metric,
                value=number.of.of(runs, chosen),
                error=error,
                **number.about,
            )
        )
    rows = named(pd.concat(parts))
    rows = rows.assign(
        stuck=rows.get(STUCK, False),
        cells=cell_names(rows),
    )
    groups = rows.groupby(list(keys), sort=False)
    table = groups.agg(
        **mean_and_sd(OURS, "value"),
        diverged_seeds=(DIVERGED, "sum"),
        stuck_seeds=(STUCK, "sum"),
        seeds=("value", "count"),
        error=("error", "first"),
        runs=(SEED, "size"),
        **{name: (name, "all") for name in all_of},
        cells=("cells", together),
    )
    table = table.reset_index()
    if all(number.error is None for number in numbers):
        return table.drop(columns="error")
    return table


def beside_printed(
    rows: pd.DataFrame,
    printed: pd.DataFrame,
    keys: Sequence[str],
    *,
    columns: Sequence[str],
    profiles: Callable[..., tuple[str, ...]],
    studies: Collection[str] = (),
    printed_runs: int | None = None,
    printed_only: bool = False,
    missing: Sequence[tuple[str, str]] = (),
) -> pd.DataFrame:
    """Join our means over seeds with the printed values.

    The values that we did not measure come last.

    Args:
        rows: Our means, with these columns: the keys; `ours` and `ours_sd`, over
            finished seeds; `seeds`, `runs`, `diverged_seeds` and possibly
            `stuck_seeds`; and possibly `error`, the standard error of a single seed's
            value.
        printed: The printed values, with these columns: all keys except the first,
            which names our run; `published`; and possibly `published_sd`.
        keys: The columns that identify a value.
        columns: The columns of the result that follow the keys.
        profiles: Function that takes the second and the third key of a printed value,
            and returns the names of the profiles that declare the value. The first is
            the one to suggest to the reader.
        studies: The studies of the rows.
        printed_runs: The number of runs behind each printed value. If it is None, the
            standard error of the difference does not include that of the printed value.
        printed_only: Whether to leave out our values that the paper does not print.
        missing: The second and the third key of each experiment whose data are missing.

    Returns:
        A table with the columns `keys` and `columns`. The difference is missing if its
        standard error is 0 or unknown.
    """
    run, *names = keys
    ours = pd.MultiIndex.from_frame(rows[names])
    is_ours = pd.MultiIndex.from_frame(printed[names]).isin(ours)
    absent = printed[~is_ours]
    rows = rows.merge(printed, how="inner" if printed_only else "left", on=names)
    rows[STATUS] = _statuses(rows)
    rows[DIFFERENCE] = (rows[OURS] - rows[PRINTED]) / _errors(rows, printed_runs)
    nothing: dict[str, Any] = {run: ""}
    nothing |= dict.fromkeys(rows.columns.intersection(SEEDS), 0)
    places = list(zip(absent[names[0]], absent[names[1]], strict=True))
    statuses = [
        DATA_MISSING if place in missing else not_run(profiles(*place), studies)
        for place in places
    ]
    absent = absent.assign(**nothing, status=statuses)
    missing_rows = pd.DataFrame(
        [place for place in missing if place not in places and not printed_only],
        columns=names[:2],
    )
    missing_rows = missing_rows.assign(**nothing, status=DATA_MISSING)
    parts = [part for part in (rows, absent, missing_rows) if len(part)] or [rows]
    return pd.concat(parts, ignore_index=True).reindex(columns=[*keys, *columns])


def studies_of(runs: Runs) -> set[str]:
    """The studies of `runs`, which are named like their profiles."""
    return set(runs.table["study"]) if "study" in runs.table else set()


def not_run(profiles: Sequence[str], studies: Collection[str]) -> str:
    """The status of a printed value that we did not measure.

    Args:
        profiles: The names of the profiles that declare the value. The first is the one
            to suggest to the reader.
        studies: The studies of the table. If one of them declares the value, the status
            says so; otherwise it names the first of `profiles`.
    """
    if any(profile in studies for profile in profiles):
        return f"{NOT_RUN}declared by this profile"
    return f"{NOT_RUN}profile {profiles[0]}"


def _statuses(rows: pd.DataFrame) -> list[str]:
    """The status of each value: measured, no value, or how all its seeds were lost."""
    statuses = []
    for _, row in rows.iterrows():
        diverged = row["diverged_seeds"]
        stuck = row.get("stuck_seeds", 0)
        if row["runs"] <= diverged + stuck:
            statuses.append(lost_seeds(diverged, stuck, row["runs"]))
        elif row["seeds"]:
            statuses.append(MEASURED)
        else:
            statuses.append(NO_VALUE)
    return statuses


def _errors(rows: pd.DataFrame, printed_runs: int | None) -> pd.Series[float]:
    """The standard errors of the differences from printed values.

    Standard errors that are 0 or unknown are NaN in the result.
    """
    error: pd.Series[float] = rows["ours_sd"] / rows["seeds"] ** 0.5
    if printed_runs:
        ours = rows["ours_sd"] ** 2 / rows["seeds"]
        theirs = rows["published_sd"].fillna(0) ** 2 / printed_runs
        error = (ours + theirs) ** 0.5
    if "error" in rows:
        error = error.where(rows["seeds"] > 1, rows["error"])
    return error.replace(0, np.nan)


def mean_and_sd(name: str, column: str | None = None) -> dict[str, tuple[str, str]]:
    """Arguments for `DataFrameGroupBy.agg` that compute a column's mean and sd."""
    return {name: (column or name, "mean"), f"{name}_sd": (column or name, "std")}


def lost_seeds(diverged: int, stuck: int, runs: int) -> str:
    """Say how many seeds were lost, as in "1 of 3 diverged, 1 of 3 stuck".

    If all seeds were lost in the same way, the text is only "diverged" or "stuck". If
    no seed was lost, it is empty.
    """
    if runs == diverged:
        return DIVERGED
    if runs == stuck:
        return STUCK
    counts = {DIVERGED: diverged, STUCK: stuck}
    texts = [f"{count} of {runs} {word}" for word, count in counts.items() if count]
    return ", ".join(texts)

"""Contrasts: the comparisons behind the claims, declared as runs selected by factors.

`Difference(of=ACCURACY, first=LAST_LAYER, second=NO_COOLING, among=TABLE_1)` is the
accuracy with last-layer Cooling minus the accuracy without Cooling, over pairs of runs
with the same data set, network and seed. A contrast gives an estimate with an interval
for each of its parts; a claim about one quantity has one part. `sweeps` has the
contrasts along a swept factor: the best value, slopes and correlations.

Two kinds of footnote accompany a result. A `note` is text for the notes column, with {}
for each number; `note_values` are these numbers, kept separately so that they can be
shown in points. A `qualifier` is text without which the result would mislead, such as
how the interval was corrected; it is shown wherever the result is shown.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pandas as pd

from softmax_temperature.papers.shared.display import value_label
from softmax_temperature.papers.shared.factors import ALL, Where, where
from softmax_temperature.papers.shared.metrics import (
    Measure,
    is_lost,
    lost_text,
    source_text,
)
from softmax_temperature.papers.shared.registry import REGISTERED_AS
from softmax_temperature.papers.shared.runs import (
    CELL,
    RECIPE,
    SEED,
    Runs,
    cell_names,
    training_factors,
)
from softmax_temperature.papers.shared.statistics import (
    OverTasks,
    Quantity,
    Share,
    Task,
)
from softmax_temperature.runner.errors import InputError

TASK = ("dataset", "network")
"""The factors that define a task, unless a contrast specifies other factors.

Runs that agree in these factors and in the seed may start from the same weights, so
their values count as dependent.
"""
OWN = "own"
"""The column of `Runs.table` that says whether a run counts as a run on the paper's
data.
"""

Note = Callable[[Runs, pd.DataFrame], str]
"""A function that writes a note, from a study's runs and the rows behind a contrast."""
Cells = Callable[[pd.DataFrame], tuple[str, ...]]
"""A function that returns the names of the cells behind some rows of `Runs.table`."""


@dataclass(frozen=True)
class Measurement:
    """The measured parts of one claim; a claim about one quantity has one part.

    Attributes:
        parts: The estimate of each part, keyed by part name.
        unit: The unit of all parts.
        note: Text for the notes column, with {} for each number in `note_values`.
        missing: The parts that cannot be judged, each with the reason.
        cells: The cells that the values come from (see `sources`).
        note_values: The numbers in the note, in the unit of the parts.
        whole: Whether the claim is about all parts together. If it is, a missing part
            leaves the claim not tested, unless another part contradicts it.
        not_run: The parts that were not run and are not required by the claim.
        qualifier: Text that is shown wherever the numbers are shown, because the
            numbers would mislead without it.
    """

    parts: Mapping[str, Quantity]
    unit: str
    note: str = ""
    missing: Mapping[str, str] = field(default_factory=dict)
    cells: tuple[str, ...] = ()
    note_values: tuple[float, ...] = ()
    whole: bool = False
    not_run: tuple[str, ...] = ()
    qualifier: str = ""


def not_tested(reason: str) -> Measurement:
    """The measurement of a claim that cannot be tested, with the reason."""
    return Measurement({}, "", missing={"": reason})


class Contrast(ABC):
    """A quantity to measure on the runs of a study."""

    @abstractmethod
    def measure(self, runs: Any) -> Measurement:
        """The estimates of all parts, or the reason why there are none."""


@dataclass(frozen=True)
class Computed(Contrast):
    """A contrast that a given function measures.

    Attributes:
        by: Function that measures the runs of a study.
    """

    by: Callable[[Any], Measurement]

    def measure(self, runs: Any) -> Measurement:
        """Return what the function `by` measures."""
        return self.by(runs)


@dataclass(frozen=True)
class Evidence:
    """The estimates of some parts, the reasons why others are missing, and the runs.

    If a part compares two arms, it does so on the seeds that both have. A seed that one
    part lacks still counts in the other parts.

    Attributes:
        parts: The estimate of each part.
        missing: The parts without an estimate, each with the reason.
        runs: The rows of `Runs.table` for the runs behind the estimates.
    """

    parts: Mapping[str, Quantity]
    missing: Mapping[str, str]
    runs: pd.DataFrame


@dataclass(frozen=True, kw_only=True)
class Declared(Contrast):
    """A contrast of runs selected by factors.

    Attributes:
        of: The metric to compare.
        among: The runs to use.
        tasks: The factors that define a task. `OverTasks` says how the tasks' values
            are averaged.
        averaged_over: Factors over which the values of one task and seed are averaged.
        split_by: A factor, or another column of `Runs.table`. Each of its values is a
            separate part.
        note_metrics: Other metrics of the same runs, keyed by the name that the note
            uses. The note reports the same contrast for each of them.
        lost_as: Words for the value that the metric assigns to a lost run, if it
            assigns one.
        note: Function that takes all runs of the study and the rows of the runs behind
            the contrast, and returns a text for the notes column, such as "3 of 8
            trainings overflowed".
        counted: Plural noun for a task's values, such as "seeds".
        left_out: Whether each value comes from a choice or a fit on the other values.
            If so, the interval is widened.
        resolution: The step of the grid that the values lie on; 0 if there is no grid.
        unit_as: The unit, if it differs from the metric's unit.
        cells: Function that returns the names of the cells behind a table of runs. By
            default, the last part of each name, the seed, is left out.
    """

    of: Measure
    among: Where = ALL
    tasks: Sequence[str] = TASK
    averaged_over: Sequence[str] = ()
    split_by: str | None = field(default=None, metadata={REGISTERED_AS: "each"})
    note_metrics: Mapping[str, Measure] = field(
        default_factory=dict, metadata={REGISTERED_AS: "beside"}
    )
    lost_as: str = ""
    note: Note | None = None
    counted: str = "seeds"
    left_out: bool = False
    resolution: float = 0.0
    unit_as: str = ""
    cells: Cells | None = None

    @property
    def unit(self) -> str:
        """The unit of the estimates."""
        return self.unit_as or self.of.unit

    def measure(self, runs: Runs) -> Measurement:
        """Estimate each part.

        The note gives the same contrast for each metric in `note_metrics`, then the
        counts of lost runs, then the text from `note`.
        """
        evidence = self.evidence(runs)
        if not evidence.parts:
            return not_tested(reasons(evidence.missing))
        notes = []
        numbers = []
        for name, measure in self.note_metrics.items():
            note_evidence = replace(self, of=measure, note_metrics={}).evidence(runs)
            for part in note_evidence.parts.values():
                notes.append(f"{name} {{}}")
                numbers.append(float(part.estimate().value))
        notes += self.notes(runs, evidence.runs)
        name_cells = self.cells or cells_of_runs
        return Measurement(
            evidence.parts,
            self.unit,
            "; ".join(notes),
            evidence.missing,
            name_cells(evidence.runs),
            tuple(numbers),
        )

    def notes(self, runs: Runs, behind: pd.DataFrame) -> list[str]:
        """The notes without numbers to fill in: one on lost runs, and one from `note`.

        Args:
            runs: All runs of the study.
            behind: The rows of the runs behind the contrast.
        """
        texts = [lost_text(behind, counted=self.lost_as)]
        if self.note is not None:
            texts.append(self.note(runs, behind))
        return [text for text in texts if text]

    def evidence(self, runs: Runs) -> Evidence:
        """Estimate each part, and give a reason for each part without an estimate."""
        if self.split_by is None:
            return self._whole(runs)
        groups = self._sides(runs)[0][self.split_by].dropna()
        parts: dict[str, Quantity] = {}
        missing: dict[str, str] = {}
        behind = []
        # Sort the values, so that the parts of a categorical column are in the order of
        # its categories.
        for value in groups.drop_duplicates().sort_values():
            whole = self._restricted(where(**{self.split_by: value})).evidence(runs)
            name = value_label(self.split_by, value)
            behind.append(whole.runs)
            for inner, part in whole.parts.items():
                parts[joined(name, inner)] = part
            for inner, reason in whole.missing.items():
                missing[joined(name, inner)] = reason
        if not behind:
            return self._whole(runs)
        return Evidence(parts, missing, all_runs(behind))

    @abstractmethod
    def _whole(self, runs: Runs) -> Evidence:
        """Estimate the quantity over all runs of the contrast, without `split_by`."""

    def _sides(self, runs: Runs) -> tuple[pd.DataFrame, ...]:
        """The rows of the contrast's runs, in one table for each compared side."""
        return (runs.select(self.among),)

    def _restricted(self, to: Where) -> Self:
        """The same contrast without `split_by`, restricted to runs that `to` selects.

        In a difference, only the first runs are restricted.
        """
        return replace(self, among=self.among & to, split_by=None)

    def _over_tasks(self, numbers: pd.Series[float], runs: pd.DataFrame) -> OverTasks:
        """The mean over tasks of values that are indexed by the tasks' factors.

        If the index contains the seed, tasks on the same data and network are averaged
        within each seed (see `OverTasks`).
        """
        keys = list(self.tasks)
        about = _about_tasks(runs, keys)
        has_seeds = SEED in numbers.index.names
        tasks = []
        for key, values in numbers.groupby(level=keys, sort=False):
            place = key if isinstance(key, tuple) else (key,)
            own, shares = about[place]
            task = Task(
                ", ".join(map(value_label, keys, place)),
                tuple(values.tolist()),
                own,
                tuple(values.index.get_level_values(SEED)) if has_seeds else (),
                shares,
            )
            tasks.append(task)
        return OverTasks(
            tuple(tasks),
            counted=self.counted,
            resolution=self.resolution,
            left_out=self.left_out,
        )

    def _why_none(self, runs: Runs) -> str:
        """The reason why the quantity could not be estimated."""
        chosen = runs.select(self.among)
        if chosen.empty:
            return f"no run for {self.among}"
        if is_lost(chosen).all():
            return lost_text(chosen)
        return f"no run of this study has a value: {source_text(self.of)}"


@dataclass(frozen=True, kw_only=True)
class Difference(Declared):
    """The paired difference in a metric between two sets of runs, averaged over tasks.

    Two runs form a pair if they agree in the factors of the task and in the factors
    `averaged_over` and `paired_by`.

    Attributes:
        first: The runs whose metric is the minuend.
        second: The runs whose metric is subtracted.
        of_second: The metric of the second runs, if it differs from `of`.
        paired_by: Factors in which the two runs of a pair agree, besides the factors of
            the task.
        sharing: Factors in which the two runs of a pair must agree; otherwise
            InputError is raised.
    """

    first: Where
    second: Where
    of_second: Measure | None = None
    paired_by: Sequence[str] = (SEED,)
    sharing: Sequence[str] = RECIPE

    def differences(self, runs: Runs) -> pd.Series[float]:
        """The differences, indexed by `tasks`, `averaged_over` and `paired_by`.

        Raises:
            InputError: If the two runs of a pair differ in a factor in `sharing`.
        """
        first, second = self._sides(runs)
        minuend = self._numbers(runs, first, self.of)
        subtrahend = self._numbers(runs, second, self.of_second or self.of)
        sides = [
            minuend.add_suffix(" of first"),
            subtrahend.add_suffix(" of second"),
        ]
        both = pd.concat(sides, axis="columns", join="inner")
        both = both.dropna(subset=["number of first", "number of second"]).sort_index()
        self._check_shared(both)
        return both["number of first"] - both["number of second"]

    def _check_shared(self, pairs: pd.DataFrame) -> None:
        for name in self._shared(pairs):
            first = pairs[f"{name} of first"]
            second = pairs[f"{name} of second"]
            if first.equals(second):
                continue
            differ = (first != second) & ~(first.isna() & second.isna())
            if differ.any():
                pair = pairs[differ].iloc[0]
                cells = f"{pair[f'{CELL} of first']} and {pair[f'{CELL} of second']}"
                raise InputError(
                    f"two runs to compare also differ in {name}: "
                    f"{first[differ].iloc[0]} and {second[differ].iloc[0]}",
                    where=cells,
                    remedy=f"Train both with the same {name}.",
                )

    def _shared(self, pairs: pd.DataFrame) -> list[str]:
        return [name for name in self.sharing if f"{name} of first" in pairs]

    def _whole(self, runs: Runs) -> Evidence:
        first, second = self._sides(runs)
        behind = all_runs([first, second])
        differences = self.differences(runs)
        if differences.empty:
            return Evidence({}, {"": self._why_none(runs)}, behind)
        if reason := self._why_unusable(differences):
            return Evidence({}, {"": reason}, behind)
        if self.averaged_over:
            keys = [*self.tasks, *self.paired_by]
            differences = _averaged(differences, keys, self.tasks)
        return Evidence({"": self._over_tasks(differences, first)}, {}, behind)

    def _why_unusable(self, _: pd.Series[float]) -> str:
        """Why the differences give no estimate; "" if they give one."""
        return ""

    def _sides(self, runs: Runs) -> tuple[pd.DataFrame, ...]:
        return tuple(
            runs.select(self.among, side) for side in (self.first, self.second)
        )

    def _restricted(self, to: Where) -> Self:
        return replace(self, first=self.first & to, split_by=None)

    def _numbers(
        self, runs: Runs, chosen: pd.DataFrame, measure: Measure
    ) -> pd.DataFrame:
        """One side's values in the column `number`, indexed by the factors of a pair.

        The other columns are the run's cell and the factors in `sharing`.
        """
        distinct = one_run_each(chosen, self._keys)
        rows = self._compared(distinct)
        return rows.assign(number=measure.of(runs, distinct)).set_index(self._keys)

    @property
    def _keys(self) -> list[str]:
        """The factors of a pair: the two runs of a pair agree in them."""
        return [*self.tasks, *self.averaged_over, *self.paired_by]

    def _compared(self, chosen: pd.DataFrame) -> pd.DataFrame:
        """The factors of a pair, the factors in `sharing`, and the cell of each run."""
        keys = self._keys
        common = [name for name in self.sharing if name in chosen and name not in keys]
        return chosen[[*keys, *common, CELL]]

    def _why_none(self, runs: Runs) -> str:
        sides = ((self.first, self.of), (self.second, self.of_second or self.of))
        for side, measure in sides:
            rows = runs.select(self.among, side)
            if rows.empty:
                return f"no run with {side}, of those for {self.among}"
            if measure.of(runs, rows).notna().any():
                continue
            if is_lost(rows).all():
                return f"every run is lost: {lost_text(rows)}"
            return f"no run with {side} has a value: {source_text(measure)}"
        return "no two runs of this study share all but what is compared"


@dataclass(frozen=True, kw_only=True)
class Ratio(Difference):
    """The logarithm of the ratio of two paired runs' metrics, averaged over tasks.

    If a value is 0, there is no estimate: the other pairs alone would be biased.
    """

    @property
    def unit(self) -> str:
        """The unit of the estimates."""
        return self.unit_as or f"logarithm of the ratio of {self.of.unit}"

    def _why_unusable(self, differences: pd.Series[float]) -> str:
        infinite = int((~np.isfinite(differences)).sum())
        if not infinite:
            return ""
        return (
            f"in {infinite} of {len(differences)} pairs a value is 0, so their ratio "
            f"has no logarithm: {source_text(self.of)}"
        )

    def _numbers(
        self, runs: Runs, chosen: pd.DataFrame, measure: Measure
    ) -> pd.DataFrame:
        rows = super()._numbers(runs, chosen, measure)
        # The logarithm of 0 is -inf, which `_why_unusable` names.
        with np.errstate(divide="ignore"):
            return rows.assign(number=np.log(rows["number"]))


@dataclass(frozen=True, kw_only=True)
class Mean(Declared):
    """The mean of a metric over tasks.

    Attributes:
        by: The factors that distinguish the values of one task.
    """

    by: Sequence[str] = (SEED,)

    def _whole(self, runs: Runs) -> Evidence:
        (chosen,) = self._sides(runs)
        keys = [*self.tasks, *self.averaged_over, *self.by]
        distinct = one_run_each(chosen, keys)
        rows = distinct[keys].assign(number=self.of.of(runs, distinct))
        numbers = rows.set_index(keys)["number"].dropna()
        if numbers.empty:
            return Evidence({}, {"": self._why_none(runs)}, chosen)
        if self.averaged_over:
            numbers = _averaged(numbers, [*self.tasks, *self.by], self.tasks)
        return Evidence({"": self._over_tasks(numbers, chosen)}, {}, chosen)


@dataclass(frozen=True, kw_only=True)
class Proportion(Declared):
    """The share of trials, such as seeds, in which every run satisfies a predicate.

    Attributes:
        of: The predicate, `Having(words, where)`.
        trials: The factors that define a trial.
    """

    of: Having
    trials: Sequence[str] = (SEED,)

    @property
    def unit(self) -> str:
        """The unit of the estimates."""
        return self.unit_as or f"of the {self.counted} {self.of.unit}"

    def _whole(self, runs: Runs) -> Evidence:
        (chosen,) = self._sides(runs)
        if chosen.empty:
            return Evidence({}, {"": self._why_none(runs)}, chosen)
        is_hit = self.of.where.mask(chosen)
        by_trial = is_hit.groupby([chosen[key] for key in self.trials])
        # Leave out a trial that lacks one of its runs.
        is_whole = by_trial.size() == by_trial.size().max()
        hits = by_trial.all()[is_whole]
        own = bool(chosen[OWN].iloc[0])
        share = Share(int(hits.sum()), len(hits), own=own, counted=self.counted)
        return Evidence({"": share}, {}, chosen)


@dataclass(frozen=True)
class Having:
    """A predicate on runs, as a measure with the values 0 and 1.

    Attributes:
        unit: The predicate in words, such as "diverged".
        where: The predicate.
    """

    unit: str
    where: Where

    def of(self, _: Runs, chosen: pd.DataFrame) -> pd.Series[float]:
        """1 for each run that satisfies the predicate, and 0 for the other runs."""
        return self.where.mask(chosen).astype(float)


@dataclass(frozen=True)
class Parts(Contrast):
    """Several named contrasts, which are the parts of one claim.

    Attributes:
        contrasts: The contrasts, keyed by name. Each has one part or several.
        required: Whether the claim stays inconclusive if a part was not run and the
            other parts alone do not decide it. If False, the other parts decide, and
            the row names the parts that were judged and the parts that were not run.
        whole: Whether the claim is about all parts together. If it is, and a part is
            missing, the claim is not tested: the other parts cannot support it alone,
            but one of them can still contradict it.
        absent: A single reason why parts are missing, given instead of each part's own
            reason.
        unit_as: The unit, if it differs from the first contrast's.
        note: Function that takes all runs of the study and the rows of the runs behind
            the contrast, and returns a text for the notes column, such as "3 of 8
            trainings overflowed".
        averaged: The factors over which each part is averaged. Each factor is listed
            with all values that it has in the paper. If some values were not run, the
            row lists the values that were run and the values that were not.
    """

    contrasts: Mapping[str, Declared]
    required: bool = True
    whole: bool = False
    absent: str = ""
    unit_as: str = ""
    note: Note | None = None
    averaged: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def measure(self, runs: Runs) -> Measurement:
        """Measure the parts of all contrasts."""
        evidence = self.evidence(runs)
        if not evidence.parts:
            # Give only the first part's reason: the other reasons usually differ from
            # it only in the part's name.
            return not_tested(next(iter(evidence.missing.values())))
        first = next(iter(self.contrasts.values()))
        notes = first.notes(runs, evidence.runs)
        if self.note is not None:
            notes.append(self.note(runs, evidence.runs))
        return Measurement(
            evidence.parts,
            self.unit_as or first.unit,
            "; ".join(filter(None, notes)),
            evidence.missing if self.required else {},
            cells_of_runs(evidence.runs),
            whole=self.whole,
            not_run=() if self.required else tuple(evidence.missing),
            qualifier=self._averaged_over(evidence.runs),
        )

    def _averaged_over(self, behind: pd.DataFrame) -> str:
        """Say which values of the averaged factors were run and which were not.

        The text is "" if all values were run.
        """
        texts = []
        for factor, values in self.averaged.items():
            have = set(behind[factor])
            run = [value_label(factor, value) for value in values if value in have]
            lacking = [
                value_label(factor, value) for value in values if value not in have
            ]
            if lacking:
                texts.append(
                    f"judged with {factor} {', '.join(run)}; "
                    f"not run: {', '.join(lacking)}"
                )
        return "; ".join(texts)

    def evidence(self, runs: Runs) -> Evidence:
        """Estimate the parts of all contrasts."""
        parts: dict[str, Quantity] = {}
        missing: dict[str, str] = {}
        behind = []
        for name, contrast in self.contrasts.items():
            evidence = contrast.evidence(runs)
            behind.append(evidence.runs)
            for inner, part in evidence.parts.items():
                parts[joined(name, inner)] = part
            for inner, reason in evidence.missing.items():
                missing[joined(name, inner)] = reason
        if parts and self.absent:
            missing = dict.fromkeys(missing, self.absent)
        return Evidence(parts, missing, all_runs(behind))


def one_run_each(chosen: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """The rows of `chosen`, with a single row for a run that two experiments share.

    There is one row for each combination of `keys`.

    Raises:
        InputError: If two runs agree in `keys` but differ in another factor, because
            the contrast does not determine which of the two it compares.
    """
    if not chosen[list(keys)].duplicated().any():
        return chosen
    factors = training_factors(chosen)
    distinct = chosen.drop_duplicates(list(dict.fromkeys([*keys, *factors])))
    twice = distinct[distinct.duplicated(list(keys), keep=False)]
    if twice.empty:
        return distinct
    clash = twice[twice.duplicated(list(keys))].iloc[0]
    same = (twice[list(keys)] == clash[list(keys)]).all(axis="columns")
    first, second, *_ = twice[same].index
    differing = [name for name in factors if twice[name][first] != twice[name][second]]
    raise InputError(
        f"two runs with the same {', '.join(keys)} differ in "
        f"{', '.join(differing)}, so the contrast does not determine which one to "
        "compare",
        where=f"{chosen['cell'][first]} and {chosen['cell'][second]}",
        remedy="Leave one of them out of the profile, or give it another role.",
    )


def _averaged(
    numbers: pd.Series[float], keys: Sequence[str], tasks: Sequence[str]
) -> pd.Series[float]:
    """The mean of the values with equal `keys`, if none of these values is missing.

    Groups with fewer values than other groups of the same task are left out, because
    their means would be over fewer conditions than the other means.
    """
    groups = numbers.groupby(list(keys))
    counts = groups.size()
    whole = counts == counts.groupby(list(tasks)).transform("max")
    return groups.mean()[whole]


def _about_tasks(
    runs: pd.DataFrame, keys: Sequence[str]
) -> dict[tuple[Any, ...], tuple[bool, str]]:
    """For each task, whether it is one of the paper's tasks, and its `Task.shares`.

    A task that spans several data sets or networks counts as sharing nothing.
    """
    columns = [name for name in TASK if name in runs]
    about = {}
    for key, rows in runs.groupby(list(keys), sort=False, dropna=False):
        place = key if isinstance(key, tuple) else (key,)
        shared = rows[columns].drop_duplicates()
        shares = ", ".join(map(str, shared.iloc[0])) if len(shared) == 1 else ""
        about[place] = (bool(rows[OWN].iloc[0]), shares)
    return about


def reasons(missing: Mapping[str, str]) -> str:
    """Join the reasons why parts are missing.

    If the reasons differ, each is preceded by the name of its part.
    """
    distinct = list(dict.fromkeys(missing.values()))
    if len(distinct) < 2:
        return "; ".join(distinct)
    return "; ".join(f"{name}: {reason}" for name, reason in missing.items())


def joined(*names: str) -> str:
    """Join the names of a part and of a part within it; empty names are left out."""
    return ", ".join(filter(None, names))


def all_runs(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Join the runs of several tables, sorted by number and without duplicates."""
    together = pd.concat(list(tables))
    return together[~together.index.duplicated()].sort_index()


def cells_of_runs(table: pd.DataFrame) -> tuple[str, ...]:
    """The distinct names of the runs' cells, without the seed."""
    return tuple(dict.fromkeys(cell_names(table)))


def whole_cells_of_runs(table: pd.DataFrame) -> tuple[str, ...]:
    """The distinct full names of the runs' cells, which include the seed."""
    return tuple(dict.fromkeys(table[CELL]))

"""Contrasts: the comparison of a claim, declared as runs selected by factors.

`Difference(of=ACCURACY, first=LAST_LAYER, second=NO_COOLING, among=TABLE_1)` is the
accuracy with last-layer Cooling minus the accuracy without, over pairs of runs that
share everything except Cooling. A contrast gives an estimate with an interval for each
of its parts; a claim about one thing has one part. `sweeps` has the contrasts along a
swept factor: the best value, slopes and correlations.
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
from softmax_temperature.papers.shared.metrics import Measure, lost_text
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
"""The factors that two trainings with one seed share if they begin alike."""
OWN = "own"
"""Column of `Runs.table`: whether the paper has the run's data set."""

Note = Callable[[Runs, pd.DataFrame], str]
"""Makes a remark from the runs of a study and the rows of those behind a contrast."""
Cells = Callable[[pd.DataFrame], tuple[str, ...]]
"""Names the cells behind some rows of `Runs.table`."""


@dataclass(frozen=True)
class Measurement:
    """The measured parts of one claim; a claim about one thing has one part.

    Attributes:
        parts: The estimate of each part, by its name.
        unit: The unit of all parts.
        note: A remark for the reader, with {} for each value in `beside`.
        missing: Why the other parts cannot be judged.
        cells: The cells that the values come from, see `sources`.
        beside: The values in the note, in the same unit.
        whole: Whether the claim is about all parts together: if one part is missing, it
            can be contradicted but otherwise is not tested.
        not_run: The parts that the claim does not require, and that were not run.
        remark: Words that belong to the numbers wherever they are shown.
    """

    parts: Mapping[str, Quantity]
    unit: str
    note: str = ""
    missing: Mapping[str, str] = field(default_factory=dict)
    cells: tuple[str, ...] = ()
    beside: tuple[float, ...] = ()
    whole: bool = False
    not_run: tuple[str, ...] = ()
    remark: str = ""


def not_tested(reason: str) -> Measurement:
    """The measurement of a claim that these runs cannot decide, with the reason."""
    return Measurement({}, "", missing={"": reason})


class Contrast(ABC):
    """A quantity to measure on the runs of a study."""

    @abstractmethod
    def measure(self, runs: Any) -> Measurement:
        """The estimates of all parts, or why there are none."""


@dataclass(frozen=True)
class Computed(Contrast):
    """A contrast that a function of its own measures."""

    by: Callable[[Any], Measurement]

    def measure(self, runs: Any) -> Measurement:
        """The function's measurement."""
        return self.by(runs)


@dataclass(frozen=True)
class Evidence:
    """The estimates of some parts, why others are missing, and the runs behind them.

    The two arms of a part are compared on the seeds that both have. Parts are judged
    each on its own seeds: an arm of one part takes no seed from another part.

    Attributes:
        parts: The estimates.
        missing: Why other parts have none.
        runs: The runs behind the estimates.
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
        tasks: The factors that define a task. The mean of each task is one value, and
            all tasks have equal weight.
        averaged_over: Factors over which the values of one task and seed are averaged.
        each: A factor (or its label); each of its values is a separate part.
        beside: Other metrics of the same runs for the note, by name.
        lost_as: What a lost run counts as, in words, if `of` gives it a value.
        note: A remark on the runs.
        counted: Plural name of a task's values.
        left_out: Whether each value comes from a choice or a fit on the others, which
            widens the interval.
        resolution: The step of the grid of values; 0 if there is none.
        unit_as: The unit, if it differs from the unit of `of`.
        cells: Names the cells behind runs; by default without the seed, the last part
            of their names.
    """

    of: Measure
    among: Where = ALL
    tasks: Sequence[str] = TASK
    averaged_over: Sequence[str] = ()
    each: str | None = None
    beside: Mapping[str, Measure] = field(default_factory=dict)
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
        """The estimates, with the lost runs and the other metrics in the note."""
        evidence = self.evidence(runs)
        if not evidence.parts:
            return not_tested(reasons(evidence.missing))
        notes = []
        numbers = []
        for name, measure in self.beside.items():
            other = replace(self, of=measure, beside={}).evidence(runs)
            for part in other.parts.values():
                notes.append(f"{name} {{}}")
                numbers.append(float(part.estimate().value))
        notes += self.remarks(runs, evidence.runs)
        name_cells = self.cells or cells_of_runs
        return Measurement(
            evidence.parts,
            self.unit,
            "; ".join(notes),
            evidence.missing,
            name_cells(evidence.runs),
            tuple(numbers),
        )

    def remarks(self, runs: Runs, behind: pd.DataFrame) -> list[str]:
        """The lost runs and the contrast's own note, if any."""
        texts = [lost_text(behind, counted=self.lost_as)]
        if self.note is not None:
            texts.append(self.note(runs, behind))
        return [text for text in texts if text]

    def evidence(self, runs: Runs) -> Evidence:
        """The estimate of each part."""
        if self.each is None:
            return self._whole(runs)
        groups = self._sides(runs)[0][self.each].dropna()
        parts: dict[str, Quantity] = {}
        missing: dict[str, str] = {}
        behind = []
        # A categorical column defines the order of its values.
        for value in groups.drop_duplicates().sort_values():
            whole = self._restricted(where(**{self.each: value})).evidence(runs)
            name = value_label(self.each, value)
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
        """The estimate if there are no parts."""

    def _sides(self, runs: Runs) -> tuple[pd.DataFrame, ...]:
        """The runs of each side of the comparison."""
        return (runs.select(self.among),)

    def _restricted(self, to: Where) -> Self:
        """The same contrast of one part."""
        return replace(self, among=self.among & to, each=None)

    def _over_tasks(self, numbers: pd.Series[float], runs: pd.DataFrame) -> OverTasks:
        """The mean over tasks of values indexed by the tasks' factors.

        If the index has the seed, tasks on the same data and network share it.
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
            each=self.counted,
            resolution=self.resolution,
            left_out=self.left_out,
        )

    def _why_none(self, runs: Runs) -> str:
        """The reason why nothing is measured."""
        chosen = runs.select(self.among)
        if chosen.empty:
            return f"no run for {self.among}"
        return lost_text(chosen) or f"no run of this study has a value: {self.of.unit}"


@dataclass(frozen=True, kw_only=True)
class Difference(Declared):
    """A metric of some runs minus that of others, paired, as a mean over tasks.

    Two runs form a pair if they share the task, `averaged_over` and `paired_by`.

    Attributes:
        first: The runs whose metric is the minuend.
        second: The runs whose metric is subtracted.
        of_second: The metric of the second runs, if it differs.
        paired_by: Factors that the two runs of a pair share, besides the task's.
        sharing: Factors in which the two runs of a pair must not differ; an InputError
            reports a difference.
    """

    first: Where
    second: Where
    of_second: Measure | None = None
    paired_by: Sequence[str] = (SEED,)
    sharing: Sequence[str] = RECIPE

    def differences(self, runs: Runs) -> pd.Series[float]:
        """The differences, indexed by task, `averaged_over` and `paired_by`.

        Raises:
            InputError: If the two runs of a pair differ in more than the comparison
                allows.
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
            differ = (first != second) & ~(first.isna() & second.isna())
            if differ.any():
                pair = pairs[differ].iloc[0]
                cells = f"{pair[f'{CELL} of first']} and {pair[f'{CELL} of second']}"
                raise InputError(
                    f"runs that are compared differ in {name}, too: "
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
        if self.averaged_over:
            keys = [*self.tasks, *self.paired_by]
            differences = _averaged(differences, keys, self.tasks)
        return Evidence({"": self._over_tasks(differences, first)}, {}, behind)

    def _sides(self, runs: Runs) -> tuple[pd.DataFrame, ...]:
        chosen = runs.select(self.among)
        return self.first.select(chosen), self.second.select(chosen)

    def _restricted(self, to: Where) -> Self:
        return replace(self, first=self.first & to, each=None)

    def _numbers(
        self, runs: Runs, chosen: pd.DataFrame, measure: Measure
    ) -> pd.DataFrame:
        """The values of one side, by the shared factors of a pair.

        Each value comes with its cell and the factors that both sides must share.
        """
        keys = [*self.tasks, *self.averaged_over, *self.paired_by]
        common = [name for name in self.sharing if name in chosen and name not in keys]
        distinct = one_run_each(chosen, keys)
        rows = distinct[[*keys, *common, CELL]]
        return rows.assign(number=measure.of(runs, distinct)).set_index(keys)

    def _why_none(self, runs: Runs) -> str:
        chosen = runs.select(self.among)
        for side in (self.first, self.second):
            rows = side.select(chosen)
            if rows.empty:
                return f"no run with {side}, of those for {self.among}"
            if lost_text(rows) and self.of.of(runs, rows).isna().all():
                return f"every run is lost: {lost_text(rows)}"
        return "no two runs of this study share all but what is compared"


@dataclass(frozen=True, kw_only=True)
class Ratio(Difference):
    """The logarithm of the ratio of two metrics, paired, as a mean over tasks."""

    @property
    def unit(self) -> str:
        """The unit of the estimates."""
        return self.unit_as or f"logarithm of the ratio of {self.of.unit}"

    def _numbers(
        self, runs: Runs, chosen: pd.DataFrame, measure: Measure
    ) -> pd.DataFrame:
        rows = super()._numbers(runs, chosen, measure)
        return rows.assign(number=np.log(rows["number"]))


@dataclass(frozen=True, kw_only=True)
class Mean(Declared):
    """A metric as a mean over tasks.

    Attributes:
        by: The factors that distinguish the values of a task.
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
    """The share of seeds for which every run satisfies a predicate.

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
        # A trial without one of the runs is left out.
        is_whole = by_trial.size() == by_trial.size().max()
        hits = by_trial.all()[is_whole]
        own = bool(chosen[OWN].iloc[0])
        share = Share(int(hits.sum()), len(hits), own=own, each=self.counted)
        return Evidence({"": share}, {}, chosen)


@dataclass(frozen=True)
class Having:
    """Whether each run satisfies a predicate, with the word for it."""

    unit: str
    where: Where

    def of(self, _: Runs, chosen: pd.DataFrame) -> pd.Series[float]:
        """1 for the runs that satisfy it, 0 for the others."""
        return self.where.mask(chosen).astype(float)


@dataclass(frozen=True)
class Parts(Contrast):
    """Several contrasts by name, which are the parts of one claim.

    Attributes:
        contrasts: The contrasts, each with one part or several.
        required: Whether a part that was not run leaves the claim open. If it does not,
            the row names the parts that were judged and those that were not run.
        whole: Whether such a claim is not tested until all parts were run, unless one
            contradicts it.
        note: A remark on the runs.
        absent: Why a part is missing, instead of its own reason.
        unit_as: The unit, if it differs from the first contrast's.
        averaged: Factors over whose values each part is averaged as far as they were
            run, with all values that the paper has: the row names both kinds.
    """

    contrasts: Mapping[str, Declared]
    required: bool = True
    whole: bool = False
    absent: str = ""
    unit_as: str = ""
    note: Note | None = None
    averaged: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def measure(self, runs: Runs) -> Measurement:
        """The parts of all contrasts."""
        evidence = self.evidence(runs)
        if not evidence.parts:
            # The parts' reasons differ only in the part.
            return not_tested(next(iter(evidence.missing.values())))
        first = next(iter(self.contrasts.values()))
        notes = first.remarks(runs, evidence.runs)
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
            remark=self._averaged_over(evidence.runs),
        )

    def _averaged_over(self, behind: pd.DataFrame) -> str:
        """The values of the averaged factors that were run, and those that were not."""
        texts = []
        for factor, values in self.averaged.items():
            have = set(behind[factor])
            run = [value_label(factor, value) for value in values if value in have]
            lacking = [value_label(factor, one) for one in values if one not in have]
            if lacking:
                texts.append(
                    f"judged with {factor} {', '.join(run)}; "
                    f"not run: {', '.join(lacking)}"
                )
        return "; ".join(texts)

    def evidence(self, runs: Runs) -> Evidence:
        """The estimates of all parts."""
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
    """One run for each value of the keys: two experiments may train the same run.

    Raises:
        InputError: If two runs share the keys but differ in another factor, because the
            contrast then does not say which one it is about.
    """
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
        f"two runs fit one place: they share {', '.join(keys)}, and differ in "
        f"{', '.join(differing)}",
        where=f"{chosen['cell'][first]} and {chosen['cell'][second]}",
        remedy="Leave one of them out of the profile, or give it another role.",
    )


def _averaged(
    numbers: pd.Series[float], keys: Sequence[str], tasks: Sequence[str]
) -> pd.Series[float]:
    """The mean of the values with the same keys, if they have all of them.

    A seed with missing values would be compared with a different mean.
    """
    groups = numbers.groupby(list(keys))
    counts = groups.size()
    whole = counts == counts.groupby(list(tasks)).transform("max")
    return groups.mean()[whole]


def _about_tasks(
    runs: pd.DataFrame, keys: Sequence[str]
) -> dict[tuple[Any, ...], tuple[bool, str]]:
    """Whether the paper has each task, and the data and network that it shares.

    A task of several networks shares nothing that has a name.
    """
    known = [name for name in TASK if name in runs]
    about = {}
    for key, rows in runs.groupby(list(keys), sort=False, dropna=False):
        place = key if isinstance(key, tuple) else (key,)
        shared = rows[known].drop_duplicates()
        shares = ", ".join(map(str, shared.iloc[0])) if len(shared) == 1 else ""
        about[place] = (bool(rows[OWN].iloc[0]), shares)
    return about


def reasons(missing: Mapping[str, str]) -> str:
    """Why parts are missing, with the parts' names if the reasons differ."""
    distinct = list(dict.fromkeys(missing.values()))
    if len(distinct) < 2:
        return "; ".join(distinct)
    return "; ".join(f"{name}: {reason}" for name, reason in missing.items())


def joined(*names: str) -> str:
    """The name of a part of a part."""
    return ", ".join(filter(None, names))


def all_runs(tables: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """The runs of several tables, each once."""
    together = pd.concat(list(tables))
    return together[~together.index.duplicated()].sort_index()


def cells_of_runs(table: pd.DataFrame) -> tuple[str, ...]:
    """The names of the cells of some runs, without the seed, each once."""
    return tuple(dict.fromkeys(cell_names(table)))


def whole_cells_of_runs(table: pd.DataFrame) -> tuple[str, ...]:
    """The full names of the cells of some runs, each once for all seeds."""
    return tuple(dict.fromkeys(table[CELL]))

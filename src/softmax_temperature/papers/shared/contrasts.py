"""Contrasts: what a claim compares, declared as runs selected by their factors.

`Difference(of=ACCURACY, first=LAST_LAYER, second=NO_COOLING, among=TABLE_1)` is the
accuracy with last layer Cooling minus that without, over pairs of runs that share
everything but Cooling. A contrast gives an estimate with an interval for each of its
parts; a claim about one thing has one part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.shared.display import value_label
from softmax_temperature.papers.shared.factors import ALL, Where, where
from softmax_temperature.papers.shared.metrics import Measure, lost_text
from softmax_temperature.papers.shared.runs import SEED, Runs, cell_names
from softmax_temperature.papers.shared.statistics import (
    OverTasks,
    Quantity,
    Share,
    Task,
)

TASK = ("dataset", "network")
OWN = "own"
"""Column of `Runs.table`: whether the paper has the run's data set."""
DRAWS = 4000
DRAW_SEED = 0


@dataclass(frozen=True)
class Measurement:
    """The measured parts of one claim; a claim about one thing has one part.

    Attributes:
        parts: The estimate of each part, by its name.
        unit: The unit of all parts.
        note: A remark for the reader, with {} for each number of `beside`.
        missing: Why the other parts cannot be judged.
        cells: The cells that the values come from, see `sources`.
        beside: The numbers in the note, in the same unit.
    """

    parts: Mapping[str, Quantity]
    unit: str
    note: str = ""
    missing: Mapping[str, str] = field(default_factory=dict)
    cells: tuple[str, ...] = ()
    beside: tuple[float, ...] = ()


def not_tested(reason: str) -> Measurement:
    """The measurement of a claim that these runs cannot decide, and why."""
    return Measurement({}, "", missing={"": reason})


class Contrast(ABC):
    """Something to be measured on the runs of a study."""

    @abstractmethod
    def measure(self, runs: Any) -> Measurement:
        """The estimates of all parts, or why there are none."""


@dataclass(frozen=True)
class Computed(Contrast):
    """A contrast that only a function of its own can measure."""

    by: Callable[[Any], Measurement]

    def measure(self, runs: Any) -> Measurement:
        """The function's measurement."""
        return self.by(runs)


@dataclass(frozen=True)
class Evidence:
    """The estimates of some parts, why others are missing, and the runs behind them."""

    parts: Mapping[str, Quantity]
    missing: Mapping[str, str]
    runs: pd.DataFrame


@dataclass(frozen=True, kw_only=True)
class Declared(Contrast):
    """A contrast of runs that are selected by factors.

    Attributes:
        of: The number that is compared.
        among: The runs that are looked at.
        tasks: The factors that make a task. The mean of each task is one value, and
            all tasks weigh the same.
        averaged_over: Factors over which the values of one task and seed are averaged.
        each: A factor, each value of which is a part of its own.
        beside: Other numbers of the same runs, for the note, by their names.
        lost_as: What a lost run counts as, in words, where `of` gives it a value.
    """

    of: Measure
    among: Where = ALL
    tasks: Sequence[str] = TASK
    averaged_over: Sequence[str] = ()
    each: str | None = None
    beside: Mapping[str, Measure] = field(default_factory=dict)
    lost_as: str = ""

    def measure(self, runs: Runs) -> Measurement:
        """The estimates, with the lost runs and the other numbers in the note."""
        evidence = self.evidence(runs)
        if not evidence.parts:
            return not_tested("; ".join(dict.fromkeys(evidence.missing.values())))
        values = []
        notes = []
        for name, measure in self.beside.items():
            other = replace(self, of=measure, beside={}).evidence(runs)
            for part in other.parts.values():
                notes.append(f"{name} {{}}")
                values.append(float(part.estimate().value))
        notes.append(lost_text(evidence.runs, counted=self.lost_as))
        return Measurement(
            evidence.parts,
            self.unit,
            "; ".join(filter(None, notes)),
            evidence.missing,
            cells_of_runs(evidence.runs),
            tuple(values),
        )

    def evidence(self, runs: Runs) -> Evidence:
        """The estimate of each part."""
        if self.each is None:
            return self._whole(runs)
        groups = self._sides(runs)[0][self.each].dropna()
        parts: dict[str, Quantity] = {}
        missing: dict[str, str] = {}
        behind = []
        for value in sorted(groups.unique()):
            part = self._restricted(where(**{self.each: value})).evidence(runs)
            name = value_label(self.each, value)
            behind.append(part.runs)
            for quantity in part.parts.values():
                parts[name] = quantity
            for reason in part.missing.values():
                missing[name] = reason
        if not behind:
            return self._whole(runs)
        together = pd.concat(behind)
        return Evidence(parts, missing, together[~together.index.duplicated()])

    @property
    def unit(self) -> str:
        """The unit of the estimates."""
        return self.of.unit

    @abstractmethod
    def _whole(self, runs: Runs) -> Evidence:
        """The estimate of the only part."""

    @abstractmethod
    def _sides(self, runs: Runs) -> tuple[pd.DataFrame, ...]:
        """The runs of each side of the comparison."""

    @abstractmethod
    def _restricted(self, to: Where) -> Declared:
        """The same contrast of one part."""


@dataclass(frozen=True, kw_only=True)
class Difference(Declared):
    """The number of some runs minus that of others, paired, as a mean over tasks.

    Two runs are a pair if they share the task, everything in `averaged_over` and
    `paired_by`. Of several runs that share all of it, the first counts.

    Attributes:
        first: The runs whose number is the minuend.
        second: The runs whose number is subtracted.
        of_second: The number of the second runs, if it is another one.
        paired_by: The factors, beside the task's, that the two runs of a pair share.
    """

    first: Where
    second: Where
    of_second: Measure | None = None
    paired_by: Sequence[str] = (SEED,)

    def differences(self, runs: Runs) -> pd.Series[float]:
        """The differences, indexed by task, `averaged_over` and `paired_by`."""
        first, second = self._sides(runs)
        minuend = self._numbers(runs, first, self.of)
        subtrahend = self._numbers(runs, second, self.of_second or self.of)
        both = pd.concat({"first": minuend, "second": subtrahend}, axis="columns")
        both = both.dropna().sort_index()
        return both["first"] - both["second"]

    def _whole(self, runs: Runs) -> Evidence:
        first, second = self._sides(runs)
        behind = pd.concat([first, second])
        behind = behind[~behind.index.duplicated()]
        pairs = self.differences(runs)
        if pairs.empty:
            return Evidence({}, {"": self._why_none(runs)}, behind)
        tasks = self._tasks(pairs, first)
        return Evidence({"": OverTasks(tasks)}, {}, behind)

    def _sides(self, runs: Runs) -> tuple[pd.DataFrame, ...]:
        chosen = runs.select(self.among)
        return self.first.select(chosen), self.second.select(chosen)

    def _restricted(self, to: Where) -> Declared:
        return replace(self, first=self.first & to, each=None)

    def _numbers(
        self, runs: Runs, chosen: pd.DataFrame, measure: Measure
    ) -> pd.Series[float]:
        keys = [*self.tasks, *self.averaged_over, *self.paired_by]
        numbers = measure.of(runs, chosen)
        rows = chosen[keys].assign(number=numbers).drop_duplicates(keys)
        return rows.set_index(keys)["number"]

    def _tasks(self, pairs: pd.Series[float], first: pd.DataFrame) -> tuple[Task, ...]:
        keys = list(self.tasks)
        if self.averaged_over:
            pairs = pairs.groupby([*keys, *self.paired_by]).mean()
        own = first.drop_duplicates(keys).set_index(keys)[OWN]
        tasks = []
        for key, values in pairs.groupby(level=keys, sort=False):
            place = key if isinstance(key, tuple) else (key,)
            labels = map(value_label, keys, place)
            is_own = bool(own.loc[place if len(keys) > 1 else place[0]])
            tasks.append(Task(", ".join(labels), tuple(values.tolist()), is_own))
        return tuple(tasks)

    def _why_none(self, runs: Runs) -> str:
        chosen = runs.select(self.among)
        for side in (self.first, self.second):
            rows = side.select(chosen)
            if rows.empty:
                return f"no run of this study has {side}, among those with {self.among}"
            if lost_text(rows) and self.of.of(runs, rows).isna().all():
                return f"every run is lost: {lost_text(rows)}"
        return "no two runs of this study share all but what is compared"


@dataclass(frozen=True, kw_only=True)
class Ratio(Difference):
    """The logarithm of the ratio of two numbers, paired, as a mean over tasks."""

    @property
    def unit(self) -> str:
        """The unit of the estimates."""
        return f"logarithm of the ratio of {self.of.unit}"

    def _numbers(
        self, runs: Runs, chosen: pd.DataFrame, measure: Measure
    ) -> pd.Series[float]:
        numbers: pd.Series[float] = np.log(super()._numbers(runs, chosen, measure))
        return numbers


@dataclass(frozen=True, kw_only=True)
class Mean(Declared):
    """A number itself, as a mean over tasks.

    Attributes:
        resolution: The step of the grid that the numbers lie on, 0 if they are on none.
        counted: What the values of a task are, in the plural.
    """

    resolution: float = 0.0
    counted: str = "seeds"

    def _whole(self, runs: Runs) -> Evidence:
        (chosen,) = self._sides(runs)
        numbers = self.of.of(runs, chosen).dropna()
        rows = chosen.loc[numbers.index].assign(number=numbers)
        if rows.empty:
            return Evidence({}, {"": self._why_none(chosen)}, chosen)
        tasks = []
        for key, values in rows.groupby(list(self.tasks), sort=False):
            labels = map(value_label, self.tasks, key)
            if self.averaged_over:
                means = values.groupby(SEED)["number"].mean()
            else:
                means = values["number"]
            is_own = bool(values[OWN].iloc[0])
            tasks.append(Task(", ".join(labels), tuple(means.tolist()), is_own))
        mean = OverTasks(tuple(tasks), each=self.counted, resolution=self.resolution)
        return Evidence({"": mean}, {}, chosen)

    def _sides(self, runs: Runs) -> tuple[pd.DataFrame, ...]:
        return (runs.select(self.among),)

    def _restricted(self, to: Where) -> Declared:
        return replace(self, among=self.among & to, each=None)

    def _why_none(self, chosen: pd.DataFrame) -> str:
        if chosen.empty:
            return f"no run of this study has {self.among}"
        return f"no run has a value: {lost_text(chosen) or self.of.unit}"


@dataclass(frozen=True, kw_only=True)
class Proportion(Contrast):
    """The share of seeds with which every run is as a predicate says.

    Attributes:
        having: The predicate.
        among: The runs that are looked at.
        each: A factor, each value of which is a part of its own.
        words: What the predicate says, for the unit "of the seeds ...".
        trials: The factors that make a trial.
        note: A remark on the runs, from their table.
    """

    having: Where
    among: Where
    each: str
    words: str
    trials: Sequence[str] = (SEED,)
    note: Callable[[Runs, pd.DataFrame], str] = lambda _, __: ""

    def measure(self, runs: Runs) -> Measurement:
        """The share of each part, with the exact interval."""
        chosen = runs.select(self.among)
        parts = {}
        for value, rows in chosen.groupby(self.each, sort=False):
            hits = self.having.mask(rows).groupby([rows[key] for key in self.trials])
            all_hit = hits.all()
            own = bool(rows[OWN].iloc[0])
            share = Share(int(all_hit.sum()), len(all_hit), own=own)
            parts[value_label(self.each, value)] = share
        if not parts:
            return not_tested(f"no run of this study has {self.among}")
        notes = filter(None, [lost_text(chosen), self.note(runs, chosen)])
        return Measurement(
            parts,
            f"of the {' and '.join(self.trials)}s {self.words}",
            "; ".join(notes),
            cells=cells_of_runs(chosen),
        )


@dataclass(frozen=True)
class Parts(Contrast):
    """Several contrasts by name, which are the parts of one claim.

    Attributes:
        contrasts: The contrasts, with one part each or with several.
        required: Whether a part that was not run leaves the claim open.
        absent: Why a part is not there, in place of the reason that it gives itself.
    """

    contrasts: Mapping[str, Declared]
    required: bool = True
    absent: str = "not trained"

    def measure(self, runs: Runs) -> Measurement:
        """The parts of all contrasts."""
        parts: dict[str, Quantity] = {}
        missing: dict[str, str] = {}
        reasons = []
        behind = []
        for name, contrast in self.contrasts.items():
            evidence = contrast.evidence(runs)
            behind.append(evidence.runs)
            reasons += evidence.missing.values()
            for inner, quantity in evidence.parts.items():
                parts[", ".join(filter(None, (name, inner)))] = quantity
            if not evidence.parts and self.required:
                missing[name] = self.absent
        if not parts:
            return not_tested("; ".join(dict.fromkeys(reasons)))
        first = next(iter(self.contrasts.values()))
        together = pd.concat(behind)
        together = together[~together.index.duplicated()]
        return Measurement(
            parts,
            first.unit,
            lost_text(together, counted=first.lost_as),
            missing,
            cells_of_runs(together),
        )


def cells_of_runs(table: pd.DataFrame) -> tuple[str, ...]:
    """The names of the cells of some runs, without the seed, each once."""
    return tuple(dict.fromkeys(cell_names(table)))

"""Claims: sentences of a paper, each with a contrast and the criterion it is judged by.

A claim holds if the 90 % interval of its contrast lies in the region that its criterion
names, is contradicted if the interval lies outside, and is inconclusive if the interval
lies across a bound. Where nothing was measured it is not tested. Every claim of a paper
has a row in `claims.json`: none is silently absent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf, isfinite
from typing import Any, Self

import pandas as pd

from softmax_temperature.papers.shared.contrasts import (
    Contrast,
    Measurement,
    not_tested,
)
from softmax_temperature.papers.shared.display import in_points
from softmax_temperature.papers.shared.statistics import LEVEL, Ends, Quantity

__all__ = ["Measurement", "not_tested"]

HOLDS = "holds"
CONTRADICTED = "contradicted"
INCONCLUSIVE = "inconclusive"
NOT_TESTED = "not tested"
VERDICTS = (HOLDS, CONTRADICTED, INCONCLUSIVE, NOT_TESTED)
DIRECTIONS_ONLY = ("smoke", "mini")
"""Profiles whose data and networks are so small that a verdict is about the direction
of an effect, not its size.
"""
_NOTHING_SHOWN = "–"


@dataclass(frozen=True)
class Criterion:
    """The region in which the interval must lie.

    Attributes:
        kind: The name of the test: superiority, equivalence, ...
        low: The lower end of the region.
        high: The upper end of the region.
        some: Whether one part in the region is enough; else all must lie there.
    """

    kind: str
    low: float = -inf
    high: float = inf
    some: bool = False

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """The criterion of a row of `claims.json`."""
        low, high = row["region"]
        return cls(
            row["kind"],
            -inf if low is None else low,
            inf if high is None else high,
            row["some"],
        )

    def row(self) -> dict[str, Any]:
        """The criterion's fields of `claims.json`."""
        return {
            "criterion": self.sentence(),
            "kind": self.kind,
            "region": [end if isfinite(end) else None for end in (self.low, self.high)],
            "bounds": self.bounds,
            "some": self.some,
        }

    def contains(self, ends: Ends) -> bool:
        """Whether the whole interval lies in the region."""
        return self.low < ends[0] and ends[1] < self.high

    def excludes(self, ends: Ends) -> bool:
        """Whether the whole interval lies outside, a bound included."""
        return ends[1] <= self.low or ends[0] >= self.high

    def margin(self, value: float) -> float:
        """The distance of a value from the nearest bound; negative outside."""
        return min(value - self.low, self.high - value)

    @property
    def bounds(self) -> list[float]:
        """The finite ends."""
        return [bound for bound in (self.low, self.high) if isfinite(bound)]

    def where(self, scale: float = 1) -> str:
        """The region in words, its ends in units of 1 / scale."""
        if len(self.bounds) == 2:
            side = "between"
        elif isfinite(self.low):
            side = "above"
        else:
            side = "below"
        return f"{side} {' and '.join(f'{scale * bound:g}' for bound in self.bounds)}"

    def sentence(self, scale: float = 1, unit: str = "") -> str:
        """The rule, with the region as in `where`."""
        interval = "the 90 % interval"
        if self.some:
            interval = "some part's interval, at a level corrected for their number,"
        region = f"{self.where(scale)}{unit}"
        return f"{self.kind.capitalize()}: holds if {interval} lies {region}."


def above(bound: float = 0.0, *, some: bool = False) -> Criterion:
    """Superiority: more than a bound."""
    return Criterion("superiority", low=bound, some=some)


def below(bound: float = 0.0) -> Criterion:
    """Superiority of a smaller number: less than a bound."""
    return Criterion("superiority", high=bound)


def not_worse(margin: float) -> Criterion:
    """Non-inferiority: not lower by the margin or more."""
    return Criterion("non-inferiority", low=-margin)


def not_higher(margin: float) -> Criterion:
    """Non-superiority: not higher by the margin or more."""
    return Criterion("non-superiority", high=margin)


def equivalent(margin: float) -> Criterion:
    """Equivalence: neither lower nor higher by the margin, by two one-sided tests."""
    return within(-margin, margin)


def within(low: float, high: float) -> Criterion:
    """Equivalence to something between two values."""
    return Criterion("equivalence", low, high)


def most(share: float = 0.5) -> Criterion:
    """A proportion above a share."""
    return Criterion("proportion", low=share)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One machine-checkable sentence of a paper.

    Attributes:
        id: The name of the claim.
        where: The place in the paper.
        statement: The sentence.
        compares: The contrast in words, for a reader of the scorecard.
        contrast: The runs that are compared, and the number they are compared by.
        criterion: The region in which the contrast's interval must lie.
        published: The printed number that the contrast corresponds to.
        primary: The study that is made for the claim; a study that lacks the runs
            names it.
    """

    id: str
    where: str
    statement: str
    compares: str
    contrast: Contrast
    criterion: Criterion
    published: float | None = None
    primary: str = ""


@dataclass(frozen=True)
class Judged:
    """The fields of `claims.json` that the runs decide; numbers are None if nothing was
    measured.

    Attributes:
        note: Remarks, with their numbers.
        n: The number of values behind the interval.
        each: What n counts.
        level: The level of the interval.
        n_needed: The n at which an open claim would be decided.
        note_template: The note with {} for each number.
        note_values: The numbers of the note.
        tasks: The estimate of each task of each part.
    """

    note: str
    verdict: str = NOT_TESTED
    value: float | None = None
    sd: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    n: int | None = None
    each: str | None = None
    n_needed: int | None = None
    unit: str | None = None
    note_template: str | None = None
    note_values: list[float] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    tasks: list[dict[str, Any]] = field(default_factory=list)


def judge_all(
    paper: str, claims: Sequence[Claim], runs: Any, *, profile: str
) -> list[dict[str, Any]]:
    """The rows of `claims.json`: every claim with its evidence and verdict, in order.

    Tasks that the paper does not have are pooled in the profiles that show directions
    only, and nowhere else.
    """
    rows = []
    for claim in claims:
        measurement = claim.contrast.measure(runs)
        judged = judge(
            claim.criterion,
            measurement,
            all_tasks=profile in DIRECTIONS_ONLY,
            elsewhere="" if claim.primary == profile else claim.primary,
        )
        about = {
            "id": claim.id,
            "where": claim.where,
            "statement": claim.statement,
            "compares": claim.compares,
            "published": claim.published,
            "paper": paper,
            "profile": profile,
        }
        rows.append(about | claim.criterion.row() | asdict(judged))
    return rows


def judge(
    criterion: Criterion,
    measurement: Measurement,
    *,
    all_tasks: bool = False,
    elsewhere: str = "",
    level: float = LEVEL,
) -> Judged:
    """The verdict on a measurement.

    Args:
        criterion: The region in which the intervals must lie.
        measurement: The estimates of the parts.
        all_tasks: Whether tasks that the paper does not have are pooled, too.
        elsewhere: A study that could decide what this one does not test.
        level: The level of the interval of a claim with one part.
    """
    tasks = _task_rows(measurement)
    parts = {}
    for name, part in measurement.parts.items():
        pooled = part if all_tasks else part.of_paper()
        if pooled is not None:
            parts[name] = pooled
    if parts:
        return _decided(criterion, parts, measurement, tasks, level)
    reasons = list(dict.fromkeys(measurement.missing.values()))
    reason = "; ".join(reasons) or "none of the paper's own tasks is in this profile"
    if elsewhere:
        reason = f"{reason}; profile {elsewhere} would test it"
    remark = in_note(measurement.note, measurement.beside)
    return Judged(note="; ".join(filter(None, (reason, remark))), tasks=tasks)


def _task_rows(measurement: Measurement) -> list[dict[str, Any]]:
    """The estimate of each task of each part; a single part has no name."""
    several = len(measurement.parts) > 1
    rows = []
    for name, part in measurement.parts.items():
        about = {"part": name if several else ""}
        rows += [about | task for task in part.by_task()]
    return rows


def _decided(
    criterion: Criterion,
    parts: Mapping[str, Quantity],
    measurement: Measurement,
    tasks: list[dict[str, Any]],
    level: float,
) -> Judged:
    """The verdict on all parts, with the numbers of the part that decides it or is
    farthest from being decided.
    """
    # One of many intervals lies somewhere by chance. Where one part is enough, its
    # level is corrected for their number.
    corrected = 1 - (1 - level) / len(parts)
    if criterion.some:
        inside_level = corrected
        outside_level = level
    else:
        inside_level = level
        outside_level = corrected
    inside = _lying(parts, criterion.contains, inside_level)
    outside = _lying(parts, criterion.excludes, outside_level)
    verdict, candidates = _verdict(criterion, parts, measurement, inside, outside)

    values = {name: float(part.estimate().value) for name, part in parts.items()}

    def margin(name: str) -> float:
        return criterion.margin(values[name])

    # The best part shows a claim that one part decides, the worst part any other.
    name = (
        max(candidates, key=margin) if criterion.some else min(candidates, key=margin)
    )
    part = parts[name]
    ends = part.estimate().ends
    # The level of the test that decided; of an open claim, of the one that is closest
    # to deciding.
    shown_level = inside_level
    if ends and criterion.excludes(ends):
        shown_level = outside_level
    needed = None
    is_open = verdict == INCONCLUSIVE and name not in (
        outside if criterion.some else inside
    )
    if is_open:
        counts = (
            part.needed(criterion.contains, inside_level),
            part.needed(criterion.excludes, outside_level),
        )
        needed = min((count for count in counts if count is not None), default=None)
    unit = measurement.unit
    if len(parts) > 1:
        unit = f"{unit}, {name}"
    template, numbers = _note(measurement, values, shown_level, ends)
    return Judged(
        verdict=verdict,
        **asdict(part.estimate(shown_level)),
        level=shown_level,
        each=part.each,
        n_needed=needed,
        unit=unit,
        note=in_note(template, numbers),
        note_template=template,
        note_values=numbers,
        cells=list(measurement.cells),
        tasks=tasks,
    )


def _verdict(
    criterion: Criterion,
    parts: Mapping[str, Quantity],
    measurement: Measurement,
    inside: list[str],
    outside: list[str],
) -> tuple[str, list[str]]:
    """The verdict, and the parts that decide it or leave it open."""
    everything = list(parts)
    is_complete = not measurement.missing
    if criterion.some:
        if inside:
            return HOLDS, inside
        if outside == everything and is_complete:
            return CONTRADICTED, outside
        return INCONCLUSIVE, _others(everything, outside)
    if outside:
        return CONTRADICTED, outside
    if inside == everything and is_complete:
        return HOLDS, inside
    return INCONCLUSIVE, _others(everything, inside)


def _others(everything: list[str], decided: list[str]) -> list[str]:
    """The parts that are not decided, or all if there are none."""
    return [name for name in everything if name not in decided] or everything


def _lying(
    parts: Mapping[str, Quantity], there: Callable[[Ends], bool], level: float
) -> list[str]:
    """The parts whose interval at a level lies there."""
    names = []
    for name, part in parts.items():
        ends = part.estimate(level).ends
        if ends and there(ends):
            names.append(name)
    return names


def _note(
    measurement: Measurement,
    values: Mapping[str, float],
    level: float,
    ends: Ends | None,
) -> tuple[str, list[float]]:
    """The remarks beside the numbers: a template, and the numbers for its places."""
    notes = [measurement.note]
    numbers = list(measurement.beside)
    if len(values) > 1:
        notes.append(", ".join(f"{name} {{}}" for name in values))
        numbers += values.values()
    if measurement.missing:
        reasons = "; ".join(map(": ".join, measurement.missing.items()))
        notes.append(f"not judged: {reasons}")
    if not ends:
        notes.append("one value has no interval")
    if level != LEVEL:
        notes.append(f"interval of {100 * level:.3g} %, for {len(values)} parts")
    return "; ".join(filter(None, notes)), numbers


def in_note(template: str, values: Sequence[float], *, points: bool = False) -> str:
    """A note with its numbers, as they are or in points."""
    if points:
        return template.format(*(f"{100 * value:+.1f}" for value in values))
    return template.format(*(f"{value:+.3f}" for value in values))


def task_count(row: dict[str, Any]) -> int:
    """The number of tasks behind the number in a row of `claims.json`."""
    part = (row["unit"] or "").partition(", ")[2]
    pooled = [task for task in _pooled(row) if part in {"", task["part"]}]
    return len({task["task"] for task in pooled})


def _pooled(row: dict[str, Any]) -> list[dict[str, Any]]:
    if row["profile"] in DIRECTIONS_ONLY:
        return list(row["tasks"])
    return [task for task in row["tasks"] if task["pooled"]]


def claims_table(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """The rows of `claims.json` for a reader: one line per claim, numbers as text,
    fractions in points.
    """
    columns = ["claim", "where", "printed", "ours", "must lie", "verdict", "note"]
    table = pd.DataFrame(map(texts, rows))[columns]
    if rows and rows[0]["profile"] in DIRECTIONS_ONLY:
        return table.rename(columns={"verdict": "verdict (directions only)"})
    return table


def texts(row: dict[str, Any]) -> dict[str, str]:
    """The texts that a reader sees of a row of `claims.json`.

    Shares and their differences are in points, other numbers as they are. The bound
    and the printed number of a claim that was not tested have no unit, and are left
    out.
    """
    region = Criterion.of(row)
    shown = {
        "claim": row["statement"],
        "where": row["where"],
        "verdict": row["verdict"],
        "note": row["note"],
        "printed": _NOTHING_SHOWN,
        "ours": _NOTHING_SHOWN,
        "must lie": _NOTHING_SHOWN,
        "criterion": f"{row['compares']} {region.sentence()}",
    }
    if row["value"] is None:
        return shown
    unit = row["unit"]
    scale = 1
    points = in_points(unit)
    if points:
        unit = points
        scale = 100
        shown["note"] = in_note(row["note_template"], row["note_values"], points=True)
        rule = region.sentence(scale, f" {unit.partition(',')[0]}")
        shown["criterion"] = f"{row['compares']} {rule}"
    several_tasks = task_count(row) > 1
    if row["n_needed"] is not None:
        per_task = " per task" if several_tasks else ""
        needed = f"{row['n_needed']} {row['each']}{per_task}"
        shown["verdict"] += f" ({needed} would decide)"
    shown["note"] = "; ".join(filter(None, (shown["note"], _not_counted(row))))
    counts = f"n = {row['n']} {row['each']}"
    if several_tasks:
        counts += f" of {task_count(row)} tasks"
    shown["ours"] = f"{_estimate_text(row, scale)} {unit} ({counts})"
    shown["must lie"] = region.where(scale)
    if row["published"] is not None:
        shown["printed"] = f"{scale * row['published']:g}"
    return shown


def _not_counted(row: dict[str, Any]) -> str:
    """The tasks that are shown and not pooled, in words."""
    pooled = _pooled(row)
    others = {task["task"] for task in row["tasks"]} - {task["task"] for task in pooled}
    if not pooled or not others:
        return ""
    return f"not in the paper and so not counted: {' and '.join(sorted(others))}"


def _estimate_text(row: dict[str, Any], scale: int) -> str:
    """The value ± its sd with its interval; shares with two digits after the point."""
    digits = 2 if scale == 100 else 3

    def number(name: str) -> str:
        return f"{scale * row[name]:.{digits}f}"

    text = number("value")
    if row["sd"] is not None:
        text += f" ± {number('sd')}"
    if row["low"] is not None:
        text += f" [{number('low')}, {number('high')}]"
    return text

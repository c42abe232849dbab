"""Claims: sentences of a paper, each with a contrast and the criterion it is judged by.

A claim holds if the interval of its contrast lies in the region that its criterion
names, is contradicted if the interval lies outside, and is inconclusive if the interval
lies across a bound. Where nothing was measured it is not tested. Every claim of a paper
has a row in `claims.json`: none is silently absent.

Each claim names its primary study, whose verdict is the claim's, and how often the data
of a study were looked at before they were judged: data that were looked at k times are
judged at the level 1 - 0.10 / k. docs/protocol.md has the rules, `registry` what is
registered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import inf, isfinite
from typing import Any, Self

import pandas as pd

from softmax_temperature.papers.shared.contrasts import (
    Contrast,
    Measurement,
    not_tested,
)
from softmax_temperature.papers.shared.display import in_points
from softmax_temperature.papers.shared.registry import design_digest
from softmax_temperature.papers.shared.statistics import (
    LEVEL,
    Ends,
    Quantity,
)

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

Printed = float | Mapping[str, float] | None
"""A printed number, or those of the parts by their names."""


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

    def row(self, level: float = LEVEL) -> dict[str, Any]:
        """The criterion's fields of `claims.json`."""
        return {
            "criterion": self.sentence(level=level),
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

    def distances(self, value: float) -> list[float]:
        """The distance of a value inside from each finite bound."""
        ends = (value - self.low, self.high - value)
        return [distance for distance in ends if isfinite(distance)]

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

    def sentence(
        self, scale: float = 1, unit: str = "", *, level: float = LEVEL
    ) -> str:
        """The rule, with the region as in `where`."""
        interval = f"the {percent(level)} interval"
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
        published: The printed number that the contrast corresponds to; by part, where
            each part has one of its own.
        primary: The study whose verdict is the claim's: the nearest to the paper's
            setting, whatever its numbers.
        looks: How often the data of a study had been looked at, when more were added,
            before they were judged; 1 where nothing is said.
        looks_of_parts: The same for single parts of a claim, by study, where other
            parts of it were looked at less often.
        n: The number of values that a study is registered with before it has run.
        stand_in: The data that stand in for the paper's, by the study that has them.
        derived: Whether the sentence is our own derivation, not the paper's.
        same_everywhere: Whether all studies have the same data for it: then the
            primary study alone shows them.
    """

    id: str
    where: str
    statement: str
    compares: str
    contrast: Contrast
    criterion: Criterion
    published: Printed = None
    primary: str
    looks: Mapping[str, int] = field(default_factory=dict)
    looks_of_parts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    n: Mapping[str, int] = field(default_factory=dict)
    stand_in: Mapping[str, str] = field(default_factory=dict)
    derived: bool = False
    same_everywhere: bool = False

    def looks_at(self, study: str) -> int:
        """How often the data of a study were looked at."""
        return self.looks.get(study, 1)

    def level(self, study: str) -> float:
        """The level at which a study is judged, of a claim with one part."""
        return level_after(self.looks_at(study))

    def levels_of_parts(self, study: str) -> dict[str, float]:
        """The level of the parts that were looked at more often than the others."""
        looks = self.looks_of_parts.get(study, {})
        return {name: level_after(count) for name, count in looks.items()}


def level_after(looks: int) -> float:
    """The level at which data are judged that were looked at so often."""
    return 1 - (1 - LEVEL) / looks


@dataclass(frozen=True)
class Judged:
    """The verdict on a claim with its evidence: what the runs of a study decide.

    Numbers are None if nothing was measured.

    Attributes:
        note: Text for the notes column, with its numbers as fractions.
        n: The number of values behind the interval.
        counted: Plural name of what n counts; `each` in the file.
        counts: The number of values of each part.
        level: The level of the interval.
        parts: For a claim with several parts, each part with its own verdict, and its
            interval at the level of that verdict.
        not_run: The parts that were not run, and that the claim does not require.
        qualifier: Text without which the numbers mislead, shown wherever they are;
            `remark` in the file.
        detectable: The smallest distance from the bound that the design detects with
            80 % power; for an equivalence, the smallest margin around 0.
        planned: The effect behind `n_for_power`, see `_planned_effect`.
        n_for_power: The smallest n that detects the planned effect with 80 % power.
        note_template: The note with {} for each number.
        note_values: The numbers in the note.
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
    counted: str | None = None
    counts: list[int] = field(default_factory=list)
    parts: list[dict[str, Any]] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)
    qualifier: str = ""
    detectable: float | None = None
    planned: float | None = None
    n_for_power: int | None = None
    unit: str | None = None
    note_template: str | None = None
    note_values: list[float] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    tasks: list[dict[str, Any]] = field(default_factory=list)

    def row(self) -> dict[str, Any]:
        """The fields of `claims.json`, by the names that the file has for them."""
        fields = asdict(self)
        fields["each"] = fields.pop("counted")
        fields["remark"] = fields.pop("qualifier")
        return fields


def judge_all(
    paper: str, claims: Sequence[Claim], runs: Any, *, profile: str
) -> list[dict[str, Any]]:
    """The rows of `claims.json`: every claim with its evidence and verdict, in order.

    Tasks that the paper does not have are pooled in the profiles that show directions
    only, and nowhere else.
    """
    return [_judged_row(paper, claim, runs, profile) for claim in claims]


def _judged_row(paper: str, claim: Claim, runs: Any, profile: str) -> dict[str, Any]:
    directions = profile in DIRECTIONS_ONLY
    if claim.same_everywhere and not directions and profile != claim.primary:
        measurement = not_tested(
            f"the data are those of {claim.primary}, where they are judged"
        )
        elsewhere = ""
    else:
        measurement = claim.contrast.measure(runs)
        elsewhere = "" if claim.primary == profile else claim.primary
    judged = judge(
        claim.criterion,
        measurement,
        all_tasks=directions,
        elsewhere=elsewhere,
        level=claim.level(profile),
        levels_of_parts=claim.levels_of_parts(profile),
        published=claim.published,
    )
    return _row(claim, paper, profile, judged)


def untested_row(claim: Claim, paper: str, profile: str, reason: str) -> dict[str, Any]:
    """The row of `claims.json` of a claim that no run is about."""
    return _row(claim, paper, profile, Judged(note=reason))


def _row(claim: Claim, paper: str, profile: str, judged: Judged) -> dict[str, Any]:
    about = {
        "id": claim.id,
        "where": claim.where,
        "statement": claim.statement,
        "compares": claim.compares,
        "published": _printed(claim.published, judged.unit),
        "paper": paper,
        "profile": profile,
        "primary": claim.primary,
        "looks": claim.looks_at(profile),
        "stand_in": claim.stand_in.get(profile),
        "derived": claim.derived,
        "digest": design_digest(claim, profile),
    }
    return about | claim.criterion.row(claim.level(profile)) | judged.row()


def judge(
    criterion: Criterion,
    measurement: Measurement,
    *,
    all_tasks: bool = False,
    elsewhere: str = "",
    level: float = LEVEL,
    levels_of_parts: Mapping[str, float] | None = None,
    published: Printed = None,
) -> Judged:
    """The verdict on a measurement.

    Args:
        criterion: The region in which the intervals must lie.
        measurement: The estimates of the parts.
        all_tasks: Whether tasks that the paper does not have are pooled, too.
        elsewhere: A study that could decide what this one does not test.
        level: The level of the interval of a claim with one part.
        levels_of_parts: The level of the parts that have another.
        published: The printed number, or those of the parts.
    """
    tasks = _task_rows(measurement, level)
    parts = {}
    for name, part in measurement.parts.items():
        pooled = part if all_tasks else part.of_paper()
        if pooled is not None:
            parts[name] = pooled
    is_partial = measurement.whole and bool(measurement.missing)
    if parts:
        levels = dict.fromkeys(parts, level) | {
            name: of_part
            for name, of_part in (levels_of_parts or {}).items()
            if name in parts
        }
        judged = _decided(criterion, parts, measurement, tasks, levels)
        if not is_partial or judged.verdict == CONTRADICTED:
            return replace(judged, **_planning(criterion, parts, judged, published))
    reasons = list(dict.fromkeys(measurement.missing.values()))
    reason = "; ".join(reasons) or "none of the paper's own tasks is in this profile"
    if parts and is_partial:
        reason = f"judged as a whole, and {_absent(measurement)}"
    if elsewhere:
        reason = f"{reason}; profile {elsewhere} would test it"
    note = in_note(measurement.note, measurement.note_values)
    return Judged(note="; ".join(filter(None, (reason, note))), tasks=tasks)


def _absent(measurement: Measurement) -> str:
    """The parts that a measurement lacks, in words."""
    missing = list(measurement.missing)
    count = len(missing) + len(measurement.parts)
    return f"{len(missing)} of {count} parts are missing: {', '.join(missing)}"


def _count_of_parts(judged: int, measurement: Measurement) -> int:
    """The number of parts that can contradict a claim, now or once they are there."""
    return judged + (len(measurement.missing) if measurement.whole else 0)


def _planning(
    criterion: Criterion,
    parts: Mapping[str, Quantity],
    judged: Judged,
    published: Printed,
) -> dict[str, Any]:
    """What the design of the part that is shown can detect with 80 % power."""
    name = _shown_part(judged.unit)
    part = parts[name] if len(parts) > 1 else next(iter(parts.values()))
    # Of the two tests at a level: both must succeed, or the one that decides.
    level = judged.level or LEVEL
    sides = len(criterion.bounds)
    printed = _printed(published, judged.unit)
    planned = _planned_effect(criterion, judged.value, printed)
    n_for_power = None
    if planned is not None:
        n_for_power = part.n_for(criterion.distances(planned), level)
    return {
        "detectable": part.detectable(level, sides=sides),
        "planned": planned,
        "n_for_power": n_for_power,
    }


def _printed(published: Printed, unit: str | None) -> float | None:
    """The printed number of the part that is shown."""
    if isinstance(published, Mapping):
        return published.get(_shown_part(unit))
    return published


def _shown_part(unit: str | None) -> str:
    """The part that a unit names; "" if it names none."""
    return (unit or "").partition(", ")[2]


def _planned_effect(
    criterion: Criterion, value: float | None, published: float | None
) -> float | None:
    """The effect that a study of the claim should find; None if the claim speaks of no
    size, and the measured one speaks against it.
    """
    known = [published, value]
    if len(criterion.bounds) == 2:
        known.insert(1, sum(criterion.bounds) / 2)
    for effect in known:
        if effect is not None and criterion.margin(effect) > 0:
            return effect
    return None


def _task_rows(measurement: Measurement, level: float) -> list[dict[str, Any]]:
    """The estimate of each task of each part; a single part has no name."""
    several = len(measurement.parts) > 1
    rows = []
    for name, part in measurement.parts.items():
        about = {"part": name if several else ""}
        rows += [about | task for task in part.by_task(level)]
    return rows


def _decided(
    criterion: Criterion,
    parts: Mapping[str, Quantity],
    measurement: Measurement,
    tasks: list[dict[str, Any]],
    levels: Mapping[str, float],
) -> Judged:
    """The verdict on all parts, with the numbers of the part that decides it or is
    farthest from being decided.
    """
    # One of many intervals lies somewhere by chance. Where one part is enough, its
    # level is corrected for their number.
    count = _count_of_parts(len(parts), measurement)
    corrected = {name: 1 - (1 - level) / count for name, level in levels.items()}
    inside_levels: Mapping[str, float] = levels
    outside_levels: Mapping[str, float] = corrected
    if criterion.some:
        inside_levels = corrected
        outside_levels = levels
    inside = _lying(parts, criterion.contains, criterion.excludes, inside_levels)
    outside = _lying(parts, criterion.excludes, criterion.contains, outside_levels)
    verdict, candidates = _verdict(criterion, parts, measurement, inside, outside)

    values = {name: float(part.estimate().value) for name, part in parts.items()}

    def margin(name: str) -> float:
        return criterion.margin(values[name])

    shown_levels = {
        name: (outside_levels if _is_excluded(criterion, part) else inside_levels)[name]
        for name, part in parts.items()
    }
    # The best part shows a claim that one part decides, the worst part any other.
    name = (
        max(candidates, key=margin) if criterion.some else min(candidates, key=margin)
    )
    part = parts[name]
    estimates = {
        name: part.estimate(shown_levels[name]) for name, part in parts.items()
    }
    unit = measurement.unit
    if len(parts) > 1:
        unit = f"{unit}, {name}"
    template, numbers = _note(
        measurement,
        values,
        (levels[name], shown_levels[name]),
        has_interval=estimates[name].ends is not None,
    )
    template = "; ".join(
        filter(None, (template, _disagreement(criterion, parts, levels)))
    )
    verdicts = dict.fromkeys(parts, INCONCLUSIVE)
    verdicts |= dict.fromkeys(inside, HOLDS) | dict.fromkeys(outside, CONTRADICTED)
    each = [
        {"part": one, "verdict": verdicts[one], "level": shown_levels[one]}
        | asdict(estimate)
        for one, estimate in estimates.items()
    ]
    return Judged(
        verdict=verdict,
        **asdict(estimates[name]),
        level=shown_levels[name],
        counted=part.counted,
        counts=[estimate.n for estimate in estimates.values()],
        parts=each if len(parts) > 1 else [],
        not_run=list(measurement.not_run),
        qualifier="; ".join(filter(None, (part.qualifier, measurement.qualifier))),
        unit=unit,
        note=in_note(template, numbers),
        note_template=template,
        note_values=numbers,
        cells=list(measurement.cells),
        tasks=tasks,
    )


def _is_excluded(criterion: Criterion, part: Quantity) -> bool:
    """Whether a part lies outside: then the level that matters is that of a
    contradiction, else that of a part that holds or is closest to holding.
    """
    ends = part.estimate().ends
    return ends is not None and criterion.excludes(ends)


def _disagreement(
    criterion: Criterion, parts: Mapping[str, Quantity], levels: Mapping[str, float]
) -> str:
    """The parts whose tasks decide differently, in words; "" if there are none."""
    disagreeing = [
        name for name, part in parts.items() if _disagree(criterion, part, levels[name])
    ]
    if not disagreeing:
        return ""
    if len(parts) > 1:
        return f"tasks decide differently: {', '.join(disagreeing)}"
    return "its tasks decide differently"


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
    parts: Mapping[str, Quantity],
    there: Callable[[Ends], bool],
    opposite: Callable[[Ends], bool],
    levels: Mapping[str, float],
) -> list[str]:
    """The parts whose interval, each at its level, lies there.

    A mean over several tasks decides nothing where one of them by itself decides the
    opposite.
    """
    names = []
    for name, part in parts.items():
        level = levels[name]
        ends = part.estimate(level).ends
        if ends and there(ends) and not any(map(opposite, part.alone(level))):
            names.append(name)
    return names


def _disagree(criterion: Criterion, part: Quantity, level: float) -> bool:
    """Whether one task of a part holds by itself, and another contradicts."""
    alone = part.alone(level)
    holds = any(map(criterion.contains, alone))
    return holds and any(map(criterion.excludes, alone))


def _note(
    measurement: Measurement,
    values: Mapping[str, float],
    levels: tuple[float, float],
    *,
    has_interval: bool,
) -> tuple[str, list[float]]:
    """The remarks beside the numbers: a template, and the numbers for its places.

    Args:
        measurement: What was measured.
        values: The value of each part.
        levels: The level of the claim, and that of the interval that is shown.
        has_interval: Whether it has one.
    """
    level, shown_level = levels
    notes = [measurement.note]
    numbers = list(measurement.note_values)
    if len(values) > 1:
        notes.append(", ".join(f"{name} {{}}" for name in values))
        numbers += values.values()
    if measurement.missing:
        reasons = "; ".join(map(": ".join, measurement.missing.items()))
        notes.append(f"not judged: {reasons}")
    if not has_interval:
        notes.append("one value has no interval")
    causes = []
    if level != LEVEL:
        looks = round((1 - LEVEL) / (1 - level))
        causes.append(f"{looks} looks at the data")
    if shown_level != level:
        causes.append(f"{_count_of_parts(len(values), measurement)} parts")
    if causes:
        notes.append(f"interval of {percent(shown_level)}, for {' and '.join(causes)}")
    return "; ".join(filter(None, notes)), numbers


def percent(level: float) -> str:
    """A level in percent, with as many digits as it needs, at most three."""
    return f"{100 * level:.3g} %"


def in_note(template: str, values: Sequence[float], *, points: bool = False) -> str:
    """A note with its numbers, as they are or in points."""
    if points:
        return template.format(*(f"{100 * value:+.1f}" for value in values))
    return template.format(*(f"{value:+.3f}" for value in values))


def at_level(
    row: dict[str, Any], measurement: Measurement, level: float
) -> dict[str, Any]:
    """A row of `claims.json` with its interval at another level.

    Verdict and power stay as they were judged. An interval that is wider than `LEVEL`
    asks for, for several looks or parts, stays wider by the same factor of its error.

    Args:
        row: The row.
        measurement: What its contrast measures on the runs of its study.
        level: The level that takes the place of `LEVEL`.
    """
    if row["low"] is None or level == LEVEL:
        return row
    parts = {}
    for name, part in measurement.parts.items():
        pooled = part if row["profile"] in DIRECTIONS_ONLY else part.of_paper()
        if pooled is not None:
            parts[name] = pooled
    shown = _shown_part(row["unit"])
    part = parts[shown] if shown in parts else next(iter(parts.values()))
    new_level = 1 - (1 - row["level"]) * (1 - level) / (1 - LEVEL)
    low, high = part.estimate(new_level).ends or (None, None)
    old, new = (f"interval of {percent(of)}" for of in (row["level"], new_level))
    return {
        **row,
        "low": low,
        "high": high,
        "level": new_level,
        "note": row["note"].replace(old, new),
        "note_template": row["note_template"].replace(old, new),
    }


def task_count(row: dict[str, Any]) -> int:
    """The number of tasks behind the number in a row of `claims.json`."""
    part = _shown_part(row["unit"])
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
    level = 1 - (1 - LEVEL) / row["looks"]
    shown = {
        "claim": row["statement"],
        "where": row["where"],
        "verdict": row["verdict"],
        "note": row["note"],
        "printed": _NOTHING_SHOWN,
        "ours": _NOTHING_SHOWN,
        "must lie": _NOTHING_SHOWN,
        "criterion": f"{row['compares']} {region.sentence(level=level)}",
        "power": "",
    }
    if row["stand_in"]:
        shown["note"] = "; ".join(filter(None, (row["note"], _stand_in(row))))
        if row["verdict"] != NOT_TESTED:
            shown["verdict"] += " (stand-in data)"
    if row["value"] is None:
        return shown
    unit = row["unit"]
    scale = 1
    points = in_points(unit)
    if points:
        unit = points
        scale = 100
        shown["note"] = in_note(row["note_template"], row["note_values"], points=True)
        rule = region.sentence(scale, f" {unit.partition(',')[0]}", level=level)
        shown["criterion"] = f"{row['compares']} {rule}"
    shown["power"] = _power_text(row, scale)
    extra = (shown["note"], _stand_in(row) if points else "", _not_counted(row))
    shown["note"] = "; ".join(filter(None, extra))
    counts = f"n = {row['n']} {row['each']}"
    if task_count(row) > 1:
        counts += f" of these {task_count(row)} tasks"
    remarks = "; ".join([counts, *_remarks(row, scale)])
    shown["ours"] = f"{_estimate_text(row, scale)} {unit} ({remarks})"
    shown["must lie"] = region.where(scale)
    if row["published"] is not None:
        shown["printed"] = f"{scale * row['published']:g}"
    return shown


def _remarks(row: dict[str, Any], scale: int) -> list[str]:
    """What belongs to the numbers of a row wherever they are shown.

    Of a claim that some part decides, each part has its own verdict; of one with parts
    that it does not require, both lists are named if a part was not run.
    """
    remarks = [row["remark"]] if row["remark"] else []
    if row["some"] and row["parts"]:
        each = [
            f"{part['part']} {part['verdict']}, {_estimate_text(part, scale)}"
            for part in row["parts"]
        ]
        remarks.append(f"each by itself: {'; '.join(each)}")
    if row["not_run"]:
        judged = _listed([part["part"] for part in row["parts"]])
        remarks.append(
            f"judged: {judged or 'what is shown'}; not run: {_listed(row['not_run'])}"
        )
    return remarks


def _listed(parts: Sequence[str]) -> str:
    """The names of parts in a list; a part of a part has a comma of its own."""
    return ", ".join(name.replace(", ", " ") for name in parts)


def _power_text(row: dict[str, Any], scale: float) -> str:
    """What the design detects with 80 % power, and the n that the planned effect needs.

    It is in the unit of the effect: the margin, or the distance from the bound.
    """
    if row["detectable"] is None:
        return ""
    is_margin = len(row["bounds"]) == 2
    sign = "±" if is_margin else ""
    text = f"detects {sign}{_short(scale * row['detectable'])}"
    if not is_margin and row["bounds"] != [0]:
        text += " beyond the bound"
    if row["planned"] is not None:
        needs = row["n_for_power"] or "> 1,000"
        text += f"; {_short(scale * row['planned'])} needs n = {needs}"
    return text


def _short(number: float) -> str:
    """A number with three digits."""
    return f"{number:.3g}"


def _stand_in(row: dict[str, Any]) -> str:
    return f"stand-in data: {row['stand_in']}" if row["stand_in"] else ""


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

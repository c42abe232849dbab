"""Claims: sentences of a paper, each judged by a contrast and a criterion.

A claim holds if the interval of its contrast lies inside the criterion's region, is
contradicted if the interval lies outside, and is inconclusive if the interval crosses a
bound. A contrast with several parts has one interval per part (see `_verdict`); a part
is also inconclusive if some of its tasks, judged alone, lead to the opposite verdict. A
claim without a measurement is not tested. Every claim of a paper has a row in
`claims.json`, so that none is silently absent.

Each claim names its primary study, whose verdict is the claim's verdict. It also states
the number of looks at each study's data: after k looks, data are judged at the level
1 - 0.10 / k. docs/protocol.md gives the rules; `registry` compares the claims with the
register.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import asdict, dataclass, field
from math import exp, inf, isfinite
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
    Estimate,
    Quantity,
)

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
_QUANTITIES = {
    "accuracy-depends-weakly-on-logit-norm": "points of accuracy beyond half of what "
    "the inverse temperature changes",
}
"""The quantity that a claim's number measures, keyed by claim id.

Readers see this text in place of the unit, which does not name the quantity.
"""
_UNITS_IN_WORDS = {"NLL": "nats"}
"""Units that replace the name of a metric in text for readers."""
LOG_RATIO = "logarithm of the ratio"
"""The prefix of the unit of every number that is the logarithm of a ratio."""
_PARTS_IN_WORDS = {"right, sign reversed": "fall of the right ones' NLL"}
"""Words that replace part names that a reader would not understand."""

Printed = float | Mapping[str, float] | None
"""The number that a paper prints, or a mapping from parts to such numbers.

It is None if the paper prints no number.
"""


@dataclass(frozen=True)
class Criterion:
    """The region in which the interval must lie for a claim to hold.

    Attributes:
        kind: The name of the test: superiority, equivalence, ...
        low: The lower end of the region.
        high: The upper end of the region.
        some: Whether it is enough that the interval of one part lies in the region. If
            False, the intervals of all parts must lie in it.
    """

    kind: str
    low: float = -inf
    high: float = inf
    some: bool = False

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """Read the criterion from a row of `claims.json`."""
        low, high = row["region"]
        return cls(
            row["kind"],
            -inf if low is None else low,
            inf if high is None else high,
            row["some"],
        )

    def row(self, level: float = LEVEL) -> dict[str, Any]:
        """The criterion's fields in `claims.json`."""
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
        """Whether the interval lies outside the region, which excludes its bounds."""
        return ends[1] <= self.low or ends[0] >= self.high

    def margin(self, value: float) -> float:
        """The distance from `value` to the nearest bound.

        It is negative outside the region.
        """
        return min(value - self.low, self.high - value)

    def distances(self, value: float) -> list[float]:
        """The distances from `value`, a number in the region, to the finite bounds."""
        ends = (value - self.low, self.high - value)
        return [distance for distance in ends if isfinite(distance)]

    @property
    def bounds(self) -> list[float]:
        """The finite ends of the region."""
        return [bound for bound in (self.low, self.high) if isfinite(bound)]

    def where(self, scale: float = 1) -> str:
        """The region in words, with its ends multiplied by `scale`."""
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
        """The criterion as a sentence, with the region described as in `where`."""
        interval = f"the {percent(level)} interval"
        if self.some:
            interval = "some part's interval, at a level corrected for their number,"
        region = f"{self.where(scale)}{unit}"
        return f"{self.kind.capitalize()}: holds if {interval} lies {region}."


def above(bound: float = 0.0, *, some: bool = False) -> Criterion:
    """The criterion of superiority: the interval lies above `bound`."""
    return Criterion("superiority", low=bound, some=some)


def below(bound: float = 0.0) -> Criterion:
    """The criterion of superiority if lower values are better.

    The interval must lie below `bound`.
    """
    return Criterion("superiority", high=bound)


def not_worse(margin: float) -> Criterion:
    """The criterion of non-inferiority: the interval lies above minus `margin`."""
    return Criterion("non-inferiority", low=-margin)


def not_higher(margin: float) -> Criterion:
    """The criterion of non-superiority: the interval lies below `margin`."""
    return Criterion("non-superiority", high=margin)


def equivalent(margin: float) -> Criterion:
    """The criterion of equivalence: the interval lies within `margin` of 0.

    This is the same as two one-sided tests.
    """
    return within(-margin, margin)


def within(low: float, high: float) -> Criterion:
    """The criterion of equivalence to a range: the interval is in (`low`, `high`)."""
    return Criterion("equivalence", low, high)


def most(share: float = 0.5) -> Criterion:
    """The criterion of a majority: the interval of a proportion lies above `share`."""
    return Criterion("proportion", low=share)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One machine-checkable sentence of a paper.

    Attributes:
        id: The name of the claim.
        where: The place in the paper.
        statement: The sentence.
        compares: The contrast in words, for readers of the scorecard.
        contrast: The quantity that the sentence is about, measured on a study's runs.
        criterion: The region in which the contrast's interval must lie.
        published: The printed number that corresponds to the contrast, or a mapping
            with one number for each part; None if the paper prints no number.
        primary: The study that gives the claim's verdict. This is the study nearest to
            the paper's setting, regardless of its results.
        looks: The number of looks at the data of each study: one for the verdict, and
            one more for each time that data were added after a look. It is 1 for a
            study that is not listed.
        looks_of_parts: For each study, the number of looks at each part that was looked
            at more often than the others.
        n: The planned number of values in each study, registered before the study runs.
        stand_in: A description of the data that replace the paper's data, keyed by
            study.
        derived: Whether the sentence is our own derivation, not the paper's.
        same_everywhere: Whether all studies judge the claim on the same data. If so,
            only the primary study and the profiles in `DIRECTIONS_ONLY` judge it.
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
        """The number of looks at the data of `study`."""
        return self.looks.get(study, 1)

    def level(self, study: str) -> float:
        """The level for judging `study`, before the correction for several parts."""
        return level_after(self.looks_at(study))

    def levels_of_parts(self, study: str) -> dict[str, float]:
        """The level of each part that was looked at more often than the others."""
        looks = self.looks_of_parts.get(study, {})
        return {name: level_after(count) for name, count in looks.items()}


def level_after(looks: int) -> float:
    """The level at which data are judged after `looks` looks."""
    return 1 - (1 - LEVEL) / looks


@dataclass(frozen=True)
class Judged:
    """A study's verdict on a claim, with the evidence.

    Numbers are None if nothing was measured.

    Attributes:
        note: Text for the notes column, in which shares are written as fractions.
        n: The number of values behind the interval.
        counted: Plural noun for the values that n counts, such as "seeds"; this field
            is called `each` in `claims.json`.
        counts: The number of values in each part.
        level: The level of the interval.
        parts: If the claim has several parts, one row for each, with the part's verdict
            and its interval at the level of that verdict.
        not_run: The parts that were not run and are not required by the claim.
        qualifier: Text that is shown wherever the numbers are shown, because the
            numbers would mislead without it; this field is called `remark` in
            `claims.json`.
        detectable: The smallest distance from the bound that the design detects with 80
            % power. For a region with two bounds, it is half the width of the narrowest
            region that would contain the interval with a probability of 80 % if the
            true value were at the region's centre.
        planned: The effect that `n_for_power` assumes (see `_planned_effect`).
        n_for_power: The smallest n that detects the planned effect with 80 % power.
            None if no effect is planned, or if more than `statistics.LARGEST_N` values
            would be needed.
        unit: The unit of the numbers.
        part: The part whose numbers are shown; "" for a claim with one part. In
            `claims.json` it is appended to the unit: "accuracy, FL-3 against FL-2".
        note_template: The note with {} in place of each number.
        note_values: The numbers in the note.
        tasks: The estimates for the tasks of each part.
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
    part: str = ""
    note_template: str | None = None
    note_values: list[float] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    tasks: list[dict[str, Any]] = field(default_factory=list)

    def row(self) -> dict[str, Any]:
        """The fields of a row of `claims.json`, under the names that the file uses."""
        fields = asdict(self)
        fields["each"] = fields.pop("counted")
        fields["remark"] = fields.pop("qualifier")
        part = fields.pop("part")
        if self.unit is not None:
            fields["unit"] = self.unit + _after_unit(part)
        return fields


def _after_unit(part: str) -> str:
    """The text that `claims.json` appends to the unit to name the shown part."""
    return f", {part}" if part else ""


def _shown_part(row: Mapping[str, Any]) -> str:
    """The part whose numbers a row shows; "" if the claim has only one part."""
    names = [part["part"] for part in row["parts"]]
    fitting = [name for name in names if row["unit"].endswith(_after_unit(name))]
    # Take the longest name: the name of a part within a part may end with the name of
    # another part.
    return max(fitting, key=len, default="")


@dataclass(frozen=True)
class JudgedPart:
    """One part of a claim with its own verdict.

    Attributes:
        name: The name of the part.
        verdict: HOLDS, CONTRADICTED or INCONCLUSIVE, for this part alone.
        level: The level of the interval behind the verdict.
        estimate: The estimate, with the interval at `level`.
    """

    name: str
    verdict: str
    level: float
    estimate: Estimate

    def row(self) -> dict[str, Any]:
        """The fields of a part in `claims.json`."""
        about = {"part": self.name, "verdict": self.verdict, "level": self.level}
        return about | asdict(self.estimate)


def judge_all(
    paper: str, claims: Sequence[Claim], runs: Any, *, profile: str
) -> list[dict[str, Any]]:
    """Judge every claim, and return the rows of `claims.json` in the claims' order.

    Tasks that the paper does not have are pooled only in the profiles in
    `DIRECTIONS_ONLY`.
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
    """The row of `claims.json` for a claim that no run of the study can test."""
    return _row(claim, paper, profile, Judged(note=reason))


def _row(claim: Claim, paper: str, profile: str, judged: Judged) -> dict[str, Any]:
    about = {
        "id": claim.id,
        "where": claim.where,
        "statement": claim.statement,
        "compares": claim.compares,
        "published": _printed(claim.published, judged.part),
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
    """Judge a measurement by a criterion.

    Args:
        criterion: The region in which the intervals must lie.
        measurement: The estimates of the parts.
        all_tasks: Whether tasks that the paper does not have are pooled as well.
        elsewhere: The claim's primary study, if the measurement is from another study,
            otherwise "". If the claim is not tested, its note says that the primary
            study would test it.
        level: The level at which a part is judged, before the correction for several
            parts.
        levels_of_parts: The levels of the parts that are not judged at `level`, keyed
            by part name.
        published: The printed number, or one for each part.
    """
    tasks = _task_rows(measurement, level)
    parts = _pooled_parts(measurement, all_tasks=all_tasks)
    is_partial = measurement.whole and bool(measurement.missing)
    if parts:
        own_levels = levels_of_parts or {}
        levels = {name: own_levels.get(name, level) for name in parts}
        judged = _decided(criterion, parts, measurement, tasks, levels, published)
        if not is_partial or judged.verdict == CONTRADICTED:
            return judged
    reasons = list(dict.fromkeys(measurement.missing.values()))
    reason = "; ".join(reasons) or "none of the paper's own tasks is in this profile"
    if parts and is_partial:
        reason = f"judged as a whole, and {_absent(measurement)}"
    if elsewhere:
        reason = f"{reason}; study {elsewhere} would test it"
    note = in_note(measurement.note, measurement.note_values)
    return Judged(note="; ".join(filter(None, (reason, note))), tasks=tasks)


def _pooled_parts(measurement: Measurement, *, all_tasks: bool) -> dict[str, Quantity]:
    """The parts of `measurement`, pooled over all tasks or over the paper's own tasks.

    In the second case, parts without a task of the paper are left out.
    """
    parts = {}
    for name, part in measurement.parts.items():
        pooled = part if all_tasks else part.of_paper()
        if pooled is not None:
            parts[name] = pooled
    return parts


def _absent(measurement: Measurement) -> str:
    """Say how many parts of `measurement` are missing, and name them."""
    missing = list(measurement.missing)
    count = len(missing) + len(measurement.parts)
    return f"{len(missing)} of {count} parts are missing: {', '.join(missing)}"


def _count_of_parts(measurement: Measurement, judged: Sized) -> int:
    """The number of parts for which `_judged_parts` corrects the level of a verdict.

    For a claim about all parts together, missing parts count as well.
    """
    missing = len(measurement.missing) if measurement.whole else 0
    return len(judged) + missing


def _planning(
    criterion: Criterion,
    part: Quantity,
    shown: JudgedPart,
    printed: float | None,
) -> dict[str, Any]:
    """The smallest detectable effect and the required n of a part, at 80 % power.

    Args:
        criterion: The claim's criterion.
        part: The part whose numbers are shown.
        shown: The same part, judged.
        printed: The printed number for the part, if any.
    """
    # An equivalence needs two one-sided tests to succeed; other criteria need one.
    sides = len(criterion.bounds)
    planned = _planned_effect(criterion, shown.estimate.value, printed)
    n_for_power = None
    if planned is not None:
        n_for_power = part.n_for(criterion.distances(planned), shown.level)
    return {
        "detectable": part.detectable(shown.level, sides=sides),
        "planned": planned,
        "n_for_power": n_for_power,
    }


def _printed(published: Printed, part: str) -> float | None:
    """The printed number for `part`, which is "" if the claim has one part."""
    if isinstance(published, Mapping):
        return published.get(part)
    return published


def _planned_effect(
    criterion: Criterion, value: float | None, published: float | None
) -> float | None:
    """The effect that a study of the claim should detect.

    The candidates are, in this order: the printed effect, the centre of a region with
    two bounds, and the measured effect. The result is the first that meets the
    criterion, or None if no candidate does.
    """
    candidates = [published, value]
    if len(criterion.bounds) == 2:
        candidates.insert(1, sum(criterion.bounds) / 2)
    for effect in candidates:
        if effect is not None and criterion.margin(effect) > 0:
            return effect
    return None


def _task_rows(measurement: Measurement, level: float) -> list[dict[str, Any]]:
    """One row per task of each part, with the task's estimate.

    If there is only one part, the rows do not name it.
    """
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
    published: Printed,
) -> Judged:
    """The verdict on all parts, with the numbers of one part.

    `_most_telling` chooses that part, either from the parts that decide the verdict or,
    if no part decides it, from those that `_verdict` returns instead.
    """
    judged = _judged_parts(
        criterion, parts, levels, _count_of_parts(measurement, parts)
    )
    verdict, candidates = _verdict(
        criterion, judged, is_complete=not measurement.missing
    )
    shown = _most_telling(criterion, candidates)
    part = parts[shown.name]
    shown_name = shown.name if len(parts) > 1 else ""
    template, numbers = _note(measurement, judged, shown, levels[shown.name])
    disagreement = _disagreement(criterion, parts, levels)
    template = "; ".join(filter(None, (template, disagreement)))
    return Judged(
        verdict=verdict,
        **asdict(shown.estimate),
        **_planning(criterion, part, shown, _printed(published, shown_name)),
        level=shown.level,
        counted=part.counted,
        counts=[judged_part.estimate.n for judged_part in judged],
        parts=[judged_part.row() for judged_part in judged] if len(judged) > 1 else [],
        not_run=list(measurement.not_run),
        qualifier="; ".join(filter(None, (part.qualifier, measurement.qualifier))),
        unit=measurement.unit,
        part=shown_name,
        note=in_note(template, numbers),
        note_template=template,
        note_values=numbers,
        cells=list(measurement.cells),
        tasks=tasks,
    )


def _judged_parts(
    criterion: Criterion,
    parts: Mapping[str, Quantity],
    levels: Mapping[str, float],
    count: int,
) -> list[JudgedPart]:
    """Judge each part on its own.

    With several parts, one of them may support or contradict the claim by chance. If
    one part is enough for a verdict, the level of that verdict is therefore corrected
    for the number of parts.

    Args:
        criterion: The claim's criterion.
        parts: The parts.
        levels: The level of each part, before the correction.
        count: The number of parts to correct for.
    """
    judged = []
    for name, part in parts.items():
        level = levels[name]
        corrected = 1 - (1 - level) / count
        if criterion.some:
            judged_part = _judged_part(
                criterion, name, part, holds_at=corrected, contradicts_at=level
            )
        else:
            judged_part = _judged_part(
                criterion, name, part, holds_at=level, contradicts_at=corrected
            )
        judged.append(judged_part)
    return judged


def _judged_part(
    criterion: Criterion,
    name: str,
    part: Quantity,
    *,
    holds_at: float,
    contradicts_at: float,
) -> JudgedPart:
    """Judge a part by its interval at the level that the possible verdict requires.

    A part whose interval at `LEVEL` lies outside the region can only contradict the
    claim, and any other part can only support it: both levels are at least `LEVEL`, so
    the intervals at these levels contain the interval at `LEVEL`.

    Args:
        criterion: The claim's criterion.
        name: The name of the part.
        part: The part.
        holds_at: The level at which the part is judged to support the claim.
        contradicts_at: The level at which the part is judged to contradict the claim.
    """
    ends = part.estimate().ends
    if ends is not None and criterion.excludes(ends):
        possible = CONTRADICTED
        level = contradicts_at
        contains = criterion.excludes
        contradicts = criterion.contains
    else:
        possible = HOLDS
        level = holds_at
        contains = criterion.contains
        contradicts = criterion.excludes
    decides = _decides(part, level, contains=contains, contradicts=contradicts)
    verdict = possible if decides else INCONCLUSIVE
    return JudgedPart(name, verdict, level, part.estimate(level))


def _decides(
    part: Quantity,
    level: float,
    *,
    contains: Callable[[Ends], bool],
    contradicts: Callable[[Ends], bool],
) -> bool:
    """Whether a part's interval lies in a region and its tasks do not contradict it.

    Tasks contradict the part if one independent block of them (see `Quantity.alone`)
    has an interval in the opposite region.

    Args:
        part: The part.
        level: The level of the intervals.
        contains: Function that says whether an interval lies in the region.
        contradicts: Function that says whether an interval lies in the opposite region.
    """
    ends = part.estimate(level).ends
    if ends is None or not contains(ends):
        return False
    return not any(map(contradicts, part.alone(level)))


def _verdict(
    criterion: Criterion, judged: Sequence[JudgedPart], *, is_complete: bool
) -> tuple[str, Sequence[JudgedPart]]:
    """The verdict on all parts together, and the parts that decide it or leave it open.

    One part is enough to contradict a claim about all parts, or to support a claim
    about some part. For the opposite verdict, all parts must have been judged and must
    agree. If only missing parts leave the verdict open, all judged parts are returned.
    """
    by_one, by_all = CONTRADICTED, HOLDS
    if criterion.some:
        by_one, by_all = HOLDS, CONTRADICTED
    deciding = [part for part in judged if part.verdict == by_one]
    if deciding:
        return by_one, deciding
    undecided = [part for part in judged if part.verdict == INCONCLUSIVE]
    if not undecided and is_complete:
        return by_all, judged
    return INCONCLUSIVE, undecided or judged


def _most_telling(criterion: Criterion, candidates: Sequence[JudgedPart]) -> JudgedPart:
    """The part whose numbers are shown.

    If one part is enough for the claim to hold, this is the part that lies deepest in
    the region. If all parts must hold, it is the part that lies least deep in the
    region, or farthest outside it.
    """

    def margin(part: JudgedPart) -> float:
        return criterion.margin(part.estimate.value)

    if criterion.some:
        return max(candidates, key=margin)
    return min(candidates, key=margin)


def _disagreement(
    criterion: Criterion, parts: Mapping[str, Quantity], levels: Mapping[str, float]
) -> str:
    """Name the parts whose tasks have opposite verdicts; "" if there are none."""
    disagreeing = [
        name for name, part in parts.items() if _disagree(criterion, part, levels[name])
    ]
    if not disagreeing:
        return ""
    if len(parts) > 1:
        return f"tasks decide differently: {', '.join(disagreeing)}"
    return "its tasks decide differently"


def _disagree(criterion: Criterion, part: Quantity, level: float) -> bool:
    """Whether some tasks of `part` support the claim and others contradict it."""
    alone = part.alone(level)
    holds = any(map(criterion.contains, alone))
    return holds and any(map(criterion.excludes, alone))


def _note(
    measurement: Measurement,
    judged: Sequence[JudgedPart],
    shown: JudgedPart,
    level: float,
) -> tuple[str, list[float]]:
    """The note's template, with {} in place of each number, and the numbers to fill in.

    Args:
        measurement: The measurement of the claim.
        judged: The judged parts of the claim.
        shown: The part whose numbers are shown.
        level: The level of this part, before the correction for several parts.
    """
    notes = [measurement.note]
    numbers = list(measurement.note_values)
    if len(judged) > 1:
        notes.append(", ".join(f"{part.name} {{}}" for part in judged))
        numbers += [float(part.estimate.value) for part in judged]
    if measurement.missing:
        reasons = "; ".join(map(": ".join, measurement.missing.items()))
        notes.append(f"not judged: {reasons}")
    if shown.estimate.ends is None:
        notes.append("one value has no interval")
    causes = []
    if level != LEVEL:
        looks = round((1 - LEVEL) / (1 - level))
        causes.append(f"{looks} looks at the data")
    if shown.level != level:
        causes.append(f"{_count_of_parts(measurement, judged)} parts")
    if causes:
        notes.append(f"interval of {percent(shown.level)}, for {' and '.join(causes)}")
    return "; ".join(filter(None, notes)), numbers


def percent(level: float) -> str:
    """Format `level` as a percentage with at most three significant digits."""
    return f"{100 * level:.3g} %"


def in_note(template: str, values: Sequence[float], *, points: bool = False) -> str:
    """Insert `values`, with their signs, into the `template` of a note.

    If `points` is true, the values are fractions and are converted to percentage
    points.
    """
    if points:
        return template.format(*(f"{100 * value:+.1f}" for value in values))
    return template.format(*(f"{value:+.3f}" for value in values))


def at_level(
    row: dict[str, Any], measurement: Measurement, level: float
) -> dict[str, Any]:
    """Return a copy of a row of `claims.json` with its interval recomputed.

    The interval is at `level`. If several looks or parts raised the row's own level,
    they raise the new level as well: the error rate 1 - `level` is divided by the same
    number. The verdict and the power do not change. A row without an interval is
    returned unchanged.

    Args:
        row: The row.
        measurement: The measurement of the claim's contrast on the runs of the row's
            study.
        level: The level to use instead of `LEVEL`.
    """
    if row["low"] is None or level == LEVEL:
        return row
    parts = _pooled_parts(measurement, all_tasks=row["profile"] in DIRECTIONS_ONLY)
    name = _shown_part(row)
    part = parts[name] if name in parts else next(iter(parts.values()))
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
    """The number of tasks behind the estimate in a row of `claims.json`."""
    part = _shown_part(row)
    pooled = [task for task in _pooled(row) if part in {"", task["part"]}]
    return len({task["task"] for task in pooled})


def _pooled(row: dict[str, Any]) -> list[dict[str, Any]]:
    if row["profile"] in DIRECTIONS_ONLY:
        return list(row["tasks"])
    return [task for task in row["tasks"] if task["pooled"]]


def claims_table(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """The claims as a human-readable table with one row per claim.

    Its columns are some of those that `texts` returns.
    """
    columns = ["claim", "where", "printed", "ours", "must lie", "verdict", "note"]
    table = pd.DataFrame(map(texts, rows))[columns]
    if rows and rows[0]["profile"] in DIRECTIONS_ONLY:
        return table.rename(columns={"verdict": "verdict (directions only)"})
    return table


def texts(row: dict[str, Any]) -> dict[str, str]:
    """Convert a row of `claims.json` to human-readable strings, one for each column.

    Shares and their differences are in points or percent; other numbers keep their
    unit. A claim that was not tested has no unit, so its columns `printed`, `ours` and
    `must lie` are dashes, and the bound in `criterion` is written without a unit.
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
    part = _shown_part(row)
    unit = row["unit"].removesuffix(_after_unit(part))
    scale = 1
    points = in_points(unit)
    if points:
        unit = points
        scale = 100
        shown["note"] = in_note(row["note_template"], row["note_values"], points=True)
        rule = region.sentence(scale, f" {unit}", level=level)
        shown["criterion"] = f"{row['compares']} {rule}"
    unit = _in_words(_QUANTITIES.get(row["id"], _UNITS_IN_WORDS.get(unit, unit)))
    shown["power"] = _power_text(row, scale)
    extra = (shown["note"], _stand_in(row) if points else "", _not_counted(row))
    shown["note"] = _in_words("; ".join(filter(None, extra)))
    about = [_in_words(part), _ratio_text(row), _counts_text(row)]
    qualifiers = "; ".join(filter(None, [*about, *_qualifiers(row, scale)]))
    # Over several tasks, do not show the sd: it mostly reflects differences between the
    # tasks. The interval does not, because it describes exactly these tasks.
    estimate = _estimate_text(row, scale, with_sd=task_count(row) < 2)
    shown["ours"] = f"{estimate} {unit} ({qualifiers})"
    shown["must lie"] = region.where(scale)
    if row["published"] is not None:
        shown["printed"] = f"{scale * row['published']:g}"
    return shown


def _ratio_text(row: dict[str, Any]) -> str:
    """The ratio as text if the row's value is the logarithm of a ratio; else ""."""
    if not row["unit"].startswith(LOG_RATIO):
        return ""
    return f"a ratio of {exp(row['value']):.3g}"


def _counts_text(row: dict[str, Any]) -> str:
    """Describe the number of values, the number of tasks, and the interval's level.

    The number of tasks is left out if it is 1, and the level if there is no interval.
    """
    each = row["each"] if row["n"] != 1 else row["each"].removesuffix("s")
    text = f"n = {row['n']} {each}"
    if task_count(row) > 1:
        text += f" of these {task_count(row)} tasks"
    if row["low"] is not None:
        text += f", interval at {percent(row['level'])}"
    return text


def _qualifiers(row: dict[str, Any], scale: int) -> list[str]:
    """What to show wherever a row's numbers are shown, such as the row's remark.

    If one part is enough for the claim to hold, this includes the verdict on each part.
    If an optional part was not run, it lists the parts that were judged and the parts
    that were not run.
    """
    qualifiers = [row["remark"]] if row["remark"] else []
    if row["some"] and row["parts"]:
        verdicts = [
            f"{part['part']} {part['verdict']}, {_estimate_text(part, scale)} "
            f"at {percent(part['level'])}"
            for part in row["parts"]
        ]
        qualifiers.append(f"each by itself: {'; '.join(verdicts)}")
    if row["not_run"]:
        judged = _listed([part["part"] for part in row["parts"]])
        qualifiers.append(
            f"judged: {judged or 'what is shown'}; not run: {_listed(row['not_run'])}"
        )
    return qualifiers


def _in_words(text: str) -> str:
    """Replace the names of parts in a text with words for readers."""
    for name, words in _PARTS_IN_WORDS.items():
        text = text.replace(name, words)
    return text


def _listed(parts: Sequence[str]) -> str:
    """Join the names of `parts` with commas, after removing commas within names."""
    return ", ".join(name.replace(", ", " ") for name in parts)


def _power_text(row: dict[str, Any], scale: float) -> str:
    """Describe what the study's n detects with 80 % power, and which n would suffice.

    Numbers are in the claim's unit. The text is "" if no effect is large enough. The n
    that would suffice is a number of values per task.
    """
    if row["detectable"] is None:
        return ""
    detectable = _short(scale * row["detectable"])
    if len(row["bounds"]) == 2:
        event = f"that the interval lies within ±{detectable} of the true effect"
    else:
        event = f"of detecting an effect that lies {detectable} beyond the bound"
    text = f"with n = {row['n']} {row['each']}, there is an 80 % chance {event}"
    if row["planned"] is None:
        return text
    effect = _short(scale * row["planned"])
    needed = "not even n = 1,000"
    if row["n_for_power"] is not None:
        needed = f"n = {row['n_for_power']}"
    if task_count(row) > 1:
        needed += " per task"
    return f"{text}; if the true effect is {effect}, {needed} would suffice"


def _short(number: float) -> str:
    """Format `number` with three significant digits."""
    return f"{number:.3g}"


def _stand_in(row: dict[str, Any]) -> str:
    return f"stand-in data: {row['stand_in']}" if row["stand_in"] else ""


def _not_counted(row: dict[str, Any]) -> str:
    """Name the tasks that are shown but not pooled; "" if there are none."""
    pooled = _pooled(row)
    uncounted = {task["task"] for task in row["tasks"]} - {
        task["task"] for task in pooled
    }
    if not pooled or not uncounted:
        return ""
    return f"not in the paper and so not counted: {' and '.join(sorted(uncounted))}"


def _estimate_text(row: dict[str, Any], scale: int, *, with_sd: bool = True) -> str:
    """Format a value with its interval and, if `with_sd` is true, its sd.

    Shares, which are in percent or percentage points, get two decimal places, and other
    numbers get three. If the sd or an end of the interval would be rounded to 0, all
    numbers get up to two more.
    """
    names = ("value", "sd", "low", "high")
    numbers = {name: scale * row[name] for name in names if row[name] is not None}
    if not with_sd:
        numbers.pop("sd", None)
    fewest = 2 if scale == 100 else 3
    spread = [number for name, number in numbers.items() if name != "value" and number]
    digits = fewest
    while digits < fewest + 2 and any(round(number, digits) == 0 for number in spread):
        digits += 1

    def text(name: str) -> str:
        # Add 0.0, which turns a negative zero into a positive one.
        return f"{round(numbers[name], digits) + 0.0:.{digits}f}"

    words = text("value")
    if "sd" in numbers:
        words += f" ± {text('sd')}"
    if "low" in numbers:
        words += f" [{text('low')}, {text('high')}]"
    return words

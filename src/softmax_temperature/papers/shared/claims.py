"""Claims: sentences of a paper, each compared with a bound that was fixed before the run.

A claim is data: what is measured in the records, and the region in which its 90 % interval must lie. There are four
verdicts: the interval lies in the region (holds), or outside (contradicted), or across a bound (inconclusive), or there
is nothing to judge (not tested). Every claim of a paper appears in `claims.json`: none is silently absent.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf, isfinite
from typing import Any, Generic, Self, TypeVar

import pandas as pd

from softmax_temperature.papers.shared.statistics import LEVEL, Ends, Quantity

Records = TypeVar("Records")

HOLDS, CONTRADICTED, INCONCLUSIVE, NOT_TESTED = "holds", "contradicted", "inconclusive", "not tested"
VERDICTS = (HOLDS, CONTRADICTED, INCONCLUSIVE, NOT_TESTED)
DIRECTIONS_ONLY = ("smoke", "mini")
"""Profiles whose data and networks are so small that a verdict is about the direction of an effect, not its size."""
_OF = ("share of ", "of ")
_SHARES = ("accuracy", "pixel accuracy", "mean IoU", "ECE", "AUROC", *_OF)
"""How the unit of a share begins; a reader sees it in percent."""


@dataclass(frozen=True)
class Criterion:
    """Where the interval must lie: between two ends; `some` if the claim is that one of its parts does, not all."""

    kind: str
    low: float = -inf
    high: float = inf
    some: bool = False

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """That by which a row of `claims.json` was judged."""
        low, high = row["region"]
        return cls(row["kind"], -inf if low is None else low, inf if high is None else high, row["some"])

    def contains(self, ends: Ends) -> bool:
        """Whether the whole interval lies in the region."""
        return self.low < ends[0] and ends[1] < self.high

    def excludes(self, ends: Ends) -> bool:
        """Whether the whole interval lies outside, a bound included."""
        return ends[1] <= self.low or ends[0] >= self.high

    def margin(self, value: float) -> float:
        """How deep a value lies in the region; negative outside."""
        return min(value - self.low, self.high - value)

    @property
    def bounds(self) -> list[float]:
        """Its finite ends."""
        return [bound for bound in (self.low, self.high) if isfinite(bound)]

    def where(self, scale: float = 1) -> str:
        """The region in words, its ends in units of 1 / scale."""
        side = "between" if len(self.bounds) == 2 else "above" if isfinite(self.low) else "below"
        return f"{side} {' and '.join(f'{scale * bound:g}' for bound in self.bounds)}"

    def __str__(self) -> str:
        whose = "some part's interval, at a level corrected for their number," if self.some else "the 90 % interval"
        return f"{self.kind}: holds if {whose} lies {self.where()}"


def above(bound: float = 0.0, *, some: bool = False) -> Criterion:
    """Superiority: more than a bound."""
    return Criterion("superiority", low=bound, some=some)


def below(bound: float = 0.0) -> Criterion:
    """Superiority of what is smaller: less than a bound."""
    return Criterion("superiority", high=bound)


def not_worse(margin: float) -> Criterion:
    """Non-inferiority: not lower by the margin or more."""
    return Criterion("non-inferiority", low=-margin)


def not_higher(margin: float) -> Criterion:
    """Non-superiority: not higher by the margin or more."""
    return Criterion("non-superiority", high=margin)


def equivalent(margin: float) -> Criterion:
    """Equivalence: neither lower nor higher by the margin or more, by two one-sided tests."""
    return within(-margin, margin)


def within(low: float, high: float) -> Criterion:
    """Equivalence to something between two values."""
    return Criterion("equivalence", low, high)


def most(share: float = 0.5) -> Criterion:
    """A proportion above a share."""
    return Criterion("proportion", low=share)


@dataclass(frozen=True)
class Measurement:
    """What the records say about one claim, by its parts; a claim about one thing has one part, with any name."""

    parts: Mapping[str, Quantity]
    unit: str
    note: str = ""  # What a reader must know beside the numbers, with {} for each of `beside`.
    missing: Mapping[str, str] = field(default_factory=dict)  # The parts that cannot be judged, and why.
    cells: tuple[str, ...] = ()  # What the values come from, see `sources`.
    beside: tuple[float, ...] = ()  # Other numbers in this unit, for the note.


@dataclass(frozen=True)
class NotTested:
    """Why the records cannot decide a claim, and what would."""

    reason: str


@dataclass(frozen=True)
class Claim(Generic[Records]):
    """One machine-checkable sentence of a paper."""

    id: str
    where: str
    statement: str
    compares: str  # What is measured, and how; `measure` does it.
    criterion: Criterion
    measure: Callable[[Records], Measurement | NotTested]
    published: float | None = None  # The printed number that it corresponds to.


def judge_all(paper: str, claims: Sequence[Claim[Records]], records: Records, *, profile: str) -> list[dict[str, Any]]:
    """The rows of `claims.json`: every claim with its evidence and verdict, in the order given.

    Tasks that the paper does not have are pooled in the profiles that show directions only, and nowhere else.
    """
    rows = []
    for claim in claims:
        row = {name: getattr(claim, name) for name in ("id", "where", "statement", "published")}
        row |= {"paper": paper, "profile": profile, "kind": claim.criterion.kind, "bounds": claim.criterion.bounds}
        row |= {"criterion": f"{claim.compares} {str(claim.criterion).capitalize()}.", "some": claim.criterion.some}
        row["region"] = [end if isfinite(end) else None for end in (claim.criterion.low, claim.criterion.high)]
        rows.append(row | _judged(claim.criterion, claim.measure(records), all_tasks=profile in DIRECTIONS_ONLY))
    return rows


def _judged(criterion: Criterion, found: Measurement | NotTested, *, all_tasks: bool) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(("value", "sd", "low", "high", "level", "n", "unit", "n_needed", "each"))
    row |= {"verdict": NOT_TESTED, "tasks": [], "cells": [], "share": False, "note_template": None, "note_values": []}
    if isinstance(found, NotTested):
        return row | {"note": found.reason}
    several = len(found.parts) > 1
    row["tasks"] = [{"part": several * name, **task} for name, part in found.parts.items() for task in part.by_task()]
    own = {name: part if all_tasks else part.of_paper() for name, part in found.parts.items()}
    if parts := {name: part for name, part in own.items() if part is not None}:
        return row | _decision(criterion, parts, found) | {"cells": list(found.cells)}
    reason = "; ".join(found.missing.values()) or "none of the paper's own tasks is in this profile"
    return row | {"note": "; ".join(filter(None, (reason, in_note(found.note, found.beside))))}


def _decision(criterion: Criterion, parts: Mapping[str, Quantity], found: Measurement) -> dict[str, Any]:
    """The verdict on all parts and the part that decides it, or is farthest from being decided."""
    # One of many intervals lies somewhere by chance: where one part is enough, its level is corrected for their number.
    corrected = 1 - (1 - LEVEL) / len(parts)
    level_inside, level_outside = (corrected, LEVEL) if criterion.some else (LEVEL, corrected)
    inside = _those_that(criterion.contains, parts, level_inside)
    outside = _those_that(criterion.excludes, parts, level_outside)
    judge, nearest = (_some_holds, max) if criterion.some else (_all_hold, min)
    verdict, candidates = judge(list(parts), inside, outside, complete=not found.missing)
    plain = {name: part.estimate() for name, part in parts.items()}
    name = nearest(candidates, key=lambda each: criterion.margin(plain[each].value))
    part, ends, level, needed = parts[name], plain[name].ends, level_inside, None
    # The level of the test that decided; of an open claim, of the one that is closest to deciding.
    if verdict == CONTRADICTED or (verdict == INCONCLUSIVE and ends and criterion.excludes(ends)):
        level = level_outside
    if verdict == INCONCLUSIVE and name not in inside:
        tests = ((criterion.contains, level_inside), (criterion.excludes, level_outside))
        needed = min((count for test in tests if (count := part.needed(*test)) is not None), default=None)
    estimate, several = part.estimate(level), len(parts) > 1
    values = [float(one.value) for one in plain.values()] if several else []
    notes = (
        found.note,
        ", ".join(f"{each} {{}}" for each in parts) if several else "",
        f"not judged: {'; '.join(map(': '.join, found.missing.items()))}" if found.missing else "",
        "" if estimate.ends else "one value has no interval",
        f"interval of {100 * level:.3g} %, for {len(parts)} parts" if level != LEVEL else "",
    )
    template, values = "; ".join(filter(None, notes)), [*found.beside, *values]
    row = asdict(estimate) | {"verdict": verdict, "level": level, "n_needed": needed, "each": part.each}
    row |= {"unit": f"{found.unit}, {name}" if several else found.unit, "share": found.unit.startswith(_SHARES)}
    return row | {"note": in_note(template, values), "note_template": template, "note_values": values}


def _those_that(lie: Callable[[Ends], bool], parts: Mapping[str, Quantity], level: float) -> list[str]:
    return [name for name, part in parts.items() if (ends := part.estimate(level).ends) and lie(ends)]


def _all_hold(parts: list[str], inside: list[str], outside: list[str], *, complete: bool) -> tuple[str, list[str]]:
    """The verdict where all parts must lie inside, and the parts that may have decided it."""
    if outside:
        return CONTRADICTED, outside
    if complete and inside == parts:
        return HOLDS, inside
    return INCONCLUSIVE, [name for name in parts if name not in inside] or parts


def _some_holds(parts: list[str], inside: list[str], outside: list[str], *, complete: bool) -> tuple[str, list[str]]:
    """The verdict where one part inside is enough, and the parts that may have decided it."""
    if complete and outside == parts:
        return CONTRADICTED, outside
    return (HOLDS, inside) if inside else (INCONCLUSIVE, parts)


def in_note(template: str, values: Sequence[float], *, points: bool = False) -> str:
    """A note with its numbers, as they are or in points."""
    return template.format(*(f"{100 * value:+.1f}" if points else f"{value:+.3f}" for value in values))


def claims_table(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """The rows of `claims.json` for a reader: one line per claim, numbers as text, fractions in points."""
    table = pd.DataFrame(map(texts, rows))[["claim", "where", "printed", "ours", "must lie", "verdict", "note"]]
    directions = bool(rows) and rows[0]["profile"] in DIRECTIONS_ONLY
    return table.rename(columns={"verdict": "verdict (directions only)"} if directions else {})


def texts(row: dict[str, Any]) -> dict[str, str]:
    """What a reader sees of a row of `claims.json`: shares and their differences in points, the others as they are.

    The bound and the printed number of what was not tested have no unit, and are left out.
    """
    criterion, verdict = Criterion.of(row), row["verdict"]
    if verdict == INCONCLUSIVE and row["n_needed"] is not None:
        verdict += f" ({row['n_needed']} {row['each']} would decide)"
    said = {"claim": row["statement"], "where": row["where"], "printed": "–", "ours": "–", "must lie": "–"}
    said |= {"verdict": verdict, "note": row["note"], "criterion": row["criterion"]}
    if row["value"] is None:
        return said
    unit, scale, digits, where = row["unit"], 1, 3, criterion.where()
    if row["share"]:
        scale, digits, where = 100, 2, criterion.where(100)
        unit = ("% " if unit.startswith(_OF) else "points of ") + unit.removeprefix("share ")
        said["note"] = in_note(row["note_template"], row["note_values"], points=True)
        before = row["criterion"].removesuffix(f"{criterion.where()}.")
        said["criterion"] = f"{before}{where} {unit.partition(',')[0]}."
    known = ("value", "sd", "low", "high")
    value, sd, low, high = (None if row[name] is None else f"{scale * row[name]:.{digits}f}" for name in known)
    ours = f"{value}{f' ± {sd}' if sd else ''}{f' [{low}, {high}]' if low else ''}"
    printed = "–" if row["published"] is None else f"{scale * row['published']:g}"
    return said | {"ours": f"{ours} {unit} (n = {row['n']} {row['each']})", "must lie": where, "printed": printed}

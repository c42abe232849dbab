"""Claims: sentences of a paper, each compared with a bound that was fixed before the run.

A claim is data: what is measured in the records, and the region in which its 90 % interval must lie. There are four
verdicts: the interval lies in the region (holds), or outside (contradicted), or across a bound (inconclusive), or there
is nothing to judge (not tested). Every claim of a paper appears in `claims.json`: none is silently absent.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf, isfinite
from typing import Any, Generic, TypeVar

import pandas as pd

from softmax_temperature.papers.shared.statistics import LEVEL, Ends, Quantity

Records = TypeVar("Records")

HOLDS, CONTRADICTED, INCONCLUSIVE, NOT_TESTED = "holds", "contradicted", "inconclusive", "not tested"
VERDICTS = (HOLDS, CONTRADICTED, INCONCLUSIVE, NOT_TESTED)
DIRECTIONS_ONLY = ("smoke", "mini")
"""Profiles whose data and networks are so small that a verdict is about the direction of an effect, not its size."""
_SHARE = re.compile(r"accuracy|pixel accuracy|mean IoU|ECE|AUROC|share of |of ")
"""How the unit of a share begins; a reader sees it in percent."""


@dataclass(frozen=True)
class Criterion:
    """Where the interval must lie: between two ends; `some` if the claim is that one of its parts does, not all."""

    kind: str
    low: float = -inf
    high: float = inf
    some: bool = False

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

    def __str__(self) -> str:
        where = "between" if len(self.bounds) == 2 else "above" if isfinite(self.low) else "below"
        whose = "some part's interval, at a level corrected for their number," if self.some else "the 90 % interval"
        return f"{self.kind}: holds if {whose} lies {where} {' and '.join(f'{bound:g}' for bound in self.bounds)}"


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
    note: str = ""  # What a reader must know beside the numbers.
    missing: Mapping[str, str] = field(default_factory=dict)  # The parts that cannot be judged, and why.
    cells: tuple[str, ...] = ()  # What the values come from, see `sources`.


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
        row["criterion"] = f"{claim.compares} {str(claim.criterion).capitalize()}."
        rows.append(row | _judged(claim.criterion, claim.measure(records), all_tasks=profile in DIRECTIONS_ONLY))
    return rows


def _judged(criterion: Criterion, found: Measurement | NotTested, *, all_tasks: bool) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(("value", "sd", "low", "high", "level", "n", "unit", "n_needed", "each"))
    row |= {"verdict": NOT_TESTED, "tasks": [], "cells": []}
    if isinstance(found, NotTested):
        return row | {"note": found.reason}
    several = len(found.parts) > 1
    row["tasks"] = [{"part": several * name, **task} for name, part in found.parts.items() for task in part.by_task()]
    own = {name: part if all_tasks else part.of_paper() for name, part in found.parts.items()}
    if parts := {name: part for name, part in own.items() if part is not None}:
        return row | _decision(criterion, parts, found) | {"cells": list(found.cells)}
    reason = "; ".join(found.missing.values()) or "none of the paper's own tasks is in this profile"
    return row | {"note": "; ".join(filter(None, (reason, found.note)))}


def _decision(criterion: Criterion, parts: Mapping[str, Quantity], found: Measurement) -> dict[str, Any]:
    """The verdict on all parts and the part that decides it, or is farthest from being decided."""
    some = criterion.some
    # One of many intervals lies somewhere by chance: where one part is enough, its level is corrected for their number.
    corrected = 1 - (1 - LEVEL) / len(parts)
    levels = (corrected, LEVEL) if some else (LEVEL, corrected)
    tests = tuple(zip((criterion.contains, criterion.excludes), levels, strict=True))
    inside, outside = (
        [name for name, part in parts.items() if (ends := part.estimate(level).ends) and test(ends)]
        for test, level in tests
    )
    plain = {name: part.estimate() for name, part in parts.items()}
    absent = "; ".join(f"{name}: {reason}" for name, reason in found.missing.items())
    if len(outside) == len(parts) and not absent if some else outside:
        verdict, candidates = CONTRADICTED, outside
    elif inside if some else len(inside) == len(parts) and not absent:
        verdict, candidates = HOLDS, inside
    else:
        verdict = INCONCLUSIVE
        candidates = [name for name in parts if some or name not in inside] or list(parts)
    name = (max if some else min)(candidates, key=lambda each: criterion.margin(plain[each].value))
    part, ends = parts[name], plain[name].ends
    # The level of the test that decided; of an open claim, of the one that is closest to deciding.
    against = criterion.excludes(ends) if verdict == INCONCLUSIVE and ends else verdict == CONTRADICTED
    level = levels[bool(against)]  # It may be NumPy's, which is no index.
    estimate = part.estimate(level)
    is_open = verdict == INCONCLUSIVE and name not in inside
    needed = [count for test in tests if is_open and (count := part.needed(*test)) is not None]
    several = len(parts) > 1
    notes = (
        found.note,
        ", ".join(f"{name} {one.value:+.3f}" for name, one in plain.items()) if several else "",
        absent and f"not judged: {absent}",
        "" if estimate.ends else "one value has no interval",
        f"interval of {100 * level:.3g} %, for {len(parts)} parts" if level != LEVEL else "",
    )
    said = {"unit": f"{found.unit}, {name}" if several else found.unit, "note": "; ".join(filter(None, notes))}
    decided = {"verdict": verdict, "level": level, "n_needed": min(needed, default=None), "each": part.each}
    return asdict(estimate) | said | decided


def claims_table(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """The rows of `claims.json` for a reader: one line per claim, numbers as text, fractions in points."""
    table = pd.DataFrame(map(texts, rows))[["claim", "where", "printed", "ours", "must lie", "verdict", "note"]]
    directions = bool(rows) and rows[0]["profile"] in DIRECTIONS_ONLY
    return table.rename(columns={"verdict": "verdict (directions only)"} if directions else {})


def texts(row: dict[str, Any]) -> dict[str, str]:
    """What a reader sees of a row of `claims.json`: shares and their differences in points, the others as they are.

    The bound and the printed number of what was not tested have no unit, and are left out.
    """
    unit, note, verdict = row["unit"] or "", row["note"], row["verdict"]
    scale, digits, share = 1, 3, _SHARE.match(unit)
    if share:
        scale, digits = 100, 2
        unit = ("% " if share[0].endswith("of ") else "points of ") + unit.removeprefix("share ")
        note = re.sub(r"(?<= )[+-]\d+\.\d{3}(?=[,;]|$)", lambda part: f"{100 * float(part[0]):+.1f}", note)
    if verdict == INCONCLUSIVE and row["n_needed"] is not None:
        verdict += f" ({row['n_needed']} {row['each']} would decide)"
    how, lies, where = row["criterion"].rstrip(".").rpartition("lies ")
    where = re.sub(r"-?\d\S*", lambda bound: f"{scale * float(bound[0]):g}", where)
    criterion = f"{how}{lies}{where}{f' {unit}'.partition(',')[0] if share else ''}."
    said = {"claim": row["statement"], "where": row["where"], "printed": "–", "ours": "–", "must lie": "–"}
    said |= {"verdict": verdict, "note": note, "criterion": criterion}
    if row["value"] is None:
        return said
    known = ("value", "sd", "low", "high")
    value, sd, low, high = (None if row[name] is None else f"{scale * row[name]:.{digits}f}" for name in known)
    ours = f"{value}{f' ± {sd}' if sd else ''}{f' [{low}, {high}]' if low else ''}"
    printed = "–" if row["published"] is None else f"{scale * row['published']:g}"
    return said | {"ours": f"{ours} {unit} (n = {row['n']} {row['each']})", "must lie": where, "printed": printed}

"""Claims: sentences of a paper, each compared with a bound that was fixed before the run.

A claim is data: what is measured in the records, and the region in which its 90 % interval must lie. There are four
verdicts: the interval lies in the region (holds), or outside (contradicted), or across a bound (inconclusive), or there
is nothing to judge (not tested). Every claim of a paper appears in `claims.json`: none is silently absent.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import inf, isfinite
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import pandas as pd

from softmax_temperature.papers.shared.statistics import (
    LEVEL,
    Drawn,
    Ends,
    Fitted,
    OverTasks,
    Quantity,
    Share,
    Task,
    jackknife,
    pooled,
)

__all__ = [
    "LEVEL",
    "Claim",
    "Criterion",
    "Drawn",
    "Fitted",
    "Measurement",
    "NotTested",
    "OverTasks",
    "Share",
    "Task",
    "claims_table",
    "jackknife",
    "judge_all",
    "pooled",
]

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
    def bounds(self) -> tuple[float, ...]:
        """Its finite ends."""
        return tuple(bound for bound in (self.low, self.high) if isfinite(bound))

    def __str__(self) -> str:
        if len(self.bounds) == 2:
            where = f"between {self.low:g} and {self.high:g}"
        else:
            where = f"{'above' if isfinite(self.low) else 'below'} {self.bounds[0]:g}"
        whose = "some part's interval, at a level corrected for their number," if self.some else "the 90 % interval"
        return f"{self.kind}: holds if {whose} lies {where}"


def criterion_of(row: dict[str, Any]) -> Criterion:
    """The criterion of a row of `claims.json`."""
    words, (low, *rest) = str(row["criterion"]), row["bounds"]
    low, high = (low, *rest) if rest else (low, inf) if "lies above" in words else (-inf, low)
    return Criterion(row["kind"], low, high, some="some part's interval" in words)


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
    return Criterion("equivalence", -margin, margin)


def within(low: float, high: float) -> Criterion:
    """Equivalence to something between two values."""
    return Criterion("equivalence", low, high)


def most(share: float = 0.5) -> Criterion:
    """A proportion above a share."""
    return Criterion("proportion", low=share)


@dataclass(frozen=True)
class Measurement:
    """What the records say about one claim, by its parts; a claim about one thing has one part, with any name.

    `note` is what a reader must know beside the numbers; `missing`, the parts that cannot be judged, and why; `cells`,
    what the values come from (see `sources`).
    """

    parts: Mapping[str, Quantity]
    unit: str
    note: str = ""
    missing: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    cells: tuple[str, ...] = ()


@dataclass(frozen=True)
class NotTested:
    """Why the records cannot decide a claim, and what would."""

    reason: str


@dataclass(frozen=True)
class Claim(Generic[Records]):
    """One machine-checkable sentence of a paper.

    `compares` says what is measured, and how; `measure` does it; `published` is the printed number that it corresponds
    to, if one is printed.
    """

    id: str
    where: str
    statement: str
    compares: str
    criterion: Criterion
    measure: Callable[[Records], Measurement | NotTested]
    published: float | None = None


def judge_all(paper: str, claims: Sequence[Claim[Records]], records: Records, *, profile: str) -> list[dict[str, Any]]:
    """The rows of `claims.json`: every claim with its evidence and verdict, in the order given.

    Tasks that the paper does not have are pooled in the profiles that show directions only, and nowhere else.
    """
    return [_row(paper, claim, _judged(claim, records, profile), profile) for claim in claims]


def _judged(claim: Claim[Records], records: Records, profile: str) -> dict[str, Any]:
    found = claim.measure(records)
    if isinstance(found, NotTested):
        return _untested(found.reason)
    several = len(found.parts) > 1
    rows = [{"part": several * name, **row} for name, part in found.parts.items() for row in part.by_task()]
    parts = {name: part for name, whole in found.parts.items() if (part := _own(whole, profile)) is not None}
    if not parts:
        reason = "; ".join(found.missing.values()) or "none of the paper's own tasks is in this profile"
        return {**_untested("; ".join(filter(None, (reason, found.note)))), "tasks": rows}
    return {**_decision(claim.criterion, parts, found), "tasks": rows, "cells": list(found.cells)}


def _own(part: Quantity, profile: str) -> Quantity | None:
    if profile in DIRECTIONS_ONLY:
        return part
    if isinstance(part, Share):
        return part if part.own else None
    if not isinstance(part, OverTasks):
        return part
    own = tuple(task for task in part.tasks if task.own)
    return replace(part, tasks=own) if own else None


def _decision(criterion: Criterion, parts: Mapping[str, Quantity], found: Measurement) -> dict[str, Any]:
    """The verdict on all parts and the part that decides it, or is farthest from being decided."""
    # One of many intervals lies somewhere by chance: where one part is enough, its level is corrected for their number.
    corrected = 1 - (1 - LEVEL) / len(parts)
    levels = (corrected, LEVEL) if criterion.some else (LEVEL, corrected)
    tests = tuple(zip((criterion.contains, criterion.excludes), levels, strict=True))
    plain = {name: part.estimate() for name, part in parts.items()}
    inside, outside = (
        [name for name, part in parts.items() if (ends := part.estimate(level).ends) is not None and test(ends)]
        for test, level in tests
    )
    enough = bool(inside) if criterion.some else len(inside) == len(parts)
    against = len(outside) == len(parts) if criterion.some else bool(outside)
    absent = "; ".join(f"{name}: {reason}" for name, reason in found.missing.items())
    if against and not (criterion.some and absent):
        verdict, candidates = CONTRADICTED, outside
    elif enough and (criterion.some or not absent):
        verdict, candidates = HOLDS, inside
    else:
        verdict = INCONCLUSIVE
        candidates = list(parts) if criterion.some else [name for name in parts if name not in inside] or list(parts)
    best = max if criterion.some else min
    name = best(candidates, key=lambda each: criterion.margin(plain[each].value))
    part = parts[name]
    # The level of the test that decided; of an open claim, of the one that is closest to deciding.
    ends = plain[name].ends
    against = criterion.excludes(ends) if verdict == INCONCLUSIVE and ends else verdict == CONTRADICTED
    level = levels[bool(against)]  # It may be NumPy's, which is no index.
    estimate = part.estimate(level)
    is_open = verdict == INCONCLUSIVE and name not in inside
    needed = [count for test in tests if is_open and (count := part.needed(*test)) is not None]
    each = ", ".join(f"{name} {one.value:+.3f}" for name, one in plain.items()) if len(parts) > 1 else ""
    alone = "one value has no interval" if estimate.ends is None else ""
    wider = f"interval of {100 * level:.3g} %, for {len(parts)} parts" if level != LEVEL else ""
    notes = (found.note, each, absent and f"not judged: {absent}", alone, wider)
    return asdict(estimate) | {
        "level": level,
        "unit": f"{found.unit}, {name}" if len(parts) > 1 else found.unit,
        "verdict": verdict,
        "n_needed": min(needed, default=None),
        "each": part.each,
        "note": "; ".join(filter(None, notes)),
    }


def _untested(reason: str) -> dict[str, Any]:
    empty = dict.fromkeys(("value", "sd", "low", "high", "level", "n", "unit", "n_needed", "each"))
    return {**empty, "verdict": NOT_TESTED, "note": reason, "tasks": [], "cells": []}


def _row(paper: str, claim: Claim[Any], judged: dict[str, Any], profile: str) -> dict[str, Any]:
    return {
        "paper": paper,
        "id": claim.id,
        "where": claim.where,
        "statement": claim.statement,
        "criterion": f"{claim.compares} {str(claim.criterion).capitalize()}.",
        "kind": claim.criterion.kind,
        "bounds": list(claim.criterion.bounds),
        "published": claim.published,
        "profile": profile,
        **judged,
    }


def claims_table(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """The rows of `claims.json` for a reader: one line per claim, numbers as text, fractions in points."""
    shown = [texts(row) for row in rows]
    verdicts = "verdict (directions only)" if rows and rows[0]["profile"] in DIRECTIONS_ONLY else "verdict"
    columns = {name: name for name in ("claim", "where", "printed", "ours", "must lie")} | {"verdict": verdicts}
    return pd.DataFrame(shown)[[*columns, "note"]].rename(columns=columns)


def texts(row: dict[str, Any]) -> dict[str, str]:
    """What a reader sees of a row of `claims.json`: shares and their differences in points, the others as they are.

    The bound and the printed number of what was not tested have no unit, and are left out.
    """
    unit, value = row["unit"] or "", row["value"]
    share = _SHARE.match(unit)
    scale, digits = (100, 2) if share else (1, 3)
    if share:
        unit = ("% " if share[0].endswith("of ") else "points of ") + unit.removeprefix("share ")
    ours = "–" if value is None else f"{scale * value:.{digits}f}"
    if row["sd"] is not None:
        ours += f" ± {scale * row['sd']:.{digits}f}"
    if row["low"] is not None:
        ours += f" [{scale * row['low']:.{digits}f}, {scale * row['high']:.{digits}f}]"
    verdict = row["verdict"]
    if verdict == INCONCLUSIVE and row["n_needed"] is not None:
        verdict += f" ({row['n_needed']} {row['each']} would decide)"
    how, lies, where = row["criterion"].rstrip(".").rpartition("lies ")
    where = re.sub(r"-?\d\S*", lambda bound: f"{scale * float(bound[0]):g}", where)
    part = re.compile(r"(?<= )[+-]\d+\.\d{3}(?=[,;]|$)")
    return {
        "claim": row["statement"],
        "where": row["where"],
        "printed": "–" if row["published"] is None or value is None else f"{scale * row['published']:g}",
        "ours": ours if value is None else f"{ours} {unit} (n = {row['n']} {row['each']})",
        "must lie": "–" if value is None else where,
        "verdict": verdict,
        "note": part.sub(lambda each: f"{scale * float(each[0]):+.1f}", row["note"]) if share else row["note"],
        "criterion": f"{how}{lies}{where}{f' {unit}'.partition(',')[0] if share else ''}.",
    }

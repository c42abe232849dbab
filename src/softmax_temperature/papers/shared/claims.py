"""Claims: sentences of a paper, each compared with a bound that was fixed before the
run.

A claim is data: what is measured in the records, and the region in which its 90 %
    interval must lie. There are four
verdicts: the interval lies in the region (holds), or outside (contradicted), or across
a bound (inconclusive), or there is nothing to judge (not tested). Every claim of a
paper appears in `claims.json`: none is silently absent.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import inf, isfinite
from typing import Any, Generic, Self, TypeVar

import pandas as pd

from softmax_temperature.papers.shared.statistics import LEVEL, Ends, Quantity
from softmax_temperature.papers.shared.tables import in_points

Records = TypeVar("Records")

HOLDS, CONTRADICTED, INCONCLUSIVE, NOT_TESTED = (
    "holds",
    "contradicted",
    "inconclusive",
    "not tested",
)
VERDICTS = (HOLDS, CONTRADICTED, INCONCLUSIVE, NOT_TESTED)
DIRECTIONS_ONLY = ("smoke", "mini")
"""Profiles whose data and networks are so small that a verdict is about the direction
of an effect, not its size.
"""


@dataclass(frozen=True)
class Criterion:
    """Where the interval must lie: between two ends; `some` if the claim is that one of
    its parts does, not all.
    """

    kind: str
    low: float = -inf
    high: float = inf
    some: bool = False

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """That by which a row of `claims.json` was judged."""
        low, high = row["region"]
        return cls(
            row["kind"],
            -inf if low is None else low,
            inf if high is None else high,
            row["some"],
        )

    def row(self) -> dict[str, Any]:
        """What a row of `claims.json` says of it."""
        region = [end if isfinite(end) else None for end in (self.low, self.high)]
        said = {
            "criterion": self.sentence(),
            "kind": self.kind,
            "region": region,
            "bounds": self.bounds,
        }
        return said | {"some": self.some}

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
        side = (
            "between"
            if len(self.bounds) == 2
            else "above"
            if isfinite(self.low)
            else "below"
        )
        return f"{side} {' and '.join(f'{scale * bound:g}' for bound in self.bounds)}"

    def sentence(self, scale: float = 1, unit: str = "") -> str:
        """When a claim holds by it, the region as in `where`."""
        whose = (
            "some part's interval, at a level corrected for their number,"
            if self.some
            else "the 90 % interval"
        )
        return f"{self.kind.capitalize()}: holds if {whose} lies {self.where(scale)}{unit}."


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
    """Equivalence: neither lower nor higher by the margin or more, by two one-sided
    tests.
    """
    return within(-margin, margin)


def within(low: float, high: float) -> Criterion:
    """Equivalence to something between two values."""
    return Criterion("equivalence", low, high)


def most(share: float = 0.5) -> Criterion:
    """A proportion above a share."""
    return Criterion("proportion", low=share)


@dataclass(frozen=True)
class Measurement:
    """What the records say about one claim, by its parts; a claim about one thing has
    one part, with any name.
    """

    parts: Mapping[str, Quantity]
    unit: str
    note: str = (
        ""  # What a reader must know beside the numbers, with {} for each of `beside`.
    )
    missing: Mapping[str, str] = field(
        default_factory=dict
    )  # The parts that cannot be judged, and why.
    cells: tuple[str, ...] = ()  # What the values come from, see `sources`.
    beside: tuple[float, ...] = ()  # Other numbers in this unit, for the note.


def not_tested(reason: str) -> Measurement:
    """What is found where the records cannot decide a claim: why, and what would."""
    return Measurement({}, "", missing={"": reason})


@dataclass(frozen=True)
class Claim(Generic[Records]):
    """One machine-checkable sentence of a paper."""

    id: str
    where: str
    statement: str
    compares: str  # What is measured, and how; `measure` does it.
    criterion: Criterion
    measure: Callable[[Records], Measurement]
    published: float | None = None  # The printed number that it corresponds to.


def claim(
    name: str,
    where: str,
    criterion: Criterion,
    measure: Callable[[Records], Measurement],
    published: float | None = None,
) -> Callable[[str, str], Claim[Records]]:
    """A claim from two calls: what judges it, and then its sentences, the statement and
    what is compared.
    """
    return lambda statement, compares: Claim(
        name, where, statement, compares, criterion, measure, published
    )


@dataclass(frozen=True)
class Judged:
    """What a row of `claims.json` says beside the claim itself; of one that is not
    tested the tasks and a note.
    """

    # With its numbers; `note_template` and `note_values` are the same in two parts.
    note: str
    verdict: str = NOT_TESTED
    value: float | None = None
    sd: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None  # Of the interval.
    n: int | None = None
    each: str | None = None  # What n counts.
    n_needed: int | None = None  # With which a claim that is open would be decided.
    unit: str | None = None
    note_template: str | None = None
    note_values: list[float] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    tasks: list[dict[str, Any]] = field(default_factory=list)


def judge_all(
    paper: str, claims: Sequence[Claim[Records]], records: Records, *, profile: str
) -> list[dict[str, Any]]:
    """The rows of `claims.json`: every claim with its evidence and verdict, in the
    order given.

    Tasks that the paper does not have are pooled in the profiles that show directions
    only, and nowhere else.
    """
    rows = []
    for claim in claims:
        said = {
            name: getattr(claim, name)
            for name in ("id", "where", "statement", "compares", "published")
        }
        said |= {"paper": paper, "profile": profile}
        judged = _judged(
            claim.criterion, claim.measure(records), profile in DIRECTIONS_ONLY
        )
        rows.append(said | claim.criterion.row() | asdict(judged))
    return rows


def _judged(criterion: Criterion, found: Measurement, all_tasks: bool) -> Judged:
    several = len(found.parts) > 1
    tasks = [
        {"part": several * name, **task}
        for name, part in found.parts.items()
        for task in part.by_task()
    ]
    own = (
        (name, part if all_tasks else part.of_paper())
        for name, part in found.parts.items()
    )
    if parts := {name: part for name, part in own if part is not None}:
        return replace(_decided(criterion, parts, found), tasks=tasks)
    reason = (
        "; ".join(dict.fromkeys(found.missing.values()))
        or "none of the paper's own tasks is in this profile"
    )
    return Judged(
        note="; ".join(filter(None, (reason, in_note(found.note, found.beside)))),
        tasks=tasks,
    )


def _decided(
    criterion: Criterion, parts: Mapping[str, Quantity], found: Measurement
) -> Judged:
    """The verdict on all parts, shown by the part that decides it or is farthest from
    being decided.
    """
    # One of many intervals lies somewhere by chance: where one part is enough, its
    # level is corrected for their number.
    corrected = 1 - (1 - LEVEL) / len(parts)
    inside_at, outside_at = (corrected, LEVEL) if criterion.some else (LEVEL, corrected)
    inside = _lying(parts, criterion.contains, inside_at)
    outside = _lying(parts, criterion.excludes, outside_at)
    # One part decides a claim one way, all of them together the other way.
    by_one, by_all = (inside, outside) if criterion.some else (outside, inside)
    if by_one:
        verdict, candidates = HOLDS if criterion.some else CONTRADICTED, by_one
    elif by_all == list(parts) and not found.missing:
        verdict, candidates = CONTRADICTED if criterion.some else HOLDS, by_all
    else:
        verdict, candidates = (
            INCONCLUSIVE,
            [name for name in parts if name not in by_all] or list(parts),
        )
    values = {name: float(part.estimate().value) for name, part in parts.items()}
    # What must lie inside as a whole is shown by its worst part, what need not by its
    # best.
    name = (max if criterion.some else min)(
        candidates, key=lambda each: criterion.margin(values[each])
    )
    part, ends, needed = parts[name], parts[name].estimate().ends, None
    if verdict == INCONCLUSIVE and name not in by_all:
        either = (
            part.needed(criterion.contains, inside_at),
            part.needed(criterion.excludes, outside_at),
        )
        needed = min((count for count in either if count is not None), default=None)
    # The level of the test that decided; of an open claim, of the one that is closest
    # to deciding.
    level = outside_at if ends and criterion.excludes(ends) else inside_at
    template, numbers = _note(found, values, level, ends)
    return Judged(
        verdict=verdict,
        **asdict(part.estimate(level)),
        level=level,
        each=part.each,
        n_needed=needed,
        unit=f"{found.unit}, {name}" if len(parts) > 1 else found.unit,
        note=in_note(template, numbers),
        note_template=template,
        note_values=numbers,
        cells=list(found.cells),
    )


def _lying(
    parts: Mapping[str, Quantity], there: Callable[[Ends], bool], level: float
) -> list[str]:
    """The parts whose interval at a level lies there."""
    return [
        name
        for name, part in parts.items()
        if (ends := part.estimate(level).ends) and there(ends)
    ]


def _note(
    found: Measurement, values: Mapping[str, float], level: float, ends: Ends | None
) -> tuple[str, list[float]]:
    """What a reader must know beside the numbers: a template, and what belongs in its
    places.
    """
    several = len(values) > 1
    notes = (
        found.note,
        ", ".join(f"{name} {{}}" for name in values) if several else "",
        f"not judged: {'; '.join(map(': '.join, found.missing.items()))}"
        if found.missing
        else "",
        "" if ends else "one value has no interval",
        f"interval of {100 * level:.3g} %, for {len(values)} parts"
        if level != LEVEL
        else "",
    )
    return "; ".join(filter(None, notes)), [
        *found.beside,
        *(values.values() if several else ()),
    ]


def in_note(template: str, values: Sequence[float], *, points: bool = False) -> str:
    """A note with its numbers, as they are or in points."""
    return template.format(
        *(f"{100 * value:+.1f}" if points else f"{value:+.3f}" for value in values)
    )


def task_count(row: dict[str, Any]) -> int:
    """Over how many tasks the number in a row of `claims.json` is, which is that of one
    part.
    """
    part = (row["unit"] or "").partition(", ")[2]
    return len({task["task"] for task in _pooled(row) if part in {"", task["part"]}})


def _pooled(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        task
        for task in row["tasks"]
        if task["pooled"] or row["profile"] in DIRECTIONS_ONLY
    ]


def claims_table(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """The rows of `claims.json` for a reader: one line per claim, numbers as text,
    fractions in points.
    """
    table = pd.DataFrame(map(texts, rows))[
        ["claim", "where", "printed", "ours", "must lie", "verdict", "note"]
    ]
    directions = bool(rows) and rows[0]["profile"] in DIRECTIONS_ONLY
    return table.rename(
        columns={"verdict": "verdict (directions only)"} if directions else {}
    )


def texts(row: dict[str, Any]) -> dict[str, str]:
    """What a reader sees of a row of `claims.json`: shares and their differences in
    points, the others as they are.

    The bound and the printed number of what was not tested have no unit, and are left
    out.
    """
    region = Criterion.of(row)
    said = {
        "claim": row["statement"],
        "where": row["where"],
        "verdict": row["verdict"],
        "note": row["note"],
    }
    said |= {
        "printed": "–",
        "ours": "–",
        "must lie": "–",
        "criterion": f"{row['compares']} {region.sentence()}",
    }
    if row["value"] is None:
        return said
    unit, scale, digits, each = row["unit"], 1, 3, row["each"]
    if points := in_points(unit):
        unit, scale, digits = points, 100, 2
        said["note"] = in_note(row["note_template"], row["note_values"], points=True)
        said["criterion"] = (
            f"{row['compares']} {region.sentence(scale, ' ' + unit.partition(',')[0])}"
        )
    pooled = _pooled(row)
    of_tasks, per_task = (
        (f" of {count} tasks", " per task")
        if (count := task_count(row)) > 1
        else ("", "")
    )
    if row["n_needed"] is not None:
        said["verdict"] += f" ({row['n_needed']} {each}{per_task} would decide)"
    others = {task["task"] for task in row["tasks"]} - {task["task"] for task in pooled}
    if pooled and others:
        aside = f"not in the paper and so not counted: {' and '.join(sorted(others))}"
        said["note"] = "; ".join(filter(None, (said["note"], aside)))
    numbers = (row[name] for name in ("value", "sd", "low", "high"))
    value, sd, low, high = (
        None if number is None else f"{scale * number:.{digits}f}" for number in numbers
    )
    spread = (f" ± {sd}" if sd else "") + (f" [{low}, {high}]" if low else "")
    said["ours"] = f"{value}{spread} {unit} (n = {row['n']} {each}{of_tasks})"
    said["must lie"] = region.where(scale)
    return (
        said
        if row["published"] is None
        else said | {"printed": f"{scale * row['published']:g}"}
    )

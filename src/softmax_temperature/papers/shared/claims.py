"""Claims: sentences of a paper, each with a criterion fixed before the run and a verdict computed from the records.

A claim names what is compared and when it counts as shown. Its judge is given the records and returns the evidence, or
says why the records cannot decide. Every claim of a paper appears in `claims.json`, the undecided ones as
"not tested": none is silently absent.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pandas as pd
from scipy import stats

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

Records = TypeVar("Records")

HOLDS = "holds"
DOES_NOT_HOLD = "does not hold"
NOT_TESTED = "not tested"
LEVEL = 0.90  # Of every interval in this package, as in the focal paper's figures.
DIRECTIONS_ONLY = ("smoke", "mini")
"""Profiles whose data and networks are so small that a verdict is about the direction of an effect, not its size."""


@dataclass(frozen=True)
class Evidence:
    """What the records say about one claim.

    Attributes:
        holds: whether the criterion is met.
        value: the measured effect, in `unit`.
        n: how many independent runs, data sets or folds stand behind it.
        unit: of value, sd and interval.
        sd: standard deviation over the n; None where n is 1 or it has no meaning.
        low, high: the 90 % interval of the value; None where there is none.
        bounds: what the criterion compares the interval with; none if it is about something else.
        note: what a reader must know beside the numbers.
        cells: what the value comes from, see `sources`.
    """

    holds: bool
    value: float
    n: int
    unit: str
    sd: float | None = None
    low: float | None = None
    high: float | None = None
    bounds: tuple[float, ...] = (0.0,)
    note: str = ""
    cells: tuple[str, ...] = ()


@dataclass(frozen=True)
class NotTested:
    """Why the records cannot decide a claim, and what would."""

    reason: str


@dataclass(frozen=True)
class Claim(Generic[Records]):
    """One machine-checkable sentence of a paper.

    Attributes:
        id: short and stable.
        where: section, table or figure of the paper.
        statement: the sentence.
        criterion: what is compared, by which test, and when it holds; written before the run.
        judge: records to evidence.
        published: the printed number that `Evidence.value` corresponds to, if one is printed.
    """

    id: str
    where: str
    statement: str
    criterion: str
    judge: Callable[[Records], Evidence | NotTested]
    published: float | None = None


def judge_all(paper: str, claims: Sequence[Claim[Records]], records: Records, *, profile: str) -> list[dict[str, Any]]:
    """The rows of `claims.json`: every claim with its evidence and verdict, in the order given."""
    return [_row(paper, claim, claim.judge(records), profile) for claim in claims]


def _row(paper: str, claim: Claim[Any], outcome: Evidence | NotTested, profile: str) -> dict[str, Any]:
    row: dict[str, Any] = {
        "paper": paper,
        "id": claim.id,
        "where": claim.where,
        "statement": claim.statement,
        "criterion": claim.criterion,
        "published": claim.published,
        "profile": profile,
    }
    if isinstance(outcome, NotTested):
        empty = dict.fromkeys(("value", "sd", "low", "high", "bounds", "n", "unit"))
        return {**row, **empty, "verdict": NOT_TESTED, "note": outcome.reason, "cells": []}
    evidence = asdict(outcome)
    verdict = HOLDS if evidence.pop("holds") else DOES_NOT_HOLD
    return {**row, **evidence, "cells": list(outcome.cells), "verdict": verdict}


def claims_table(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """The rows of `claims.json` for a reader: one line a claim, numbers as text.

    Args:
        rows: what `judge_all` returned.
    """
    return pd.DataFrame(
        [
            {
                "claim": row["statement"],
                "where": row["where"],
                "printed": "–" if row["published"] is None else f"{row['published']:g}",
                "ours": measured(row),
                with_scope("verdict", row["profile"]): verdict(row),
                "note": row["note"],
            }
            for row in rows
        ]
    )


def with_scope(heading: str, profile: str) -> str:
    """The heading of a profile's verdicts: that they are about directions only, where they are."""
    return f"{heading} (directions only)" if profile in DIRECTIONS_ONLY else heading


def verdict(row: dict[str, Any]) -> str:
    """The verdict; of a criterion that is not met, whether the runs speak against the claim or for neither side."""
    bound = open_bound(row)
    return str(row["verdict"]) if bound is None else f"{row['verdict']} (interval includes {bound:g})"


def open_bound(row: dict[str, Any]) -> float | None:
    """The bound that the interval includes, of a criterion that is not met; None where the runs tell the side."""
    if row["verdict"] != DOES_NOT_HOLD or row["low"] is None:
        return None
    # Results of before the bounds were written down were nearly all compared with 0.
    bounds = (0.0,) if row.get("bounds") is None else row["bounds"]
    return next((bound for bound in bounds if row["low"] <= bound <= row["high"]), None)


def measured(row: dict[str, Any]) -> str:
    """Value ± sd [interval] unit (n), leaving out what there is not."""
    if row["value"] is None:
        return "–"
    text = f"{row['value']:.3f}"
    if row["sd"] is not None:
        text += f" ± {row['sd']:.3f}"
    if row["low"] is not None:
        text += f" [{row['low']:.3f}, {row['high']:.3f}]"
    return f"{text} {row['unit']} (n = {row['n']})"


@dataclass(frozen=True)
class Mean:
    """A mean with its 90 % interval by Student's t.

    Attributes:
        value, sd, n: of the values; sd is the sample's.
        low, high: the interval.
    """

    value: float
    sd: float
    n: int
    low: float
    high: float


def mean_with_interval(values: NDArray[np.float64]) -> Mean:
    """Mean, sample standard deviation and 90 % interval of independent values.

    Args:
        values: (n,), n at least 2; for a paired comparison, the differences.
    """
    if values.ndim != 1 or len(values) < 2:
        raise ValueError(f"values must be (n,) with n >= 2, got shape {values.shape}")
    mean, sd = float(values.mean()), float(values.std(ddof=1))
    half = float(stats.t.ppf((1 + LEVEL) / 2, len(values) - 1)) * sd / len(values) ** 0.5
    return Mean(mean, sd, len(values), mean - half, mean + half)

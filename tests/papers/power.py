"""How often a criterion says "holds" in simulated studies of the design that a row of
claims.json has.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.shared.claims import Criterion
from softmax_temperature.papers.shared.statistics import LEVEL, OverTasks, Share, Task

DESIGNS = [
    "claim",
    "comparison",
    "values",
    "holds without an effect",
    "effect",
    "power",
]
Part = Sequence[dict[str, Any]]


def power_table(rows: Sequence[dict[str, Any]], *, repeats: int = 2000) -> pd.DataFrame:
    """Rates at which each criterion says "holds", without an effect and with one.

    Each judged row of `claims.json` is simulated `repeats` times with its own design:
    as many tasks, seeds and parts as the study has, and the same spread over the seeds
    of each task. The effect is the printed one, or, where none is printed, the measured
    one, or 0 where the claim is that there is none; "–" where none of these lies in the
    region.
    Of several parts all have it, or each its own measured one. Without an effect means
    at the bound: in every part of a claim that needs one part, in one part of a claim
    that needs all, the others being sure.
    """
    lines = [
        _line(row, repeats, np.random.default_rng(0))
        for row in rows
        if row["value"] is not None
    ]
    return pd.DataFrame([line for line in lines if line], columns=DESIGNS)


def chance_of_holding(
    criterion: Criterion,
    parts: Sequence[Part],
    centers: Sequence[float],
    repeats: int,
    generator: np.random.Generator,
    *,
    keep_spread: bool,
) -> float:
    """How often a claim holds in simulated studies, from the tasks of each part (n, sd,
    value) and its true mean.

    With `keep_spread` the tasks of a part differ as the measured ones do; else all have
    its mean.
    """
    level = 1 - (1 - LEVEL) / len(parts) if criterion.some else LEVEL
    offsets = [
        [keep_spread * (task["value"] - _middle(part)) for task in part]
        for part in parts
    ]
    hits = 0
    for _ in range(repeats):
        inside = (
            criterion.contains(ends)
            for part, center, some in zip(parts, centers, offsets, strict=True)
            if (ends := _simulated(part, center, some, generator).estimate(level).ends)
        )
        hits += any(inside) if criterion.some else all(inside)
    return hits / repeats


def _simulated(
    part: Part, center: float, offsets: Sequence[float], generator: np.random.Generator
) -> OverTasks:
    values = (
        generator.normal(center + offset, task["sd"] or 1e-9, (task["n"],))
        for task, offset in zip(part, offsets, strict=True)
    )
    return OverTasks(tuple(Task("", tuple(some.tolist())) for some in values))


def _middle(part: Part) -> float:
    return float(np.mean([task["value"] for task in part]))


def _line(
    row: dict[str, Any], repeats: int, generator: np.random.Generator
) -> tuple[str, ...] | None:
    criterion, (bound, *other) = Criterion.of(row), row["bounds"]
    known = (
        row["published"],
        0.0 if other and row["published"] is None else None,
        row["value"],
    )
    effect = next(
        (value for value in known if value is not None and criterion.margin(value) > 0),
        None,
    )
    if row["kind"] == "proportion":
        effect, sizes = 1.0, str(row["n"])
        null, power = (
            _share_above(bound, row["n"], share, repeats, generator)
            for share in (bound, effect)
        )
    else:
        tasks = [task for task in row["tasks"] if task["pooled"] and task["n"] > 1]
        parts = [
            [task for task in tasks if task["part"] == name]
            for name in dict.fromkeys(t["part"] for t in tasks)
        ]
        if not parts:
            return None
        fewest = (
            parts
            if criterion.some
            else [min(parts, key=lambda part: sum(task["n"] for task in part))]
        )
        null = chance_of_holding(
            criterion,
            fewest,
            [bound] * len(fewest),
            repeats,
            generator,
            keep_spread=False,
        )
        if effect is not None:
            centers = [
                _middle(part) if effect == row["value"] else effect for part in parts
            ]
            power = chance_of_holding(
                criterion, parts, centers, repeats, generator, keep_spread=True
            )
        sizes = " + ".join(str(task["n"]) for task in parts[0])
        sizes = f"{len(parts)} × ({sizes})" if len(parts) > 1 else sizes
    at, found = ("–", "–") if effect is None else (f"{effect:.3g}", f"{power:.2f}")
    return row["id"], row["kind"], f"{sizes} {row['each']}", f"{null:.3f}", at, found


def _share_above(
    bound: float, n: int, share: float, repeats: int, generator: np.random.Generator
) -> float:
    """How often the interval of n trials with this chance of a hit lies above the
    bound.
    """
    lows = [Share(hits, n).estimate().low or 0.0 for hits in range(n + 1)]
    return float(
        np.mean(
            [lows[int(hits)] > bound for hits in generator.binomial(n, share, repeats)]
        )
    )

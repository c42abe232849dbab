"""How good the criteria are: how often each says "holds" where there is no effect, and where there is one.

Each judged row is simulated with its own design: as many tasks, seeds and parts, and as much spread over the seeds of
each task, as were at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.shared.claims import Criterion
from softmax_temperature.papers.shared.statistics import LEVEL, OverTasks, Share, Task

REPEATS = 2000
COLUMNS = ("claim", "comparison", "values", "holds without an effect", "effect", "power")
Part = Sequence[dict[str, Any]]


def power_table(rows: Sequence[dict[str, Any]], *, repeats: int = REPEATS, seed: int = 0) -> pd.DataFrame:
    """One line per claim whose design is known: means over seeds and tasks, and shares.

    The effect is the printed one, or, where none is printed, the measured one, or 0 where the claim is that there is
    none; "–" where none of these lies in the region. Of several parts all have it, or each its own measured one.
    Without an effect means at the bound: in every part of a claim that needs one part, in one part of a claim that
    needs all, the others being sure.

    Args:
        rows: of `claims.json`.
        repeats: simulated studies for each number.
        seed: of the random numbers.
    """
    found = [line for row in rows if (line := _line(row, repeats, np.random.default_rng(seed))) is not None]
    return pd.DataFrame(found, columns=list(COLUMNS))


def chance_of_holding(
    criterion: Criterion,
    parts: Sequence[Part],
    centers: Sequence[float],
    repeats: int,
    generator: np.random.Generator,
    *,
    keep_spread: bool,
) -> float:
    """How often a claim holds in simulated studies.

    Args:
        criterion: of the claim.
        parts: of each part its tasks, with n, sd and, for `keep_spread`, value.
        centers: the true mean of each part.
        repeats: simulated studies.
        generator: of the values.
        keep_spread: whether the tasks of a part differ as the measured ones do; else all have its mean.
    """
    level = 1 - (1 - LEVEL) / len(parts) if criterion.some else LEVEL
    hits = 0
    for _ in range(repeats):
        inside = (
            criterion.contains(ends)
            for part, center in zip(parts, centers, strict=True)
            if (ends := _simulated(part, center, generator, keep_spread=keep_spread).estimate(level).ends)
        )
        hits += any(inside) if criterion.some else all(inside)
    return hits / repeats


def _simulated(part: Part, center: float, generator: np.random.Generator, *, keep_spread: bool) -> OverTasks:
    middle = np.mean([task["value"] for task in part])
    return OverTasks(
        tuple(
            Task(
                task["task"],
                tuple(
                    generator.normal(
                        center + keep_spread * (task["value"] - middle), task["sd"] or 1e-9, task["n"]
                    ).tolist()
                ),
            )
            for task in part
        )
    )


def _line(row: dict[str, Any], repeats: int, generator: np.random.Generator) -> dict[str, Any] | None:
    bounds = row.get("bounds") or []
    if row["value"] is None or not bounds or "kind" not in row:  # Results of before the criteria had kinds.
        return None
    criterion, effect = _criterion(row), _effect(row)
    if row["kind"] == "proportion":
        null, sure = (_share(row["n"], share, bounds[0], repeats, generator) for share in (bounds[0], 1.0))
        return _numbers(row, str(row["n"]), null, 1.0, sure)
    by_part: dict[str, list[dict[str, Any]]] = {}
    for task in row.get("tasks", []):
        if task["pooled"] and task["n"] > 1:
            by_part.setdefault(task["part"], []).append(task)
    parts = list(by_part.values())
    if not parts:
        return None
    fewest = parts if criterion.some else [min(parts, key=lambda part: sum(task["n"] for task in part))]
    at_bound = [bounds[0]] * len(fewest)
    null = chance_of_holding(criterion, fewest, at_bound, repeats, generator, keep_spread=False)
    power: float | None = None
    if effect is not None:
        centers = [float(np.mean([task["value"] for task in part])) for part in parts]
        centers = centers if effect == row["value"] else [effect] * len(parts)
        power = chance_of_holding(criterion, parts, centers, repeats, generator, keep_spread=True)
    sizes = " + ".join(str(task["n"]) for task in parts[0])
    return _numbers(row, f"{len(parts)} × ({sizes})" if len(parts) > 1 else sizes, null, effect, power)


def _criterion(row: dict[str, Any]) -> Criterion:
    """The criterion of a row, from what the row says."""
    words, bounds = str(row["criterion"]), row["bounds"]
    some = "some part's interval" in words
    if len(bounds) == 2:
        low, high = bounds
    else:
        low, high = (bounds[0], inf) if "lies above" in words else (-inf, bounds[0])
    return Criterion(row["kind"], low, high, some=some)


def _effect(row: dict[str, Any]) -> float | None:
    """The printed effect, or the measured one, or 0 where the claim is that there is none; None outside the region."""
    nothing = [0.0] if len(row["bounds"]) == 2 and row["published"] is None else []
    known = [float(value) for value in (row["published"], *nothing, row["value"]) if value is not None]
    return next((value for value in known if _criterion(row).margin(value) > 0), None)


def _share(n: int, share: float, bound: float, repeats: int, generator: np.random.Generator) -> float:
    lows = {hits: Share(hits, n).estimate().low for hits in range(n + 1)}
    drawn = generator.binomial(n, share, repeats)
    return float(np.mean([(lows[int(hits)] or 0.0) > bound for hits in drawn]))


def _numbers(
    row: dict[str, Any], values: str, null: float, effect: float | None, power: float | None
) -> dict[str, Any]:
    at, found = ("–", "–") if effect is None or power is None else (f"{effect:.3g}", f"{power:.2f}")
    numbers = (row["id"], row["kind"], f"{values} {row['each']}", f"{null:.3f}", at, found)
    return dict(zip(COLUMNS, numbers, strict=True))

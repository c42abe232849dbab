"""How good the criteria are: how often each says "holds" where there is no effect, and where there is one.

Each judged row is simulated with its own design: as many tasks, seeds and parts, and as much spread over the seeds of
each task, as were at hand.
"""

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.shared.claims import Criterion
from softmax_temperature.papers.shared.statistics import LEVEL, OverTasks, Share, Task

REPEATS = 2000
COLUMNS = ["claim", "comparison", "values", "holds without an effect", "effect", "power"]
Part = Sequence[dict[str, Any]]


def power_table(rows: Sequence[dict[str, Any]], *, repeats: int = REPEATS) -> pd.DataFrame:
    """One line per row of `claims.json` whose design is known: means over seeds and tasks, and shares.

    The effect is the printed one, or, where none is printed, the measured one, or 0 where the claim is that there is
    none; "–" where none of these lies in the region. Of several parts all have it, or each its own measured one.
    Without an effect means at the bound: in every part of a claim that needs one part, in one part of a claim that
    needs all, the others being sure. Each number is from `repeats` simulated studies.
    """
    lines = [_line(row, repeats, np.random.default_rng(0)) for row in rows if row["value"] is not None]
    return pd.DataFrame([line for line in lines if line], columns=COLUMNS)


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
    middle, tasks = _middle(part), []
    for task in part:
        mean = center + keep_spread * (task["value"] - middle)
        tasks.append(Task(task["task"], tuple(generator.normal(mean, task["sd"] or 1e-9, task["n"]).tolist())))
    return OverTasks(tuple(tasks))


def _middle(part: Part) -> float:
    return float(np.mean([task["value"] for task in part]))


def _line(row: dict[str, Any], repeats: int, generator: np.random.Generator) -> tuple[str, ...] | None:
    words, (bound, *other) = row["criterion"], row["bounds"]
    low, high = (bound, *other) if other else (bound, inf) if "lies above" in words else (-inf, bound)
    criterion = Criterion(row["kind"], low, high, some="some part's interval" in words)
    known = (row["published"], 0.0 if other and row["published"] is None else None, row["value"])
    effect = next((value for value in known if value is not None and criterion.margin(value) > 0), None)
    if row["kind"] == "proportion":
        effect, sizes = 1.0, str(row["n"])
        null, power = (_share_above(bound, row["n"], share, repeats, generator) for share in (bound, effect))
    else:
        tasks = [task for task in row["tasks"] if task["pooled"] and task["n"] > 1]
        parts = [[task for task in tasks if task["part"] == name] for name in dict.fromkeys(t["part"] for t in tasks)]
        if not parts:
            return None
        fewest = parts if criterion.some else [min(parts, key=lambda part: sum(task["n"] for task in part))]
        null = chance_of_holding(criterion, fewest, [bound] * len(fewest), repeats, generator, keep_spread=False)
        if effect is not None:
            centers = [_middle(part) if effect == row["value"] else effect for part in parts]
            power = chance_of_holding(criterion, parts, centers, repeats, generator, keep_spread=True)
        sizes = " + ".join(str(task["n"]) for task in parts[0])
        sizes = f"{len(parts)} × ({sizes})" if len(parts) > 1 else sizes
    at, found = ("–", "–") if effect is None else (f"{effect:.3g}", f"{power:.2f}")
    return row["id"], row["kind"], f"{sizes} {row['each']}", f"{null:.3f}", at, found


def _share_above(bound: float, n: int, share: float, repeats: int, generator: np.random.Generator) -> float:
    """How often the interval of n trials with this chance of a hit lies above the bound."""
    lows = [Share(hits, n).estimate().low or 0.0 for hits in range(n + 1)]
    return float(np.mean([lows[int(hits)] > bound for hits in generator.binomial(n, share, repeats)]))

"""What the claims of appendices C, on a linear model, and K, on translation, are judged by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from softmax_temperature.papers.focal.measures import GRID, is_own
from softmax_temperature.papers.focal.records import Records
from softmax_temperature.papers.focal.selection import REFERENCE, TRANSLATION
from softmax_temperature.papers.shared.claims import Measurement, NotTested, OverTasks, Share, Task
from softmax_temperature.papers.shared.sources import cells_of

SURE = 0.9  # Appendix C: a confident mistake.
ONE = (0.95, 1.05)  # Around temperature 1, nearer than the next of the grid.


def linear_norms(records: Records) -> Measurement | NotTested:
    """Norms of weights and logits of the linear model at the end, cross-entropy minus focal loss, as logarithms."""
    table = records.linear_history
    if table.empty:
        return NotTested("this profile has no linear model")
    last = table[table["epoch"] == table.groupby(["loss", "seed"])["epoch"].transform("max")]
    parts: dict[str, OverTasks] = {}
    for column in ("weight_norm", "logit_norm"):
        norms = last.assign(log=np.log(last[column])).pivot(index="seed", columns="loss", values="log")
        focal = [name for name in norms.columns if name != REFERENCE]
        parts |= {f"{column.replace('_', ' ')}, {name}": _one(norms[REFERENCE] - norms[name]) for name in focal}
    return Measurement(parts, "logarithm of the ratio", cells=("focal/linear",))


def confident_mistakes(records: Records) -> Measurement | NotTested:
    """Share of the linear model's mistakes with more than 90 % confidence, cross-entropy minus focal loss."""
    table = records.linear_mistakes
    if table.empty:
        return NotTested("this profile has no linear model")
    shares = table.assign(sure=table["confidence"] > SURE).pivot_table(index="seed", columns="loss", values="sure")
    parts = {name: _one(shares[REFERENCE] - shares[name]) for name in shares.columns if name != REFERENCE}
    return Measurement(parts, "of the mistakes", cells=("focal/linear",))


def translation(
    records: Records, *, column: str, unit: str, others: Sequence[str], scale: float
) -> Measurement | NotTested:
    """A number of the translation model of focal loss minus that of each other loss."""
    runs = _translated(records, "FL", *others)
    if isinstance(runs, NotTested):
        return runs
    table = scale * runs.pivot(index="seed", columns="arm", values=column)
    own = is_own(str(runs["dataset"].iloc[0]))
    parts = {f"against {other}": _one((table["FL"] - table[other]).dropna(), own=own) for other in others}
    return Measurement(parts, unit, cells=cells_of(TRANSLATION, runs, "arm"))


def translation_temperature(records: Records, *, arms: Sequence[str], near: bool) -> Measurement | NotTested:
    """The share of trainings whose temperature is 1, or is not."""
    runs = _translated(records, *arms)
    if isinstance(runs, NotTested):
        return runs
    hits = runs["temperature"].between(*ONE) == near
    return _counted(runs, {str(arm): some for arm, some in hits.groupby(runs["arm"], sort=False)})


def translation_agreement(records: Records) -> Measurement | NotTested:
    """The share of trainings whose best BLEU and best ECE are at temperatures at most 0.2 apart."""
    runs = _translated(records, REFERENCE)
    if isinstance(runs, NotTested):
        return runs
    curves = records.translation_curves.merge(records.translation_runs[["arm", "seed", "dataset"]], on=["arm", "seed"])
    trainings = curves.groupby(["arm", "seed"], sort=False)
    best, calibrated = (
        curves.loc[rows].set_index(["arm", "seed"])["temperature"]
        for rows in (trainings["bleu"].idxmax(), trainings["validation_ece"].idxmin())
    )
    # The three losses of one seed start alike: a seed counts once, and only if all its losses agree.
    agree = ((best - calibrated).abs() <= 2 * GRID + 1e-9).groupby(level="seed").all()
    return _counted(curves, {"seeds": agree})


def _one(values: pd.Series[float], *, own: bool = True) -> OverTasks:
    """Values of a single task, one per seed."""
    return OverTasks((Task("seeds", tuple(values.tolist()), own),))


def _translated(records: Records, *arms: str) -> pd.DataFrame | NotTested:
    """The translation models of some losses that did not diverge, each loss with at least one."""
    table = records.translation_runs
    if table.empty:
        return NotTested("this profile does not translate")
    runs = table[~table["diverged"].astype(bool) & table["arm"].isin(arms)]
    lost = [arm for arm in arms if arm not in set(runs["arm"])]
    return NotTested(f"every translation model of {lost[0]} diverged") if lost else runs


def _counted(runs: pd.DataFrame, by_part: dict[str, pd.Series[bool]]) -> Measurement:
    own = is_own(str(runs["dataset"].iloc[0]))
    parts = {name: Share(int(some.sum()), len(some), own=own) for name, some in by_part.items()}
    return Measurement(parts, "of the trainings", cells=cells_of(TRANSLATION, runs, "arm"))

"""Differences between arms: what the claims of the paper are judged by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softmax_temperature.papers.focal.selection import REFERENCE, finished, main_tasks
from softmax_temperature.papers.shared.claims import NotTested
from softmax_temperature.papers.shared.effects import Effect

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from softmax_temperature.papers.focal.records import Records


def runs_of(records: Records, name: str, *arms: str) -> pd.DataFrame:
    """The rows of a table that belong to finished runs of some arms with the main recipe."""
    rows = finished(records, name)
    return rows[rows["task"].isin(main_tasks(records)["task"]) & rows["arm"].isin(arms)]


def side_by_side(
    rows: pd.DataFrame, column: str, index: Sequence[str], value: str, reference: str = REFERENCE, *, by: str = "arm"
) -> pd.DataFrame:
    """A number of two arms (or scalings) in two columns, for every key that has both.

    Args:
        rows: with the columns of `index` and `by`.
        column: the number.
        index: what names a row of the result.
        value: the one.
        reference: the other.
        by: the column that tells them apart.
    """
    table = rows.pivot(index=list(index), columns=by, values=column)
    return table.reindex(columns=[value, reference]).dropna()


def paired_difference(records: Records, metric: str, arm: str, scaling: str) -> Effect | NotTested:
    """A metric of an arm minus that of cross-entropy, paired by task and seed.

    Args:
        records: the paper's.
        metric: a column of `runs`.
        arm: to compare.
        scaling: of both.
    """
    rows = runs_of(records, "runs", arm, REFERENCE)
    pairs = side_by_side(rows[rows["scaling"] == scaling], metric, ["task", "seed"], arm)
    if pairs.empty:
        return why_untested(records, arm, REFERENCE)
    effect = Effect.of(pairs[arm] - pairs[REFERENCE])
    return effect if effect.n > 1 else _with_bootstrap(records, effect, metric, arm, scaling, *pairs.index[0])


def why_untested(records: Records, *arms: str) -> NotTested:
    """Why there is no run, or no pair of runs, of some arms with the main recipe."""
    trainings = records.trainings[records.trainings["task"].isin(main_tasks(records)["task"])]
    for arm in arms:
        runs = trainings[trainings["arm"] == arm]
        if runs.empty:
            return NotTested(f"no task of this profile trains {arm}")
        if runs["diverged"].all():
            return NotTested(f"every run of {arm} diverged")
    return NotTested(f"no seed has a finished run of {' and '.join(arms)} that was measured")


def _with_bootstrap(
    records: Records, effect: Effect, metric: str, arm: str, scaling: str, task: str, seed: int
) -> Effect:
    """The effect with the interval of its one pair, where the records have one."""
    table = records.differences
    keys = {"task": task, "seed": seed, "arm": arm, "reference": REFERENCE, "scaling": scaling, "metric": metric}
    rows = table[np.logical_and.reduce([table[column] == value for column, value in keys.items()])]
    if rows.empty:
        return effect
    return Effect(effect.value, effect.n, low=float(rows["low"].iloc[0]), high=float(rows["high"].iloc[0]))

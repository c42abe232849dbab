"""The epoch after which a run's temperature first exceeds the limit (Figure 2)."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from softmax_temperature.papers.cooling.study import growth
from softmax_temperature.papers.shared.contrasts import (
    TASK,
    Contrast,
    Measurement,
    cells_of_runs,
    not_tested,
)
from softmax_temperature.papers.shared.display import value_label
from softmax_temperature.papers.shared.factors import Where
from softmax_temperature.papers.shared.runs import SEED, Runs
from softmax_temperature.papers.shared.statistics import OverTasks, Task

FIRST = "first"
SECOND = "second"
_PAIR = [*TASK, SEED]


@dataclass(frozen=True, kw_only=True)
class EpochsApart(Contrast):
    """The difference between the epochs at which two sets of runs exceed the limit.

    The first such epoch of each run counts, or the epoch after the run's last one if
    the run never exceeds the limit. A pair is left out if neither of its runs exceeds
    the limit, or if one run ended before the other exceeded the limit.

    Attributes:
        first: The runs whose epoch is the minuend.
        second: The runs whose epoch is subtracted.
        among: The runs to use.
    """

    first: Where
    second: Where
    among: Where

    def measure(self, runs: Runs) -> Measurement:
        """Measure the mean difference in epochs over the pairs of each task."""
        epochs = self._epochs(runs)
        if epochs.empty:
            return not_tested(
                "no experiment of this profile redistributes temperatures above 1"
            )
        pairs = crossing_pairs(epochs)
        if pairs.empty:
            return not_tested(
                "no seed of this profile tells which exceeds the maximal temperature "
                f"first: {self.first} or {self.second}"
            )
        is_own = epochs.groupby(list(TASK))["own"].first().to_dict()
        tasks = []
        for place, rows in pairs.groupby(list(TASK), sort=False):
            name = ", ".join(map(value_label, TASK, place))
            values = tuple(rows["difference"].tolist())
            tasks.append(Task(name, values, bool(is_own[place])))
        never = pairs["never"].value_counts()
        late = [
            f"{arm} {never[arm]} of {len(pairs)}"
            for arm in epochs["arm"].unique()
            if arm in never
        ]
        note = ""
        if late:
            counts = ", ".join(late)
            note = f"never exceeded, the epoch after the last counted: {counts}"
        return Measurement(
            {"epochs": OverTasks(tuple(tasks))},
            "epochs",
            note,
            cells=cells_of_runs(epochs),
        )

    def _epochs(self, runs: Runs) -> pd.DataFrame:
        """The `crossings` of the runs on both sides, with the column `side`.

        Runs whose limit is at most 1 are left out.
        """
        epochs = crossings(runs)
        epochs = epochs[epochs["limit"] > 1]
        chosen = runs.select(self.among)
        sides = {
            FIRST: self.first.select(chosen).index,
            SECOND: self.second.select(chosen).index,
        }
        parts = [
            epochs[epochs["run"].isin(index)].assign(side=side)
            for side, index in sides.items()
        ]
        return pd.concat(parts)


def crossings(runs: Runs) -> pd.DataFrame:
    """The epoch in which each run of Figure 2 first exceeds the limit.

    Returns:
        One row per run, with its factors. `crossed` is the epoch, missing if the run
        never exceeds the limit. `last` is the run's last epoch. See `growth` for
        `limit`.
    """
    rows = growth(runs)
    rows["hot"] = rows["epoch"].where(rows["reached"] > rows["limit"])
    epochs = rows.groupby("run", sort=False).agg(
        crossed=("hot", "min"), last=("epoch", "max"), limit=("limit", "first")
    )
    return epochs.join(runs.table).reset_index()


def crossing_pairs(epochs: pd.DataFrame) -> pd.DataFrame:
    """The pairs that show which of their two runs exceeded the limit first.

    Args:
        epochs: One row per run, with its task, seed, `side`, `arm`, `crossed` and
            `last`.

    Returns:
        One row per pair. `difference` is in epochs, and `never` is the arm that never
        exceeded the limit, or "".
    """
    table = epochs.set_index([*_PAIR, "side"])
    sides = [FIRST, SECOND]
    crossed = table["crossed"].unstack("side").reindex(columns=sides)
    last = table["last"].unstack("side").reindex(columns=sides)
    arms = table["arm"].unstack("side").reindex(columns=sides)
    # Count a run that never exceeded the limit as exceeding it in the epoch after its
    # last.
    counted = crossed.fillna(last + 1)
    earliest = crossed.min(axis="columns")
    tells = counted.notna() & (crossed.eq(counted) | counted.gt(earliest, axis="index"))
    never = np.select(
        [crossed[FIRST].isna(), crossed[SECOND].isna()],
        [arms[FIRST], arms[SECOND]],
        default="",
    )
    difference = counted[FIRST] - counted[SECOND]
    pairs = pd.DataFrame({"difference": difference, "never": never})
    return pairs[tells.all(axis="columns")]

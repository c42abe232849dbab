"""How the temperature of the last layer grows and is reset (Figure 2)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from softmax_temperature.papers.cooling.records import Records
from softmax_temperature.papers.cooling.selection import (
    FIGURE_1,
    FIGURE_2,
    NO_SCHEDULE,
    PERIODIC,
    RUN,
    SETTING,
    SIMPLEST,
    TABLE_1,
    last_layer_factors,
    standard,
    trainings,
)

SLOW_FACTOR = 0.75  # Figure 2, left: last layer Cooling. Right: periodically redistributed Cooling, factor 1.
LIMIT = 100.0  # Figure 2: what the temperature exceeds; maximal and reset temperature of section 3.2.


def growth(records: Records) -> pd.DataFrame:
    """The temperature of the last layer in the trainings of Figure 2, lost ones too.

    Returns:
        A row for each Cooling, with the columns of `RUN` and `SETTING`, mode, limit (the maximal temperature of the
        periodic arm on this setting), cooling, epoch, total (product of all that was applied); reached, the temperature
        before any of it is redistributed; kept, that of the last layer afterwards; reset (bool), whether they differ.
    """
    runs = trainings(records, FIGURE_2, FIGURE_1, TABLE_1)
    runs = runs[runs["schedule"] == NO_SCHEDULE]
    periodic = standard(runs[runs["mode"] == PERIODIC])
    slow = last_layer_factors(runs[runs["factor"] == SLOW_FACTOR])
    limits = periodic.groupby(SETTING)["max_temperature"].first().rename("limit")
    runs = pd.concat([slow, periodic]).join(limits, on=SETTING).fillna({"limit": LIMIT})
    columns = [*RUN, *SETTING, "mode", "limit", "max_temperature", "reset_temperature"]
    rows = runs[columns].merge(records.temperatures, on=RUN).sort_values("cooling", kind="stable")
    parts = [_along(group) for _, group in rows.groupby(RUN, sort=False)]
    found = pd.concat(parts) if parts else rows.assign(reached=0.0, kept=0.0, reset=False)
    found = found[[*columns[:-2], "cooling", "epoch", "total", "reached", "kept", "reset"]]
    return found.reset_index(drop=True)


def _along(coolings: pd.DataFrame) -> pd.DataFrame:
    """One training, in the order of its Coolings (Definition 3.4)."""
    reached, kept, last = [], [], 1.0
    for row in coolings.to_dict("records"):
        hot = last * row["applied"]
        last = row["reset_temperature"] if row["mode"] == PERIODIC and hot > row["max_temperature"] else hot
        reached.append(hot)
        kept.append(last)
    return coolings.assign(reached=reached, kept=kept, reset=np.not_equal(reached, kept))


def crossings(records: Records) -> pd.DataFrame:
    """When each training of Figure 2 first exceeds the limit.

    Returns:
        Columns experiment, `SETTING`, mode, limit, seed, epoch (missing where it is never exceeded), last (its last
        epoch).
    """
    rows = growth(records)
    keys = ["experiment", *SETTING, "mode", "limit", "seed"]
    hot = rows.assign(hot=rows["epoch"].where(rows["reached"] > rows["limit"]))
    return hot.groupby(keys, sort=False).agg(epoch=("hot", "min"), last=("epoch", "max")).reset_index()


def crossing_pairs(found: pd.DataFrame) -> pd.DataFrame:
    """Which training of Figure 2 exceeds the limit first, and by how much.

    Where one of a pair never does, the epoch after its last stands for it, which is too early rather than too late. A
    pair says nothing, and is left out, if neither does, or if one ended, because it diverged, before the other did.

    Returns:
        By `SETTING` and seed: difference (epochs, periodically redistributed minus last layer), never (the mode that
        never exceeds the limit, "" if both do).
    """
    table = found.set_index([*SETTING, "seed", "mode"])
    crossed, last = (table[name].unstack("mode").reindex(columns=[PERIODIC, SIMPLEST]) for name in ("epoch", "last"))
    epochs, first = crossed.fillna(last + 1), crossed.min(axis="columns")
    tells = epochs.notna().all(axis="columns")
    tells &= (crossed.eq(epochs) | epochs.gt(first, axis="index")).all(axis="columns")
    never = np.select([crossed[PERIODIC].isna(), crossed[SIMPLEST].isna()], [PERIODIC, SIMPLEST], default="")
    return pd.DataFrame({"difference": epochs[PERIODIC] - epochs[SIMPLEST], "never": never})[tells]


def never_redistributed(records: Records, rows: pd.DataFrame) -> pd.Series[bool]:
    """Which trainings are periodically redistributed ones that never trained on after a redistribution.

    Up to its first redistribution such a training is, number for number, that of last layer Cooling; one after the last
    epoch changes no prediction. Of an epoch with many Coolings the last one stands for all.
    """
    coolings = records.temperatures
    before_the_end = coolings["epoch"] < coolings.groupby(RUN)["epoch"].transform("max")
    hottest = coolings[before_the_end].groupby(RUN)["total"].max().rename("hottest")
    reached = rows.join(hottest, on=RUN)["hottest"]
    never: pd.Series[bool] = (rows["mode"] == PERIODIC) & ~(reached > rows["max_temperature"])
    return never

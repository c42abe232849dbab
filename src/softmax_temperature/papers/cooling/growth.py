"""How the temperature of the last layer grows and is reset (Figure 2)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from softmax_temperature.papers.cooling import selection
from softmax_temperature.papers.cooling.records import Records
from softmax_temperature.papers.cooling.selection import LAST, PERIODIC, RUN, SETTING

SLOW_FACTOR = 0.75  # Figure 2, left: last layer Cooling. Right: periodically redistributed Cooling, factor 1.
LIMIT = 100.0  # Figure 2: what the temperature exceeds; maximal and reset temperature of section 3.2.
PRINTED = {
    PERIODIC: "epoch of first reset, kappa=1.0, tau_max=tau_re=100",
    LAST: "epoch when 1/tau first exceeds 100, last layer, kappa=0.75",
}
"""The metrics in the published numbers that say when."""


def growth(records: Records) -> pd.DataFrame:
    """The temperature of the last layer in the trainings of Figure 2, lost ones too, one row per Cooling.

    Besides the columns of `trainings` and temperatures: limit, the maximal temperature of the periodic arm on this
    setting; reached, the temperature before any of it is redistributed; kept, that of the last layer afterwards; reset
    (bool), whether they differ.
    """
    runs = selection.trainings(records, "figure_2", "figure_1", "table_1")
    runs = runs[runs["schedule"] == selection.NO_SCHEDULE]
    slow = selection.standard(runs[runs["factor"] == SLOW_FACTOR], any_factor=True)
    periodic = selection.standard(runs[runs["mode"] == PERIODIC])
    limits = periodic.groupby(SETTING)["max_temperature"].first().rename("limit")
    runs = pd.concat([slow, periodic]).join(limits, on=SETTING).fillna({"limit": LIMIT})
    rows = runs.merge(records.temperatures, on=RUN)
    reached, kept = np.empty(len(rows)), np.empty(len(rows))
    columns = ["cooling", "applied", "mode", "max_temperature", "reset_temperature"]
    for place, (cooling, applied, mode, highest, reset) in enumerate(rows[columns].itertuples(index=False, name=None)):
        hot = applied if cooling == 1 else kept[place - 1] * applied  # Definition 3.4.
        reached[place], kept[place] = hot, reset if mode == PERIODIC and hot > highest else hot
    return rows.assign(reached=reached, kept=kept, reset=reached != kept)


def crossings(records: Records) -> pd.DataFrame:
    """The epoch in which each training of Figure 2 first exceeds the limit, if it does, and its last epoch."""
    rows = growth(records)
    rows["hot"] = rows["epoch"].where(rows["reached"] > rows["limit"])
    groups = rows.groupby(["experiment", *SETTING, "mode", "limit", "seed"], sort=False)
    return groups.agg(epoch=("hot", "min"), last=("epoch", "max")).reset_index()


def crossing_pairs(found: pd.DataFrame) -> pd.DataFrame:
    """Which training of Figure 2 exceeds the limit first, and by how much.

    Where one of a pair never does, the epoch after its last stands for it, which is too early rather than too late. A
    pair says nothing, and is left out, if neither does, or if one ended, because it diverged, before the other did.
    By `SETTING` and seed: difference (epochs, periodically redistributed minus last layer), never (the mode that never
    exceeds the limit, "" if both do).
    """
    table = found.set_index([*SETTING, "seed", "mode"])
    crossed, last = (table[name].unstack("mode").reindex(columns=[PERIODIC, LAST]) for name in ("epoch", "last"))
    epochs, first = crossed.fillna(last + 1), crossed.min(axis="columns")
    tells = epochs.notna() & (crossed.eq(epochs) | epochs.gt(first, axis="index"))
    never = np.select([crossed[PERIODIC].isna(), crossed[LAST].isna()], [PERIODIC, LAST], default="")
    pairs = pd.DataFrame({"difference": epochs[PERIODIC] - epochs[LAST], "never": never})
    return pairs[tells.all(axis="columns")]


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

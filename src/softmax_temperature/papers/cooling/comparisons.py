"""Trainings with Cooling beside those without: the ablation of the recipe, and what goes beyond the paper."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pandas as pd

from softmax_temperature.papers.cooling.growth import never_redistributed
from softmax_temperature.papers.cooling.records import Records
from softmax_temperature.papers.cooling.selection import MAIN_ROLES, NO_COOLING, SETTING, trainings
from softmax_temperature.papers.shared.comparison import MEASURED, lost_seeds, mean_and_sd
from softmax_temperature.papers.shared.sources import CELLS, apart, together

NOTHING_TO_COMPARE = "no seed finished both"
COMPARED = ("without", "cooled", "difference", "difference_sd", "seeds", "over_unchanged", "over_unchanged_sd")
"""The numbers of `comparison`."""

_PLACE = [*SETTING, "schedule", "loss"]
_KEYS = ["experiment", "dataset", "network", "change", "schedule", "loss", "arm", "mode"]
_SAME_COOLING = [*_PLACE, "mode", "factor", "max_temperature", "reset_temperature", "seed"]
_LOST = ["diverged_without", "stuck_without", "diverged_cooled", "stuck_cooled"]


def comparison(records: Records, role: str) -> pd.DataFrame:
    """Test accuracy with and without Cooling, means over the last epochs, for every change of the recipe.

    Trainings with Cooling are compared with those without of the same experiment, schedule, loss and seed. An
    experiment that changes only the Cooling has none of these: it is compared with the main recipe on the same setting,
    and also with the main recipe's own training of the same mode, factor and limits. The main recipe's own numbers for
    the same modes, factors and schedules come before those of the experiments with the role.

    Returns:
        Columns experiment, dataset, network, change (empty for the main recipe), schedule, loss, arm, mode, `COMPARED`,
        runs (of the arm), what was lost of them on either side, never_redistributed (as in `tables.table`), status
        ("measured", how the trainings with Cooling were lost if all were, or that no seed finished both), cells. Means
        and differences are fractions over the seeds that finished both, or else each mean over those that finished it;
        over_unchanged is Cooling minus the same Cooling in the main recipe, where no more than Cooling is changed.
    """
    rows = _compared(records, role)
    pairs = _pairs(rows.assign(never=never_redistributed(records, rows)))
    groups = pairs.groupby([*_KEYS, "compared_with"], sort=False)
    both = pairs["difference"].notna()
    shown = both | ~both.groupby(groups.ngroup()).transform("any")
    pairs = pairs.assign(cooled=pairs["accuracy"].where(shown), without=pairs["reference_accuracy"].where(shown))
    found = pairs.groupby([*_KEYS, "compared_with"], sort=False).agg(
        without=("without", "mean"),
        cooled=("cooled", "mean"),
        **mean_and_sd("difference"),
        seeds=("difference", "count"),
        **mean_and_sd("over_unchanged"),
        runs=("seed", "size"),
        diverged_without=("reference_diverged", "sum"),
        stuck_without=("reference_stuck", "sum"),
        diverged_cooled=("diverged", "sum"),
        stuck_cooled=("stuck", "sum"),
        never_redistributed=("never", "all"),
        cells=("cells", lambda texts: together(chain.from_iterable(map(apart, texts)))),
    )
    table = found.reset_index().astype(dict.fromkeys(_LOST, int))
    table["status"] = [_status(row) for row in table.itertuples()]
    return table[[*_KEYS, *COMPARED, "runs", *_LOST, "never_redistributed", "status", CELLS]]


def _compared(records: Records, role: str) -> pd.DataFrame:
    """The trainings of a role, behind those of the main recipe with the same settings, schedules, modes and factors."""
    rows, main = trainings(records, role), trainings(records, *MAIN_ROLES)
    place, kind = [*SETTING, "schedule"], ["mode", "factor"]
    main = main.drop_duplicates([*place, "arm", "seed"]).merge(rows[place].drop_duplicates(), on=place)
    known = pd.MultiIndex.from_frame(rows[kind])
    main = main[pd.MultiIndex.from_frame(main[kind]).isin(known) | (main["mode"] == NO_COOLING)]
    return pd.concat([main, rows], ignore_index=True)


def _pairs(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per training with Cooling: the accuracies that it is compared with, and the differences."""
    without, cooled = rows[rows["mode"] == NO_COOLING], rows[rows["mode"] != NO_COOLING]
    cooled = cooled.assign(compared_with=_references(cooled, without))
    names = {"experiment": "compared_with", "accuracy": "reference_accuracy"}
    names |= {name: f"reference_{name}" for name in ("diverged", "stuck", "cells")}
    references = without.rename(columns=names)[[*names.values(), "schedule", "loss", "seed"]]
    main = cooled[cooled["change"] == ""].drop_duplicates(_SAME_COOLING)
    main = main.rename(columns={"accuracy": "unchanged", "cells": "unchanged_cells"})
    pairs = cooled.merge(references, how="left", on=["compared_with", "schedule", "loss", "seed"])
    pairs = pairs.merge(main[[*_SAME_COOLING, "unchanged", "unchanged_cells"]], how="left", on=_SAME_COOLING)
    of_cooling = (pairs["change"] != "") & (pairs["compared_with"] != pairs["experiment"])
    behind = pairs[["cells", "reference_cells"]].assign(unchanged=pairs["unchanged_cells"].where(of_cooling))
    return pairs.assign(
        cells=[together(cells.dropna()) for _, cells in behind.iterrows()],
        difference=pairs["accuracy"] - pairs["reference_accuracy"],
        over_unchanged=(pairs["accuracy"] - pairs["unchanged"]).where(of_cooling),
    )


def _references(cooled: pd.DataFrame, without: pd.DataFrame) -> pd.Series[str]:
    """The experiment whose trainings without Cooling each training is compared with; "" where there is none."""
    own = set(without[["experiment", "schedule", "loss"]].itertuples(index=False, name=None))
    main = without[without["change"] == ""].drop_duplicates(_PLACE).set_index(_PLACE)["experiment"].to_dict()
    places = cooled[_PLACE].itertuples(index=False, name=None)
    found = [
        experiment if (experiment, *place[-2:]) in own else main.get(place, "")
        for experiment, place in zip(cooled["experiment"], places, strict=True)
    ]
    return pd.Series(found, cooled.index, dtype=str)


def _status(row: Any) -> str:
    if row.seeds:
        return MEASURED
    all_lost = row.diverged_cooled + row.stuck_cooled == row.runs
    return lost_seeds(row.diverged_cooled, row.stuck_cooled, row.runs) if all_lost else NOTHING_TO_COMPARE

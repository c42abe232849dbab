"""Trainings with Cooling beside those without: the ablation of the recipe, and what goes beyond the paper."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.cooling.growth import never_redistributed
from softmax_temperature.papers.cooling.notes import joined
from softmax_temperature.papers.cooling.outcomes import in_a_word
from softmax_temperature.papers.cooling.printed_tables import MEASURED, MISSING, NEVER_REDISTRIBUTED, percent
from softmax_temperature.papers.cooling.selection import MAIN_ROLES, NO_COOLING, SCHEDULES, SETTING, trainings
from softmax_temperature.papers.shared.sources import CELLS, apart, together

if TYPE_CHECKING:
    from softmax_temperature.papers.cooling.records import Records
    from softmax_temperature.papers.cooling.table_specs import Comparison

NOTHING_TO_COMPARE = "no seed finished both"
MAIN_RECIPE = "none: the main recipe"
ACCURACIES = ("without Cooling", "with Cooling")
"""For a reader: what the main recipe is called, and the columns of the accuracies."""

_PLACE = [*SETTING, "schedule", "loss"]
_REFERENCE = ["compared_with", "schedule", "loss"]
_KEYS = ["experiment", "dataset", "network", "change", "schedule", "loss", "arm", "mode"]
_COOLING = ["mode", "factor", "max_temperature", "reset_temperature"]
_DIFFERENCES = ("difference ± sd", "minus the same Cooling unchanged ± sd")
COMPARED = (*ACCURACIES, _DIFFERENCES[0], "pairs", _DIFFERENCES[1])
_HEADINGS = ("dataset", "network", "change", "schedule", "arm", *COMPARED)
_NUMBERS = ["without", "cooled", "difference", "difference_sd", "seeds", "over_unchanged", "over_unchanged_sd"]
_LOST = ["diverged_without", "stuck_without", "diverged_cooled", "stuck_cooled"]


def comparison(records: Records, spec: Comparison) -> pd.DataFrame:
    """Test accuracy with and without Cooling, for every change of the recipe.

    Trainings with Cooling are compared with those without of the same experiment, schedule, loss and seed. Where an
    experiment has none of these, because its change is one of Cooling alone, they are those of the main recipe on the
    same setting; then they are also compared with the main recipe's own training of the same mode, factor and limits.
    What the main recipe says of the same modes, factors and schedules stands first.

    Args:
        records: the paper's.
        spec: whose experiments.

    Returns:
        Columns experiment, dataset, network, change (empty for the main recipe), schedule, loss, arm, mode; without and
        cooled (means over the seeds that finished both, or else each over those that finished it), difference (cooled
        minus without, mean over the seeds that finished both), difference_sd, seeds (that finished both),
        over_unchanged and over_unchanged_sd (likewise, cooled minus the same Cooling in the main recipe; missing where
        the change is not one of Cooling alone), runs (of the arm), diverged_without, stuck_without, diverged_cooled,
        stuck_cooled (all of the arm's seeds), never_redistributed (as in `printed_table`), status: "measured", what
        became of the trainings with Cooling if none finished, or that no seed finished both, cells. Accuracies are
        fractions.
    """
    rows = _compared(records, spec.role)
    pairs = _pairs(rows.assign(never=never_redistributed(records, rows)))
    groups = pairs.groupby([*_KEYS, "compared_with"], sort=False)
    both = pairs["difference"].notna()
    shown = both | ~both.groupby(groups.ngroup()).transform("any")
    pairs = pairs.assign(cooled=pairs["test_accuracy"].where(shown), without=pairs["reference_accuracy"].where(shown))
    found = pairs.groupby([*_KEYS, "compared_with"], sort=False).agg(
        without=("without", "mean"),
        cooled=("cooled", "mean"),
        difference=("difference", "mean"),
        difference_sd=("difference", "std"),
        seeds=("difference", "count"),
        over_unchanged=("over_unchanged", "mean"),
        over_unchanged_sd=("over_unchanged", "std"),
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
    return table[[*_KEYS, *_NUMBERS, "runs", *_LOST, "never_redistributed", "status", CELLS]]


def wide_comparison(table: pd.DataFrame) -> pd.DataFrame:
    """The comparison for a reader: a row for each change and arm, in percent; `COMPARED` are its numbers.

    Args:
        table: as `comparison` returns it.
    """
    return pd.DataFrame([_row(row) for row in table.itertuples()], columns=[*_HEADINGS, CELLS])


def _compared(records: Records, role: str) -> pd.DataFrame:
    """The trainings of a role, behind those of the main recipe with the same settings, schedules, modes and factors."""
    rows, main = trainings(records, role), trainings(records, *MAIN_ROLES)
    place, kind = [*SETTING, "schedule"], ["mode", "factor"]
    main = main.drop_duplicates([*place, "arm", "seed"]).merge(rows[place].drop_duplicates(), on=place)
    known = pd.MultiIndex.from_frame(rows[kind])
    main = main[pd.MultiIndex.from_frame(main[kind]).isin(known) | (main["mode"] == NO_COOLING)]
    return pd.concat([main, rows], ignore_index=True)


def _pairs(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each training with Cooling: what those that it is compared with came to, and the differences."""
    without, cooled = rows[rows["mode"] == NO_COOLING], rows[rows["mode"] != NO_COOLING]
    cooled = cooled.assign(compared_with=_references(cooled, without))
    names = {"experiment": "compared_with", "test_accuracy": "reference_accuracy"}
    names |= {"diverged": "reference_diverged", "stuck": "reference_stuck", "cells": "reference_cells"}
    references = without.rename(columns=names)[[*names.values(), "schedule", "loss", "seed"]]
    main = cooled[cooled["change"] == ""].drop_duplicates([*_PLACE, *_COOLING, "seed"])
    main = main.rename(columns={"test_accuracy": "unchanged", "cells": "unchanged_cells"})
    main = main[[*_PLACE, *_COOLING, "seed", "unchanged", "unchanged_cells"]]
    pairs = cooled.merge(references, how="left", on=[*_REFERENCE, "seed"])
    pairs = pairs.merge(main, how="left", on=[*_PLACE, *_COOLING, "seed"])
    of_cooling = (pairs["change"] != "") & (pairs["compared_with"] != pairs["experiment"])
    behind = pairs[["cells", "reference_cells"]].assign(unchanged=pairs["unchanged_cells"].where(of_cooling))
    return pairs.assign(
        cells=[together(cells.dropna()) for _, cells in behind.iterrows()],
        difference=pairs["test_accuracy"] - pairs["reference_accuracy"],
        over_unchanged=(pairs["test_accuracy"] - pairs["unchanged"]).where(of_cooling),
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
    return in_a_word(row.diverged_cooled, row.stuck_cooled, row.runs) if all_lost else NOTHING_TO_COMPARE


def _row(row: Any) -> dict[str, Any]:
    change = row.change if isinstance(row.change, str) and row.change else MAIN_RECIPE
    names = {"dataset": row.dataset, "network": row.network, "change": change}
    names |= {"schedule": SCHEDULES.get(row.schedule, row.schedule), "arm": row.arm}
    never = NEVER_REDISTRIBUTED if row.never_redistributed else ""
    return {
        **names,
        ACCURACIES[0]: _accuracy(row.without, in_a_word(row.diverged_without, row.stuck_without, row.runs)),
        ACCURACIES[1]: _accuracy(row.cooled, in_a_word(row.diverged_cooled, row.stuck_cooled, row.runs), never),
        _DIFFERENCES[0]: _difference(row.difference, row.difference_sd),
        "pairs": row.seeds,
        _DIFFERENCES[1]: _difference(row.over_unchanged, row.over_unchanged_sd),
        CELLS: getattr(row, CELLS, None),  # Older results have none.
    }


def _difference(mean: float, sd: float) -> str:
    if np.isnan(mean):
        return MISSING
    return f"{100 * mean:+.1f}" + ("" if np.isnan(sd) else f" ± {percent(sd)}")


def _accuracy(mean: float, lost: str, never: str = "") -> str:
    if np.isnan(mean):
        return lost or MISSING
    remarks = joined(lost, never)
    return percent(mean) + (f" ({remarks})" if remarks else "")

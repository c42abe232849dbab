"""Trainings with Cooling beside those without: the ablation of the recipe, and what goes beyond the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.cooling.printed_tables import DIVERGED, MEASURED, MISSING, percent
from softmax_temperature.papers.cooling.selection import MAIN_ROLES, NO_COOLING, SCHEDULES, SETTING, trainings

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
_HEADINGS = ("dataset", "network", "change", "schedule", "arm", *ACCURACIES, "difference ± sd", "pairs")
_NUMBERS = ["without", "cooled", "difference", "difference_sd", "seeds"]


def comparison(records: Records, spec: Comparison) -> pd.DataFrame:
    """Test accuracy with and without Cooling, for every change of the recipe.

    Trainings with Cooling are compared with those without of the same experiment, schedule, loss and seed. Where an
    experiment has none of these, because its change is one of Cooling alone, they are those of the main recipe on the
    same setting. What the main recipe says of the same modes, factors and schedules stands first.

    Args:
        records: the paper's.
        spec: whose experiments.

    Returns:
        Columns experiment, dataset, network, change (empty for the main recipe), schedule, loss, arm, mode; without and
        cooled (means over the seeds that finished), difference (cooled minus without, mean over the seeds that finished
        both), difference_sd, seeds (that finished both), runs (of the arm), diverged_without, diverged_cooled, status:
        "measured", "diverged" if every training with Cooling did, or that no seed finished both. Accuracies are
        fractions.
    """
    rows = _compared(records, spec.role)
    without = rows[rows["mode"] == NO_COOLING]
    cooled = rows[rows["mode"] != NO_COOLING].assign(compared_with=lambda table: _references(table, without))
    without = without.assign(compared_with=without["experiment"], reference_accuracy=without["test_accuracy"])
    pairs = cooled.merge(without[[*_REFERENCE, "seed", "reference_accuracy"]], how="left", on=[*_REFERENCE, "seed"])
    pairs["difference"] = pairs["test_accuracy"] - pairs["reference_accuracy"]
    found = pairs.groupby([*_KEYS, "compared_with"], sort=False).agg(
        cooled=("test_accuracy", "mean"),
        difference=("difference", "mean"),
        difference_sd=("difference", "std"),
        seeds=("difference", "count"),
        runs=("diverged", "size"),
        diverged_cooled=("diverged", "sum"),
    )
    references = without.groupby(_REFERENCE, sort=False).agg(
        without=("test_accuracy", "mean"), diverged_without=("diverged", "sum")
    )
    table = found.reset_index().merge(references.reset_index(), how="left", on=_REFERENCE)
    table["diverged_without"] = table["diverged_without"].fillna(0).astype(int)
    all_diverged = table["diverged_cooled"] == table["runs"]
    table["status"] = np.where(table["seeds"] > 0, MEASURED, np.where(all_diverged, DIVERGED, NOTHING_TO_COMPARE))
    return table[[*_KEYS, *_NUMBERS, "runs", "diverged_without", "diverged_cooled", "status"]]


def wide_comparison(table: pd.DataFrame) -> pd.DataFrame:
    """The comparison for a reader: a row for each change and arm, in percent.

    Args:
        table: as `comparison` returns it.
    """
    return pd.DataFrame([_row(row) for row in table.itertuples()], columns=list(_HEADINGS))


def _compared(records: Records, role: str) -> pd.DataFrame:
    """The trainings of a role, behind those of the main recipe with the same settings, schedules, modes and factors."""
    rows, main = trainings(records, role), trainings(records, *MAIN_ROLES)
    place, kind = [*SETTING, "schedule"], ["mode", "factor"]
    main = main.drop_duplicates([*place, "arm", "seed"]).merge(rows[place].drop_duplicates(), on=place)
    known = pd.MultiIndex.from_frame(rows[kind])
    main = main[pd.MultiIndex.from_frame(main[kind]).isin(known) | (main["mode"] == NO_COOLING)]
    return pd.concat([main, rows], ignore_index=True)


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


def _row(row: Any) -> dict[str, Any]:
    change = row.change if isinstance(row.change, str) and row.change else MAIN_RECIPE
    names = {"dataset": row.dataset, "network": row.network, "change": change}
    names |= {"schedule": SCHEDULES.get(row.schedule, row.schedule), "arm": row.arm}
    difference = MISSING if np.isnan(row.difference) else f"{100 * row.difference:+.1f}"
    sd = "" if np.isnan(row.difference_sd) else f" ± {percent(row.difference_sd)}"
    return {
        **names,
        ACCURACIES[0]: _accuracy(row.without, row.diverged_without),
        ACCURACIES[1]: _accuracy(row.cooled, row.diverged_cooled),
        "difference ± sd": difference + sd,
        "pairs": row.seeds,
    }


def _accuracy(mean: float, lost: int) -> str:
    if np.isnan(mean):
        return DIVERGED if lost else MISSING
    return percent(mean) + (f" ({lost} diverged)" if lost else "")

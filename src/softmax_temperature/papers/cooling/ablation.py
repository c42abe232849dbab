"""The table of changes to the recipe or to Cooling, with and without Cooling.

A run with Cooling is compared with the run without Cooling that has the same schedule,
loss and seed in the same experiment. If the experiment has no runs without Cooling,
because it changes only Cooling, the run is compared with two runs of the main recipe:
one without Cooling, and one with the same mode and factor.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from softmax_temperature.papers.cooling.study import (
    ACCURACY_OF_FINISHED,
    EVERY_MAIN_RUN,
)
from softmax_temperature.papers.shared import layout
from softmax_temperature.papers.shared.display import cooling_label
from softmax_temperature.papers.shared.factors import where
from softmax_temperature.papers.shared.metrics import LOST
from softmax_temperature.papers.shared.runs import Runs, cell_names
from softmax_temperature.papers.shared.sources import CELLS, apart, together
from softmax_temperature.papers.shared.tables import MEASURED, lost_seeds, mean_and_sd

_PLACE = ["dataset", "network", "schedule", "warmup", "loss"]
_COOLING = ["mode", "factor"]
_SAME_COOLING = [
    *_PLACE,
    *_COOLING,
    "max_temperature",
    "reset_temperature",
    "seed",
]
_CHANGED = [
    "experiment",
    "dataset",
    "network",
    "change",
    "schedule",
    "loss",
    "mode",
    "factor",
    "refit",
    "period",
    "optimizer_state",
]
_MEANS = ("without", "cooled", "difference", "over_unchanged")
_COUNTS = {
    "diverged_without": "diverged_without",
    "stuck_without": "stuck_without",
    "diverged_cooled": "diverged",
    "stuck_cooled": "stuck",
}
_COLUMNS = [
    *_CHANGED,
    "without",
    "cooled",
    "difference",
    "difference_sd",
    "seeds",
    "over_unchanged",
    "over_unchanged_sd",
    "runs",
    *_COUNTS,
    "never_redistributed",
    "status",
    CELLS,
]
_HEADINGS = {
    "without": "without Cooling (%)",
    "cooled": "with Cooling (%)",
    "difference": "difference (points)",
    "over_unchanged": "over the main recipe with the same Cooling (points)",
}
LINKED = (*_HEADINGS.values(), "seeds")
"""The columns from `lay_out` whose numbers link to cells."""


def table(runs: Runs, *, role: str) -> pd.DataFrame:
    """Test accuracy with and without Cooling, by change, schedule and mode.

    The accuracy of a run is its mean over the last epochs.

    The main recipe comes first, with an empty change. Means are over the seeds that
    finished both with and without Cooling. If there are no such seeds, the mean with
    Cooling is over the seeds that finished with Cooling, and the mean without Cooling
    is over those that finished without Cooling.
    """
    pairs = _pairs(_compared(runs, role))
    keys = [*_CHANGED, "compared_with"]
    both = pairs["difference"].notna()
    any_both = both.groupby([pairs[key] for key in keys], dropna=False)
    hidden = ~both & any_both.transform("any")
    pairs["cooled"] = pairs["accuracy"].mask(hidden)
    pairs["without"] = pairs["accuracy_without"].mask(hidden)
    spread: dict[str, tuple[str, str]] = {}
    for name in _MEANS:
        spread |= mean_and_sd(name)
    means = pairs.groupby(keys, sort=False, dropna=False).agg(
        **spread,
        **{name: (column, "sum") for name, column in _COUNTS.items()},
        seeds=("difference", "count"),
        runs=("seed", "size"),
        never_redistributed=("never_redistributed", "all"),
        cells=(CELLS, _all_cells),
    )
    rows = means.reset_index().astype(dict.fromkeys(_COUNTS, int))
    statuses = [
        MEASURED if row["seeds"] else _why_none(row) for _, row in rows.iterrows()
    ]
    return rows.assign(status=pd.Series(statuses, rows.index, dtype=str))[_COLUMNS]


def _why_none(row: pd.Series) -> str:
    """The reason why no seed finished both with and without Cooling."""
    diverged = row["diverged_cooled"]
    stuck = row["stuck_cooled"]
    if diverged + stuck == row["runs"]:
        return lost_seeds(diverged, stuck, row["runs"])
    return "no seed finished both"


def _all_cells(texts: pd.Series[str]) -> str:
    return together(cell for text in texts for cell in apart(text))


def _compared(runs: Runs, role: str) -> pd.DataFrame:
    """The runs with `role`, preceded by the main recipe's runs to compare them with.

    The main recipe's runs are those on the same data set and network, with the same
    schedule, and with the same Cooling or none.
    """
    changed = runs.select(where(role=role))
    main = runs.select(EVERY_MAIN_RUN).drop_duplicates(
        ["dataset", "network", "schedule", "mode", "factor", "max_temperature", "seed"]
    )
    task = ["dataset", "network", "schedule"]
    is_asked = pd.MultiIndex.from_frame(main[task]).isin(
        pd.MultiIndex.from_frame(changed[task])
    )
    main = main[is_asked]
    kinds = pd.MultiIndex.from_frame(changed[_COOLING])
    is_known = pd.MultiIndex.from_frame(main[_COOLING]).isin(kinds)
    main = main[is_known | (main["mode"] == "none")].assign(change="")
    rows = pd.concat([main, changed])
    return rows.assign(
        accuracy=ACCURACY_OF_FINISHED.of(runs, rows),
        cells=cell_names(rows),
    ).reset_index(drop=True)


def _pairs(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per run with Cooling, with the results of the runs to compare it with.

    The columns of the run without Cooling end in `_without`. The columns of the main
    recipe's run with the same Cooling end in `_unchanged`.
    """
    without = rows[rows["mode"] == "none"]
    cooled = _with_reference(rows[rows["mode"] != "none"], without)
    result = ["accuracy", CELLS]
    same = ["compared_with", "schedule", "warmup", "loss", "seed"]
    reference = without.rename(columns={"experiment": "compared_with"})
    reference = reference[[*same, *result, *LOST]]
    is_main = cooled["change"] == ""
    plain = cooled[is_main].drop_duplicates(_SAME_COOLING)
    plain = plain[[*_SAME_COOLING, *result]]
    pairs = cooled.merge(reference, "left", on=same, suffixes=("", "_without"))
    pairs = pairs.merge(plain, "left", on=_SAME_COOLING, suffixes=("", "_unchanged"))
    has_own = pairs["compared_with"] == pairs["experiment"]
    changes_more = (pairs["change"] == "") | has_own
    pairs.loc[changes_more, ["accuracy_unchanged", f"{CELLS}_unchanged"]] = np.nan
    behind = pairs[[CELLS, f"{CELLS}_without", f"{CELLS}_unchanged"]]
    return pairs.assign(
        cells=[together(cells.dropna()) for _, cells in behind.iterrows()],
        difference=pairs["accuracy"] - pairs["accuracy_without"],
        over_unchanged=pairs["accuracy"] - pairs["accuracy_unchanged"],
    )


def _with_reference(cooled: pd.DataFrame, without: pd.DataFrame) -> pd.DataFrame:
    """Return `cooled` with `compared_with`, the experiment of the runs without Cooling.

    This is the run's own experiment if that experiment also has runs without Cooling,
    and otherwise the main recipe's experiment. It is "" if neither experiment has runs
    without Cooling.
    """
    own_reference = without[["experiment", *_PLACE]].drop_duplicates()
    own_reference = own_reference.assign(compared_with=own_reference["experiment"])
    main = without[without["change"] == ""].drop_duplicates(_PLACE)
    main = main.rename(columns={"experiment": "main"})[["main", *_PLACE]]
    both = cooled.merge(own_reference, "left").merge(main, "left", on=_PLACE)
    reference = both["compared_with"].astype(object)
    reference = reference.fillna(both["main"].astype(object)).fillna("")
    return both.assign(compared_with=reference)


def lay_out(table: pd.DataFrame) -> pd.DataFrame:
    """Lay out the table for readers, with numbers as mean ± sd."""
    texts = layout.with_words(table)
    for name, heading in _HEADINGS.items():
        sd = table.get(f"{name}_sd", table[name] * np.nan)
        numbers = zip(table[name], sd, strict=True)
        texts[heading] = [layout.mean_with_sd(mean, sd) for mean, sd in numbers]
    main = "none: the main recipe"
    texts["change"] = texts["change"].fillna("").replace("", main)
    texts["arm"] = [cooling_label(row) for _, row in table.iterrows()]
    shown = ["dataset", "network", "change", "schedule", "arm", *LINKED]
    return texts.reindex(columns=[*shown, "status", CELLS])

"""Trainings with Cooling beside those without: the ablation of the recipe, and what goes beyond the paper."""

from itertools import chain

import pandas as pd

from softmax_temperature.papers.cooling import selection
from softmax_temperature.papers.cooling.growth import never_redistributed
from softmax_temperature.papers.cooling.records import Records
from softmax_temperature.papers.cooling.selection import NO_COOLING, TASK
from softmax_temperature.papers.shared.comparison import MEASURED, lost_seeds, mean_and_sd
from softmax_temperature.papers.shared.sources import CELLS, apart, together

COMPARED = ("without", "cooled", "difference", "difference_sd", "seeds", "over_unchanged", "over_unchanged_sd")
"""The numbers of `comparison`."""

_KEYS = ["experiment", "dataset", "network", "change", "schedule", "loss", "arm", "mode"]
_SAME_COOLING = [*TASK, "loss", "mode", "factor", "max_temperature", "reset_temperature", "seed"]
_LOST = ["diverged_without", "stuck_without", "diverged_cooled", "stuck_cooled"]


def comparison(records: Records, role: str) -> pd.DataFrame:
    """Test accuracy with and without Cooling, means over the last epochs, for every change of the recipe.

    Trainings with Cooling are compared with those without of the same experiment, schedule, loss and seed. An
    experiment that changes only the Cooling has none of these: it is compared with the main recipe on the same setting,
    and also with the main recipe's own training of the same mode, factor and limits. The main recipe's own numbers for
    the same modes, factors and schedules come before those of the experiments with the role.

    Means and differences are fractions over the seeds that finished both, or else each mean over those that finished
    it; over_unchanged is Cooling minus the same Cooling in the main recipe, where no more than Cooling is changed; runs
    are those of the arm, beside what was lost on either side; change is empty for the main recipe.
    """
    rows = _compared(records, role)
    pairs = _pairs(rows.assign(never=never_redistributed(records, rows)))
    keys = [*_KEYS, "compared_with"]
    both = pairs["difference"].notna()
    hidden = ~both & both.groupby([pairs[key] for key in keys]).transform("any")
    pairs[["accuracy", "accuracy_without"]] = pairs[["accuracy", "accuracy_without"]].mask(hidden)
    found = pairs.groupby(keys, sort=False).agg(
        without=("accuracy_without", "mean"),
        cooled=("accuracy", "mean"),
        **mean_and_sd("difference"),
        seeds=("difference", "count"),
        **mean_and_sd("over_unchanged"),
        runs=("seed", "size"),
        **{name: (name.removesuffix("_cooled"), "sum") for name in _LOST},
        never_redistributed=("never", "all"),
        cells=("cells", lambda texts: together(chain.from_iterable(map(apart, texts)))),
    )
    table = found.reset_index().astype(dict.fromkeys(_LOST, int))
    lost = zip(table["diverged_cooled"], table["stuck_cooled"], table["runs"], strict=True)
    said = [lost_seeds(*each) if sum(each[:2]) == each[2] else "no seed finished both" for each in lost]
    table["status"] = pd.Series(said, table.index, dtype=str).mask(table["seeds"] > 0, MEASURED)
    return table[[*_KEYS, *COMPARED, "runs", *_LOST, "never_redistributed", "status", CELLS]]


def _compared(records: Records, role: str) -> pd.DataFrame:
    """The trainings of a role, behind those of the main recipe with the same settings, schedules, modes and factors."""
    rows, main = selection.trainings(records, role), selection.trainings(records, *selection.MAIN_ROLES)
    main = main.drop_duplicates([*TASK, "arm", "seed"]).merge(rows[TASK].drop_duplicates(), on=TASK)
    kinds, known = (pd.MultiIndex.from_frame(table[["mode", "factor"]]) for table in (main, rows))
    main = main[kinds.isin(known) | (main["mode"] == NO_COOLING)]
    return pd.concat([main, rows], ignore_index=True)


def _pairs(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per training with Cooling: what it is compared with (`_without`, `unchanged`), and the differences."""
    without, cooled = rows[rows["mode"] == NO_COOLING], rows[rows["mode"] != NO_COOLING]
    # The experiment itself where it trains without Cooling, else the main recipe's, or none.
    own = set(without[["experiment", "schedule", "loss"]].itertuples(index=False, name=None))
    place = [*TASK, "loss"]
    main = without[without["change"] == ""].drop_duplicates(place).set_index(place)["experiment"].to_dict()
    names = cooled[["experiment", *place]].itertuples(index=False, name=None)
    found = [name if (name, *task[-2:]) in own else main.get(tuple(task), "") for name, *task in names]
    same = ["compared_with", "schedule", "loss", "seed"]
    references = without.rename(columns={"experiment": "compared_with"})[
        [*same, "accuracy", "diverged", "stuck", CELLS]
    ]
    plain = cooled[cooled["change"] == ""].drop_duplicates(_SAME_COOLING)[[*_SAME_COOLING, "accuracy", CELLS]]
    cooled = cooled.assign(compared_with=pd.Series(found, cooled.index, dtype=str))
    pairs = cooled.merge(references, "left", on=same, suffixes=("", "_without"))
    pairs = pairs.merge(plain, "left", on=_SAME_COOLING, suffixes=("", "_unchanged"))
    of_cooling = (pairs["change"] != "") & (pairs["compared_with"] != pairs["experiment"])
    pairs["cells_unchanged"] = pairs["cells_unchanged"].where(of_cooling)
    behind = pairs[[CELLS, f"{CELLS}_without", f"{CELLS}_unchanged"]]
    return pairs.assign(
        cells=[together(cells.dropna()) for _, cells in behind.iterrows()],
        difference=pairs["accuracy"] - pairs["accuracy_without"],
        over_unchanged=(pairs["accuracy"] - pairs["accuracy_unchanged"]).where(of_cooling),
    )

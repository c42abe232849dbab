"""The engine of the tables: means over seeds from the records, with the printed numbers and the differences joined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

MEASURED, DIVERGED, STUCK = "measured", "diverged", "stuck"
DIFFERENCE = "difference_in_standard_errors"
NOT_RUN = "not run: "
SEEDS = ["seeds", "diverged_seeds", "stuck_seeds"]
"""Of each number, how many seeds finished, diverged, and got stuck."""


def mean_and_sd(name: str, column: str | None = None) -> dict[str, tuple[str, str]]:
    """Two aggregations for `DataFrameGroupBy.agg`: the mean of a column over seeds, and its standard deviation."""
    return {name: (column or name, "mean"), f"{name}_sd": (column or name, "std")}


def lost_seeds(diverged: int, stuck: int, runs: int) -> str:
    """How many seeds were lost, as "1 of 3 diverged, 1 of 3 stuck"; the word alone if all were, nothing if none was."""
    counts = {DIVERGED: diverged, STUCK: stuck}
    alone = [word for word, count in counts.items() if count == runs]
    return alone[0] if alone else ", ".join(f"{count} of {runs} {word}" for word, count in counts.items() if count)


def beside_printed(
    rows: pd.DataFrame,
    printed: pd.DataFrame,
    keys: Sequence[str],
    *,
    columns: Sequence[str],
    profile: Callable[..., str],
    printed_runs: int | None = None,
    printed_only: bool = False,
) -> pd.DataFrame:
    """Our means over seeds beside the printed numbers.

    Args:
        rows: one row per number of ours: the keys; ours and ours_sd, over the seeds that finished; seeds, runs,
            diverged_seeds and possibly stuck_seeds; possibly error, the standard error of a single seed.
        printed: the keys but the first, published, and possibly published_sd.
        keys: what names a number. The first names our run; it is empty where nothing ran.
        columns: of the result, in their order, after the keys.
        profile: the profile that gives a printed number that this one does not, from its second and third key.
        printed_runs: how many runs are behind each printed mean; None where the paper prints single runs, whose own
            error is unknown and ignored.
        printed_only: leave out the numbers that the paper does not print.

    Returns:
        Our rows, then the printed numbers that were not run: the keys and `columns`, among them
        difference_in_standard_errors, ours minus published, missing where the error is 0 or unknown; and status
        ("measured", "not run: PROFILE", or how the seeds were lost if all were).
    """
    run, *names = keys
    rows = rows.merge(printed, how="inner" if printed_only else "left", on=names)
    rows["status"] = [_status(row) for row in rows.to_dict("records")]
    rows[DIFFERENCE] = (rows["ours"] - rows["published"]) / _standard_error(rows, printed_runs).replace(0, np.nan)
    here, there = (pd.MultiIndex.from_frame(table[names]) for table in (rows, printed))
    missing = printed[~there.isin(here)]
    places = zip(missing[names[0]], missing[names[1]], strict=True)
    nothing: dict[str, Any] = {run: "", **dict.fromkeys(rows.columns.intersection(SEEDS), 0)}
    missing = missing.assign(**nothing, status=[f"{NOT_RUN}profile {profile(*place)}" for place in places])
    parts = [part for part in (rows, missing) if len(part)] or [rows]
    return pd.concat(parts, ignore_index=True).reindex(columns=[*keys, *columns])


def _status(row: dict[Any, Any]) -> str:
    diverged, stuck = row["diverged_seeds"], row.get("stuck_seeds", 0)
    return MEASURED if row["runs"] > diverged + stuck else lost_seeds(diverged, stuck, row["runs"])


def _standard_error(rows: pd.DataFrame, printed_runs: int | None) -> pd.Series[float]:
    """Of the difference: over seeds where at least two finished, else that of the single seed if it is known."""
    error: pd.Series[float] = rows["ours_sd"] / rows["seeds"] ** 0.5
    if printed_runs:
        variance = rows["ours_sd"] ** 2 / rows["seeds"] + rows["published_sd"].fillna(0) ** 2 / printed_runs
        error = variance**0.5
    return error.where(rows["seeds"] > 1, rows["error"]) if "error" in rows else error

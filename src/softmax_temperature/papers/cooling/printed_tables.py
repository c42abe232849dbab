"""Tables 1 and 2 and the numbers of section 4.4, ours beside the printed ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.cooling.growth import never_redistributed
from softmax_temperature.papers.cooling.notes import joined
from softmax_temperature.papers.cooling.outcomes import DIVERGED, in_a_word
from softmax_temperature.papers.cooling.printed import PRINTED_SEEDS, named_as_printed, printed_numbers
from softmax_temperature.papers.cooling.selection import (
    ACTIVATIONS,
    MODES,
    SCHEDULES,
    SEGMENTATION,
    experiments,
    final_segmentation,
    standard,
    trainings,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from softmax_temperature.papers.cooling.records import Records
    from softmax_temperature.papers.cooling.table_specs import Printed

MEASURED, MISSING = "measured", "–"
NEVER_REDISTRIBUTED = "never redistributed"
_NUMBERS = [
    *("published", "published_sd", "published_diverged", "ours", "ours_sd", "seeds", "diverged_seeds", "stuck_seeds"),
    *("never_redistributed", "difference_in_standard_errors", "status", "cells"),
]
_SHOWN: dict[str, Mapping[str, str]] = {"schedule": SCHEDULES, "activation": ACTIVATIONS}


def printed_table(records: Records, spec: Printed) -> pd.DataFrame:
    """One of the paper's tables.

    Args:
        records: the paper's.
        spec: which.

    Returns:
        Columns experiment (empty where nothing ran), dataset and network (as printed, or our own), schedule (Table 1),
        activation (Table 2), mode, metric; published, published_sd, published_diverged, ours (mean over the seeds that
        finished), ours_sd, seeds (that finished), diverged_seeds, stuck_seeds, never_redistributed (bool: whether no
        seed of a periodically redistributed arm ever redistributed, so that it is last layer Cooling by another name),
        difference_in_standard_errors, status, cells (that ours comes from). Numbers are fractions.

        The difference is ours minus published, over the standard error of this difference: from the standard deviation
        over our seeds and, where it is printed, that over the paper's three runs. It is empty where fewer than two of
        our seeds finished, or the error is 0.

        The status is "measured"; what became of the seeds, if none finished; or "not run", with the profile that would.
    """
    keys = ["dataset", "network", *spec.keys, "mode", "metric"]
    printed = printed_numbers(spec)[[*keys, *_NUMBERS[:3]]]
    rows = _measured(_values(records, spec), keys).merge(printed, how="left", on=keys)
    lost = [in_a_word(*counts) for counts in zip(*_counts(rows), strict=True)]
    rows["status"] = np.where(rows["seeds"] > 0, MEASURED, lost)
    rows["difference_in_standard_errors"] = _difference(rows)
    parts = [part for part in (rows, _not_run(printed, rows, keys)) if len(part)]
    table = pd.concat(parts, ignore_index=True).reindex(columns=["experiment", *keys, *_NUMBERS])
    return table.assign(published_diverged=table["published_diverged"] == 1)


def wide_printed(table: pd.DataFrame) -> pd.DataFrame:
    """The printed layout: a column a mode, up to three rows for each row of the paper's table.

    The rows are ours, what is printed, and the difference in standard errors; those that would be empty are left out. A
    cell has its metrics in their order, in percent, each as mean ± standard deviation over seeds.

    Args:
        table: as `printed_table` returns it.
    """
    columns = list(table.columns)
    keys = columns[1 : columns.index("mode")]
    modes = [mode for mode in MODES if mode in set(table["mode"])]
    rows = []
    for key, group in _in_order(table, keys).groupby(keys, sort=False):
        names = {column: str(name) for column, name in zip(keys, key, strict=True)}
        shown = {column: _SHOWN.get(column, {}).get(name, name) for column, name in names.items()}
        for line, cell in _lines(group).items():
            cells = {MODES[mode]: cell(group[group["mode"] == mode]) for mode in modes}
            rows.append({**shown, "numbers": line, **cells})
    return pd.DataFrame(rows, columns=[*keys, "numbers", *(MODES[mode] for mode in modes)])


def _values(records: Records, spec: Printed) -> pd.DataFrame:
    """A row for each training and metric: experiment, the keys of the table, value (missing if lost), what became."""
    rows = _trained(records, spec) if spec.roles else _segmented(records)
    parts = [rows.assign(metric=metric.name, value=rows[metric.column]) for metric in spec.metrics]
    return pd.concat(parts)


def _trained(records: Records, spec: Printed) -> pd.DataFrame:
    names = named_as_printed(experiments(records))[["experiment", "dataset", "network"]]
    rows = standard(trainings(records, *spec.roles))
    rows = rows if spec.schedule is None else rows[rows["schedule"] == spec.schedule]
    rows = rows.assign(never=never_redistributed(records, rows))
    return rows.drop(columns=["dataset", "network"]).merge(names, on="experiment")


def _segmented(records: Records) -> pd.DataFrame:
    rows = final_segmentation(records).rename(columns={"arm": "mode"})
    is_printed = rows["dataset"] == "ade20k"
    return rows.assign(
        experiment="segmentation",
        dataset=rows["dataset"].where(~is_printed, "ADE20K (256x256)"),
        network=np.where(is_printed, "small U-Net ~9M params", "U-Net"),
        never=False,
        cells=SEGMENTATION + "/" + rows["mode"],
    )


def _measured(values: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    found = values.groupby(["experiment", *keys], sort=False).agg(
        ours=("value", "mean"),
        ours_sd=("value", "std"),
        seeds=("value", "count"),
        diverged_seeds=("diverged", "sum"),
        stuck_seeds=("stuck", "sum"),
        never_redistributed=("never", "all"),
        cells=("cells", "first"),
    )
    return found.reset_index()


def _counts(rows: pd.DataFrame) -> tuple[pd.Series[int], pd.Series[int], pd.Series[int]]:
    """How many seeds of each row diverged, got stuck, and were trained at all."""
    diverged, stuck = rows["diverged_seeds"], rows["stuck_seeds"]
    return diverged, stuck, rows["seeds"] + diverged + stuck


def _difference(rows: pd.DataFrame) -> pd.Series[float]:
    error = (rows["ours_sd"] ** 2 / rows["seeds"] + rows["published_sd"].fillna(0) ** 2 / PRINTED_SEEDS) ** 0.5
    difference: pd.Series[float] = (rows["ours"] - rows["published"]) / error.replace(0, np.nan)
    return difference


def _not_run(printed: pd.DataFrame, rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The printed numbers that no experiment of this profile gives."""
    known, wanted = (pd.MultiIndex.from_frame(table[keys]) for table in (rows, printed))
    missing = printed[~wanted.isin(known)]
    profiles = np.where(missing["dataset"] == "CIFAR-10", "cifar10", "paper")
    nothing: dict[str, Any] = {
        "experiment": "",
        "seeds": 0,
        "diverged_seeds": 0,
        "stuck_seeds": 0,
        "never_redistributed": False,
    }
    return missing.assign(**nothing, status=[f"not run: profile {name}" for name in profiles])


def _in_order(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Data sets and networks as they come, and schedules or activations in the order of the paper."""
    places = table.groupby(keys[:2], sort=False).ngroup()
    for column in keys[2:]:
        names = list(dict.fromkeys([*_SHOWN[column], *table[column]]))
        places = places * len(names) + table[column].map(names.index)
    return table.iloc[places.argsort(kind="stable")]


def _lines(group: pd.DataFrame) -> dict[str, Callable[[pd.DataFrame], str]]:
    """What is said of one row of the paper's table: by its name, how a cell says it."""
    runs = _counts(group)[-1][~group["status"].str.startswith("not run")]
    lines: dict[str, Callable[[pd.DataFrame], str]] = {}
    if len(runs):
        few, many = runs.min(), runs.max()
        count = f"{many}" if few == many else f"{few} to {many}"
        lines[f"ours, {count} seed{'s' if many > 1 else ''}"] = _ours
    if group["published"].notna().any():
        lines["printed" if len(runs) else f"printed; {group['status'].iloc[0]}"] = _published
    if group["difference_in_standard_errors"].notna().any():
        lines["difference, in standard errors"] = _standard_errors
    return lines


def _ours(rows: pd.DataFrame) -> str:
    counts = [int(count.max()) for count in _counts(rows)] if len(rows) else [0, 0, 0]
    if not counts[-1]:
        return MISSING
    lost = in_a_word(*counts)
    if not rows["seeds"].any():
        return lost
    never = NEVER_REDISTRIBUTED if rows["never_redistributed"].all() else ""
    remarks = joined(lost, never)
    return _cell(rows["ours"], rows["ours_sd"]) + (f" ({remarks})" if remarks else "")


def _published(rows: pd.DataFrame) -> str:
    return DIVERGED if rows["published_diverged"].any() else _cell(rows["published"], rows["published_sd"])


def _standard_errors(rows: pd.DataFrame) -> str:
    texts = [MISSING if np.isnan(value) else f"{value:+.1f}" for value in rows["difference_in_standard_errors"]]
    return " / ".join(texts) or MISSING


def _cell(values: pd.Series[float], deviations: pd.Series[float]) -> str:
    texts = [
        percent(value) + ("" if np.isnan(sd) else f" ± {percent(sd)}")
        for value, sd in zip(values, deviations, strict=True)
    ]
    return " / ".join(texts) or MISSING


def percent(value: float) -> str:
    """A fraction in percent, as the paper prints it: one digit after the point."""
    return MISSING if np.isnan(value) else f"{100 * value:.1f}"

"""The tables: ours beside the printed ones, and those of ours alone.

They are long, one row per number; `wide` lays them out for a reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.cooling import growth, selection
from softmax_temperature.papers.cooling.comparisons import COMPARED, comparison
from softmax_temperature.papers.cooling.records import SLUG, Records
from softmax_temperature.papers.cooling.selection import LAST, MODES, NO_COOLING, SCHEDULES, SETTING
from softmax_temperature.papers.shared import comparison as shared
from softmax_temperature.papers.shared.comparison import MEASURED, NOT_RUN, mean_and_sd
from softmax_temperature.papers.shared.sources import CELLS, together
from softmax_temperature.papers.shared.tables import published

__all__ = ["COMPARED", "SPECS", "TABLES", "Printed", "printed_numbers", "table", "wide"]


@dataclass(frozen=True)
class Printed:
    """A table of the paper: its title, what names a row beside data set and network, and its numbers.

    `metrics` are our columns, with their names in `data/published/cooling.csv`, None for ours alone; `roles` those of
    the experiments that it is made from, in the order of preference, none for segmentation; `schedule` the only one
    that it has, or None for all.
    """

    title: str
    keys: tuple[str, ...]
    metrics: Mapping[str, str | None]
    roles: tuple[str, ...] = ()
    schedule: str | None = None


def text(records: Records) -> pd.DataFrame:
    """The numbers in the running text, printed and ours (mean over seeds; shares and their differences are fractions).

    Ours is beside the printed number where the experiment is the paper's; with other data or another network it has a
    row of its own. The gain of Figure 1 is that of the best factor up to 1, and a lost training counts as guessing in
    it; epochs are means over the seeds whose temperature gets there. Times are the benchmark's, of the most expensive
    mode on each device. The cells are those with Cooling.
    """
    known = selection.experiments(records)
    as_printed = set(known[known["is_printed"]][SETTING].itertuples(index=False, name=None))
    crossed = {metric: mode for mode, metric in growth.PRINTED.items()}
    dearest = records.cost.sort_values("share").drop_duplicates("device", keep="last").to_dict("records")
    times = {"seconds per training epoch": "epoch_seconds", "seconds per Cooling step": "seconds"}
    times |= {"Cooling cost as % of an epoch": "share"}
    points = " (percentage points)"
    rows: list[dict[str, Any]] = []
    for printed in published(SLUG, "text").to_dict("records"):
        metric, kind = printed["metric"], "share" if printed["unit"] == "percent" else ""
        unit = "difference of shares" if metric.endswith(points) else kind
        row = {"quantity": metric.removesuffix(points), "dataset": printed["dataset"], "network": printed["model"]}
        row |= {"unit": unit, "published": float(printed["value"]) / (100 if unit else 1), "seeds": 0}
        if metric in times:
            said = [(cost[times[metric]], f"`make bench` on {cost['device']}: {cost['size']}") for cost in dearest]
            rows += [{**row, "ours": ours, "status": status} for ours, status in said]
            rows += [] if said else [{**row, "status": f"{NOT_RUN}`make bench`"}]
            continue
        found = list(_crossings(records, crossed[metric]) if metric in crossed else _largest_gains(records))
        ours = [each for each in found if (each["dataset"], each["network"]) in as_printed]
        rows += [row | each for each in ours or [{"status": f"{NOT_RUN}profile cifar10"}]]
        rows += [{**row, "published": np.nan, **each} for each in found if each not in ours]
    columns = ["quantity", *SETTING, "unit", "published", "ours", "ours_sd", "seeds", "status", CELLS]
    return pd.DataFrame(rows, columns=columns)


def _largest_gains(records: Records) -> Iterator[dict[str, Any]]:
    for setting, some in selection.figure_1_trainings(records).groupby(SETTING, sort=False):
        factors = selection.by_factor(some)
        gains = {factor: selection.paired(rows, LAST)["difference"] for factor, rows in factors.items()}
        means = {factor: each.mean() for factor, each in gains.items() if len(each)}
        if means:
            best = max(means, key=lambda factor: means[factor])
            note = selection.lost_by_mode(factors[best], LAST, NO_COOLING, counted="guessing")
            gain = gains[best][: 0 if factors[best]["lost"].all() else None]
            yield _ours(setting, gain, factors[best][factors[best]["mode"] == LAST], note, missing=note)


def _crossings(records: Records, mode: str) -> Iterator[dict[str, Any]]:
    found, grown = growth.crossings(records), growth.growth(records)
    for setting, some in found[(found["mode"] == mode) & (found["limit"] == growth.LIMIT)].groupby(SETTING, sort=False):
        epochs = some["epoch"].dropna()
        note = f"in {len(epochs)} of {len(some)} seeds" if len(epochs) < len(some) else ""
        behind = grown[(grown["mode"] == mode) & grown["experiment"].isin(some["experiment"])]
        yield _ours(setting, epochs, behind, note, missing="the temperature does not get there")


def _ours(
    setting: tuple[Any, ...], values: pd.Series[float], behind: pd.DataFrame, note: str, *, missing: str
) -> dict[str, Any]:
    status = "; ".join(filter(None, (MEASURED, note))) if len(values) else missing
    row = {"ours": values.mean(), "ours_sd": values.std(), "seeds": len(values), "status": status}
    return dict(zip(SETTING, setting, strict=True)) | row | {CELLS: together(behind[CELLS])}


_ACCURACY = {"accuracy": "test_accuracy", "accuracy_last_epoch": None}
_IOU = {"mean_iou": "mIoU %", "pixel_accuracy": "pixel accuracy %"}
_DENSE = {**_IOU, "mean_iou_last_epoch": None, "pixel_accuracy_last_epoch": None}

SPECS: dict[str, Printed | Callable[[Records], pd.DataFrame]] = {
    "table_1": Printed("Table 1", ("schedule",), _ACCURACY, ("table_1",)),
    "table_2": Printed("Table 2", ("activation",), _ACCURACY, ("table_2", "table_1"), selection.NO_SCHEDULE),
    "section_4_4": Printed("Sec. 4.4 text", (), _DENSE),
    "text": text,
    "ablation": partial(comparison, role="ablation"),
    "ours": partial(comparison, role="ours"),
}
"""The printed tables as data, those of ours alone by their functions."""
PRINTED_SEEDS = 3
"""Behind every mean and standard deviation of Tables 1 and 2."""

_PRINTED = ["published", "published_sd", "published_diverged"]
_COLUMNS = [*_PRINTED, "ours", "ours_sd", "seeds", "diverged_seeds", "stuck_seeds", "never_redistributed"]
_COLUMNS += ["difference_in_standard_errors", "status", CELLS]


def table(records: Records, name: str) -> pd.DataFrame:
    """One of the tables, by its key in `SPECS`.

    Returns:
        See `text` and `comparison`. Of a printed table, columns experiment (empty where nothing ran), dataset and
        network (as printed, or our own), schedule (Table 1), activation (Table 2), mode, metric (a mean over the last
        epochs, or of the last one alone); then `_COLUMNS`, numbers being fractions. never_redistributed says that no
        seed of a periodic arm ever redistributed, so that it is last layer Cooling by another name; the difference is
        missing where we train on fewer images; for the status see `beside_printed`.
    """
    spec = SPECS[name]
    if not isinstance(spec, Printed):
        return spec(records)
    rows = _trained(records, spec) if spec.roles else _segmented(records)
    rows = pd.concat([rows.assign(metric=metric, value=rows[metric]) for metric in spec.metrics])
    names = [*SETTING, *spec.keys, "mode", "metric"]
    keys = ["experiment", *names]
    means = rows.groupby(keys, sort=False).agg(
        **mean_and_sd("ours", "value"),
        seeds=("value", "count"),
        runs=("value", "size"),
        diverged_seeds=("diverged", "sum"),
        stuck_seeds=("stuck", "sum"),
        never_redistributed=("never", "all"),
        cells=(CELLS, "first"),
    )
    made = shared.beside_printed(
        means.reset_index(),
        printed_numbers(spec)[[*names, *_PRINTED]],
        keys,
        columns=_COLUMNS,
        profile=lambda dataset, _: "cifar10" if dataset == "CIFAR-10" else "paper",
        printed_runs=PRINTED_SEEDS,
    )
    made = made.assign(**{each: made[each].eq(True) for each in ("published_diverged", "never_redistributed")})
    # Printed numbers stand beside a run on a part of the images all the same; the table says how many there were.
    known = selection.experiments(records).set_index("experiment")
    part = known[(known["printed_model"] != "") & ~known["is_printed"]]
    fewer = made["experiment"].isin(part.index)
    images = made.loc[fewer, "experiment"].map(part.get("train_images", {}))
    made.loc[fewer, "dataset"] += images.map(", {:,.0f} images".format)
    made.loc[fewer, "difference_in_standard_errors"] = np.nan
    return made


TABLES = {name: partial(table, name=name) for name in SPECS}
"""Every table, by the name of its file."""


def wide(table: pd.DataFrame) -> pd.DataFrame:
    """A table for a reader, in the paper's words; it may have been read back from its file."""
    words = {"schedule": SCHEDULES, "activation": {"crelu": "CReLU", "relu": "ReLU"}, "mode": MODES}
    table = table.replace({name: known for name, known in words.items() if name in table})
    if "without" not in table:
        return shared.wide(table)
    shown = ["dataset", "network", "change", "schedule", "arm", *COMPARED, "status", CELLS]
    main = {"change": "none: the main recipe"}
    return table.reindex(columns=shown).fillna(main).replace({"change": {"": main["change"]}})


def printed_numbers(spec: Printed) -> pd.DataFrame:
    """The numbers of one table of the paper, as fractions, missing where it prints a divergence.

    `model` is as printed, `network` its name without activation and schedule.
    """
    rows = published(SLUG, spec.title)
    parts = rows["method"].str.partition(" | LR schedule: ")
    modes, schedules, metrics = (
        {name: key for key, name in names.items()} for names in (MODES, SCHEDULES, spec.metrics)
    )
    diverged = rows["value"] == "divergence"
    scale = np.where(rows["unit"] == "percent", 100, 1)
    return rows[["model", "dataset"]].assign(
        network=rows["model"].str.replace(r" \(.*|,.*", "", regex=True),
        activation=np.where(rows["model"].str.contains("CReLU"), "crelu", "relu"),
        schedule=parts[2].map(schedules).fillna(selection.NO_SCHEDULE),
        mode=parts[0].str.replace("layer Cooling", "layer").map(modes),
        metric=rows["metric"].map(metrics),
        published=rows["value"].where(~diverged).astype(float) / scale,
        published_sd=rows["sd"].astype(float) / scale,
        published_diverged=diverged,
    )


def _trained(records: Records, spec: Printed) -> pd.DataFrame:
    printed = pd.concat([printed_numbers(each) for each in SPECS.values() if isinstance(each, Printed)])
    printed = printed.drop_duplicates("model").set_index("model")
    rows = selection.standard(selection.trainings(records, *spec.roles))
    rows = rows if spec.schedule is None else rows[rows["schedule"] == spec.schedule]
    names = {name: rows["printed_model"].map(printed[name]).fillna(rows[name]) for name in SETTING}
    never = growth.never_redistributed(records, rows)
    return rows.assign(**names, never=never, accuracy_last_epoch=rows["test_accuracy"])


def _segmented(records: Records) -> pd.DataFrame:
    rows = selection.final_segmentation(records)
    is_printed = rows["dataset"] == "ade20k"
    dataset = rows["dataset"].where(~is_printed, "ADE20K (256x256)")
    network = np.where(is_printed, "small U-Net ~9M params", "U-Net")
    return rows.assign(experiment="segmentation", dataset=dataset, network=network, never=False)

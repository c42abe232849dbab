"""The tables: ours beside the printed ones, and those of ours alone.

They are long, one row per number; `wide` lays them out for a reader.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from softmax_temperature.papers.cooling import selection
from softmax_temperature.papers.cooling.comparisons import COMPARED, comparison
from softmax_temperature.papers.cooling.growth import never_redistributed
from softmax_temperature.papers.cooling.quantities import quantities
from softmax_temperature.papers.cooling.records import SLUG, Records
from softmax_temperature.papers.cooling.selection import MODES, NO_SCHEDULE, SCHEDULES, SETTING
from softmax_temperature.papers.shared.comparison import beside_printed, mean_and_sd
from softmax_temperature.papers.shared.comparison import wide as beside_each_other
from softmax_temperature.papers.shared.sources import CELLS
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


_ACCURACY = {"accuracy": "test_accuracy", "accuracy_last_epoch": None}
_IOU = {"mean_iou": "mIoU %", "pixel_accuracy": "pixel accuracy %"}
_DENSE = {**_IOU, "mean_iou_last_epoch": None, "pixel_accuracy_last_epoch": None}

SPECS: dict[str, Printed | Callable[[Records], pd.DataFrame]] = {
    "table_1": Printed("Table 1", ("schedule",), _ACCURACY, ("table_1",)),
    "table_2": Printed("Table 2", ("activation",), _ACCURACY, ("table_2", "table_1"), schedule=NO_SCHEDULE),
    "section_4_4": Printed("Sec. 4.4 text", (), _DENSE),
    "text": quantities,
    "ablation": partial(comparison, role="ablation"),
    "ours": partial(comparison, role="ours"),
}
"""The printed tables as data, those of ours alone by their functions."""

PRINTED_SEEDS = 3
"""Behind every mean and standard deviation of Tables 1 and 2."""

_PRINTED_COLUMNS = ("published", "published_sd", "published_diverged")
_COLUMNS = (
    *(*_PRINTED_COLUMNS, "ours", "ours_sd", "seeds", "diverged_seeds", "stuck_seeds", "never_redistributed"),
    *("difference_in_standard_errors", "status", CELLS),
)


def table(records: Records, name: str) -> pd.DataFrame:
    """One of the tables.

    Args:
        records: the paper's.
        name: a key of `SPECS`.

    Returns:
        See `quantities` and `comparison`. Of a printed table, columns experiment (empty where nothing ran), dataset and
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
        cells=("cells", "first"),
    )
    made = beside_printed(
        means.reset_index(),
        printed_numbers(spec)[[*names, *_PRINTED_COLUMNS]],
        keys,
        columns=_COLUMNS,
        profile=lambda dataset, _: "cifar10" if dataset == "CIFAR-10" else "paper",
        printed_runs=PRINTED_SEEDS,
    )
    made = made.assign(**{name: made[name].eq(True) for name in ("published_diverged", "never_redistributed")})
    return _fewer_images(made, selection.experiments(records))


TABLES = {name: partial(table, name=name) for name in SPECS}
"""Every table, by the name of its file."""


def _fewer_images(table: pd.DataFrame, known: pd.DataFrame) -> pd.DataFrame:
    """Say where a printed experiment was run on a part of its images: printed numbers stand beside it all the same."""
    part = known[(known["printed_model"] != "") & ~known["is_printed"]].set_index("experiment")
    if part.empty:
        return table
    fewer = table["experiment"].isin(part.index)
    images = table.loc[fewer, "experiment"].map(part["train_images"])
    table.loc[fewer, "dataset"] += images.map(", {:,.0f} images".format)
    table.loc[fewer, "difference_in_standard_errors"] = np.nan
    return table


def wide(table: pd.DataFrame) -> pd.DataFrame:
    """A table for a reader, in the paper's words; it may have been read back from its file."""
    words = {"schedule": SCHEDULES, "activation": {"crelu": "CReLU", "relu": "ReLU"}, "mode": MODES}
    table = table.replace({name: known for name, known in words.items() if name in table})
    if "without" not in table:
        return beside_each_other(table)
    shown = ["dataset", "network", "change", "schedule", "arm", *COMPARED, "status", CELLS]
    main = {"change": "none: the main recipe"}
    return table.reindex(columns=shown).fillna(main).replace({"change": {"": main["change"]}})


def printed_numbers(spec: Printed) -> pd.DataFrame:
    """The numbers of one table of the paper.

    Returns:
        Columns model (as printed), dataset and network (its names without activation and schedule), activation,
        schedule ("none" where the table has none), mode, metric; published and published_sd, fractions, missing where
        it prints a divergence; published_diverged (bool).
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
        schedule=parts[2].map(schedules).fillna(NO_SCHEDULE),
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
    return rows.assign(**names, never=never_redistributed(records, rows), accuracy_last_epoch=rows["test_accuracy"])


def _segmented(records: Records) -> pd.DataFrame:
    rows = selection.final_segmentation(records)
    is_printed = rows["dataset"] == "ade20k"
    return rows.assign(
        experiment="segmentation",
        dataset=rows["dataset"].where(~is_printed, "ADE20K (256x256)"),
        network=np.where(is_printed, "small U-Net ~9M params", "U-Net"),
        never=False,
    )

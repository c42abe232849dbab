"""The tables of the Cooling paper: our values beside the printed ones, and our own."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.cooling import ablation, text
from softmax_temperature.papers.cooling.study import (
    ACCURACY_OF_FINISHED,
    DISTRIBUTED,
    LAST_ACCURACY_OF_FINISHED,
    LAST_LAYER,
    MEAN_IOU_OF_FINISHED,
    NO_COOLING,
    PERIODIC_ANYWHERE,
    PIXEL_ACCURACY_OF_FINISHED,
    SEGMENTATION,
    SLUG,
    TABLE_1,
    TABLE_2,
    WHOLE,
    network_in_words,
    printed_network,
)
from softmax_temperature.papers.shared import display, layout
from softmax_temperature.papers.shared.metrics import at_last_epoch
from softmax_temperature.papers.shared.printed import published
from softmax_temperature.papers.shared.runs import Runs
from softmax_temperature.papers.shared.tables import (
    DIFFERENCE,
    METRIC,
    OURS,
    PRINTED,
    SEEDS,
    Comparison,
    Made,
    Number,
    Table,
)

STANDARD_MODES = NO_COOLING | DISTRIBUTED | PERIODIC_ANYWHERE | LAST_LAYER
_NEVER = "never_redistributed"
_PRINTED = [PRINTED, f"{PRINTED}_sd", f"{PRINTED}_diverged"]
_COLUMNS = [*_PRINTED, OURS, f"{OURS}_sd", *SEEDS, _NEVER, DIFFERENCE]
_PAPERS_SEGMENTATION = "ADE20K (256x256)"
_PAPERS_UNET = "small U-Net ~9M params"


def _named(table: pd.DataFrame) -> pd.DataFrame:
    """Return `table` with the paper's data set and network names, if there are any.

    Our values are matched with printed values by these names. Afterwards, `_as_run`
    corrects the names where a smaller network or fewer images were used.
    """
    printed = table["printed_model"].map(printed_network)
    is_named = printed != ""
    return table.assign(
        network=printed.where(is_named, table["network"]),
        dataset=table["dataset"].where(~is_named, "CIFAR-10"),
    )


def _segmentation_named(table: pd.DataFrame) -> pd.DataFrame:
    is_printed = table["dataset"] == "ade20k"
    return table.assign(
        dataset=table["dataset"].where(~is_printed, _PAPERS_SEGMENTATION),
        network=np.where(is_printed, _PAPERS_UNET, "U-Net"),
    )


def printed_numbers(title: str, metrics: Mapping[str, str]) -> pd.DataFrame:
    """The values of one of the paper's tables, as fractions.

    Args:
        title: The title of the table.
        metrics: Maps the printed names of the table's metrics to ours.

    Returns:
        A table with the columns `dataset`, `network`, `activation`, `schedule`, `mode`,
        `metric`, `published` (missing if the paper prints "divergence"), `published_sd`
        and `published_diverged`.
    """
    rows = published(SLUG, title)
    method = rows["method"].str.replace("layer Cooling", "layer")
    parts = method.str.partition(" | LR schedule: ")
    modes = {label: mode for mode, label in display.MODES.items()}
    schedules = {label: name for name, label in display.SCHEDULES.items()}
    is_crelu = rows["model"].str.contains("CReLU")
    diverged = rows["value"] == "divergence"
    scale = np.where(rows["unit"] == "percent", 100, 1)
    return rows[["dataset"]].assign(
        network=rows["model"].map(printed_network),
        activation=np.where(is_crelu, "crelu", "relu"),
        schedule=parts[2].map(schedules).fillna("none"),
        mode=parts[0].map(modes),
        metric=rows["metric"].map(metrics),
        published=rows["value"].where(~diverged).astype(float) / scale,
        published_sd=rows["sd"].astype(float) / scale,
        published_diverged=diverged,
    )


def _printed(title: str, metrics: Mapping[str, str], *keys: str) -> pd.DataFrame:
    """The printed numbers of the table `title`.

    Each number is identified by its data set, network, `keys`, mode and metric.
    """
    names = ["dataset", "network", *keys, "mode", "metric"]
    return printed_numbers(title, metrics)[[*names, *_PRINTED]]


def printed_table_1() -> pd.DataFrame:
    """The printed accuracies of Table 1, by schedule and mode."""
    return printed_numbers("Table 1", _ACCURACY)


def _profiles(dataset: str, _: str) -> tuple[str, ...]:
    return text.PROFILES if dataset == "CIFAR-10" else ("paper",)


def _as_run(runs: Runs, table: pd.DataFrame) -> pd.DataFrame:
    """Return `table` with the names of the data set and the network that ran.

    They differ from the paper's names if only a part of the paper's training images, or
    a smaller network, was used. The table shows the printed value beside ours, but no
    difference from that value.
    """
    is_named = runs.table["printed_model"] != ""
    changed = runs.table[is_named & ~runs.table["is_printed"]]
    changed = changed.drop_duplicates("experiment").set_index("experiment")
    images = {name: _images(row["train_images"]) for name, row in changed.iterrows()}
    networks = changed["network"].map(network_in_words).to_dict()
    experiment = table["experiment"]
    named = zip(experiment, table["network"], strict=True)
    return table.assign(
        dataset=table["dataset"] + [images.get(name, "") for name in experiment],
        network=[networks.get(name, network) for name, network in named],
        **{
            DIFFERENCE: table[DIFFERENCE].mask(experiment.isin(changed.index)),
            f"{PRINTED}_diverged": table[f"{PRINTED}_diverged"].eq(True),
            _NEVER: table[_NEVER].eq(True),
        },
    )


def _images(count: float) -> str:
    """The number of training images as text; "" if it is at least the paper's."""
    return f", {count:,.0f} images" if count < WHOLE else ""


_BESIDE_PRINTED: Any = {
    "columns": _COLUMNS,
    "printed_runs": 3,
    "profiles": _profiles,
    "all_of": (_NEVER,),
    "finish": _as_run,
    "lay_out": partial(layout.in_words, across="mode"),
    "in_rows": partial(layout.in_words, across=METRIC),
}
"""The arguments that all comparisons with printed numbers share."""
_ACCURACY = {"test_accuracy": "accuracy"}
_OVERLAP = {"mIoU %": "mean_iou", "pixel accuracy %": "pixel_accuracy"}
_ACCURACIES = (
    Number("accuracy", ACCURACY_OF_FINISHED),
    Number("accuracy_last_epoch", LAST_ACCURACY_OF_FINISHED),
)

TABLE_OF_SCHEDULES = Comparison(
    name="table_1",
    of=TABLE_1 & STANDARD_MODES,
    numbers=_ACCURACIES,
    keys=("experiment", "dataset", "network", "schedule", "mode"),
    printed=partial(_printed, "Table 1", _ACCURACY, "schedule"),
    named=_named,
    **_BESIDE_PRINTED,
)
TABLE_OF_ACTIVATIONS = Comparison(
    name="table_2",
    of=TABLE_2 & STANDARD_MODES,
    numbers=_ACCURACIES,
    keys=("experiment", "dataset", "network", "activation", "mode"),
    printed=partial(_printed, "Table 2", _ACCURACY, "activation"),
    named=_named,
    **_BESIDE_PRINTED,
)
SEGMENTATION_SCORES = Comparison(
    name="section_4_4",
    of=SEGMENTATION & STANDARD_MODES,
    numbers=(
        Number("mean_iou", MEAN_IOU_OF_FINISHED),
        Number("pixel_accuracy", PIXEL_ACCURACY_OF_FINISHED),
        Number("mean_iou_last_epoch", at_last_epoch(MEAN_IOU_OF_FINISHED)),
        Number("pixel_accuracy_last_epoch", at_last_epoch(PIXEL_ACCURACY_OF_FINISHED)),
    ),
    keys=("experiment", "dataset", "network", "mode"),
    printed=partial(_printed, "Sec. 4.4 text", _OVERLAP),
    named=_segmentation_named,
    **_BESIDE_PRINTED,
)
NUMBERS_IN_THE_TEXT = Made(name="text", by=text.table, lay_out=text.lay_out)
ABLATION = Made(
    name="ablation",
    by=partial(ablation.table, role="ablation"),
    lay_out=ablation.lay_out,
)
OURS_ALONE = Made(
    name="ours", by=partial(ablation.table, role="ours"), lay_out=ablation.lay_out
)

TABLES: tuple[Table, ...] = (
    TABLE_OF_SCHEDULES,
    TABLE_OF_ACTIVATIONS,
    SEGMENTATION_SCORES,
    NUMBERS_IN_THE_TEXT,
    ABLATION,
    OURS_ALONE,
)
"""All tables; those of the paper come first, in the paper's order."""

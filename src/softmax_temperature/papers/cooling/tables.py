"""The tables: ours beside the printed ones, and those of ours alone; `wide` lays them
out for a reader.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.cooling import selection
from softmax_temperature.papers.cooling.records import SLUG, Records
from softmax_temperature.papers.cooling.selection import (
    LAST,
    LOST,
    MODES,
    SCHEDULES,
    SETTING,
    TASK,
)
from softmax_temperature.papers.shared import comparison as shared
from softmax_temperature.papers.shared.comparison import (
    DIFFERENCE,
    MEASURED,
    NOT_RUN,
    lost_seeds,
    mean_and_sd,
    number,
)
from softmax_temperature.papers.shared.sources import CELLS, Linked, apart, together
from softmax_temperature.papers.shared.tables import published
from softmax_temperature.params.cooling import NO_COOLING


@dataclass(frozen=True)
class Printed:
    """A table of the paper."""

    title: str
    keys: tuple[str, ...]  # What names a row beside data set and network.
    metrics: Mapping[
        str, str | None
    ]  # Our columns, with their names among the published numbers.
    roles: tuple[
        str, ...
    ] = ()  # Of its experiments, the preferred first; none for segmentation.
    schedules: Sequence[str] = tuple(SCHEDULES)


_PRINTED = ["published", "published_sd", "published_diverged"]
_COLUMNS = [
    *_PRINTED,
    "ours",
    "ours_sd",
    "seeds",
    "diverged_seeds",
    "stuck_seeds",
    "never_redistributed",
]
_COLUMNS += [DIFFERENCE, "status", CELLS]


def beside_the_paper(records: Records, spec: Printed) -> pd.DataFrame:
    """Ours beside a table of the paper, see `shared.beside_printed`.

    Numbers are fractions, means over the last epochs or of the last one alone;
    never_redistributed: no seed of a periodic arm ever was.
    """
    rows = _trained(records, spec) if spec.roles else _segmented(records)
    rows = pd.concat(
        [rows.assign(metric=metric, value=rows[metric]) for metric in spec.metrics]
    )
    names = [*SETTING, *spec.keys, "mode", "metric"]
    keys = ["experiment", *names]
    made = shared.beside_printed(
        _over_seeds(
            rows,
            keys,
            {"ours": "value"},
            {"diverged_seeds": "diverged", "stuck_seeds": "stuck"},
            "value",
        ),
        printed_numbers(spec)[[*names, *_PRINTED]],
        keys,
        columns=_COLUMNS,
        profile=lambda dataset, _: "cifar10" if dataset == "CIFAR-10" else "paper",
        printed_runs=3,  # Behind every mean and standard deviation of Tables 1 and 2.
    )
    made = made.assign(
        **{
            each: made[each].eq(True)
            for each in ("published_diverged", "never_redistributed")
        }
    )
    # Printed numbers stand beside a run on a part of the images all the same; the table
    # says how many there were.
    parts = (
        selection.experiments(records)
        .query("printed_model != '' and not is_printed")
        .set_index("experiment")
    )
    images = {
        name: f", {count:,.0f} images" for name, count in parts["train_images"].items()
    }
    made["dataset"] += [images.get(name, "") for name in made["experiment"]]
    made.loc[made["experiment"].isin(images), DIFFERENCE] = np.nan
    return made


def _over_seeds(
    rows: pd.DataFrame,
    keys: list[str],
    means: Mapping[str, str],
    sums: Mapping[str, str],
    counted: str,
) -> pd.DataFrame:
    spread = {
        name: how
        for new, old in means.items()
        for name, how in mean_and_sd(new, old).items()
    }
    found = rows.groupby(keys, sort=False).agg(
        **spread,
        **{new: (old, "sum") for new, old in sums.items()},
        seeds=(counted, "count"),
        runs=("seed", "size"),
        never_redistributed=("never", "all"),
        cells=(CELLS, lambda texts: together(chain.from_iterable(map(apart, texts)))),
    )
    return found.reset_index()


def _trained(records: Records, spec: Printed) -> pd.DataFrame:
    rows = selection.standard(selection.trainings(records, *spec.roles))
    rows = rows[rows["schedule"].isin(spec.schedules)]
    names = rows["printed_model"].str.replace(_DETAILS, "", regex=True)
    network, dataset = (
        names.where(names != "", rows["network"]),
        rows["dataset"].where(names == "", "CIFAR-10"),
    )
    return rows.assign(
        network=network, dataset=dataset, accuracy_last_epoch=rows["test_accuracy"]
    )


def _segmented(records: Records) -> pd.DataFrame:
    rows = selection.final_segmentation(records)
    is_printed = rows["dataset"] == "ade20k"
    dataset = rows["dataset"].where(~is_printed, "ADE20K (256x256)")
    network = np.where(is_printed, "small U-Net ~9M params", "U-Net")
    return rows.assign(
        experiment="segmentation", dataset=dataset, network=network, never=False
    )


_DETAILS = r" \(.*|,.*"  # Of a printed model: activation and schedule.


def printed_numbers(spec: Printed) -> pd.DataFrame:
    """The numbers of one table of the paper, as fractions, missing where it prints a
    divergence.
    """
    rows = published(SLUG, spec.title)
    parts = (
        rows["method"]
        .str.replace("layer Cooling", "layer")
        .str.partition(" | LR schedule: ")
    )
    modes, schedules, metrics = (
        {old: new for new, old in each.items()}
        for each in (MODES, SCHEDULES, spec.metrics)
    )
    diverged, scale = (
        rows["value"] == "divergence",
        np.where(rows["unit"] == "percent", 100, 1),
    )
    return rows[["dataset"]].assign(
        network=rows["model"].str.replace(_DETAILS, "", regex=True),
        activation=np.where(rows["model"].str.contains("CReLU"), "crelu", "relu"),
        schedule=parts[2].map(schedules).fillna(selection.NO_SCHEDULE),
        mode=parts[0].map(modes),
        metric=rows["metric"].map(metrics),
        published=rows["value"].where(~diverged).astype(float) / scale,
        published_sd=rows["sd"].astype(float) / scale,
        published_diverged=diverged,
    )


_TIMES = {
    "seconds per training epoch": "epoch_seconds",
    "seconds per Cooling step": "seconds",
}
_TIMES |= {"Cooling cost as % of an epoch": "share"}
_POINTS = " (percentage points)"
_GAIN = f"largest gain in Fig. 1{_POINTS}"
_ZEROS = re.compile(r"\.0+\b|(\.\d*[1-9])0+\b")


def text(records: Records) -> pd.DataFrame:
    """The numbers in the running text, printed and ours: beside it where the experiment
    is the paper's, else below.

    The gain is that of the best factor up to 1; epochs are means over the seeds whose
    temperature gets there; times are the benchmark's, of the most expensive mode on
    each device.
    """
    dearest = (
        records.cost.sort_values("share")
        .drop_duplicates("device", keep="last")
        .to_dict("records")
    )
    measured = [
        (cost, f"`make bench` on {cost['device']}: {cost['size']}") for cost in dearest
    ]
    ours = {
        metric: [{"ours": cost[of], "status": said} for cost, said in measured]
        for metric, of in _TIMES.items()
    }
    ours |= {
        metric: list(_crossings(records, mode))
        for mode, metric in selection.CROSSED.items()
    }
    ours[_GAIN] = list(_largest_gains(records))
    known = selection.experiments(records).query("is_printed")
    as_printed = {(None, None), *known[SETTING].itertuples(index=False, name=None)}
    rows: list[dict[str, Any]] = []
    for printed in published(SLUG, "text").to_dict("records"):
        metric, kind = (
            printed["metric"],
            "share" if printed["unit"] == "percent" else "",
        )
        unit = "difference of shares" if metric == _GAIN else kind
        row = {
            "quantity": metric.removesuffix(_POINTS),
            "dataset": printed["dataset"],
            "network": printed["model"],
        }
        row |= {
            "unit": unit,
            "published": float(printed["value"]) / (100 if unit else 1),
            "seeds": 0,
        }
        beside = [
            each
            for each in ours[metric]
            if (each.get("dataset"), each.get("network")) in as_printed
        ]
        missing = {
            "status": f"{NOT_RUN}{'`make bench`' if metric in _TIMES else 'profile cifar10'}"
        }
        rows += [row | each for each in beside or [missing]]
        rows += [
            row | {"published": np.nan} | each
            for each in ours[metric]
            if each not in beside
        ]
    columns = [
        "quantity",
        *SETTING,
        "unit",
        "published",
        "ours",
        "ours_sd",
        "seeds",
        "status",
        CELLS,
    ]
    return pd.DataFrame(rows, columns=columns)


def _largest_gains(records: Records) -> Iterator[dict[str, Any]]:
    for setting, some in selection.figure_1_trainings(records).groupby(
        SETTING, sort=False
    ):
        factors = selection.by_factor(some)
        gains = {
            factor: selection.paired(rows, LAST)["difference"]
            for factor, rows in factors.items()
        }
        best = max(
            (each for each in gains if len(gains[each])),
            key=lambda each: gains[each].mean(),
            default=None,
        )
        if best is not None:
            rows, note = (
                factors[best],
                selection.lost_by_mode(
                    factors[best], LAST, NO_COOLING, counted="guessing"
                ),
            )
            gain = gains[best][: 0 if rows["lost"].all() else None]
            yield _ours(setting, gain, rows[rows["mode"] == LAST], note, missing=note)


def _crossings(records: Records, mode: str) -> Iterator[dict[str, Any]]:
    found = selection.crossings(records)
    found = found[(found["mode"] == mode) & (found["limit"] == selection.LIMIT)]
    for setting, some in found.groupby(SETTING, sort=False):
        epochs = some["epoch"].dropna()
        note = (
            f"in {len(epochs)} of {len(some)} seeds" if len(epochs) < len(some) else ""
        )
        yield _ours(
            setting, epochs, some, note, missing="the temperature does not get there"
        )


def _ours(
    setting: tuple[Any, ...],
    values: pd.Series[float],
    behind: pd.DataFrame,
    note: str,
    *,
    missing: str,
) -> dict[str, Any]:
    status = "; ".join(filter(None, (MEASURED, note))) if len(values) else missing
    row = {
        "ours": values.mean(),
        "ours_sd": values.std(),
        "seeds": len(values),
        "status": status,
    }
    return (
        dict(zip(SETTING, setting, strict=True))
        | row
        | {CELLS: together(behind[CELLS])}
    )


_COMPARED = (
    "without",
    "cooled",
    "difference",
    "difference_sd",
    "seeds",
    "over_unchanged",
    "over_unchanged_sd",
)
_READ = {
    "without": "without Cooling (%)",
    "cooled": "with Cooling (%)",
    "difference": "difference (points)",
}
_READ |= {"over_unchanged": "over the main recipe with the same Cooling (points)"}
COMPARED = (*_READ.values(), "seeds")  # What `wide` makes of them, mean ± sd.
_CHANGED = [
    "experiment",
    "dataset",
    "network",
    "change",
    "schedule",
    "loss",
    "arm",
    "mode",
]
_LOST = {
    f"{how}_{side}": how + end
    for side, end in (("without", "_without"), ("cooled", ""))
    for how in LOST
}
_PLACE = [*TASK, "loss"]
_SAME_COOLING = [
    *_PLACE,
    "mode",
    "factor",
    "max_temperature",
    "reset_temperature",
    "seed",
]


def comparison(records: Records, role: str) -> pd.DataFrame:
    """Test accuracy with and without Cooling, means over the last epochs, for every
    change of the recipe.

    Compared are trainings of one experiment, schedule, loss and seed; where only the
    Cooling is changed, with the main recipe's, and (over_unchanged) with the same
    Cooling there. That recipe comes first, with an empty change. Means are over the
    seeds that finished both, or else each over those that finished it.
    """
    pairs, keys = _pairs(_compared(records, role)), [*_CHANGED, "compared_with"]
    both = pairs["difference"].notna()
    hidden = ~both & both.groupby([pairs[key] for key in keys]).transform("any")
    pairs[["cooled", "without"]] = pairs[["accuracy", "accuracy_without"]].mask(hidden)
    means = {
        name: name for name in ("without", "cooled", "difference", "over_unchanged")
    }
    table = _over_seeds(pairs, keys, means, _LOST, "difference").astype(
        dict.fromkeys(_LOST, int)
    )
    lost = zip(
        table["diverged_cooled"], table["stuck_cooled"], table["runs"], strict=True
    )
    said = [
        lost_seeds(*each) if sum(each[:2]) == each[2] else "no seed finished both"
        for each in lost
    ]
    table["status"] = pd.Series(said, table.index, dtype=str).mask(
        table["seeds"] > 0, MEASURED
    )
    return table[
        [*_CHANGED, *_COMPARED, "runs", *_LOST, "never_redistributed", "status", CELLS]
    ]


def _compared(records: Records, role: str) -> pd.DataFrame:
    rows, main = (
        selection.trainings(records, role),
        selection.trainings(records, *selection.MAIN_ROLES),
    )
    main = main.drop_duplicates([*TASK, "arm", "seed"]).merge(
        rows[TASK].drop_duplicates(), on=TASK
    )
    kinds, known = (
        pd.MultiIndex.from_frame(table[["mode", "factor"]]) for table in (main, rows)
    )
    main = main[kinds.isin(known) | (main["mode"] == NO_COOLING)]
    return pd.concat([main, rows], ignore_index=True)


def _pairs(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per training with Cooling: what it is compared with (`_without`,
    `_unchanged`), and the differences.
    """
    without, cooled = rows[rows["mode"] == NO_COOLING], rows[rows["mode"] != NO_COOLING]
    # The experiment itself where it trains without Cooling, else the main recipe's, or
    # none.
    own = (
        without[["experiment", *_PLACE]]
        .drop_duplicates()
        .assign(compared_with=without["experiment"])
    )
    main = (
        without[without["change"] == ""]
        .drop_duplicates(_PLACE)
        .rename(columns={"experiment": "main"})
    )
    cooled = cooled.merge(own, "left").merge(main[["main", *_PLACE]], "left", on=_PLACE)
    cooled = cooled.assign(
        compared_with=cooled["compared_with"].fillna(cooled["main"]).fillna("")
    )
    result, same = ["accuracy", CELLS], ["compared_with", "schedule", "loss", "seed"]
    reference = without.rename(columns={"experiment": "compared_with"})[
        [*same, *result, *LOST]
    ]
    plain = cooled[cooled["change"] == ""].drop_duplicates(_SAME_COOLING)[
        [*_SAME_COOLING, *result]
    ]
    pairs = cooled.merge(reference, "left", on=same, suffixes=("", "_without"))
    pairs = pairs.merge(plain, "left", on=_SAME_COOLING, suffixes=("", "_unchanged"))
    others = (pairs["change"] == "") | (pairs["compared_with"] == pairs["experiment"])
    pairs.loc[others, ["accuracy_unchanged", "cells_unchanged"]] = np.nan
    behind = pairs[[CELLS, f"{CELLS}_without", f"{CELLS}_unchanged"]]
    return pairs.assign(
        cells=[together(cells.dropna()) for _, cells in behind.iterrows()],
        difference=pairs["accuracy"] - pairs["accuracy_without"],
        over_unchanged=pairs["accuracy"] - pairs["accuracy_unchanged"],
    )


_ACCURACY = {"accuracy": "test_accuracy", "accuracy_last_epoch": None}
_IOU = {"mean_iou": "mIoU %", "pixel_accuracy": "pixel accuracy %"}
_DENSE = {**_IOU, "mean_iou_last_epoch": None, "pixel_accuracy_last_epoch": None}
PRINTED: Mapping[str, Printed] = {
    "table_1": Printed("Table 1", ("schedule",), _ACCURACY, ("table_1",)),
    "table_2": Printed(
        "Table 2",
        ("activation",),
        _ACCURACY,
        ("table_2", "table_1"),
        (selection.NO_SCHEDULE,),
    ),
    "section_4_4": Printed("Sec. 4.4 text", (), _DENSE),
}
TABLES: dict[str, Callable[[Records], pd.DataFrame]] = {
    **{name: partial(beside_the_paper, spec=spec) for name, spec in PRINTED.items()},
    "text": text,
    "ablation": partial(comparison, role="ablation"),
    "ours": partial(comparison, role="ours"),
}


def wide(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """One of `TABLES` for a reader, in the paper's words; it may have been read back
    from its file.
    """
    words = {
        "schedule": SCHEDULES,
        "activation": {"crelu": "CReLU", "relu": "ReLU"},
        "mode": MODES,
    }
    table = table.replace(
        {column: known for column, known in words.items() if column in table}
    )
    if name in PRINTED:
        return shared.wide(table, across="mode")
    return _wide_text(table) if name == "text" else _wide_comparison(table)


def _wide_comparison(table: pd.DataFrame) -> pd.DataFrame:
    for name, heading in _READ.items():
        both = zip(
            table[name], table.get(f"{name}_sd", table[name] * np.nan), strict=True
        )
        texts = (
            " ± ".join(number(value, percent=True) for value in each) for each in both
        )
        table[heading] = [text.removesuffix(f" ± {shared.MISSING}") for text in texts]
    shown = [
        "dataset",
        "network",
        "change",
        "schedule",
        "arm",
        *COMPARED,
        "status",
        CELLS,
    ]
    main = {"change": "none: the main recipe"}
    return (
        table.reindex(columns=shown)
        .fillna(main)
        .replace({"change": {"": main["change"]}})
    )


def _wide_text(table: pd.DataFrame) -> pd.DataFrame:
    """In the units in which the paper prints them, without zeros at their ends."""
    share, times = (
        table["unit"].fillna("") != "",
        table["quantity"].str.startswith("seconds"),
    )
    scaled = (
        table[["published", "ours", "ours_sd"]]
        .mul(np.where(share, 100, 1), axis="index")
        .round(3)
    )
    unit = np.select(
        [table["unit"] == "share", share, times], ["%", "points", "s"], default="epoch"
    )
    made = shared.wide(table.assign(**scaled, unit=unit), across=None)
    for name in made.columns.intersection(["ours", "printed"]):
        made[name] = [
            Linked(_ZEROS.sub(r"\1", text), getattr(text, CELLS, ""))
            for text in made[name]
        ]
    return made

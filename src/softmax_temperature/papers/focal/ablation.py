"""The table of changes to the recipe, the network, a loss, or the temperature search.

Runs with a change are compared with runs of the main recipe, paired by loss and seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.focal.study import (
    ECE,
    ERROR,
    EVALUATION_CELL,
    MAIN,
    MMCE_WRITTEN,
    NLL,
    TEMPERATURE,
    VARIANTS,
    WRITTEN_LABELS,
    after_scaling,
    at_selected_epoch,
)
from softmax_temperature.papers.shared import layout
from softmax_temperature.papers.shared.display import is_share, metric_label
from softmax_temperature.papers.shared.metrics import Metric
from softmax_temperature.papers.shared.runs import Runs
from softmax_temperature.papers.shared.sources import CELLS, together
from softmax_temperature.papers.shared.tables import DIVERGED, MEASURED, mean_and_sd

NUMBERS: Mapping[str, Metric] = {
    "error": at_selected_epoch(ERROR),
    "ece": at_selected_epoch(ECE),
    "ece_after_scaling": at_selected_epoch(after_scaling(ECE)),
    "temperature": at_selected_epoch(TEMPERATURE),
    "nll": at_selected_epoch(NLL),
}
"""Maps names to the metrics that show the effect of a change."""
BY_LIKELIHOOD: Mapping[str, Metric] = {
    name: replace(NUMBERS[name], name=f"{NUMBERS[name].name}_by_nll")
    for name in ("ece_after_scaling", "temperature")
}
"""Maps names to the ECE after scaling and to the temperature, both for scaling that
minimises the validation NLL instead of the validation ECE.
"""
_CHANGED = [
    "task",
    "dataset",
    "network",
    "variant",
    "method",
    "metric",
]
_COLUMNS = [
    *_CHANGED,
    "main",
    "changed",
    "difference",
    "difference_sd",
    "seeds",
    "diverged_seeds",
    "embeddings",
    "status",
    CELLS,
]


def table(runs: Runs) -> pd.DataFrame:
    """The differences between changed runs and the main recipe, as means over seeds.

    A seed counts if its changed run and its run of the main recipe have both finished.
    """
    variants = runs.select(VARIANTS)
    variants = variants.assign(task=variants["variant_of"])
    main = runs.select(MAIN)
    main = main.assign(task=main["experiment"])
    written = MMCE_WRITTEN.select(main).assign(variant="as written")
    by_likelihood = main.assign(variant="temperature by NLL", method=main["arm"])
    parts = [
        _differences(runs, _with_method(variants), NUMBERS),
        _differences(runs, _with_method(written), NUMBERS),
    ]
    searched = _differences(runs, by_likelihood, BY_LIKELIHOOD)
    parts.append(searched[searched["seeds"] > 0])
    filled = [part for part in parts if len(part)]
    return pd.concat(filled or parts[:1], ignore_index=True)[_COLUMNS]


def _with_method(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the column `method`: the label that the loss has in the main recipe."""
    return rows.assign(method=rows["arm"].replace(WRITTEN_LABELS))


def _differences(
    runs: Runs, changed: pd.DataFrame, numbers: Mapping[str, Metric]
) -> pd.DataFrame:
    """The mean difference from the main recipe over seeds, per change and metric."""
    groups = changed.groupby(["experiment", "arm"], sort=False)
    changed = changed.assign(change=groups.ngroup())
    parts = [
        _beside_main(runs, changed, name, number) for name, number in numbers.items()
    ]
    pairs = pd.concat(parts).sort_values("change", kind="stable")
    is_pair = pairs["difference"].notna()
    pairs["main"] = pairs["main"].where(is_pair)
    pairs["changed"] = pairs["changed"].where(is_pair)
    means = pairs.groupby(["change", *_CHANGED], sort=False).agg(
        main=("main", "mean"),
        changed=("changed", "mean"),
        **mean_and_sd("difference"),
        seeds=("difference", "count"),
        runs=("seed", "size"),
        diverged_seeds=("diverged", "sum"),
        embeddings=("embeddings", "first"),
        cells=(CELLS, together),
        main_cells=("main_cells", _known_together),
    )
    rows = means.reset_index()
    all_lost = rows["runs"] == rows["diverged_seeds"]
    otherwise = np.where(all_lost, DIVERGED, "no finished run of the main recipe")
    cells = rows[[CELLS, "main_cells"]].itertuples(index=False, name=None)
    return rows.assign(
        status=np.where(rows["seeds"] > 0, MEASURED, otherwise),
        cells=[together(filter(None, both)) for both in cells],
    )


def _beside_main(
    runs: Runs, changed: pd.DataFrame, name: str, number: Metric
) -> pd.DataFrame:
    """The metric `number` of each changed run, beside its value in the main recipe.

    The column `main` has the value of the run of the main recipe with the same loss and
    seed.
    """
    main = runs.select(MAIN)
    reference = pd.DataFrame(
        {
            "task": main["experiment"],
            "method": main["arm"],
            "seed": main["seed"],
            "main": NUMBERS[name].of(runs, main),
            "main_cells": _cells(main),
        }
    )
    rows = changed.assign(
        metric=name,
        changed=number.of(runs, changed),
        cells=_cells(changed),
    )
    pairs = rows.merge(reference, how="left", on=["task", "method", "seed"])
    return pairs.assign(difference=pairs["changed"] - pairs["main"])


def _cells(rows: pd.DataFrame) -> list[str]:
    """For each run, the name of the cell that evaluated it, without the seed."""
    return [cell.rpartition("/")[0] for cell in rows[EVALUATION_CELL]]


def _known_together(cells: pd.Series[str]) -> str:
    return together(cells.dropna())


def lay_out(table: pd.DataFrame) -> pd.DataFrame:
    """Lay out the table for readers, with cells such as "main → changed (± sd)".

    The result has one row per change and loss, and one column per metric.
    """
    keys = ["dataset", "network", "embeddings", "variant", "method", "seeds", CELLS]
    metrics = [_heading(metric) for metric in table["metric"]]
    texts = [
        _change(row) if row["status"] == MEASURED else row["status"]
        for row in table.to_dict("records")
    ]
    rows = table.assign(text=texts, metric=metrics)
    cells = rows.groupby([*keys, "metric"], sort=False, dropna=False)["text"].first()
    order = list(dict.fromkeys(metrics))
    wide = cells.unstack("metric", sort=False)[order]
    return wide.reset_index().rename_axis(columns=None)


def _heading(metric: str) -> str:
    words = metric_label(metric)
    return f"{words} (%)" if is_share(metric) else words


def _change(row: Mapping[Any, Any]) -> str:
    """Format the main value, the changed value and, in brackets, the sd of the change.

    Fractions are formatted as percentages.
    """
    metric = str(row["metric"])
    is_temperature = metric == "temperature"
    scale = 0.01 if is_temperature else 1.0
    two_digits = is_temperature or is_share(metric)

    def text(name: str) -> str:
        return layout.number(scale * row[name], percent=two_digits)

    sd = text("difference_sd")
    spread = "" if sd == layout.MISSING else f" (± {sd})"
    return f"{text('main')} → {text('changed')}{spread}"

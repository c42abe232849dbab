"""The numbers that the paper prints, in our names and units."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from softmax_temperature.papers.cooling.records import SLUG
from softmax_temperature.papers.cooling.selection import MODES, NO_SCHEDULE, SCHEDULES
from softmax_temperature.papers.cooling.table_specs import SPECS, Printed
from softmax_temperature.papers.shared.tables import published

if TYPE_CHECKING:
    from collections.abc import Mapping

DIVERGENCE = "divergence"
PRINTED_SEEDS = 3
"""Behind every mean and standard deviation of Tables 1 and 2."""


def printed_numbers(spec: Printed) -> pd.DataFrame:
    """The numbers of one table of the paper.

    Returns:
        Columns model (as printed), dataset and network (its names without activation and schedule), activation,
        schedule ("none" where the table has none), mode, metric; published and published_sd, fractions, missing where
        it prints a divergence; published_diverged (bool).
    """
    rows = published(SLUG, spec.title)
    parts = rows["method"].str.partition(" | LR schedule: ")
    diverged = rows["value"] == DIVERGENCE
    scale = np.where(rows["unit"] == "percent", 100, 1)
    return pd.DataFrame(
        {
            "model": rows["model"],
            "dataset": rows["dataset"],
            "network": rows["model"].str.replace(r" \(.*|,.*", "", regex=True),
            "activation": np.where(rows["model"].str.contains("CReLU"), "crelu", "relu"),
            "schedule": parts[2].map(_keys(SCHEDULES)).fillna(NO_SCHEDULE),
            "mode": parts[0].str.replace("layer Cooling", "layer").map(_keys(MODES)),
            "metric": rows["metric"].map({metric.printed: metric.name for metric in spec.metrics}),
            "published": rows["value"].where(~diverged).astype(float) / scale,
            "published_sd": rows["sd"].astype(float) / scale,
            "published_diverged": diverged,
        }
    )


def named_as_printed(experiments: pd.DataFrame) -> pd.DataFrame:
    """Experiments with data set and network as the paper calls them, where its tables have numbers for them.

    Args:
        experiments: with the columns dataset, network, printed_model.
    """
    tables = [printed_numbers(spec) for spec in SPECS.values() if isinstance(spec, Printed)]
    models = pd.concat(tables).drop_duplicates("model").set_index("model")
    renamed = {
        column: experiments["printed_model"].map(models[column]).fillna(experiments[column])
        for column in ("dataset", "network")
    }
    return experiments.assign(**renamed)


def _keys(names: Mapping[str, str]) -> dict[str, str]:
    return {name: key for key, name in names.items()}

"""Table K.1, ours beside the printed numbers; the text of appendix K has more of them than the table at hand."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.focal.records import SLUG
from softmax_temperature.papers.shared.tables import published

if TYPE_CHECKING:
    from softmax_temperature.papers.focal.records import Records

TITLE = "text of appendix K"
"""What `data/published/focal.csv` calls the table."""
DATASETS = MappingProxyType({"wmt14_en_de": "WMT14 En-De"})
"""The paper's names of data sets."""
NETWORK = "Transformer"
STAGE = "focal/translation"
"""The stage that the numbers come from, as the manifests of its cells name it."""

_BEST = "best BLEU over temperatures"
_ROWS = MappingProxyType(
    {
        "ECE": {"ece": "ece", "ece_after_scaling": "ece_after_scaling", "temperature": "temperature"},
        "BLEU": {"bleu": "bleu", "bleu_after_scaling": "bleu_after_scaling"},
        _BEST: {"best_bleu": "bleu", "best_bleu_temperature": "temperature"},
    }
)
"""Of each row of the table, the columns of the records and what they are called here."""
_PRINTED = MappingProxyType(
    {
        "best test BLEU over temperatures": (_BEST, "bleu", 100),
        "optimal T (validation)": ("ECE", "temperature", 1),
    }
)
"""Where the printed numbers stand, and how many of their units make one of ours."""
_KEYS = ["dataset", "network", "criterion", "method", "metric"]
_NUMBERS = [
    *("published", "ours", "ours_sd", "seeds", "diverged_seeds", "difference_in_standard_errors", "status", "cells"),
]


def table_k1(records: Records) -> pd.DataFrame:
    """Table K.1 with the numbers in the text beside it.

    Returns:
        The columns of `tables.table`, with the criterion "ECE", "BLEU" or "best BLEU over temperatures". What is
        printed is one training each; the difference is in standard errors of ours over seeds, empty for one seed.
    """
    printed = _printed()
    rows = _measured(records).merge(printed, how="left", on=_KEYS)
    missing = printed[~pd.MultiIndex.from_frame(printed[_KEYS]).isin(pd.MultiIndex.from_frame(rows[_KEYS]))]
    missing = missing.assign(task="", seeds=0, diverged_seeds=0, status="not run: profile paper")
    error = (rows["ours_sd"] / rows["seeds"].clip(lower=1) ** 0.5).replace(0, np.nan)
    rows = rows.assign(difference_in_standard_errors=(rows["ours"] - rows["published"]) / error)
    parts = [part for part in (rows, missing) if len(part)]
    return pd.concat(parts, ignore_index=True).reindex(columns=["task", *_KEYS, *_NUMBERS])


def _measured(records: Records) -> pd.DataFrame:
    """A row for each number that the trainings should give."""
    runs = records.translation_runs.astype({"diverged": bool})
    rows: list[dict[str, Any]] = []
    for criterion, columns in _ROWS.items():
        for (dataset, method), some in runs.groupby(["dataset", "arm"], sort=False):
            finished = some[~some["diverged"]]
            for column, metric in columns.items():
                rows.append(
                    {
                        "task": f"translation-{dataset}",
                        "dataset": DATASETS.get(str(dataset), dataset),
                        "network": NETWORK,
                        "criterion": criterion,
                        "method": method,
                        "metric": metric,
                        "ours": finished[column].mean(),
                        "ours_sd": finished[column].std(),
                        "seeds": len(finished),
                        "diverged_seeds": len(some) - len(finished),
                        "status": "measured" if len(finished) else "diverged",
                        "cells": f"{STAGE}/{method}",
                    }
                )
    names = ["task", *_KEYS, "ours", "ours_sd", "seeds", "diverged_seeds", "status", "cells"]
    return pd.DataFrame(rows, columns=names).astype({"ours": float, "ours_sd": float, "seeds": int})


def _printed() -> pd.DataFrame:
    """The printed numbers in our names and units."""
    rows = published(SLUG, TITLE).rename(columns={"model": "network"})
    criterion, metric, unit = zip(*rows["metric"].map(_PRINTED), strict=True)
    values = rows["value"].astype(float) / np.array(unit)
    return rows.assign(criterion=criterion, metric=metric, published=values)[[*_KEYS, "published"]]

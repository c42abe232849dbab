"""The records of the paper: what its tables, figures and claims are computed from.

They lie in `results/<profile>/classifier_temperature/`, `runs.csv` at the top and the others under `tables/`.

| file | one row |
|---|---|
| runs.csv | data set × backbone × inverse temperature: best accuracy over epochs on test and on validation data |
| pairs.csv | data set × backbone: the 23 statistics, the best inverse temperature and its plateau |
| correlations.csv | statistic: its correlation with the best inverse temperature |
| predictions.csv | data set × backbone: best inverse temperature, and predicted with and without its data set |
| leave_one_out.csv | row of Table 1 × subset of pairs × method |
| folds.csv | the same × left-out data set |
| rules.csv | rule for choosing a temperature × pair: the accuracy it gives, and what it loses |
| rescaling.csv | optimizer × loss × repeat × inverse temperature: best accuracy over epochs |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from softmax_temperature.papers.shared.tables import read_csv

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

SLUG = "classifier_temperature"
RESCALING, SEARCH = "classifier_temperature/rescaling", "classifier_temperature/search"
HEURISTIC = "classifier_temperature/heuristic"
"""The stages that the numbers come from. The last has one cell, which reads every pair's statistics and search."""
TABLES = ("pairs", "correlations", "predictions", "leave_one_out", "folds", "rules", "rescaling")


@dataclass(frozen=True)
class Records:
    """The tables, by the name of their file."""

    runs: pd.DataFrame
    pairs: pd.DataFrame
    correlations: pd.DataFrame
    predictions: pd.DataFrame
    leave_one_out: pd.DataFrame
    folds: pd.DataFrame
    rules: pd.DataFrame
    rescaling: pd.DataFrame


def read_records(folder: Path) -> Records:
    """Read the tables back.

    Args:
        folder: `results/<profile>/classifier_temperature`.
    """
    return Records(
        runs=read_csv(folder / "runs.csv"), **{name: read_csv(folder / "tables" / f"{name}.csv") for name in TABLES}
    )

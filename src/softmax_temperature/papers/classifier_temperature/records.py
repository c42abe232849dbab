"""The records of the paper in `results/<profile>/classifier_temperature/`, for its
tables, figures and claims.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pandas as pd

from softmax_temperature import stages
from softmax_temperature.papers.shared.records import read_records as read

SLUG = "classifier_temperature"
RESCALING, SEARCH, HEURISTIC = map(
    stages.label, (stages.RESCALING, stages.SEARCH, stages.HEURISTIC)
)
"""The stages that the numbers come from. The last has one cell, which reads every
pair's statistics and search.
"""


@dataclass(frozen=True)
class Records:
    """The tables, by the name of their file, with what each row is about.

    runs: data set × backbone × inverse temperature: best accuracy over epochs on test
        and on validation data.
    pairs: data set × backbone: the 23 statistics, the best inverse temperature and its
        plateau.
    correlations: statistic: its correlation with the best inverse temperature.
    predictions: data set × backbone: best inverse temperature, and predicted with and
        without its data set.
    leave_one_out: row of Table 1 × subset of pairs × method. folds: the same × left-out
        data set.
    rules: rule for choosing a temperature × pair: the accuracy it gives, and what it
        loses.
    rescaling: optimizer × loss × repeat × inverse temperature: best accuracy over
        epochs.
    """

    runs: pd.DataFrame
    pairs: pd.DataFrame
    correlations: pd.DataFrame
    predictions: pd.DataFrame
    leave_one_out: pd.DataFrame
    folds: pd.DataFrame
    rules: pd.DataFrame
    rescaling: pd.DataFrame


read_records = partial(read, Records)
"""Reads the tables back from the paper's folder."""

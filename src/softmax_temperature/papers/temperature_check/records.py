"""The records of the paper in `results/<profile>/temperature_check/`, which its tables, figures and claims start from.

A sweep is a network on a data set; it is trained at several inverse temperatures with several rescaled learning rates.
"""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from softmax_temperature.papers.shared.records import read_records as read

SLUG = "temperature_check"
NAMES = ("sweep", "inverse_temperature", "learning_rate", "start", "seed")
"""What names a training (`params.temperature_check.Training`), in every table; learning_rate is the rescaled one."""


@dataclass(frozen=True)
class Records:
    """The tables, by the name of their file, with what each row is about.

    runs: training: initial_logit_norm (mean over validation samples of the norm of the tempered logits before the first
        step), metrics (empty where it diverged), temperature (that post-hoc scaling finds for the tempered logits),
        scaled_nll and scaled_ece (at that temperature), cooled_temperature (Cooling's last), correlation (of a pair).
    sweeps: sweep. history: training × epoch (from 1) × split.
    heuristic: training at inverse temperature 1: what the heuristic of classifier_temperature predicts, and if inside.
    early_curves, early_norms: the theory of early learning, see `early_learning`.
    """

    runs: pd.DataFrame
    sweeps: pd.DataFrame
    history: pd.DataFrame
    heuristic: pd.DataFrame
    early_curves: pd.DataFrame
    early_norms: pd.DataFrame


def read_records(folder: Path) -> Records:
    """Read the tables back from the paper's folder."""
    return read(Records, folder)

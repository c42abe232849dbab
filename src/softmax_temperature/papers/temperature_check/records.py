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
    """The tables, by the name of their file; one row per what stands first, with these columns besides its names.

    runs: training: correlation (of a pair of networks, empty for one alone), diverged (bool), epochs_done,
        initial_logit_norm (mean over validation samples of the norm of the tempered logits before the first step),
        validation_accuracy, test_accuracy, test_nll, test_ece, confidence (mean over test samples), temperature (that
        post-hoc scaling finds on validation data for the tempered logits), at_bound (bool), scaled_nll, scaled_ece (of
        test data at that temperature), cooled_temperature (last, of Cooling; empty without). Diverged trainings have
        none of the metrics.
    sweeps: sweep: dataset, network, architecture, classes, parameters, epochs, train_samples, validation_samples,
        test_samples.
    history: training × epoch (from 1) × split ("train", "validation", "test"): accuracy, nll.
    heuristic: training at inverse temperature 1: predicted (the inverse temperature by the heuristic of
        classifier_temperature), inside (bool: whether its statistics lie where the heuristic was fitted).
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

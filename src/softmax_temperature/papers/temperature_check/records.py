"""The records of the paper: what its tables, figures and claims are computed from.

They lie in `results/<profile>/temperature_check/`, `runs.csv` at the top and the others under `tables/`. A sweep is a
network on a data set; it is trained at several inverse temperatures with several rescaled learning rates. Every row of
a training names `sweep`, `inverse_temperature`, `learning_rate` (the rescaled one), `start` and `seed`.

| file | one row |
|---|---|
| runs.csv | training: whether it diverged, accuracies, NLL and ECE before and after temperature scaling |
| sweeps.csv | sweep: data set, network, architecture, parameters, samples, epochs |
| history.csv | training × epoch × split: accuracy and NLL |
| heuristic.csv | training at inverse temperature 1: what classifier_temperature predicts for its features |
| early_*.csv | the theory of early learning, see `early_learning` |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from softmax_temperature.papers.shared.tables import read_csv

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

SLUG = "temperature_check"
TABLES = ("sweeps", "history", "heuristic", "early_curves", "early_norms")
NAMES = ("sweep", "inverse_temperature", "learning_rate", "start", "seed")


@dataclass(frozen=True)
class Records:
    """The tables, by the name of their file.

    Columns, besides those of `NAMES`:

    runs: correlation (of a pair of networks, empty for one alone), diverged (bool), epochs_done, initial_logit_norm
        (mean over validation samples of the norm of the tempered logits before the first step), validation_accuracy,
        test_accuracy, test_nll, test_ece, confidence (mean over test samples), temperature (that post-hoc scaling finds
        on validation data for the tempered logits), at_bound (bool), scaled_nll, scaled_ece (of test data at that
        temperature), cooled_temperature (last, of Cooling; empty without). Diverged trainings have none of the metrics.
    sweeps: sweep, dataset, network, architecture, classes, parameters, epochs, train_samples, validation_samples,
        test_samples.
    history: epoch (from 1), split ("train", "validation", "test"), accuracy, nll.
    heuristic: predicted, low, high (inverse temperatures), inside (bool: whether its statistics lie where the
        heuristic was fitted).
    early_curves, early_norms: as `early_learning` describes them.
    """

    runs: pd.DataFrame
    sweeps: pd.DataFrame
    history: pd.DataFrame
    heuristic: pd.DataFrame
    early_curves: pd.DataFrame
    early_norms: pd.DataFrame


def read_records(folder: Path) -> Records:
    """Read the tables back.

    Args:
        folder: `results/<profile>/temperature_check`.
    """
    return Records(
        runs=read_csv(folder / "runs.csv"), **{name: read_csv(folder / "tables" / f"{name}.csv") for name in TABLES}
    )

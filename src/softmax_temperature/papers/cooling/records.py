"""The records of the paper: what its tables, figures and claims are computed from.

They lie in `results/<profile>/cooling/`, `runs.csv` at the top and the others under `tables/`. An experiment is a data
set with a network and a recipe; it is trained with several learning-rate schedules and arms, an arm being a way to cool
(or not to). Every row of a training names `experiment`, `schedule`, `arm` and `seed`.

| file | one row |
|---|---|
| runs.csv | training: what became of it, accuracy, NLL and ECE of test data after the last epoch, last temperature |
| experiments.csv | experiment: data set, network, what of the paper it stands for, parameters, images, epochs |
| arms.csv | arm: mode, factor, bounds, period, loss |
| history.csv | training × epoch × split: what `training.Watch` sees |
| temperatures.csv | training × last Cooling of an epoch: the temperature that was applied, the product of all so far |
| norms.csv | training × epoch: norms of logits, weights and gradients |
| segmentation.csv | U-Net × Cooling or not × seed: mean intersection over union, pixel accuracy |
| theory_checks.csv | statement of the paper: predicted and measured |
| cost.csv | device × mode: seconds of a Cooling and of an epoch, from benchmarks/results.json |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from softmax_temperature.papers.shared.tables import read_csv

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

SLUG = "cooling"
TABLES = ("experiments", "arms", "history", "temperatures", "norms", "segmentation", "theory_checks", "cost")


@dataclass(frozen=True)
class Records:
    """The tables, by the name of their file.

    Columns, besides `experiment`, `schedule`, `arm` and `seed`:

    runs: diverged, stuck (bool, see `outcomes`), epochs_done, test_accuracy, train_accuracy, test_nll, test_ece (all
        four empty when either), temperature (product of all applied; 1 without Cooling).
    experiments: dataset, network, activation ("relu", "crelu"), role ("table_1", "table_2", "figure_1", "figure_2",
        "ablation", "ours"), change (what an ablation changes, "" otherwise), printed_model (as the paper's tables name
        it, empty where it has none), classes, parameters, train_images, validation_images, test_images, epochs,
        planned_epochs.
    arms: mode ("none", "last_layer", "distributed", "periodic"), factor, max_temperature, reset_temperature, refit,
        period ("epoch" or a number of batches), optimizer_state (what the mode has no use for is empty), loss.
    history: epoch (from 1), split ("train", "validation", "test"), accuracy, nll, ece, entropy, loss, weight_norm
        (last layer), feature_norm.
    temperatures: cooling (from 1), epoch, applied, total, at_bound (bool).
    norms: epoch, logit_norm (mean over validation images), weight_norm (all layers), gradient_norm (mean over the
        epoch's batches).
    segmentation: arm ("none", "last_layer"), seed, epoch, mean_iou, pixel_accuracy, temperature (test split of CamVid
        or of what the profile names; the last epoch of each training has the largest epoch), dataset, classes. Beside
        the table stands segmentation.npz, as `segmentation_panel` reads it, where a profile shows images.
    theory_checks: statement, network, predicted, measured, largest_relative_difference.
    cost: device ("cpu", "cuda"), mode, seconds (of one Cooling), epoch_seconds, share (of the two), rounds (that the
        medians are over), size (of data and network).
    """

    runs: pd.DataFrame
    experiments: pd.DataFrame
    arms: pd.DataFrame
    history: pd.DataFrame
    temperatures: pd.DataFrame
    norms: pd.DataFrame
    segmentation: pd.DataFrame
    theory_checks: pd.DataFrame
    cost: pd.DataFrame


def read_records(folder: Path) -> Records:
    """Read the tables back.

    Args:
        folder: `results/<profile>/cooling`.
    """
    return Records(
        runs=read_csv(folder / "runs.csv"), **{name: read_csv(folder / "tables" / f"{name}.csv") for name in TABLES}
    )

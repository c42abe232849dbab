"""The records of the paper in `results/<profile>/cooling/`, which its tables, figures
and claims start from.

An experiment is a data set with a network and a recipe, an arm a way to cool (or not
to). Every row of a training names `experiment`, `schedule`, `arm` and `seed`.
"""

from dataclasses import dataclass
from functools import partial

import pandas as pd

from softmax_temperature.papers.shared.records import read_records as read

SLUG = "cooling"


@dataclass(frozen=True)
class Records:
    """The tables, by the name of their file; each comment has what there is a row for,
    and its columns besides that.
    """

    # training: diverged, stuck (bool, see `selection.outcome`), epochs_done,
    # test_accuracy, train_accuracy, test_nll, test_ece (after the last epoch; all four
    # empty when lost), temperature (product of all applied; 1 without Cooling)
    runs: pd.DataFrame
    # experiment: dataset, network, activation ("relu", "crelu"), role ("table_1",
    # "table_2", "figure_1", "figure_2", "ablation", "ours"), change (what an ablation
    # changes), printed_model (as the paper's tables name it, if they do), classes,
    # parameters, train_images, validation_images, test_images, epochs, planned_epochs
    experiments: pd.DataFrame
    # arm: mode ("none", "last_layer", "distributed", "periodic"), factor,
    # max_temperature, reset_temperature, refit, period ("epoch" or a number of
    # batches), optimizer_state (empty where the mode has no use for it), loss
    arms: pd.DataFrame
    # training × epoch (from 1) × split ("train", "validation", "test"): accuracy, nll,
    # ece, entropy, loss, weight_norm (last layer), feature_norm
    history: pd.DataFrame
    # training × last Cooling of an epoch: cooling (from 1), epoch, applied,
    # total, and at_bound (bool)
    temperatures: pd.DataFrame
    # training × epoch: logit_norm (mean over validation images), weight_norm (all
    # layers), gradient_norm (mean over the epoch's batches)
    norms: pd.DataFrame
    # U-Net × arm ("none", "last_layer") × seed × epoch, test split of CamVid or of what
    # the profile names: mean_iou, pixel_accuracy, temperature, dataset, classes. Beside
    # it is `segmentation.safetensors` where images are shown.
    segmentation: pd.DataFrame
    # statement × network: predicted, measured, largest_relative_difference
    theory_checks: pd.DataFrame
    # device ("cpu", "cuda") × mode, from benchmarks/results.json: seconds (of one
    # Cooling), epoch_seconds, share (of the two), rounds (that the medians are over),
    # size (of data and network)
    cost: pd.DataFrame


read_records = partial(read, Records)
"""Reads the tables back from the paper's folder."""

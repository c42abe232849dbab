"""The records of the paper in `results/<profile>/focal/`, which its tables, figures and claims start from.

A task is a data set with a network and a recipe, an arm a loss; every row of a training names `task`, `arm` and `seed`.
`scaling` is "none", "ece" or "nll": not scaled, or divided by the temperature that is best by that criterion on
validation data.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from softmax_temperature.papers.shared.records import RUNS, table_names
from softmax_temperature.papers.shared.records import read_records as read

SLUG = "focal"


@dataclass(frozen=True)
class Records:
    """The tables, by the name of their file; one row per what stands first, with these columns besides its names.

    runs: training × scaling, on test data: temperature, at_bound, samples, accuracy, top5_accuracy,
        negative_log_likelihood, brier_score, expected_, maximum_, adaptive_, classwise_ and
        debiased_calibration_error, noise_floor (as `metrics.calibration_report` names them), and for each with a 90 %
        interval the same name with _low and _high; confident_share, confident_accuracy (predictions with confidence
        >= 0.99, appendix H; accuracy is empty when there is none).
    tasks: task: dataset, network, printed_dataset, printed_network, variant ("" for the main recipe), variant_of,
        classes, parameters, train_images, validation_images, test_images (texts, where the task is on texts), epochs,
        planned_epochs (that the recipe is written for), noise ("generated" or "CIFAR-10-C"), embeddings (of words:
        "learned", or the file of their vectors and the share of words that it has; empty for images), select ("last"
        or "best_validation"), differs (from the paper, in words, beside epochs and embeddings).
    trainings: training: epochs, epochs_done, selected_epoch (whose weights are evaluated, from 1), diverged (bool).
    history: training × epoch (from 1) × split ("train", "validation", "test"): nll, nll_right, nll_wrong, entropy,
        entropy_right, entropy_wrong (nats; empty when no sample is right or wrong), accuracy, ece, feature_norm (mean
        over the split); and, the same for each split, loss (of training, per sample) and weight_norm (last layer).
    gradient_norms: training × epoch × bin: low, high, count: last-layer gradient norms of training samples.
    reliability: training × epoch × bin (25) of training samples: low, high, count, accuracy, confidence.
    differences: training × scaling × metric: value, low, high: arm minus reference arm on the same test samples.
    early_stopping: training × criterion ("last", "accuracy", "nll", "ece"): epoch, and of the test data accuracy,
        expected_calibration_error, negative_log_likelihood.
    ood: training × ood (data set) × scaling: samples, auroc, auroc_low, auroc_high.
    roc: training × ood × scaling × point: false_positive_rate, true_positive_rate.
    panels: image (its number in the test split) × training × scaling: label, predicted, confidence, true_probability;
        the pixels are in `panels.safetensors`, one array per task, uint8 (images, height, width, channels).
    linear_*: appendix C, see `linear_tables`. translation_*: appendix K, see `translation.translation_tables`; without
        `task`, and the arms are CE, LS and FL.
    theory_checks: see `theory.theory_checks`.
    """

    runs: pd.DataFrame
    tasks: pd.DataFrame
    trainings: pd.DataFrame
    history: pd.DataFrame
    gradient_norms: pd.DataFrame
    reliability: pd.DataFrame
    differences: pd.DataFrame
    early_stopping: pd.DataFrame
    ood: pd.DataFrame
    roc: pd.DataFrame
    panels: pd.DataFrame
    linear_history: pd.DataFrame
    linear_mistakes: pd.DataFrame
    linear_boundary: pd.DataFrame
    linear_points: pd.DataFrame
    translation_runs: pd.DataFrame
    translation_curves: pd.DataFrame
    translation_history: pd.DataFrame
    theory_checks: pd.DataFrame


TABLES = tuple(name for name in table_names(Records) if name != RUNS)


def read_records(folder: Path) -> Records:
    """Read the tables back from the paper's folder."""
    return read(Records, folder)

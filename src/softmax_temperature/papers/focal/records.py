"""The records of the paper: what its tables, figures and claims are computed from.

They lie in `results/<profile>/focal/`, `runs.csv` at the top and the others under `tables/`. A task is a data set with
a network and a recipe, an arm a loss; every row of a training names `task`, `arm` and `seed`. `scaling` is "none",
"ece" or "nll": not scaled, or divided by the temperature that is best by that criterion on validation data.

| file | one row |
|---|---|
| runs.csv | training × scaling: temperature, at_bound, accuracy and every metric on test data, with 90 % intervals |
| tasks.csv | task: data set and network, as the paper prints them too where it has them, variant, parameters, sizes |
| trainings.csv | training: epochs done of planned, the one evaluated, whether and when it diverged |
| history.csv | training × epoch × split: NLL and entropy of right and wrong samples, accuracy, ECE, norms |
| gradient_norms.csv | training × epoch × bin: last-layer gradient norms of training samples |
| reliability.csv | training × epoch × bin: confidence and accuracy of training samples, 25 bins |
| differences.csv | training × scaling × metric: arm minus reference arm on the same test samples, with its interval |
| early_stopping.csv | training × criterion: the epoch that validation data choose, and its test metrics |
| ood.csv | training × out-of-distribution set × scaling: AUROC by entropy |
| roc.csv | the same × point of the curve |
| panels.csv | image × training × scaling: label, prediction, confidence of a few test images |
| linear_*.csv | appendix C: history, mistakes, boundary, points |
| translation_runs.csv | appendix K, training: ECE before and after scaling, BLEU, temperature |
| translation_curves.csv | the same × temperature of Figure K.1: test BLEU, validation ECE |
| translation_history.csv | the same × epoch: loss, and NLL, accuracy and ECE of validation tokens |
| theory_checks.csv | proposition: predicted and measured |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from softmax_temperature.papers.shared.tables import read_csv

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

SLUG = "focal"
TABLES = (
    "tasks",
    "trainings",
    "history",
    "gradient_norms",
    "reliability",
    "differences",
    "early_stopping",
    "ood",
    "roc",
    "panels",
    "linear_history",
    "linear_mistakes",
    "linear_boundary",
    "linear_points",
    "translation_runs",
    "translation_curves",
    "translation_history",
    "theory_checks",
)


@dataclass(frozen=True)
class Records:
    """The tables, by the name of their file.

    Columns, besides `task`, `arm`, `seed` and `scaling`:

    runs: temperature, at_bound, samples, accuracy, top5_accuracy, negative_log_likelihood, brier_score,
        expected_, maximum_, adaptive_, classwise_ and debiased_calibration_error, noise_floor (as
        `metrics.calibration_report` names them), and for each with an interval the same name with _low and _high;
        confident_share, confident_accuracy (predictions with confidence >= 0.99, appendix H; accuracy is empty when
        there is none).
    tasks: dataset, network, printed_dataset, printed_network, variant ("" for the main recipe), variant_of, classes,
        parameters, train_images, validation_images, test_images (texts, where the task is on texts), epochs,
        planned_epochs (that the recipe is written for), noise ("generated" or "CIFAR-10-C"), embeddings (of words:
        "learned", or the file of their vectors and the share of words that it has; empty for images), select ("last"
        or "best_validation"), differs (from the paper, in words, beside epochs and embeddings).
    trainings: epochs, epochs_done, selected_epoch (whose weights are evaluated, from 1), diverged (bool).
    history: epoch (from 1), split ("train", "validation", "test"), nll, nll_right, nll_wrong, entropy, entropy_right,
        entropy_wrong (nats; empty when no sample is right or wrong), accuracy, ece, feature_norm (mean over the
        split); and, the same on each split's row, loss (of training, per sample) and weight_norm (last layer).
    gradient_norms: epoch, low, high, count. reliability: epoch, low, high, count, accuracy, confidence.
    differences: metric, value, low, high, reference (arm).
    early_stopping: criterion ("last", "accuracy", "nll", "ece"), epoch, accuracy, expected_calibration_error,
        negative_log_likelihood (test).
    ood: ood (data set), samples, auroc, auroc_low, auroc_high. roc: ood, false_positive_rate, true_positive_rate.
    panels: image (its number in the test split), label, predicted, confidence, true_probability; the pixels are in
        `panels.npz`, one array a task, uint8 (images, height, width, channels).
    translation_*: without `task`, and the arms are CE, LS and FL; see `translation.translation_tables`.
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


def read_records(folder: Path) -> Records:
    """Read the tables back.

    Args:
        folder: `results/<profile>/focal`.
    """
    return Records(
        runs=read_csv(folder / "runs.csv"), **{name: read_csv(folder / "tables" / f"{name}.csv") for name in TABLES}
    )

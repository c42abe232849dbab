"""The records of the paper in `results/<profile>/focal/`, and the arms, tasks and runs that are read from them.

A task is a data set with a network and a recipe, an arm a loss; `task`, `arm` and `seed` name a training. `scaling` is
"none", "ece" or "nll": not scaled, or divided by the temperature that is best by that criterion on validation data.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from softmax_temperature.papers.shared.records import RUNS, table_names, table_path
from softmax_temperature.papers.shared.tables import read_csv

SLUG = "focal"
RUN = ["task", "arm", "seed"]
REFERENCE, FIXED, PROPOSED = "CE", "FL-3", "FLSD-53"
MAIN_ARMS = (REFERENCE, "Brier", "MMCE", "LS-0.05", FIXED, PROPOSED)  # Table 1, in its order.
FIXED_FOCAL_ARMS = ("FL-1", "FL-2", FIXED)
QUALITATIVE_ARMS = (REFERENCE, "Brier", "MMCE", PROPOSED)  # Figure H.1.
FOCAL_ARMS = (*FIXED_FOCAL_ARMS, "FLSc-531", "FLSc-532", "FLSD-532", PROPOSED)  # Tables F.3 to F.6, in their order.
WRITTEN_ARMS = {"MMCE-written": "MMCE"}  # As the text has them, where the main ones follow the authors' code.
SCALED = "ece"  # The criterion of the temperature behind every number "after scaling": section 5 reports this one.
NEAR_BEST = 0.02  # Early stopping chooses among the epochs whose validation accuracy is this near to the best.
TRAINING, EVALUATION, TRANSLATION = "focal/training", "focal/evaluation", "focal/translation"
"""The stages that the numbers come from, as the manifests of their cells name them."""
ECE = "expected_calibration_error"
LONG_NAMES = {"ece": ECE, "nll": "negative_log_likelihood"}  # Columns of the history as the evaluation names them.
SHIFT_COLUMNS = (*RUN, "scaling", "shifted", "samples", "accuracy", *LONG_NAMES.values())


@dataclass(frozen=True)
class Records:
    """The tables, by the name of their file; one row per what stands first, with these columns besides its names.

    runs: training × evaluated ("last", and "best_validation" where the task selects it) × scaling, on test data:
        temperature, at_bound, samples, the numbers of `metrics.calibration_report`, confident_share and
        confident_accuracy (confidence >= 0.99, appendix H); _low and _high are the ends of a 90 % interval.
    tasks: task: dataset, network, printed_dataset, printed_network, variant ("" for the main recipe), variant_of,
        classes, parameters, images (or texts) of each split, epochs, planned_epochs (that the recipe is written for),
        noise ("generated" or "CIFAR-10-C"), embeddings (where word vectors come from), select (the epoch evaluated),
        differs (from the paper, in words, beside epochs and embeddings).
    trainings: training: epochs, epochs_done, selected_epoch (whose weights are evaluated, from 1), diverged.
    history: training × epoch (from 1) × split: nll, entropy (also _right, _wrong: of these samples), accuracy,
        ece, feature_norm (mean); and, the same for each split, loss (of training) and weight_norm (last layer).
    gradient_norms: training × epoch × bin: low, high, count: last-layer gradient norms of training samples.
    reliability: training × epoch × bin (25) of training samples: low, high, count, accuracy, confidence.
    differences: training × scaling × metric: value, low, high: arm minus reference arm on the same test samples.
    early_stopping: training × criterion ("last", "accuracy", "nll", "ece"): see the function.
    ood, roc: training × ood (data set) × scaling: samples, auroc; the points of its curve.
    shift: training × shifted (data set of the same classes) × scaling: the columns of `SHIFT_COLUMNS`.
    panels: image (its number in the test split) × training × scaling: label, predicted, confidence, true_probability;
        the pixels are in `panels.safetensors`, one array per task, uint8 (images, height, width, channels).
    linear_*: appendix C, by loss and seed: norms by epoch (of logits: mean over test points), the confidence of each
        misclassified test point at the end, the weights (no bias), and the test points of seed 0, the same for all.
    translation_*: appendix K, by arm (CE, LS, FL) and seed: test numbers as trained and at the temperature of least
        validation ECE (empty where a training diverged), the curves of Figure K.1, validation numbers by epoch.
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
    shift: pd.DataFrame
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
    """Read the tables back; older results lack shifted sets and evaluate a training at its selected epoch alone."""
    paths = {name: table_path(folder, name) for name in table_names(Records)}
    read = {name: read_csv(path) for name, path in paths.items() if path.is_file() or name != "shift"}
    read.setdefault("shift", pd.DataFrame(columns=list(SHIFT_COLUMNS)))
    if "evaluated" not in read["runs"]:
        read["runs"]["evaluated"] = read["runs"]["task"].map(read["tasks"].set_index("task")["select"])
    return Records(**read)


def tasks(records: Records) -> pd.DataFrame:
    """The tasks, in their order; texts that a CSV file could not hold, because they are empty, are empty again."""
    names = ["printed_dataset", "printed_network", "variant", "variant_of", "differs", "embeddings"]
    texts = records.tasks[names].astype(object)
    return records.tasks.assign(**texts.where(texts.notna(), ""))


def main_tasks(records: Records) -> pd.DataFrame:
    """The tasks with the main recipe."""
    return tasks(records).query("variant == ''").reset_index(drop=True)


def other_arms(records: Records) -> list[str]:
    """Arms that Table 1 and appendix F do not have: LS-0.1, and losses that a user added."""
    known = {*MAIN_ARMS, *FOCAL_ARMS, *WRITTEN_ARMS}
    return [arm for arm in records.trainings["arm"].unique() if arm not in known]


def finished(records: Records, name: str, *, evaluated: str | None = None) -> pd.DataFrame:
    """The rows of a table whose training did not diverge; those of `runs` at one epoch, or that the task selects."""
    table: pd.DataFrame = getattr(records, name)
    trainings = records.trainings
    rows = table.merge(trainings.loc[~trainings["diverged"].astype(bool), RUN], on=RUN)
    if name == "runs":
        rows = rows[rows["evaluated"] == (evaluated or rows["task"].map(records.tasks.set_index("task")["select"]))]
    return rows


def of_task(table: pd.DataFrame, task: str, arms: Sequence[str]) -> pd.DataFrame:
    """The rows of some arms on one task, in the order of the arms."""
    rows = table[(table["task"] == task) & table["arm"].isin(arms)]
    return rows.sort_values("arm", key=lambda names: names.map(list(arms).index), kind="stable")


def early_stopping(history: pd.DataFrame) -> pd.DataFrame:
    """Table J.1: the epoch that validation data choose by each criterion, and the test metrics at that epoch.

    It is the first of the best among those whose validation accuracy is near the highest: the least ECE of all epochs
    may be that of an untrained network.
    """
    validation, test = (history[history["split"] == split] for split in ("validation", "test"))
    runs = validation.groupby(RUN, sort=False)
    good = validation[validation["accuracy"] >= runs["accuracy"].transform("max") - NEAR_BEST].groupby(RUN, sort=False)
    rows = {"last": runs["epoch"].idxmax(), "accuracy": good["accuracy"].idxmax()}
    rows |= {"nll": good["nll"].idxmin(), "ece": good["ece"].idxmin()}
    chosen = {name: validation.loc[some].set_index(RUN)["epoch"] for name, some in rows.items()}
    epochs = pd.concat(chosen, names=["criterion"]).reset_index()
    found = epochs.merge(test, on=[*RUN, "epoch"], how="left", validate="many_to_one").rename(columns=LONG_NAMES)
    table: pd.DataFrame = found[[*RUN, "criterion", "epoch", "accuracy", *LONG_NAMES.values()]]
    return table

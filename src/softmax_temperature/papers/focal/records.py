"""The records of the paper in `results/<profile>/focal/`, and the arms, tasks and runs
that are read from them.

A task is a data set with a network and a recipe, an arm a loss; `task`, `arm` and
`seed` name a training. `scaling` is "none", "ece" or "nll": not scaled, or divided by
the temperature that is best by that criterion on validation data.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from softmax_temperature import stages
from softmax_temperature.papers.shared.records import table_names, table_path
from softmax_temperature.papers.shared.tables import read_csv
from softmax_temperature.params.focal import REFERENCE

SLUG = "focal"
RUN = ["task", "arm", "seed"]
FIXED, PROPOSED = "FL-3", "FLSD-53"
MAIN_ARMS = (
    REFERENCE,
    "Brier",
    "MMCE",
    "LS-0.05",
    FIXED,
    PROPOSED,
)  # Table 1, in its order.
FIXED_FOCAL_ARMS = ("FL-1", "FL-2", FIXED)
QUALITATIVE_ARMS = (REFERENCE, "Brier", "MMCE", PROPOSED)  # Figure H.1.
FOCAL_ARMS = (
    *FIXED_FOCAL_ARMS,
    "FLSc-531",
    "FLSc-532",
    "FLSD-532",
    PROPOSED,
)  # Tables F.3 to F.6, in their order.
WRITTEN_ARMS = {
    "MMCE-written": "MMCE"
}  # As the text has them, where the main ones follow the authors' code.
# The criterion of the temperature behind every number "after scaling": section 5
# reports this one.
SCALED = "ece"
# Early stopping chooses among the epochs whose validation accuracy is this near to the
# best.
NEAR_BEST = 0.02
TRAINING, EVALUATION = map(
    stages.label, (stages.FOCAL_TRAINING, stages.FOCAL_EVALUATION)
)
LINEAR, TRANSLATION = map(stages.label, (stages.LINEAR, stages.TRANSLATION))
"""The stages that the numbers come from, as the manifests of their cells name them."""
ECE = "expected_calibration_error"
LONG_NAMES = {
    "ece": ECE,
    "nll": "negative_log_likelihood",
}  # Columns of the history as the evaluation names them.


@dataclass(frozen=True)
class Records:
    """The tables, by the name of their file; each comment has what there is a row for,
    and its columns besides that.

    `COLUMNS` has those of the tables that it names.
    """

    # training × evaluated ("last", and "best_validation" where the task selects it) ×
    # scaling, on test data: temperature, at_bound, samples, the numbers of
    # `metrics.calibration_report`, confident_share and confident_accuracy (confidence
    # >= 0.99, appendix H); _low and _high are the ends of a 90 % interval
    runs: pd.DataFrame
    # task: dataset, network, printed_dataset, printed_network, variant ("" for the main
    # recipe), variant_of, classes, parameters, images (or texts) of each split, epochs,
    # planned_epochs (that the recipe is written for), noise ("generated" or
    # "CIFAR-10-C"), embeddings (where word vectors come from), select (the epoch
    # evaluated), differs (from the paper, in words, beside epochs and embeddings)
    tasks: pd.DataFrame
    # training: epochs, epochs_done, selected_epoch (that is evaluated, from 1),
    # diverged
    trainings: pd.DataFrame
    # training × epoch (from 1) × split: nll, entropy (also _right, _wrong: of these
    # samples), accuracy, ece, feature_norm (mean); and, the same for each split, loss
    # (of training) and weight_norm (last layer)
    history: pd.DataFrame
    gradient_norms: (
        pd.DataFrame
    )  # training × epoch × bin: last-layer gradient norms of training samples
    reliability: pd.DataFrame  # training × epoch × bin (25) of training samples
    differences: (
        pd.DataFrame
    )  # training × scaling × metric: arm minus reference arm on the same test samples
    early_stopping: (
        pd.DataFrame
    )  # training × criterion ("last", "accuracy", "nll", "ece"): see the function
    ood: pd.DataFrame  # training × ood (data set) × scaling
    roc: pd.DataFrame  # training × ood × scaling × point of the curve
    shift: pd.DataFrame  # training × shifted (data set of the same classes) × scaling
    # image (its number in the test split) × training × scaling; the pixels are in
    # `panels.safetensors`, an array of uint8 for each task, of images, height, width
    # and channels
    panels: pd.DataFrame
    # Appendix C, by loss and seed: norms by epoch (of logits: mean over test points),
    # the confidence of each misclassified test point at the end, the weights (no bias),
    # and the test points of seed 0, the same for all
    linear_history: pd.DataFrame
    linear_mistakes: pd.DataFrame
    linear_boundary: pd.DataFrame
    linear_points: pd.DataFrame
    # Appendix K, by arm (CE, LS, FL) and seed: test numbers as trained and at the
    # temperature of least validation ECE (empty where a training diverged), the curves
    # of Figure K.1, validation numbers by epoch
    translation_runs: pd.DataFrame
    translation_curves: pd.DataFrame
    translation_history: pd.DataFrame
    theory_checks: pd.DataFrame  # see `losses.propositions.theory_checks`


COLUMNS = {
    "differences": (*RUN, "scaling", "metric", "value", "low", "high"),
    "ood": (*RUN, "scaling", "ood", "samples", "auroc"),
    "roc": (*RUN, "scaling", "ood", "false_positive_rate", "true_positive_rate"),
    "shift": (*RUN, "scaling", "shifted", "samples", "accuracy", *LONG_NAMES.values()),
    "gradient_norms": (*RUN, "epoch", "low", "high", "count"),
    "reliability": (*RUN, "epoch", "low", "high", "count", "accuracy", "confidence"),
    "panels": (
        *RUN,
        "scaling",
        "image",
        "label",
        "predicted",
        "confidence",
        "true_probability",
    ),
    "translation_runs": (
        *(
            "arm",
            "seed",
            "dataset",
            "train_pairs",
            "test_pairs",
            "parameters",
            "epochs",
            "epochs_done",
            "diverged",
        ),
        *(
            "temperature",
            "ece",
            "ece_after_scaling",
            "accuracy",
            "bleu",
            "bleu_after_scaling",
        ),
        *("best_bleu", "best_bleu_temperature"),
    ),
    "translation_curves": ("arm", "seed", "temperature", "bleu", "validation_ece"),
    "translation_history": ("arm", "seed", "epoch", "loss", "nll", "accuracy", "ece"),
}
"""The columns of tables that may have no rows."""
_TEXTS = [
    "printed_dataset",
    "printed_network",
    "variant",
    "variant_of",
    "differs",
    "embeddings",
]


def read_records(folder: Path) -> Records:
    """Read the tables back."""
    read = {name: read_csv(table_path(folder, name)) for name in table_names(Records)}
    read["tasks"][_TEXTS] = read["tasks"][_TEXTS].astype(object).fillna("")
    return Records(**read)


def main_tasks(records: Records) -> pd.DataFrame:
    """The tasks with the main recipe."""
    return records.tasks.query("variant == ''").reset_index(drop=True)


def other_arms(records: Records) -> list[str]:
    """Arms that Table 1 and appendix F do not have: LS-0.1, and losses that a user
    added.
    """
    known = {*MAIN_ARMS, *FOCAL_ARMS, *WRITTEN_ARMS}
    return [arm for arm in records.trainings["arm"].unique() if arm not in known]


def finished(
    records: Records, name: str, *, evaluated: str | None = None
) -> pd.DataFrame:
    """The rows of a table whose training did not diverge; those of `runs` at one epoch,
    or that the task selects.
    """
    is_finished = ~records.trainings["diverged"].astype(bool)
    rows: pd.DataFrame = getattr(records, name).merge(
        records.trainings.loc[is_finished, RUN], on=RUN
    )
    if name == "runs":
        rows = rows[
            rows["evaluated"]
            == (
                evaluated or rows["task"].map(records.tasks.set_index("task")["select"])
            )
        ]
    return rows


def of_task(table: pd.DataFrame, task: str, arms: Sequence[str]) -> pd.DataFrame:
    """The rows of some arms on one task, in the order of the arms."""
    rows = table[(table["task"] == task) & table["arm"].isin(arms)]
    return rows.sort_values(
        "arm", key=lambda names: names.map(list(arms).index), kind="stable"
    )


def early_stopping(history: pd.DataFrame) -> pd.DataFrame:
    """Table J.1: the epoch that validation data choose by each criterion, and the test
    metrics at that epoch.

    It is the first of the best among those whose validation accuracy is near the
    highest: the least ECE of all epochs may be that of an untrained network.
    """
    validation, test = (
        history[history["split"] == split] for split in ("validation", "test")
    )
    runs = validation.groupby(RUN, sort=False)
    good = validation[
        validation["accuracy"] >= runs["accuracy"].transform("max") - NEAR_BEST
    ].groupby(RUN, sort=False)
    rows = {"last": runs["epoch"].idxmax(), "accuracy": good["accuracy"].idxmax()}
    rows |= {"nll": good["nll"].idxmin(), "ece": good["ece"].idxmin()}
    chosen = {
        name: validation.loc[some].set_index(RUN)["epoch"]
        for name, some in rows.items()
    }
    epochs = pd.concat(chosen, names=["criterion"]).reset_index()
    found: pd.DataFrame = epochs.merge(
        test, on=[*RUN, "epoch"], how="left", validate="many_to_one"
    ).rename(columns=LONG_NAMES)
    return found[[*RUN, "criterion", "epoch", "accuracy", *LONG_NAMES.values()]]

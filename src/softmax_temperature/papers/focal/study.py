"""The runs of the focal paper, and predicates that select the runs with each loss.

A run trains a network on a data set with a loss. An experiment is a data set with a
network and a recipe. For the ablation, variants repeat an experiment with a changed
recipe or network. The network is a linear model in appendix C, and a translation model
in appendix K.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.shared.display import (
    dataset_label,
    loss_label,
    network_label,
)
from softmax_temperature.papers.shared.factors import ALL, Where, is_part, where
from softmax_temperature.papers.shared.metrics import (
    Metric,
    add_labels,
    at_epoch,
)
from softmax_temperature.papers.shared.runs import CELL, Runs, read_runs

SLUG = "focal"
MEASURED_TABLES = (
    "differences",
    "roc",
    "gradient_norms",
    "reliability",
    "panels",
    "linear_mistakes",
    "linear_points",
    "translation_curves",
    "theory_checks",
)
"""The names of the measured tables; each table is a file in `tables/`.

They contain the measurements that are not a single value per run and epoch. They are
gathered from the cells, while the tables in `tables.TABLES` are computed from the runs.
Each measured table except the last has a column `run`. Within a run, there is one row
per:

differences: scaling and metric. The row has the value with the run's loss minus the
    value with cross-entropy, on the same test samples.
roc: scaling, out-of-distribution set (`ood`) and point of the ROC curve.
gradient_norms: epoch and bin. The row counts the training samples for which the norm of
    the last layer's gradient is in the bin.
reliability: epoch and one of 25 confidence bins, over training samples.
panels: scaling and image. `image` is the image's index in the test split. The pixels
    are in `panels.safetensors`, which has one array of shape (images, height, width,
    channels) for each experiment.
linear_mistakes: misclassified test point. The row has the confidence.
linear_points: test point. Only cross-entropy's run with seed 0 has rows, because the
    points are the same for all losses.
translation_curves: temperature. The row has test BLEU and validation ECE.
theory_checks: see `losses.propositions.theory_checks`.
"""

_WHOLE = {"imdb": 25_000}
"""The number of training and validation samples in a whole data set, for data sets
whose names do not tell whether a run used only a part.
"""
# Deviation: our studies of translation use Multi30k, because none of them can train on
# WMT14, the paper's only translation task.
DATA = (
    "cifar10",
    "cifar100",
    "tiny_imagenet",
    "newsgroups20",
    "sst_trees",
    "wmt14_en_de",
    "multi30k",
)
"""The data sets that count as the paper's: those it uses, and a substitute for WMT14.

A part of one of these data sets, such as "cifar10-5000", also counts.
"""
OUTLIERS = ("svhn", "gaussian-noise")
"""The paper's out-of-distribution sets; the second is one of CIFAR-10-C's corruptions.
"""
SPLITS = ("train", "validation", "test")
"""The splits of an experiment's data set."""
EXPERIMENT = ("experiment",)
"""The factor that defines a task in claims.

An experiment is a data set with a network and a recipe.
"""
EVALUATION_CELL = "evaluation_cell"
"""Column: the cell that evaluated the run; `cell` has the one that trained it."""

# Training factors.
# ---------------------------------------------------------------------

CE = where(loss="cross_entropy").called("cross-entropy")
BRIER = where(loss="brier").called("the Brier loss")
MMCE = where(loss="mmce", mmce_form="released").called("MMCE")
MMCE_WRITTEN = where(loss="mmce", mmce_form="written").called("MMCE as written")
LS_005 = where(loss="label_smoothing", smoothing=0.05).called("label smoothing of 0.05")
LS_01 = where(loss="label_smoothing", smoothing=0.1).called("label smoothing of 0.1")
FL_1 = where(loss="focal", gamma="1").called("focal loss with gamma 1")
FL_2 = where(loss="focal", gamma="2").called("focal loss with gamma 2")
FL_3 = where(loss="focal", gamma="3").called("focal loss with gamma 3")
FLSC_531 = where(loss="scheduled_focal", gamma="531").called("FLSc-531")
FLSC_532 = where(loss="scheduled_focal", gamma="532").called("FLSc-532")
FLSD_532 = where(loss="sample_dependent_focal", gamma="532").called("FLSD-532")
FLSD_53 = where(loss="sample_dependent_focal", gamma="53").called("FLSD-53")

TABLE_1_LOSSES: Mapping[str, Where] = {
    "CE": CE,
    "Brier": BRIER,
    "MMCE": MMCE,
    "LS-0.05": LS_005,
    "FL-3": FL_3,
    "FLSD-53": FLSD_53,
}
"""The losses of Table 1, keyed by label, in the table's order."""
FOCAL_LOSSES: Mapping[str, Where] = {
    "FL-1": FL_1,
    "FL-2": FL_2,
    "FL-3": FL_3,
    "FLSc-531": FLSC_531,
    "FLSc-532": FLSC_532,
    "FLSD-532": FLSD_532,
    "FLSD-53": FLSD_53,
}
"""The losses of Tables F.3 to F.6, keyed by label, in the tables' order."""
CURVE_LOSSES: Mapping[str, Where] = {
    "CE": CE,
    "FL-1": FL_1,
    "FL-2": FL_2,
    "FL-3": FL_3,
}
"""The losses of Figures 2, 3(b-d), B.1, C.1 and I.1, keyed by label."""
QUALITATIVE_LOSSES: Mapping[str, Where] = {
    "CE": CE,
    "Brier": BRIER,
    "MMCE": MMCE,
    "FLSD-53": FLSD_53,
}
"""The losses of Figure H.1, keyed by label, in the figure's order."""
WRITTEN_LABELS = {"MMCE-written": "MMCE"}
"""Maps the label of a loss as defined in the paper's text to the label of the same loss
as computed by the authors' code.
"""


def any_of(losses: Mapping[str, Where]) -> Where:
    """A predicate that selects the runs trained with one of `losses`."""
    together = reduce(or_, losses.values())
    return together.called(", ".join(losses))


SHOWN_ORDER = ("CE", "Brier", "MMCE", "LS-0.05", "LS-0.1", *FOCAL_LOSSES)
"""The labels of the losses in the order of figures and tables, grouped by family."""


def in_shown_order(labels: Iterable[str]) -> list[str]:
    """The `labels` of losses, sorted as in `SHOWN_ORDER`; other labels come last."""
    places = {label: place for place, label in enumerate(SHOWN_ORDER)}
    return sorted(labels, key=lambda label: places.get(label, len(places)))


OTHER_LOSSES = ~(any_of(TABLE_1_LOSSES) | any_of(FOCAL_LOSSES) | MMCE_WRITTEN)
"""Selects the runs whose loss is in none of the paper's tables.

Such losses are LS-0.1 and a user's own losses.
"""

# Roles. -------------------------------------------------------------------------------

CLASSIFICATION = where(task="classification")
MAIN = (CLASSIFICATION & where(variant=None)).called("the main recipe")
IMAGES = (MAIN & where(embeddings=None)).called("the main recipe on images")
VARIANTS = CLASSIFICATION & ~where(variant=None)
SELECTED_BY_VALIDATION = where(select="best_validation")
LINEAR = where(task="linear").called("the linear model")
TRANSLATION = where(task="translation", diverged=False).called("translation")

# For translation the paper names the losses without giving gamma or the smoothing;
# these values are also missing from our copy of appendix K. The values here are those
# of the profile `defaults`.
TRANSLATION_LOSSES: Mapping[str, Where] = {"CE": CE, "LS": LS_01, "FL": FL_1}
_TRANSLATION_LABELS = {"LS-0.1": "LS", "FL-1": "FL"}

# Metrics.
# ------------------------------------------------------------------------------

ECE = Metric("ece", label="ECE")
ACCURACY = Metric("accuracy")
ERROR = Metric("accuracy", label="error", complement=True)
NLL = Metric("nll", label="NLL")
MCE = Metric("mce", label="MCE")
ADAPTIVE_ECE = Metric("adaptive_ece", label="AdaECE")
CLASSWISE_ECE = Metric("classwise_ece", label="Classwise-ECE")
TOP_5 = Metric("top5_accuracy", label="top-5 accuracy")
NLL_RIGHT = Metric("nll_right", label="nats")
ENTROPY_WRONG = Metric("entropy_wrong", label="nats")
"""`NLL_RIGHT` is the NLL of the correctly classified test samples, and `ENTROPY_WRONG`
the entropy of the predictions for the misclassified ones.
"""
CONFIDENT_SHARE = Metric("confident_share", label="share of predictions")
CONFIDENT_ACCURACY = Metric("confident_accuracy")
AUROC = Metric("auroc", epochs=at_epoch("selected_epoch"), label="AUROC")
TEMPERATURE = Metric("temperature", scaled=True)
ECE_BY_NLL = Metric("ece_by_nll", scaled=True, label="ECE")
"""The ECE at the temperature with the lowest validation NLL."""
WEIGHT_NORM = Metric("weight_norm", label="weight norm")
FEATURE_NORM = Metric("feature_norm", split="train", label="norms")
GRID = 0.1
"""The spacing of the grid of temperatures."""
BEST_TEMPERATURE = "best_temperature"
"""Column: the temperature at which a translation model has the lowest validation ECE.
"""
TEMPERATURES_APART = "temperatures_apart"
"""Column: the distance between two temperatures of a translation model.

The model has the highest test BLEU at one of them, and the lowest validation ECE at the
other.
"""


def after_scaling(metric: Metric) -> Metric:
    """Return `metric` at the temperature with the lowest validation ECE."""
    # Section 5 reports the temperatures that this criterion chooses.
    return replace(metric, scaled=True)


def at_selected_epoch(metric: Metric) -> Metric:
    """Return `metric` at the epoch whose weights the experiment evaluates."""
    return replace(metric, epochs=at_epoch("selected_epoch"))


def read(folder: Path) -> Runs:
    """Read the runs in `folder`, `results/<study>/focal`, and derive further columns.

    If only a part of a data set was used, the number of training texts is appended to
    its name. The derived columns are `own` (whether the data set counts as the
    paper's), `is_printed` (whether the paper prints numbers for the experiment), `arm`
    (the label of the loss) and `evaluation_cell`. Translation models also have
    `best_temperature` and `temperatures_apart`.
    """
    return tidied(read_runs(folder, MEASURED_TABLES))


def tidied(runs: Runs) -> Runs:
    """Return `runs` with the columns that are derived from factors and values."""
    table = runs.table
    texts = ["variant", "variant_of", "printed_dataset", "printed_network"]
    texts += ["differs", "embeddings", "noise", "mmce_form", "milestones", "options"]
    # A study with only linear models lacks the columns that describe classifiers.
    counts = [f"{split}_images" for split in SPLITS]
    names = ["classes", "parameters", "selected_epoch", *counts, *texts]
    table = table.reindex(columns=list(dict.fromkeys([*table, *names])))
    table = table.astype(dict.fromkeys(texts, object))
    table = table.assign(dataset=_sized(table))
    is_paper_data = [is_part(name, DATA) for name in table["dataset"]]
    table = table.assign(
        own=np.array(is_paper_data) | LINEAR.mask(table),
        is_printed=table["printed_dataset"].notna(),
        diverged=table["diverged"].astype(bool),
    )
    evaluation = table[CELL].str.replace("focal/training/", "focal/evaluation/")
    table[EVALUATION_CELL] = evaluation
    runs = replace(runs, table=add_labels(table, arm_label))
    translated = TRANSLATION.select(runs.table)
    temperature = at_selected_epoch(TEMPERATURE).of(runs, translated)
    runs.table[BEST_TEMPERATURE] = temperature.reindex(table.index)
    runs.table[TEMPERATURES_APART] = _temperatures_apart(runs)
    return runs


def _sized(table: pd.DataFrame) -> pd.Series[str]:
    """The names of the data sets, with the number of texts if only a part was used."""
    counts = table["train_images"]
    used = counts + table["validation_images"]
    is_part_of = used < table["dataset"].map(_WHOLE)
    sized = table["dataset"] + "-" + counts.map("{:.0f}".format)
    return sized.where(is_part_of, table["dataset"])


def _temperatures_apart(runs: Runs) -> pd.Series[float]:
    curves = runs.tables["translation_curves"].set_index("temperature")
    if curves.empty:
        return pd.Series(np.nan, index=runs.table.index)
    by_run = curves.groupby("run")
    apart = by_run["bleu"].idxmax() - by_run["validation_ece"].idxmin()
    return apart.abs().reindex(runs.table.index)


def arm_label(run: Mapping[str, Any] | pd.Series[Any]) -> str:
    """The label of the loss of `run`, such as "FLSD-53" or "MMCE-written"."""
    label = loss_label(run)
    if run["loss"] == "mmce":
        if run["mmce_form"] == "written":
            label = f"{label}-written"
        if run["mmce_weight"] != 2:
            label = f"{label}, weight {run['mmce_weight']:g}"
    if pd.notna(run["options"]):
        label = f"{label}, {run['options']}"
    if run["task"] == "translation":
        return _TRANSLATION_LABELS.get(label, label)
    return label


def outlier_sets(runs: Runs, among: Where = ALL) -> list[str]:
    """The sorted out-of-distribution sets on which any run in `among` was scored."""
    return _other_sets(runs, AUROC, among)


def shifted_sets(runs: Runs, among: Where = ALL) -> list[str]:
    """The sorted shifted sets on which any run in `among` was evaluated.

    A shifted set is another data set with the same classes as the run's own.
    """
    return _other_sets(runs, ECE, among)


def _other_sets(runs: Runs, metric: Metric, among: Where) -> list[str]:
    rows = runs.measured(metric.name)
    rows = rows[rows["run"].isin(runs.select(among).index)]
    return sorted(set(rows["split"].astype(str)) - set(SPLITS))


def placeholders(runs: Runs) -> list[str]:
    """The experiments that a translation study trains only to fill its tables.

    Such an experiment has only one loss, so there is nothing to compare. It is hidden
    from readers.
    """
    main = runs.select(MAIN)
    if runs.select(TRANSLATION).empty or main.empty:
        return []
    losses = main.groupby("experiment")["arm"].nunique()
    return [str(name) for name in losses.index[losses == 1]]


def shown_experiments(runs: Runs) -> list[str]:
    """The experiments with the main recipe, in the order of the runs.

    `placeholders` are left out.
    """
    names = runs.select(MAIN)["experiment"].unique()
    hidden = placeholders(runs)
    return [str(name) for name in names if name not in hidden]


def experiments(runs: Runs) -> pd.DataFrame:
    """The table of experiments for readers, with one row per shown experiment."""
    columns = [
        "experiment",
        "dataset",
        "network",
        "train_images",
        "validation_images",
        "test_images",
        "epochs",
        "planned_epochs",
        "select",
        "noise",
        "embeddings",
    ]
    rows = runs.select(MAIN)
    rows = rows[rows["experiment"].isin(shown_experiments(runs))]
    cells = [cell.rsplit("/", 2)[0] for cell in rows[CELL]]
    table = rows[columns].assign(cells=cells)
    return table.drop_duplicates("experiment").reset_index(drop=True)


def translations(runs: Runs) -> pd.DataFrame:
    """The table of translation experiments for readers.

    A row has the data set, network, sizes, losses and number of seeds.
    """
    rows = runs.select(where(task="translation"))
    columns = ["dataset", "network", "train_pairs", "test_pairs", "epochs"]
    present = [name for name in columns if name in rows]
    groups = rows.groupby("experiment", sort=False)
    table = groups[present].first()
    losses = groups["arm"].unique().map(", ".join)
    table = table.assign(losses=losses, seeds=groups["seed"].nunique())
    cells = rows[CELL].str.rsplit("/", n=2).str[0].groupby(rows["experiment"]).first()
    return table.assign(cells=cells).reset_index(drop=True)


def title(runs: Runs, experiment: str) -> str:
    """The data set, network and variant of `experiment`, in words."""
    row = runs.select(where(experiment=experiment)).iloc[0]
    parts = [dataset_label(row["dataset"]), network_label(row["network"])]
    if pd.notna(row["variant"]):
        parts.append(row["variant"])
    return "; ".join(parts)

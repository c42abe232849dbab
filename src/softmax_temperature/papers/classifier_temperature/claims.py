"""What the paper says, as claims with criteria that were fixed before the runs.

Section 3.1 and Figure 2 speak of rescaling, section 4.3 with Figures 3, 4 and Table 1 of the correlations. The pairs of
one data set share its classes and samples: a data set counts once, and intervals are over data sets, by the jackknife
where a correlation is over all pairs. An untrained backbone is no extractor of the paper's, and is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from softmax_temperature.dataset_statistics import STATISTICS
from softmax_temperature.heuristic import leave_one_dataset_out
from softmax_temperature.papers.classifier_temperature.records import HEURISTIC, RESCALING, SEARCH, Records
from softmax_temperature.papers.shared.claims import Claim, Measurement, NotTested, above, equivalent
from softmax_temperature.papers.shared.sources import cells_of
from softmax_temperature.papers.shared.statistics import OverTasks, Task, jackknife

NEGLIGIBLE = 0.01  # A difference of accuracy below one point is none.
WEAK = 0.3  # |r| below this is called weak, a common convention.
GENERATED, UNTRAINED = "glyphs", "untrained"
"""What the names of data sets of ours, and of backbones with random weights, begin with."""


def _is_own(dataset: str) -> bool:
    return not dataset.startswith(GENERATED)


def _trained(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[~rows["backbone"].str.startswith(UNTRAINED)]


def _over_datasets(values: pd.Series[float]) -> OverTasks:
    """One task of which each data set is a value; data sets of ours are another, or join where others are few."""
    own = values.index.map(_is_own).to_numpy(bool)
    if own.sum() < 3:
        return OverTasks((Task("data sets, some generated", tuple(values.tolist()), own=False),), each="data sets")
    tasks = [Task("data sets", tuple(values[own].tolist()))]
    if not own.all():
        tasks.append(Task("generated data sets", tuple(values[~own].tolist()), own=False))
    return OverTasks(tuple(tasks), each="data sets")


def _gain_over_one(records: Records) -> Measurement | NotTested:
    """Test accuracy at the inverse temperature that validation data choose minus that at 1, by data set."""
    runs, place = _trained(records.runs), ["dataset", "backbone"]
    if runs.empty or not (runs["inverse_temperature"] == 1).any():
        return NotTested("no backbone of this profile is trained, or inverse temperature 1 was not searched")
    accuracy = "test_accuracy_at_validation_best"
    chosen = runs.loc[runs.groupby(place)["validation_accuracy"].idxmax()].set_index(place)[accuracy]
    gains = (chosen - runs[runs["inverse_temperature"] == 1].set_index(place)[accuracy]).groupby("dataset").mean()
    part = _over_datasets(gains)
    return Measurement({"gain": part}, "accuracy", cells=cells_of(SEARCH, runs.drop_duplicates(place), *place))


def _rescaling(records: Records, *, optimizer: str) -> Measurement | NotTested:
    """Per repeat: accuracy with the rescaled loss minus that with the plain one, over the upper half of the grid."""
    runs = records.rescaling
    high = runs["inverse_temperature"] >= runs["inverse_temperature"].median()
    means = runs[(runs["optimizer"] == optimizer) & high].groupby(["repeat", "loss"])["test_accuracy"].mean()
    if means.empty:
        return NotTested(f"no training with {optimizer}")
    table = means.unstack("loss")
    values = tuple((table["rescaled"] - table["plain"]).tolist())
    cells = tuple(f"{RESCALING}/{optimizer}-{loss}" for loss in ("plain", "rescaled"))
    return Measurement({optimizer: OverTasks((Task(optimizer, values),), each="repeats")}, "accuracy", cells=cells)


def _strongest(records: Records) -> Measurement | NotTested:
    """|r| of feats_corr minus that of each other statistic."""
    groups = _datasets(records)
    if isinstance(groups, NotTested):
        return groups
    others = [name for name in STATISTICS if name != "feats_corr"]

    def margins(some: Sequence[pd.DataFrame], name: str) -> float:
        return abs(_r(some, "feats_corr")) - abs(_r(some, name))

    parts = {name: _jackknifed(groups, partial(margins, name=name)) for name in others}
    absolute = {name: abs(_r(groups, name)) for name in STATISTICS}
    ranked = sorted(absolute, key=lambda name: -absolute[name])
    note = (
        f"rank {ranked.index('feats_corr') + 1} of {len(ranked)}; first is {ranked[0]} with {absolute[ranked[0]]:.2f}"
    )
    return Measurement(parts, "difference of |r|", note, cells=(HEURISTIC,))


def _dimension(records: Records) -> Measurement | NotTested:
    groups = _datasets(records)
    if isinstance(groups, NotTested):
        return groups
    return Measurement({"dim": _jackknifed(groups, partial(_r, name="dim"))}, "r", cells=(HEURISTIC,))


def _fold_correlations(records: Records, *, minus_best: bool) -> Measurement | NotTested:
    """By left-out data set: r of predicted and best inverse temperature of All Stats, or that minus Best Stat's."""
    pairs = _trained(records.pairs)
    if pairs["dataset"].nunique() < 4:
        return NotTested("fewer than four data sets with a trained backbone")
    rows = {name: leave_one_dataset_out(pairs, statistics=name).folds.set_index("dataset")["r"] for name in _ROWS}
    values = (rows["all"] - rows["best"] if minus_best else rows["all"]).dropna()
    if len(values) < 3:
        return NotTested("fewer than three left-out data sets have a correlation")
    part = replace(_over_datasets(values), left_out=True)
    return Measurement({"r": part}, "difference of r" if minus_best else "r", cells=(HEURISTIC,))


_ROWS = ("best", "all")


def _datasets(records: Records) -> list[pd.DataFrame] | NotTested:
    groups = [rows for _, rows in _trained(records.pairs).groupby("dataset") if len(rows)]
    return groups if len(groups) > 3 else NotTested("fewer than four data sets with a trained backbone")


def _r(groups: Sequence[pd.DataFrame], name: str) -> float:
    """Pearson's r of a statistic and the best inverse temperature; 0 for a constant statistic."""
    table = pd.concat(groups)
    if table[name].nunique() < 2:
        return 0.0
    return float(np.corrcoef(table[name], table["inverse_temperature"])[0, 1])


def _jackknifed(groups: Sequence[pd.DataFrame], statistic: partial[float]) -> OverTasks:
    return OverTasks((Task("data sets", tuple(jackknife(groups, statistic).tolist())),), each="data sets")


CLAIMS: tuple[Claim[Records], ...] = (
    Claim(
        "temperature-matters",
        "abstract, section 5",
        "The temperature has a strong impact on the accuracy of the classifier.",
        "Test accuracy at the inverse temperature of highest validation accuracy minus that at 1, mean over the "
        "backbones of each data set.",
        above(NEGLIGIBLE),
        _gain_over_one,
    ),
    Claim(
        "rescaling-helps-sgd",
        "section 4.3, Figure 2",
        "With SGD, the rescaled cross-entropy gives strong improvements in accuracy at high temperatures.",
        "Accuracy with CE/alpha minus accuracy with CE, mean over the upper half of the grid of alpha, paired by "
        "repeat.",
        above(NEGLIGIBLE),
        partial(_rescaling, optimizer="sgd"),
    ),
    Claim(
        "rescaling-is-nothing-to-adam",
        "section 4.3",
        "With Adam, rescaling the cross-entropy has no impact.",
        "The same difference with Adam.",
        equivalent(NEGLIGIBLE),
        partial(_rescaling, optimizer="adam"),
    ),
    Claim(
        "feats-corr-is-strongest",
        "section 4.3, Figure 3",
        "The correlation between the embeddings' features (feats_corr) is the statistic most correlated with the best "
        "inverse temperature.",
        "Pearson's |r| over all pairs of feats_corr minus that of each other statistic, jackknifed over data sets.",
        above(),
        _strongest,
    ),
    Claim(
        "dimension-is-weak",
        "section 5, Figure 3",
        "The dimension of the embeddings has little correlation with the best inverse temperature.",
        "Pearson's r over all pairs, jackknifed over data sets.",
        equivalent(WEAK),
        _dimension,
    ),
    Claim(
        "several-beat-one",
        "Table 1",
        "A linear combination of all statistics predicts better than the most correlated statistic alone.",
        "Difference of r between the rows All Stats and Best Stat, paired by left-out data set.",
        above(),
        partial(_fold_correlations, minus_best=True),
        published=0.033,
    ),
    Claim(
        "prediction-is-significant",
        "section 4.3, Table 1",
        "The predicted and the best inverse temperature are significantly correlated.",
        "All Stats, leave one data set out: r of each left-out data set. Printed: the median.",
        above(),
        partial(_fold_correlations, minus_best=False),
        published=0.9563,
    ),
)

"""What the paper says, as claims with criteria that were fixed before the runs.

Section 3.1 and Figure 2 speak of rescaling, section 4.3 with Figures 3, 4 and Table 1
of the correlations. The pairs of one data set share its classes and samples: a data set
counts once, and intervals are over data sets, by the jackknife where a correlation is
over pairs. An untrained backbone is no extractor of the paper's, and is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd

from softmax_temperature.dataset_statistics import STATISTICS
from softmax_temperature.heuristic import leave_one_dataset_out
from softmax_temperature.heuristic.pairs import is_trained, jackknife
from softmax_temperature.papers.classifier_temperature.records import (
    HEURISTIC,
    RESCALING,
    SEARCH,
    Records,
)
from softmax_temperature.papers.shared.claims import (
    Claim,
    Measurement,
    above,
    claim,
    equivalent,
    not_tested,
)
from softmax_temperature.papers.shared.sources import cells_of
from softmax_temperature.papers.shared.statistics import OverTasks, Task, pooled

NEGLIGIBLE = 0.01  # A difference of accuracy below one point is none.
WEAK = 0.3  # |r| below this is called weak, a common convention.
GENERATED = "glyphs"  # What the names of data sets of ours begin with.
_FEW = not_tested("fewer than four data sets with a trained backbone")


def _over_datasets(values: pd.Series[float], *, left_out: bool = False) -> OverTasks:
    """One task of which each data set is a value; data sets of ours are another, or
    join where others are few.
    """
    ours = values.index.str.startswith(GENERATED)
    parts = {
        "data sets": values[~ours].tolist(),
        "generated data sets": values[ours].tolist(),
    }
    tasks = pooled(parts, own=lambda name: name == "data sets")
    if (~ours).sum() < 3:
        tasks = (Task("data sets, some generated", tuple(values), own=False),)
    return OverTasks(tasks, each="data sets", left_out=left_out)


def _gain_over_one(records: Records) -> Measurement:
    """Test accuracy at the inverse temperature that validation data choose minus that
    at 1, by data set.
    """
    runs, place = records.runs[is_trained(records.runs)], ["dataset", "backbone"]
    plain = runs[runs["inverse_temperature"] == 1]
    if plain.empty:
        return not_tested(
            "no backbone of this profile is trained, or inverse temperature 1 was not searched"
        )
    best = runs.loc[runs.groupby(place)["validation_accuracy"].idxmax()]
    chosen, at_1 = (
        rows.set_index(place)["test_accuracy_at_validation_best"]
        for rows in (best, plain)
    )
    gains = (chosen - at_1).groupby("dataset").mean()
    return Measurement(
        {"gain": _over_datasets(gains)},
        "accuracy",
        cells=cells_of(SEARCH, plain, "dataset"),
    )


def _rescaling(records: Records, *, optimizer: str) -> Measurement:
    """Per repeat: accuracy with the rescaled loss minus that with the plain one, over
    the upper half of the grid.
    """
    runs = records.rescaling
    high = runs["inverse_temperature"] >= runs["inverse_temperature"].median()
    means = (
        runs[(runs["optimizer"] == optimizer) & high]
        .groupby(["repeat", "loss"])["test_accuracy"]
        .mean()
    )
    if means.empty:
        return not_tested(f"no training with {optimizer}")
    table = means.unstack("loss")
    gains = OverTasks(
        pooled({optimizer: (table["rescaled"] - table["plain"]).tolist()}),
        each="repeats",
    )
    cells = tuple(f"{RESCALING}/{optimizer}-{loss}" for loss in ("plain", "rescaled"))
    return Measurement({optimizer: gains}, "accuracy", cells=cells)


def _strongest(records: Records) -> Measurement:
    """|r| of feats_corr and the best inverse temperature minus that of each other
    statistic.
    """
    pairs = records.pairs[is_trained(records.pairs)]
    absolute = {name: abs(_r([pairs], name)) for name in STATISTICS}
    ranked = sorted(absolute, key=lambda name: -absolute[name])
    first = f"{ranked[0]} with {absolute[ranked[0]]:.2f}"
    note = f"rank {ranked.index('feats_corr') + 1} of {len(ranked)}; first is {first}"
    margins = {
        name: partial(_margin, name=name) for name in STATISTICS if name != "feats_corr"
    }
    return _jackknifed(records, margins, "difference of |r|", note)


def _jackknifed(
    records: Records,
    statistics: Mapping[str, Callable[[Sequence[pd.DataFrame]], float]],
    unit: str,
    note: str = "",
) -> Measurement:
    """Statistics of the pairs with a trained backbone, jackknifed over data sets."""
    groups = [
        rows for _, rows in records.pairs[is_trained(records.pairs)].groupby("dataset")
    ]
    if len(groups) < 4:
        return _FEW
    values = {
        name: jackknife(groups, statistic).tolist()
        for name, statistic in statistics.items()
    }
    parts = {
        name: OverTasks(pooled({"data sets": some}), each="data sets")
        for name, some in values.items()
    }
    return Measurement(parts, unit, note, cells=(HEURISTIC,))


def _margin(groups: Sequence[pd.DataFrame], name: str) -> float:
    return abs(_r(groups, "feats_corr")) - abs(_r(groups, name))


def _r(groups: Sequence[pd.DataFrame], name: str) -> float:
    """Pearson's r of a statistic and the best inverse temperature; 0 for a constant
    statistic.
    """
    table = pd.concat(groups)
    is_constant = table[name].nunique() < 2
    return (
        0.0
        if is_constant
        else float(np.corrcoef(table[name], table["inverse_temperature"])[0, 1])
    )


def _fold_correlations(records: Records, *, minus_best: bool) -> Measurement:
    """By left-out data set: r of predicted and best inverse temperature of All Stats,
    or that minus Best Stat's.
    """
    pairs = records.pairs[is_trained(records.pairs)]
    if pairs["dataset"].nunique() < 4:
        return _FEW
    folds = (
        leave_one_dataset_out(pairs, statistics=name).folds for name in ("best", "all")
    )
    best, whole = (each.set_index("dataset")["r"] for each in folds)
    values = (whole - best if minus_best else whole).dropna()
    if len(values) < 3:
        return not_tested("fewer than three left-out data sets have a correlation")
    unit = "difference of r" if minus_best else "r"
    return Measurement(
        {"r": _over_datasets(values, left_out=True)}, unit, cells=(HEURISTIC,)
    )


_dimension = partial(_jackknifed, statistics={"dim": partial(_r, name="dim")}, unit="r")
_sgd, _adam = (partial(_rescaling, optimizer=name) for name in ("sgd", "adam"))
_all_stats, _over_best = (
    partial(_fold_correlations, minus_best=minus) for minus in (False, True)
)

CLAIMS: tuple[Claim, ...] = (
    claim(
        "temperature-matters", "abstract, section 5", above(NEGLIGIBLE), _gain_over_one
    )(
        "The temperature has a strong impact on the accuracy of the classifier.",
        "Test accuracy at the inverse temperature of highest validation accuracy minus that at 1, mean over the "
        "trained backbones of each data set.",
    ),
    claim("rescaling-helps-sgd", "section 4.3, Figure 2", above(NEGLIGIBLE), _sgd)(
        "With SGD, the rescaled cross-entropy gives strong improvements in accuracy at high temperatures.",
        "Accuracy with CE/alpha minus accuracy with CE, mean over the upper half of the grid of alpha, paired by "
        "repeat.",
    ),
    claim("rescaling-is-nothing-to-adam", "section 4.3", equivalent(NEGLIGIBLE), _adam)(
        "With Adam, rescaling the cross-entropy has no impact.",
        "The same difference with Adam.",
    ),
    claim("feats-corr-is-strongest", "section 4.3, Figure 3", above(), _strongest)(
        "The correlation between the embeddings' features (feats_corr) is the statistic most correlated with the best "
        "inverse temperature.",
        "Pearson's |r| of feats_corr minus that of each other statistic, over the pairs with a trained backbone, "
        "jackknifed over data sets.",
    ),
    claim("dimension-is-weak", "section 5, Figure 3", equivalent(WEAK), _dimension)(
        "The dimension of the embeddings has little correlation with the best inverse temperature.",
        "Pearson's r over the pairs with a trained backbone, jackknifed over data sets.",
    ),
    claim("several-beat-one", "Table 1", above(), _over_best, 0.033)(
        "A linear combination of all statistics predicts better than the most correlated statistic alone.",
        "Difference of r between the rows All Stats and Best Stat, with trained backbones only, paired by left-out "
        "data set.",
    ),
    claim(
        "prediction-is-significant", "section 4.3, Table 1", above(), _all_stats, 0.9563
    )(
        "The predicted and the best inverse temperature are significantly correlated.",
        "All Stats, with trained backbones only, leave one data set out: mean r of the left-out data sets. "
        "Printed: the median.",
    ),
)

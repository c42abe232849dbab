"""The cosine-classifier paper's statements, formulated as testable claims.

Section 3.1 and Figure 2 are about rescaling; section 4.3, Figures 3 and 4 and Table 1
are about correlations. All pairs on one data set share its classes and samples. A data
set therefore counts once, and intervals are over data sets; for a correlation over
pairs, the interval comes from the jackknife. The claims about rescaling use a single
pair, so their intervals are over repeats. All other claims leave out pairs with
untrained backbones, because the paper has none.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from softmax_temperature.dataset_statistics import STATISTICS
from softmax_temperature.papers.classifier_temperature.data_sets import (
    FEWEST,
    CorrelationOfPredictions,
    DifferenceByDataSet,
)
from softmax_temperature.papers.classifier_temperature.study import (
    ACCURACY_AT_VALIDATION_BEST,
    BEST_ACCURACY,
    BEST_INVERSE_TEMPERATURE,
    CHOSEN_BY_VALIDATION,
    NO_SCALING,
    PLAIN,
    RESCALED,
    RESCALING,
    SEARCH,
    TRAINED_BACKBONE,
    TRAINED_PAIR,
    UPPER_HALF,
    statistic,
)
from softmax_temperature.papers.shared.claims import Claim, above, equivalent
from softmax_temperature.papers.shared.contrasts import (
    Difference,
    Parts,
    whole_cells_of_runs,
)
from softmax_temperature.papers.shared.factors import where
from softmax_temperature.papers.shared.runs import Runs
from softmax_temperature.papers.shared.sweeps import Correlation, correlation

NEGLIGIBLE = 0.01
"""A difference in accuracy below one point counts as no difference."""
WEAK = 0.3
STRONG = 0.5
"""By a common convention, |r| is called weak below `WEAK` and strong above `STRONG`."""
STRONGEST = "feats_corr"
_STUDY = "collection"
_N = {_STUDY: 21}
_REPEATS = {_STUDY: 20}
_LOOKS = {_STUDY: 4}
"""There were four looks: the study was run three times with twelve data sets, and then
once with all 21.
"""
_WIDENED = (
    "Student's interval, widened after Nadeau and Bengio for folds that share training "
    "data."
)


def _rescaling(optimizer: str) -> Difference:
    """The accuracy with the rescaled loss minus that with the plain loss.

    All classifiers are trained with `optimizer`. The accuracies are means over the
    inverse temperatures in the upper half of the grid.
    """
    return Difference(
        of=BEST_ACCURACY,
        first=RESCALED,
        second=PLAIN,
        among=RESCALING & where(optimizer=optimizer) & UPPER_HALF,
        tasks=("optimizer",),
        averaged_over=("inverse_temperature",),
        counted="repeats",
        cells=whole_cells_of_runs,
    )


def _against(name: str) -> Correlation:
    """|r| of feats_corr with the best inverse temperature, minus |r| of `name`."""
    return Correlation(
        of=statistic(STRONGEST),
        against=BEST_INVERSE_TEMPERATURE,
        minus=statistic(name),
        among=TRAINED_PAIR,
        fewest=FEWEST,
        note=_rank,
    )


def _rank(runs: Runs, chosen: pd.DataFrame) -> str:
    """A note on the rank of feats_corr among all statistics, by |r|."""
    optima = np.asarray(BEST_INVERSE_TEMPERATURE.of(runs, chosen), np.float64)
    measured = {
        name: np.asarray(statistic(name).of(runs, chosen), np.float64)
        for name in STATISTICS
    }
    absolute = {
        name: abs(correlation(values, optima)) for name, values in measured.items()
    }
    ranked = sorted(absolute, key=lambda name: -absolute[name])
    place = ranked.index(STRONGEST) + 1
    first = f"{ranked[0]} with {absolute[ranked[0]]:.2f}"
    return f"rank {place} of {len(ranked)}; first is {first}"


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="temperature-matters",
        where="abstract, section 5",
        statement="The temperature has a strong impact on the accuracy of the "
        "classifier.",
        compares="Test accuracy at the inverse temperature of highest validation "
        "accuracy minus that at 1, mean over the trained backbones of each data set.",
        contrast=DifferenceByDataSet(
            of=ACCURACY_AT_VALIDATION_BEST,
            first=CHOSEN_BY_VALIDATION,
            second=NO_SCALING,
            among=SEARCH & TRAINED_BACKBONE,
        ),
        criterion=above(NEGLIGIBLE),
        primary=_STUDY,
        n=_N,
        looks=_LOOKS,
    ),
    Claim(
        id="rescaling-helps-sgd",
        where="section 4.3, Figure 2",
        statement="With SGD, the rescaled cross-entropy gives strong improvements in "
        "accuracy at high temperatures.",
        compares="Accuracy with CE/alpha minus accuracy with CE, mean over the upper "
        "half of the grid of alpha, paired by repeat.",
        contrast=_rescaling("sgd"),
        criterion=above(NEGLIGIBLE),
        primary=_STUDY,
        n=_REPEATS,
        looks=_LOOKS,
    ),
    Claim(
        id="rescaling-is-nothing-to-adam",
        where="section 4.3",
        statement="With Adam, rescaling the cross-entropy has no impact.",
        compares="The same difference with Adam.",
        contrast=_rescaling("adam"),
        criterion=equivalent(NEGLIGIBLE),
        primary=_STUDY,
        n=_REPEATS,
        looks=_LOOKS,
    ),
    Claim(
        id="feats-corr-is-strongest",
        where="section 4.3, Figure 3",
        statement="The correlation between the embeddings' features (feats_corr) is "
        "the statistic most correlated with the best inverse temperature.",
        compares="Pearson's |r| of feats_corr minus that of each other statistic, over "
        "the pairs with a trained backbone, jackknifed over data sets.",
        contrast=Parts(
            {name: _against(name) for name in STATISTICS if name != STRONGEST}
        ),
        criterion=above(),
        primary=_STUDY,
        n=_N,
        looks=_LOOKS,
    ),
    Claim(
        id="feats-corr-is-strong",
        where="section 5, Figure 3",
        statement="A measure of correlation between features (feats_corr) is strongly "
        "correlated with the best inverse temperature.",
        compares="Pearson's |r| over the pairs with a trained backbone, jackknifed "
        "over data sets.",
        contrast=Correlation(
            of=statistic(STRONGEST),
            against=BEST_INVERSE_TEMPERATURE,
            absolute=True,
            among=TRAINED_PAIR,
            fewest=FEWEST,
        ),
        criterion=above(STRONG),
        primary=_STUDY,
        n=_N,
        looks=_LOOKS,
    ),
    Claim(
        id="dimension-is-weak",
        where="section 5, Figure 3",
        statement="The dimension of the embeddings has little correlation with the "
        "best inverse temperature.",
        compares="Pearson's r over the pairs with a trained backbone, jackknifed over "
        "data sets.",
        contrast=Correlation(
            of=statistic("dim"),
            against=BEST_INVERSE_TEMPERATURE,
            among=TRAINED_PAIR,
            fewest=FEWEST,
        ),
        criterion=equivalent(WEAK),
        primary=_STUDY,
        n=_N,
        looks=_LOOKS,
    ),
    Claim(
        id="several-beat-one",
        where="Table 1",
        statement="A linear combination of all statistics predicts better than the "
        "most correlated statistic alone.",
        compares="Difference of r between the rows All Stats and Best Stat, with "
        f"trained backbones only, paired by left-out data set. {_WIDENED}",
        contrast=CorrelationOfPredictions(
            among=TRAINED_PAIR, statistics="all", minus="best"
        ),
        criterion=above(),
        published=0.033,
        primary=_STUDY,
        n=_N,
        looks=_LOOKS,
    ),
    Claim(
        id="four-beat-one",
        where="section 5, Table 1",
        statement="A linear combination of the four most correlated statistics "
        "predicts better than the most correlated one alone.",
        compares="Difference of r between the rows 4-Best Stats and Best Stat, with "
        f"trained backbones only, paired by left-out data set. {_WIDENED}",
        contrast=CorrelationOfPredictions(
            among=TRAINED_PAIR, statistics="four_best", minus="best"
        ),
        criterion=above(),
        published=0.014,
        primary=_STUDY,
        n=_N,
        looks=_LOOKS,
    ),
    Claim(
        id="prediction-is-significant",
        where="section 4.3, Table 1",
        statement="The predicted and the best inverse temperature are significantly "
        "correlated.",
        compares="All Stats, with trained backbones only, leave one data set out: mean "
        f"r of the left-out data sets. {_WIDENED} Printed: the mean.",
        contrast=CorrelationOfPredictions(among=TRAINED_PAIR, statistics="all"),
        criterion=above(),
        published=0.884,
        primary=_STUDY,
        n=_N,
        looks=_LOOKS,
    ),
)

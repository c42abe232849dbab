"""What the paper says, as criteria that were fixed before the runs.

Section 3.1 and Figure 2 speak of rescaling, section 4.3 with Figures 3, 4 and Table 1 of the correlations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from softmax_temperature.papers.classifier_temperature.records import HEURISTIC, RESCALING
from softmax_temperature.papers.shared.claims import Claim, Evidence, Mean, NotTested, mean_with_interval

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from softmax_temperature.papers.classifier_temperature.records import Records

HIGH = 100  # Inverse temperatures from here on are "high": where the printed curves of Figure 2 part.
NEGLIGIBLE = 0.01  # A difference of accuracy below one point is none, for a claim that says "no impact".
WEAK = 0.3  # |r| below this is called weak, a common convention.
SIGNIFICANT = 0.05  # Section 4.3.


def _rescaling_gain(records: Records, optimizer: str) -> NDArray[np.float64]:
    """Per repeat: accuracy with the rescaled loss minus with the plain one, mean over the high temperatures."""
    runs = records.rescaling
    high = runs[(runs["optimizer"] == optimizer) & (runs["inverse_temperature"] >= HIGH)]
    means = high.groupby(["repeat", "loss"])["test_accuracy"].mean().unstack("loss")
    return (means["rescaled"] - means["plain"]).to_numpy(np.float64)


def _interval(
    mean: Mean, *, holds: bool, unit: str, cells: tuple[str, ...], bounds: tuple[float, ...] = (0.0,)
) -> Evidence:
    return Evidence(holds, mean.value, mean.n, unit, mean.sd, mean.low, mean.high, bounds=bounds, cells=cells)


def _rescaling_cells(optimizer: str) -> tuple[str, ...]:
    return tuple(f"{RESCALING}/{optimizer}-{loss}" for loss in ("plain", "rescaled"))


def _rescaling_helps_sgd(records: Records) -> Evidence | NotTested:
    gains = _rescaling_gain(records, "sgd")
    if len(gains) < 2:
        return NotTested("one repeat has no interval; set rescaling.repeats to 2 or more")
    mean = mean_with_interval(gains)
    holds, cells = mean.low > NEGLIGIBLE, _rescaling_cells("sgd")
    return _interval(mean, holds=holds, unit="accuracy", cells=cells, bounds=(NEGLIGIBLE,))


def _rescaling_is_nothing_to_adam(records: Records) -> Evidence | NotTested:
    gains = _rescaling_gain(records, "adam")
    if len(gains) < 2:
        return NotTested("one repeat has no interval; set rescaling.repeats to 2 or more")
    mean = mean_with_interval(gains)
    holds = mean.low > -NEGLIGIBLE and mean.high < NEGLIGIBLE
    bounds = (-NEGLIGIBLE, NEGLIGIBLE)
    return _interval(mean, holds=holds, unit="accuracy", cells=_rescaling_cells("adam"), bounds=bounds)


def _correlation(records: Records, statistic: str) -> pd.Series[float]:
    table = records.correlations.drop(columns="constant")
    return table[table["statistic"] == statistic].drop(columns="statistic").iloc[0].astype(float)


def _feats_corr_is_strongest(records: Records) -> Evidence:
    ours, first = _correlation(records, "feats_corr"), records.correlations.iloc[0]
    rank = int(records.correlations["statistic"].tolist().index("feats_corr")) + 1
    note = f"rank {rank} of {len(records.correlations)}; first is {first['statistic']} with {first['absolute_r']:.2f}"
    return _of_correlation(records, ours, holds=rank == 1, note=note)


def _dimension_is_weak(records: Records) -> Evidence:
    ours = _correlation(records, "dim")
    return _of_correlation(records, ours, holds=float(ours["absolute_r"]) < WEAK, bounds=(WEAK,))


def _of_correlation(
    records: Records, ours: pd.Series[float], *, holds: bool, bounds: tuple[float, ...] = (), note: str = ""
) -> Evidence:
    value, low, high = (float(ours[name]) for name in ("absolute_r", "absolute_low", "absolute_high"))
    spread, n = {"low": low, "high": high}, len(records.pairs)
    return Evidence(holds, value, n, "absolute r", **spread, bounds=bounds, note=note, cells=(HEURISTIC,))


def _several_beat_one(records: Records) -> Evidence | NotTested:
    folds = records.folds[(records.folds["subset"] == "all pairs") & (records.folds["method"] == "least_squares")]
    table = folds.pivot(index="dataset", columns="row", values="r")[["Best Stat", "All Stats"]].dropna()
    if len(table) < 3:
        return NotTested("fewer than three left-out data sets have a correlation for both rows")
    mean = mean_with_interval((table["All Stats"] - table["Best Stat"]).to_numpy(np.float64))
    return _interval(mean, holds=mean.low > 0, unit="difference of r", cells=(HEURISTIC,))


def _prediction_is_significant(records: Records) -> Evidence | NotTested:
    table = records.leave_one_out
    row = table[(table["row"] == "All Stats") & (table["subset"] == "all pairs") & (table["method"] == "least_squares")]
    mean_p, median_r, folds = (float(row[name].iloc[0]) for name in ("mean_p", "median_r", "folds"))
    if np.isnan(mean_p):
        return NotTested("no left-out data set has a defined correlation")
    note = f"mean p over left-out data sets {mean_p:.3g} (printed 0.014)"
    used = int(folds - float(row["undefined_folds"].iloc[0]))
    holds = mean_p < SIGNIFICANT and median_r > 0
    return Evidence(holds, median_r, used, "median r", note=note, cells=(HEURISTIC,))


CLAIMS: tuple[Claim[Records], ...] = (
    Claim(
        "rescaling-helps-sgd",
        "section 4.3, Figure 2",
        "With SGD, the rescaled cross-entropy gives strong improvements in accuracy at high temperatures.",
        "Accuracy with CE/alpha minus accuracy with CE, mean over alpha >= 100, paired over repeats: holds if the 90 % "
        "interval of the mean lies above 0.01.",
        _rescaling_helps_sgd,
    ),
    Claim(
        "rescaling-is-nothing-to-adam",
        "section 4.3",
        "With Adam, rescaling the cross-entropy has no impact.",
        "The same difference with Adam: holds if the 90 % interval of the mean lies inside ±0.01.",
        _rescaling_is_nothing_to_adam,
    ),
    Claim(
        "feats-corr-is-strongest",
        "section 4.3, Figure 3",
        "The correlation between the embeddings' features (feats_corr) is the statistic most correlated with the best "
        "inverse temperature.",
        "|Pearson r| over all pairs: holds if feats_corr ranks first of the 23. Interval by Fisher's z, as if "
        "pairs were independent.",
        _feats_corr_is_strongest,
    ),
    Claim(
        "dimension-is-weak",
        "section 5, Figure 3",
        "The dimension of the embeddings has little correlation with the best inverse temperature.",
        "|Pearson r| over all pairs: holds if it is below 0.3.",
        _dimension_is_weak,
    ),
    Claim(
        "several-beat-one",
        "Table 1",
        "A linear combination of all statistics predicts better than the most correlated statistic alone.",
        "Difference of r between the rows All Stats and Best Stat, paired over left-out data sets: holds if the 90 % "
        "interval of the mean lies above 0.",
        _several_beat_one,
        published=0.033,
    ),
    Claim(
        "prediction-is-significant",
        "section 4.3, Table 1",
        "The predicted and the best inverse temperature are significantly correlated.",
        "All Stats, leave one data set out: holds if the median r is positive and the mean of the folds' p-values is "
        "below 0.05.",
        _prediction_is_significant,
        published=0.9563,
    ),
)

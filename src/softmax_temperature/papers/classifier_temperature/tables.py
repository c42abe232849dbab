"""Table 1 with the printed values, the accuracy that each rule loses, and plateaus."""

from __future__ import annotations

from typing import Any

import pandas as pd
import scipy  # Imports `scipy.stats`, which takes a second, when first used.

from softmax_temperature.heuristic.pairs import KEYS, LEVEL
from softmax_temperature.heuristic.ridge import inside_range_of_others
from softmax_temperature.heuristic.tables import (
    CONSTANT_RULE,
    RIDGE_RULE,
    SQUARE_ROOT_RULE,
    VALIDATION_RULE,
)
from softmax_temperature.papers.classifier_temperature.study import (
    HEURISTIC_STAGE,
    NO_SCALING,
    SEARCH,
    SEARCH_STAGE,
    SLUG,
    pairs,
    searches,
)
from softmax_temperature.papers.shared.printed import published
from softmax_temperature.papers.shared.runs import Runs
from softmax_temperature.papers.shared.sources import CELLS, cell_of_each, together
from softmax_temperature.papers.shared.tables import Made, Table

_SUGGEST = "suggest"
_COMPARED = [RIDGE_RULE, CONSTANT_RULE, SQUARE_ROOT_RULE, VALIDATION_RULE]
_METRICS = {
    "median_correlation": "median_r",
    "average_correlation": "mean_r",
    "p_value": "mean_p",
}
"""Maps the printed names of metrics to our columns."""
_MAIN = ("all pairs", "least_squares")
_VARIANTS = {
    "ours_trained_backbones": ("trained backbones", "least_squares"),
    "ours_identified_pairs": ("identified pairs", "least_squares"),
    "ours_ridge": ("all pairs", "ridge"),
}
"""The subset of pairs and the method behind each further column of our values.

Trained backbones have a column because the paper has no untrained ones.
"""


def table_1(runs: Runs) -> pd.DataFrame:
    """Table 1: how well predicted and best inverse temperatures correlate.

    The values summarise one correlation per left-out data set. The column `folds` has
    the number of data sets whose correlation is defined.
    """
    printed = published(SLUG, "Table 1").set_index("method")
    left_out = runs.tables["leave_one_out"].set_index("row")
    rows = []
    # Match rows by their order, because the names of our rows contain the number of
    # chosen statistics.
    names = zip(printed.index.unique(), left_out.index.unique(), strict=True)
    for printed_name, name in names:
        ours = left_out.loc[[name]].set_index(["subset", "method"])
        numbers = printed.loc[[printed_name]].set_index("metric")
        for metric, column in _METRICS.items():
            rows.append(
                {
                    "row": printed_name,
                    "metric": metric,
                    "published": numbers["value"][metric],
                    "published_sd": numbers["sd"][metric],
                    **_ours(ours[column], ours),
                }
            )
    return pd.DataFrame(rows).assign(cells=HEURISTIC_STAGE)


def _ours(values: pd.Series[float], left_out: pd.DataFrame) -> dict[str, Any]:
    """Our values for one row and one metric of Table 1, keyed by column.

    Args:
        values: The metric's column in `left_out`.
        left_out: Our rows of `leave_one_out` for this row of Table 1, indexed by subset
            and method.
    """
    sd = left_out["sd_r"][_MAIN] if values.name == "mean_r" else None
    numbers = {"ours": values[_MAIN], "ours_sd": sd}
    for name, variant in _VARIANTS.items():
        numbers[name] = values.get(variant)
    folds = left_out["folds"] - left_out["undefined_folds"]
    return {**numbers, "folds": float(folds[_MAIN])}


def cost_of_rules(runs: Runs) -> pd.DataFrame:
    """The accuracy that each rule loses, as statistics over pairs in one row per rule.

    The accuracy lost is the best accuracy on the grid minus the rule's accuracy.
    """
    lost = runs.tables["rules"].groupby("rule", sort=False)["accuracy_lost"]
    columns = {
        "mean": lost.mean(),
        "median": lost.median(),
        "p90": lost.quantile(0.9),
        "worst": lost.max(),
        "pairs": lost.count(),
    }
    table = pd.DataFrame(columns).sort_values("mean", kind="stable")
    return table.reset_index().assign(cells=HEURISTIC_STAGE)


def cost_of_suggest(runs: Runs) -> pd.DataFrame:
    """The accuracy that `suggest` and other rules lose on left-out data sets.

    Here, `suggest` is the regression's prediction for a pair inside the range of the
    other data sets, and the best constant of the other data sets for a pair outside it.
    The `suggest` command differs: it also uses the constant inside the range if the
    constant loses less accuracy there.

    Returns:
        One row for each rule in each range of pairs. The column `range` is "all",
        "inside" or "outside". The accuracy that the rule loses has the same columns as
        in `cost_of_rules`. `data_sets` is the number of data sets. `difference` is the
        accuracy that `suggest` loses minus the accuracy that the rule loses, averaged
        first over the pairs of each data set and then over data sets; `low` and `high`
        are the ends of its 90 % interval.
    """
    rules = runs.tables["rules"]
    lost = rules.pivot(index=KEYS, columns="rule", values="accuracy_lost")
    table = pairs(runs)
    inside = pd.Series(
        inside_range_of_others(table), index=pd.MultiIndex.from_frame(table[KEYS])
    )
    inside = inside[lost.index]
    lost[_SUGGEST] = lost[RIDGE_RULE].where(inside, lost[CONSTANT_RULE])
    ranges = {"all": inside | ~inside, "inside": inside, "outside": ~inside}
    rows = []
    for name, chosen in ranges.items():
        for rule in (_SUGGEST, *_COMPARED):
            costs = lost.loc[chosen, rule]
            differences = (lost.loc[chosen, _SUGGEST] - costs).groupby("dataset").mean()
            compared = {} if rule == _SUGGEST else _mean_and_interval(differences)
            rows.append(
                {
                    "range": name,
                    "rule": rule,
                    **_summary(costs),
                    "data_sets": len(differences),
                    **compared,
                }
            )
    return pd.DataFrame(rows).assign(cells=HEURISTIC_STAGE)


def _summary(costs: pd.Series[float]) -> dict[str, float]:
    return {
        "mean": costs.mean(),
        "median": costs.median(),
        "p90": float(costs.quantile(0.9)),
        "worst": costs.max(),
        "pairs": costs.count(),
    }


def _mean_and_interval(values: pd.Series[float]) -> dict[str, float]:
    """The mean of `values`, with Student's interval if there are two or more."""
    mean = float(values.mean())
    if len(values) < 2:
        return {"difference": mean}
    standard_error = float(scipy.stats.sem(values))
    quantile = float(scipy.stats.t.ppf((1 + LEVEL) / 2, len(values) - 1))
    half_width = quantile * standard_error
    return {"difference": mean, "low": mean - half_width, "high": mean + half_width}


def plateaus(runs: Runs) -> pd.DataFrame:
    """The best inverse temperature, its plateau and its gain, for each data set.

    The gain is the best accuracy minus the accuracy at inverse temperature 1. All
    numbers are medians over backbones.
    """
    table = pairs(runs)
    table["width"] = table["plateau_high"] - table["plateau_low"]
    columns = [
        "n_classes",
        "inverse_temperature",
        "plateau_low",
        "plateau_high",
        "width",
        "best_accuracy",
    ]
    medians = table.groupby("dataset")[columns].median()
    medians["gain_over_1"] = _gain_over_1(runs).groupby("dataset").median()
    medians = medians.sort_values("n_classes").reset_index()
    cells = [
        together([search, HEURISTIC_STAGE])
        for search in cell_of_each(SEARCH_STAGE, medians, "dataset")
    ]
    return medians.assign(**{CELLS: cells})


def _gain_over_1(runs: Runs) -> pd.Series[float]:
    """The best accuracy minus the accuracy at inverse temperature 1, for each pair."""
    table = searches(runs)
    place = ["dataset", "backbone"]
    best = table.groupby(place)["test_accuracy"].max()
    plain = NO_SCALING.select(table).set_index(place)["test_accuracy"]
    return best - plain


TABLES: tuple[Table, ...] = (
    Made(name="table_1", by=table_1),
    Made(name="cost_of_rules", by=cost_of_rules),
    Made(name="cost_of_suggest", by=cost_of_suggest),
    Made(name="plateaus", by=plateaus, of=SEARCH, names=("dataset",)),
)
"""All tables; the paper's only table comes first."""

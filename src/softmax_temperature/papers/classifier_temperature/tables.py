"""Table 1, ours beside the printed one, and the table of what each rule for choosing a
temperature costs.
"""

from collections.abc import Callable

import pandas as pd

from softmax_temperature.papers.classifier_temperature.records import (
    HEURISTIC,
    SEARCH,
    SLUG,
    Records,
)
from softmax_temperature.papers.shared.sources import cell_of_each, together
from softmax_temperature.papers.shared.tables import published

_METRICS = {
    "median_correlation": "median_r",
    "average_correlation": "mean_r",
    "p_value": "mean_p",
}
# By column of Table 1, the subset of the pairs and the method; the paper has no
# untrained backbones.
_VARIANTS = {
    "ours_trained_backbones": ("trained backbones", "least_squares"),
    "ours_identified_pairs": ("identified pairs", "least_squares"),
    "ours_ridge": ("all pairs", "ridge"),
}


def table_1(records: Records) -> pd.DataFrame:
    """Correlation of predicted and best inverse temperature over left-out data sets,
    `folds` of them.
    """
    printed = published(SLUG, "Table 1").set_index(["method", "metric"])
    found = []
    # Our names of the rows contain the number of statistics that was chosen; their
    # order is the paper's.
    names = printed.index.unique("method"), records.leave_one_out["row"].unique()
    for row, own in zip(*names, strict=True):
        ours = records.leave_one_out[records.leave_one_out["row"] == own].set_index(
            ["subset", "method"]
        )
        plain = ours.loc["all pairs", "least_squares"]
        folds = float(plain["folds"] - plain["undefined_folds"])
        for metric, column in _METRICS.items():
            sd = plain["sd_r"] if column == "mean_r" else None
            variants = (ours[column].get(key) for key in _VARIANTS.values())
            numbers = (
                *printed.loc[(row, metric), ["value", "sd"]],
                plain[column],
                sd,
                *variants,
            )
            found.append((row, metric, *numbers, folds, HEURISTIC))
    columns = (
        "row",
        "metric",
        "published",
        "published_sd",
        "ours",
        "ours_sd",
        *_VARIANTS,
        "folds",
        "cells",
    )
    return pd.DataFrame(found, columns=columns)


def cost_of_rules(records: Records) -> pd.DataFrame:
    """Accuracy lost against the best temperature of the grid, for each rule, over
    pairs: mean, median, worst; cells.
    """
    lost = records.rules.groupby("rule", sort=False)["accuracy_lost"]
    found = lost.agg(
        mean="mean",
        median="median",
        p90=lambda values: values.quantile(0.9),
        worst="max",
        pairs="count",
    )
    table = pd.DataFrame(found).sort_values("mean", kind="stable").reset_index()
    return table.assign(cells=HEURISTIC)


def plateaus(records: Records) -> pd.DataFrame:
    """For each data set: the median optimum and plateau over backbones, the gain over
    inverse temperature 1, cells.
    """
    pairs = records.pairs.assign(
        width=records.pairs["plateau_high"] - records.pairs["plateau_low"]
    )
    plain = records.runs[records.runs["inverse_temperature"] == 1].set_index(
        ["dataset", "backbone"]
    )["test_accuracy"]
    best = records.runs.groupby(["dataset", "backbone"])["test_accuracy"].max()
    gain = (best - plain).groupby("dataset").median().rename("gain_over_1")
    columns = [
        "n_classes",
        "inverse_temperature",
        "plateau_low",
        "plateau_high",
        "width",
        "best_accuracy",
    ]
    table: pd.DataFrame = (
        pairs.groupby("dataset")[columns]
        .median()
        .join(gain)
        .sort_values("n_classes")
        .reset_index()
    )
    return table.assign(
        cells=[
            together([search, HEURISTIC])
            for search in cell_of_each(SEARCH, table, "dataset")
        ]
    )


_MAKERS = (table_1, cost_of_rules, plateaus)
TABLES: dict[str, Callable[[Records], pd.DataFrame]] = {
    make.__name__: make for make in _MAKERS
}
"""Every table, by the name of its file."""

"""Tables of a study's searches, for Table 1 and Figures 3 and 4 (section 4.3)."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import pandas as pd
import torch
from torch import Tensor

from softmax_temperature.cosine_classifier import TemperatureGrid
from softmax_temperature.heuristic import regression, ridge
from softmax_temperature.heuristic.pairs import (
    KEYS,
    MINIMUM_DATASETS,
    correlations,
    floats,
    is_trained,
    matrix,
)
from softmax_temperature.heuristic.ridge import Study

ALL_PAIRS = "all pairs"
ALL_STATISTICS = "All Stats"
# Rules of the table `rules` that other modules read.
RIDGE_RULE = "ridge of the logarithm (ours)"
CONSTANT_RULE = "best constant"
SQUARE_ROOT_RULE = "square root of dimension"
VALIDATION_RULE = "chosen on validation"
METHODS: tuple[regression.Method, ...] = ("least_squares", "ridge")

# Results on left-out data sets, keyed by subset of pairs, row of Table 1, and method.
LeftOut: TypeAlias = Mapping[tuple[str, str, regression.Method], regression.LeaveOneOut]


def curve(test: TemperatureGrid, validation: TemperatureGrid) -> dict[str, Any]:
    """Average best accuracies and epochs over repeats, for each inverse temperature."""
    validation_epoch = validation.curves.argmax(-1, keepdim=True)
    at_validation_best = test.curves.gather(-1, validation_epoch).squeeze(-1)
    return {
        "inverse_temperature": list(test.inverse_temperatures),
        "test_accuracy": _mean(test.accuracy),
        "test_epoch": _mean(test.curves.argmax(-1).float() + 1),
        "validation_accuracy": _mean(validation.accuracy),
        "test_accuracy_at_validation_best": _mean(at_validation_best),
        "repeats": test.accuracy.shape[0],
    }


def optimum(
    test: TemperatureGrid, validation: TemperatureGrid, select_on: str
) -> dict[str, Any]:
    """Find the optimum of one pair and its plateau, both on the split `select_on`.

    The returned row also has the optima on both splits. `log_variance` is the variance
    over repeats of the logarithm of the optimum; it is absent if there is only one
    repeat.
    """
    selected = {"test": test, "validation": validation}[select_on]
    row = {
        "inverse_temperature": selected.best_inverse_temperature,
        "plateau_low": selected.plateau[0],
        "plateau_high": selected.plateau[1],
        "best_accuracy": round(float(selected.accuracy.double().mean(0).max()), 6),
        "selected_on": select_on,
        "inverse_temperature_test": test.best_inverse_temperature,
        "inverse_temperature_validation": validation.best_inverse_temperature,
        "test_rows": test.evaluated,
        "validation_rows": validation.evaluated,
    }
    optima = _optima_of_repeats(selected)
    if len(optima) > 1:
        row["log_variance"] = float(optima.log().var())
    return row


def _optima_of_repeats(grid: TemperatureGrid) -> Tensor:
    """Find the best inverse temperature of each single repeat, shape (repeats,)."""
    optima = []
    for curves in grid.curves:
        repeat = TemperatureGrid(
            grid.inverse_temperatures, curves[None], grid.evaluated
        )
        optima.append(repeat.best_inverse_temperature)
    return torch.tensor(optima, dtype=torch.float64)


def study_tables(
    table: pd.DataFrame,
    runs: pd.DataFrame,
    scores: pd.DataFrame,
    *,
    selected: int,
    clear: pd.DataFrame,
) -> dict[str, pd.DataFrame]:
    """Build the tables that are derived from the searches of a study, keyed by name.

    Args:
        table: One row per pair, with the keys of the pair, the columns from `optimum`,
            its statistics, and `weights`.
        runs: One row per pair and inverse temperature, with the keys of the pair and
            the columns from `curve`.
        scores: The return value of `ridge.score_rules`: the accuracy that each rule
            loses on each pair.
        selected: Number of statistics chosen for the middle row of Table 1.
        clear: The rows of `table` whose optimum is `identified`.
    """
    left_out = _left_out(table, clear, selected)
    summaries = []
    folds = []
    for (subset, row, method), result in left_out.items():
        labels = {"subset": subset, "row": row, "method": method}
        summaries.append(labels | result.summary())
        folds.append(result.folds.assign(**labels))
    all_statistics = left_out[ALL_PAIRS, ALL_STATISTICS, "least_squares"]
    return {
        "pairs": table,
        "correlations": correlations(table),
        "predictions": _predictions(table, all_statistics.predictions),
        "leave_one_out": pd.DataFrame(summaries),
        "folds": pd.concat(folds, ignore_index=True),
        "rules": _rules(table, runs, scores, left_out),
    }


def _left_out(table: pd.DataFrame, clear: pd.DataFrame, selected: int) -> LeftOut:
    """Compute Table 1 on all pairs, identified pairs, and pairs of trained backbones.

    All pairs count as identified if the clear ones come from too few data sets. The
    subset of trained backbones is absent if it contains all pairs, or pairs of too few
    data sets.
    """
    trained = table[is_trained(table)]
    subsets = {ALL_PAIRS: table, "identified pairs": table}
    if _is_usable_subset(clear, table):
        subsets["identified pairs"] = clear
    # The paper has no untrained backbone, so also show the trained backbones alone.
    if _is_usable_subset(trained, table):
        subsets["trained backbones"] = trained
    rows: dict[str, str | int] = {
        "Best Stat": "best",
        f"{selected}-Best Stats": selected,
        ALL_STATISTICS: "all",
    }
    left_out = {}
    for subset, pairs in subsets.items():
        for row, statistics in rows.items():
            for method in METHODS:
                left_out[subset, row, method] = regression.leave_one_dataset_out(
                    pairs, statistics=statistics, method=method
                )
    return left_out


def _is_usable_subset(subset: pd.DataFrame, table: pd.DataFrame) -> bool:
    enough = subset["dataset"].nunique() >= MINIMUM_DATASETS
    return enough and len(subset) < len(table)


def _mean(values: Tensor) -> list[float]:
    """Average `values` over repeats, and round the means to six decimals."""
    return [round(float(value), 6) for value in values.double().mean(0)]


def _predictions(table: pd.DataFrame, left_out: pd.DataFrame) -> pd.DataFrame:
    """Tabulate the best and the predicted inverse temperatures of every pair.

    `fitted` is the prediction of the fit on all pairs, `left_out` that of the fit
    without the pair's data set. As in Table 1, predictions are not clipped to the
    searched range.
    """
    heuristic = regression.fit(table, statistics="all")
    fitted = heuristic.regression.predict(matrix(table, heuristic.statistics))
    columns = [*KEYS, "inverse_temperature", "plateau_low", "plateau_high"]
    optima = table[columns].assign(fitted=fitted)
    out_of_fold = left_out[[*KEYS, "linear"]].rename(columns={"linear": "left_out"})
    return optima.merge(out_of_fold, on=KEYS)


def _rules(
    table: pd.DataFrame, runs: pd.DataFrame, scores: pd.DataFrame, left_out: LeftOut
) -> pd.DataFrame:
    """Tabulate the choice of each rule for every pair.

    The table also has the test accuracy at the choice, and the accuracy that is lost.
    """
    choices = _choices(table, scores, left_out)
    rules = pd.concat(choices, names=["rule"]).reset_index("rule")
    rules = rules.reset_index(drop=True)
    pairs = pd.MultiIndex.from_frame(table[KEYS])
    rows = pairs.get_indexer(pd.MultiIndex.from_frame(rules[KEYS]))
    inverse_temperatures = floats(rules, "inverse_temperature")
    study = Study.of(table, runs)
    rules = rules.assign(
        test_accuracy=study.accuracy(rows, inverse_temperatures).round(6),
        accuracy_lost=study.lost(rows, inverse_temperatures).round(6),
    )
    return rules[
        ["rule", *KEYS, "inverse_temperature", "test_accuracy", "accuracy_lost"]
    ]


def _choices(
    table: pd.DataFrame, scores: pd.DataFrame, left_out: LeftOut
) -> dict[str, pd.DataFrame]:
    """Map each rule to the inverse temperatures that it chooses for the pairs."""
    scored = {
        str(rule): rows.drop(columns="rule") for rule, rows in scores.groupby("rule")
    }
    lower_bound = regression.lower_bound_from_classes(table["n_classes"])
    choices = {
        "none (1)": table.assign(inverse_temperature=1.0),
        SQUARE_ROOT_RULE: scored[ridge.SQUARE_ROOT],
        "lower bound from classes": table.assign(inverse_temperature=lower_bound),
        "median of other data sets": scored[ridge.MEDIAN],
        VALIDATION_RULE: scored[ridge.VALIDATION],
    }
    for (subset, row, method), result in left_out.items():
        if subset == ALL_PAIRS:
            predictions = result.predictions
            choices[f"{row}, {method.replace('_', ' ')}"] = predictions.assign(
                inverse_temperature=predictions["predicted"]
            )
    choices[RIDGE_RULE] = scored[ridge.HEURISTIC]
    # `ridge.score_rules` leaves out WITHOUT_BACKBONE if it cannot predict every pair.
    if ridge.WITHOUT_BACKBONE in scored:
        choices["the same, backbone left out too"] = scored[ridge.WITHOUT_BACKBONE]
    choices[CONSTANT_RULE] = scored[ridge.CONSTANT]
    return choices

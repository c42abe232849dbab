"""The tables of the stage heuristic: pairs, regressions on them, and what each rule for a temperature costs."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from softmax_temperature import heuristic
from softmax_temperature.cosine_classifier import TemperatureGrid
from softmax_temperature.heuristic import lower_bound_from_classes, square_root_of_dimension

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

    from softmax_temperature.runner.artifacts import Artifact

Pair = tuple[str, str]  # data set and backbone


def heuristic_tables(
    searches: Mapping[Pair, Artifact],
    statistics: Mapping[Pair, dict[str, float]],
    select_on: str,
    *,
    selected: int,
    max_plateau: float,
) -> tuple[dict[str, pd.DataFrame], heuristic.Heuristic]:
    """Join what was searched and described, and fit.

    Args:
        searches: of each pair, what the stage search wrote.
        statistics: of each pair, the 23.
        select_on: the split that the optimum is read on.
        selected: how many statistics the final fit uses.
        max_plateau: pairs with a wider plateau, as a share of the grid, are no part of it.

    Returns:
        The tables of the stage by name, and the final fit.
    """
    grids = {pair: _grids(artifact) for pair, artifact in searches.items()}
    runs = pd.concat([_runs(d, b, *grids[d, b]) for d, b in grids], ignore_index=True)
    table = pd.DataFrame([_pair(d, b, *grids[d, b], select_on) | statistics[d, b] for d, b in grids])
    all_pairs = heuristic.fit(table, statistics="all")
    grid = next(iter(grids.values()))[0].inverse_temperatures
    clear = identified_pairs(table, grid, max_plateau)
    summaries, folds, rules = _leave_one_out({"all pairs": table, "identified pairs": clear}, runs, selected)
    tables = {
        "runs": runs,
        "pairs": table,
        "correlations": heuristic.correlations(table),
        "predictions": _predictions(table, all_pairs),
        "leave_one_out": summaries,
        "folds": folds,
        "rules": rules,
    }
    return tables, heuristic.fit(clear, statistics=selected)


def _grids(artifact: Artifact) -> tuple[TemperatureGrid, TemperatureGrid]:
    """The grids of accuracies on test and on validation data."""
    record, curves = artifact.json("record.json"), artifact.tensors("curves.safetensors")
    test, validation = (
        TemperatureGrid(tuple(record["inverse_temperatures"]), curves[split], record["rows"][split])
        for split in ("test", "validation")
    )
    return test, validation


def _runs(dataset: str, backbone: str, test: TemperatureGrid, validation: TemperatureGrid) -> pd.DataFrame:
    """One row per inverse temperature: the best accuracy over epochs, averaged over repeats."""
    return pd.DataFrame(
        {
            "dataset": dataset,
            "backbone": backbone,
            "inverse_temperature": list(test.inverse_temperatures),
            "test_accuracy": _mean(test.accuracy),
            "test_epoch": _mean(test.curves.argmax(-1).float() + 1),
            "validation_accuracy": _mean(validation.accuracy),
            "test_accuracy_at_validation_best": _mean(_accuracy_where_validation_is_best(test, validation)),
            "repeats": test.accuracy.shape[0],
        }
    )


def _mean(values: Tensor) -> list[float]:
    return [round(float(value), 6) for value in values.double().mean(0)]


def _accuracy_where_validation_is_best(test: TemperatureGrid, validation: TemperatureGrid) -> Tensor:
    epoch = validation.curves.argmax(-1, keepdim=True)
    return test.curves.gather(-1, epoch).squeeze(-1)


def _pair(
    dataset: str, backbone: str, test: TemperatureGrid, validation: TemperatureGrid, select_on: str
) -> dict[str, Any]:
    """The optimum of one pair with its plateau, from the split that the parameters name, and from the other beside."""
    chosen = {"test": test, "validation": validation}[select_on]
    return {
        "dataset": dataset,
        "backbone": backbone,
        "inverse_temperature": chosen.best_inverse_temperature,
        "plateau_low": chosen.plateau[0],
        "plateau_high": chosen.plateau[1],
        "best_accuracy": round(float(chosen.accuracy.double().mean(0).max()), 6),
        "selected_on": select_on,
        "inverse_temperature_test": test.best_inverse_temperature,
        "inverse_temperature_validation": validation.best_inverse_temperature,
        "test_rows": test.evaluated,
        "validation_rows": validation.evaluated,
    }


def identified_pairs(table: pd.DataFrame, grid: Sequence[float], max_plateau: float) -> pd.DataFrame:
    """The pairs whose optimum is a number, unless these are too few data sets to leave one out."""
    clear = heuristic.identified(table, max_share=max_plateau, grid=grid)
    return clear if clear["dataset"].nunique() >= heuristic.MINIMUM_DATASETS else table


def _predictions(table: pd.DataFrame, fitted: heuristic.Heuristic) -> pd.DataFrame:
    """Best and predicted inverse temperature of every pair: fitted on all pairs, and with the data set left out."""
    keys = ["dataset", "backbone"]
    on_all = fitted.predict_pairs(table)[[*keys, "predicted"]].rename(columns={"predicted": "fitted"})
    left_out = heuristic.leave_one_dataset_out(table, statistics="all").predictions
    left_out = left_out[[*keys, "predicted"]].rename(columns={"predicted": "left_out"})
    optima = table[[*keys, "inverse_temperature", "plateau_low", "plateau_high"]]
    return optima.merge(on_all, on=keys).merge(left_out, on=keys)


def _leave_one_out(
    subsets: Mapping[str, pd.DataFrame], runs: pd.DataFrame, selected: int
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Table 1 on each subset of the pairs, its folds, and the cost of following each prediction on all pairs."""
    rows: dict[str, str | int] = {"Best Stat": "best", f"{selected}-Best Stats": selected, "All Stats": "all"}
    methods: tuple[heuristic.Method, ...] = ("least_squares", "ridge")
    summaries, folds = [], []
    rules = [_rule(runs, name, values) for name, values in _rules_of_thumb(subsets["all pairs"]).items()]
    for (subset, pairs), (row, statistics), method in product(subsets.items(), rows.items(), methods):
        result = heuristic.leave_one_dataset_out(pairs, statistics=statistics, method=method)
        labels = {"subset": subset, "row": row, "method": method}
        summaries.append(labels | result.summary())
        folds.append(result.folds.assign(**labels))
        if subset == "all pairs":
            rules.append(_rule(runs, f"{row}, {method.replace('_', ' ')}", _by_pair(result.predictions, "predicted")))
    return pd.DataFrame(summaries), pd.concat(folds, ignore_index=True), pd.concat(rules, ignore_index=True)


def _by_pair(table: pd.DataFrame, column: str) -> dict[Pair, float]:
    return {(row["dataset"], row["backbone"]): row[column] for row in table.to_dict("records")}


def _rules_of_thumb(table: pd.DataFrame) -> dict[str, dict[Pair, float]]:
    """What a user would take without a search, for every pair."""
    medians = {
        name: table[table["dataset"] != name]["inverse_temperature"].median() for name in table["dataset"].unique()
    }
    values = {
        "none (1)": table["dim"] * 0.0 + 1.0,
        "square root of dimension": square_root_of_dimension(table["dim"]),
        "lower bound from classes": lower_bound_from_classes(table["n_classes"]),
        "median of other data sets": table["dataset"].map(medians),
        "chosen on validation": table["inverse_temperature_validation"],
    }
    return {name: _by_pair(table.assign(value=column), "value") for name, column in values.items()}


def _rule(runs: pd.DataFrame, name: str, values: Mapping[Pair, float]) -> pd.DataFrame:
    """Test accuracy at a rule's value, interpolated between the two neighbours on the grid, and what it costs."""
    rows = []
    for (dataset, backbone), value in values.items():
        pair = runs[(runs["dataset"] == dataset) & (runs["backbone"] == backbone)]
        accuracy = float(np.interp(value, pair["inverse_temperature"], pair["test_accuracy"]))
        best = float(pair["test_accuracy"].max())
        rows.append(
            {
                "rule": name,
                "dataset": dataset,
                "backbone": backbone,
                "inverse_temperature": value,
                "test_accuracy": round(accuracy, 6),
                "accuracy_lost": round(best - accuracy, 6),
            }
        )
    return pd.DataFrame(rows)

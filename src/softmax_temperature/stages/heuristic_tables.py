"""The tables of the stage heuristic: pairs, regressions on them, and what each rule for a temperature costs."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from softmax_temperature import heuristic
from softmax_temperature.cosine_classifier import TemperatureGrid
from softmax_temperature.heuristic import lower_bound_from_classes, square_root_of_dimension
from softmax_temperature.heuristic.pairs import KEYS, matrix
from softmax_temperature.heuristic.ridge import RidgeHeuristic, Study, fit_shipped, score_rules
from softmax_temperature.runner.artifacts import Artifact

Pair = tuple[str, str]  # data set and backbone
UNTRAINED = "untrained"
RIDGE_RULES = {
    "heuristic": "ridge of the logarithm (ours)",
    "heuristic, backbone left out too": "the same, backbone left out too",
    "best constant": "best constant",
}


def heuristic_tables(
    searches: Mapping[Pair, Artifact],
    statistics: Mapping[Pair, dict[str, float]],
    select_on: str,
    *,
    selected: int,
    max_plateau: float,
) -> tuple[dict[str, pd.DataFrame], RidgeHeuristic]:
    """Join what was searched and described, and fit.

    Args:
        searches: of each pair, what the stage search wrote.
        statistics: of each pair, the 23.
        select_on: the split that the optimum is read on.
        selected: how many statistics the middle row of Table 1 uses.
        max_plateau: pairs with a wider plateau, as a share of the grid, are set apart.

    Returns:
        The tables of the stage by name, and the heuristic for `suggest`.
    """
    grids = {pair: _grids(artifact) for pair, artifact in searches.items()}
    runs = pd.concat([_runs(d, b, *grids[d, b]) for d, b in grids], ignore_index=True)
    table = pd.DataFrame([_pair(d, b, *grids[d, b], select_on) | statistics[d, b] for d, b in grids])
    grid = next(iter(grids.values()))[0].inverse_temperatures
    subsets = {"all pairs": table, "identified pairs": _identified(table, grid, max_plateau)}
    trained = table[~table["backbone"].str.startswith(UNTRAINED)]
    if 0 < len(trained) < len(table) and trained["dataset"].nunique() >= heuristic.MINIMUM_DATASETS:
        subsets["trained backbones"] = trained  # The paper has no untrained extractor.
    rows: dict[str, str | int] = {"Best Stat": "best", f"{selected}-Best Stats": selected, "All Stats": "all"}
    methods: tuple[heuristic.Method, ...] = ("least_squares", "ridge")
    left_out = {
        (subset, row, method): heuristic.leave_one_dataset_out(subsets[subset], statistics=rows[row], method=method)
        for subset, row, method in product(subsets, rows, methods)
    }
    labels = [dict(zip(("subset", "row", "method"), names, strict=True)) for names in left_out]
    found = list(zip(labels, left_out.values(), strict=True))
    scores = score_rules(table, runs)
    tables = {
        "runs": runs,
        "pairs": table,
        "correlations": heuristic.correlations(table),
        "predictions": _predictions(table, left_out["all pairs", "All Stats", "least_squares"].predictions),
        "leave_one_out": pd.DataFrame([label | one.summary() for label, one in found]),
        "folds": pd.concat([one.folds.assign(**label) for label, one in found], ignore_index=True),
        "rules": _rules(table, runs, scores, left_out),
    }
    return tables, fit_shipped(table, runs, scores)


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
    epoch = validation.curves.argmax(-1, keepdim=True)
    return pd.DataFrame(
        {
            "dataset": dataset,
            "backbone": backbone,
            "inverse_temperature": list(test.inverse_temperatures),
            "test_accuracy": _mean(test.accuracy),
            "test_epoch": _mean(test.curves.argmax(-1).float() + 1),
            "validation_accuracy": _mean(validation.accuracy),
            "test_accuracy_at_validation_best": _mean(test.curves.gather(-1, epoch).squeeze(-1)),
            "repeats": test.accuracy.shape[0],
        }
    )


def _mean(values: Tensor) -> list[float]:
    return [round(float(value), 6) for value in values.double().mean(0)]


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
        **_log_variance(chosen),
    }


def _log_variance(grid: TemperatureGrid) -> dict[str, float]:
    """The variance of the logarithm of the best inverse temperature over repeats; nothing for a single one."""
    each = [TemperatureGrid(grid.inverse_temperatures, curves[None], grid.evaluated) for curves in grid.curves]
    best = torch.tensor([one.best_inverse_temperature for one in each], dtype=torch.float64)
    return {"log_variance": float(best.log().var())} if len(best) > 1 else {}


def _identified(table: pd.DataFrame, grid: Sequence[float], max_plateau: float) -> pd.DataFrame:
    """The pairs whose optimum is a number, unless these are too few data sets to leave one out."""
    clear = heuristic.identified(table, max_share=max_plateau, grid=grid)
    return clear if clear["dataset"].nunique() >= heuristic.MINIMUM_DATASETS else table


def _predictions(table: pd.DataFrame, left_out: pd.DataFrame) -> pd.DataFrame:
    """Best and predicted inverse temperature of every pair: fitted on all pairs, and with the data set left out.

    As in Table 1, predictions are the regression's own values, which may lie outside the searched range.
    """
    fitted = heuristic.fit(table, statistics="all")
    values = fitted.regression.predict(matrix(table, fitted.statistics))
    optima = table[[*KEYS, "inverse_temperature", "plateau_low", "plateau_high"]].assign(fitted=values)
    return optima.merge(left_out[[*KEYS, "linear"]].rename(columns={"linear": "left_out"}), on=KEYS)


def _rules(
    table: pd.DataFrame,
    runs: pd.DataFrame,
    scores: pd.DataFrame,
    left_out: Mapping[tuple[str, str, heuristic.Method], heuristic.LeaveOneOut],
) -> pd.DataFrame:
    """What each rule chooses for every pair, the test accuracy there, and what it costs."""
    medians = {
        name: table[table["dataset"] != name]["inverse_temperature"].median() for name in table["dataset"].unique()
    }
    of_thumb = {
        "none (1)": 1.0,
        "square root of dimension": square_root_of_dimension(table["dim"]),
        "lower bound from classes": lower_bound_from_classes(table["n_classes"]),
        "median of other data sets": table["dataset"].map(medians),
        "chosen on validation": table["inverse_temperature_validation"],
    }
    chosen = [table[KEYS].assign(rule=name, inverse_temperature=values) for name, values in of_thumb.items()]
    for (subset, row, method), one in left_out.items():
        if subset == "all pairs":
            name = f"{row}, {method.replace('_', ' ')}"
            chosen.append(one.predictions[KEYS].assign(rule=name, inverse_temperature=one.predictions["predicted"]))
    ridge = scores.assign(rule=scores["rule"].map(RIDGE_RULES)).dropna(subset="rule")
    rules = pd.concat([*chosen, ridge[["rule", *KEYS, "inverse_temperature"]]], ignore_index=True)
    study = Study.of(table, runs)
    rows = pd.MultiIndex.from_frame(table[KEYS]).get_indexer(pd.MultiIndex.from_frame(rules[KEYS]))
    accuracy = study.accuracy(rows, rules["inverse_temperature"].to_numpy(np.float64))
    lost = study.accuracies[rows].max(axis=1) - accuracy
    rules = rules.assign(test_accuracy=accuracy.round(6), accuracy_lost=lost.round(6))
    return rules[["rule", *KEYS, "inverse_temperature", "test_accuracy", "accuracy_lost"]]

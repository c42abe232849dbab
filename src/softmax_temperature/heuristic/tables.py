"""What a study of searches says, as tables: the paper's records behind Table 1 and
Figures 3 and 4 (section 4.3).
"""

from collections.abc import Mapping
from itertools import product
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

LeftOut: TypeAlias = Mapping[tuple[str, str, regression.Method], regression.LeaveOneOut]
"""By subset of pairs, row of Table 1, and method."""


def curve(test: TemperatureGrid, validation: TemperatureGrid) -> dict[str, Any]:
    """Of each inverse temperature the best accuracy over epochs, averaged over repeats."""
    epoch = validation.curves.argmax(-1, keepdim=True)
    return {
        "inverse_temperature": list(test.inverse_temperatures),
        "test_accuracy": _mean(test.accuracy),
        "test_epoch": _mean(test.curves.argmax(-1).float() + 1),
        "validation_accuracy": _mean(validation.accuracy),
        "test_accuracy_at_validation_best": _mean(
            test.curves.gather(-1, epoch).squeeze(-1)
        ),
        "repeats": test.accuracy.shape[0],
    }


def optimum(
    test: TemperatureGrid, validation: TemperatureGrid, select_on: str
) -> dict[str, Any]:
    """The optimum of one pair with its plateau, from the split that the parameters
    name, and from the other beside.

    `log_variance` is that of the logarithm of the optimum over repeats; there is none
    for a single one.
    """
    chosen = {"test": test, "validation": validation}[select_on]
    each = [
        TemperatureGrid(chosen.inverse_temperatures, curves[None], chosen.evaluated)
        for curves in chosen.curves
    ]
    best = torch.tensor(
        [one.best_inverse_temperature for one in each], dtype=torch.float64
    )
    return {
        "inverse_temperature": chosen.best_inverse_temperature,
        "plateau_low": chosen.plateau[0],
        "plateau_high": chosen.plateau[1],
        "best_accuracy": round(float(chosen.accuracy.double().mean(0).max()), 6),
        "selected_on": select_on,
        "inverse_temperature_test": test.best_inverse_temperature,
        "inverse_temperature_validation": validation.best_inverse_temperature,
        "test_rows": test.evaluated,
        "validation_rows": validation.evaluated,
        **({"log_variance": float(best.log().var())} if len(best) > 1 else {}),
    }


def study_tables(
    table: pd.DataFrame,
    runs: pd.DataFrame,
    scores: pd.DataFrame,
    *,
    selected: int,
    clear: pd.DataFrame,
) -> dict[str, pd.DataFrame]:
    """The tables by name, from pairs with their statistics and `optimum`, a `curve`
    each, and the rules' `scores`.

    `clear` are the pairs whose optimum is `identified`; the middle row of Table 1
    chooses `selected` statistics.
    """
    left_out = _left_out(table, clear, selected)
    labelled = [
        (dict(zip(("subset", "row", "method"), names, strict=True)), one)
        for names, one in left_out.items()
    ]
    return {
        "runs": runs,
        "pairs": table,
        "correlations": correlations(table),
        "predictions": _predictions(
            table, left_out["all pairs", "All Stats", "least_squares"].predictions
        ),
        "leave_one_out": pd.DataFrame(
            [label | one.summary() for label, one in labelled]
        ),
        "folds": pd.concat(
            [one.folds.assign(**label) for label, one in labelled], ignore_index=True
        ),
        "rules": _rules(table, runs, scores, left_out),
    }


def _left_out(table: pd.DataFrame, clear: pd.DataFrame, selected: int) -> LeftOut:
    """Table 1 on all pairs, and on those whose optimum is clear and whose backbone is
    trained, if these are enough.
    """
    trained = table[is_trained(table)]
    parts = {
        "identified pairs": clear,
        "trained backbones": trained,
    }  # The paper has no untrained extractor.
    subsets = {"all pairs": table, "identified pairs": table} | {
        name: some
        for name, some in parts.items()
        if some["dataset"].nunique() >= MINIMUM_DATASETS and len(some) < len(table)
    }
    rows: dict[str, str | int] = {
        "Best Stat": "best",
        f"{selected}-Best Stats": selected,
        "All Stats": "all",
    }
    methods: tuple[regression.Method, ...] = ("least_squares", "ridge")
    return {
        (subset, row, method): regression.leave_one_dataset_out(
            subsets[subset], statistics=rows[row], method=method
        )
        for subset, row, method in product(subsets, rows, methods)
    }


def _mean(values: Tensor) -> list[float]:
    return [round(float(value), 6) for value in values.double().mean(0)]


def _predictions(table: pd.DataFrame, left_out: pd.DataFrame) -> pd.DataFrame:
    """Best and predicted inverse temperature of every pair: fitted on all pairs, and
    with the data set left out.

    As in Table 1, predictions are the regression's own values, which may lie outside
    the searched range.
    """
    fitted = regression.fit(table, statistics="all")
    values = fitted.regression.predict(matrix(table, fitted.statistics))
    optima = table[
        [*KEYS, "inverse_temperature", "plateau_low", "plateau_high"]
    ].assign(fitted=values)
    return optima.merge(
        left_out[[*KEYS, "linear"]].rename(columns={"linear": "left_out"}), on=KEYS
    )


def _rules(
    table: pd.DataFrame, runs: pd.DataFrame, scores: pd.DataFrame, left_out: LeftOut
) -> pd.DataFrame:
    """What each rule chooses for every pair, the test accuracy there, and what it
    costs.
    """
    scored = {rule: some.drop(columns="rule") for rule, some in scores.groupby("rule")}
    regressions = {
        f"{row}, {method.replace('_', ' ')}": one.predictions.assign(
            inverse_temperature=one.predictions["predicted"]
        )
        for (subset, row, method), one in left_out.items()
        if subset == "all pairs"
    }
    lower_bound = regression.lower_bound_from_classes(table["n_classes"])
    chosen = {
        "none (1)": table.assign(inverse_temperature=1.0),
        "square root of dimension": scored[ridge.SQUARE_ROOT],
        "lower bound from classes": table.assign(inverse_temperature=lower_bound),
        "median of other data sets": scored[ridge.MEDIAN],
        "chosen on validation": scored[ridge.VALIDATION],
        **regressions,
        "ridge of the logarithm (ours)": scored[ridge.HEURISTIC],
        "the same, backbone left out too": scored.get(
            ridge.WITHOUT_BACKBONE
        ),  # None, which pandas drops, of one.
        "best constant": scored[ridge.CONSTANT],
    }
    rules, study = (
        pd.concat(chosen, names=["rule"]).reset_index("rule").reset_index(drop=True),
        Study.of(table, runs),
    )
    rows = pd.MultiIndex.from_frame(table[KEYS]).get_indexer(
        pd.MultiIndex.from_frame(rules[KEYS])
    )
    at = floats(rules, "inverse_temperature")
    rules = rules.assign(
        test_accuracy=study.accuracy(rows, at).round(6),
        accuracy_lost=study.lost(rows, at).round(6),
    )
    return rules[
        ["rule", *KEYS, "inverse_temperature", "test_accuracy", "accuracy_lost"]
    ]

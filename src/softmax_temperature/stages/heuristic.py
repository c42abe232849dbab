"""Stage heuristic: statistics and searches joined into pairs, and the regression from the ones to the others (4.3)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from torch import Tensor

from softmax_temperature import heuristic
from softmax_temperature.artifacts import Artifact, write_text
from softmax_temperature.cells import Cell, Job
from softmax_temperature.cosine_classifier import TemperatureGrid
from softmax_temperature.stages import describe, search
from softmax_temperature.tables import write_csv

if TYPE_CHECKING:
    from softmax_temperature.params import Params

OUTPUT = Path("data/heuristic")


def cells(params: Params) -> list[Cell]:
    """One cell, which reads exactly the pairs that the parameters declare."""
    paper = params.classifier_temperature
    pairs = [(dataset, backbone) for dataset in paper.datasets for backbone in paper.backbones]
    inputs = {f"statistics {d} {b}": describe.OUTPUT / d / b for d, b in pairs}
    inputs |= {f"search {d} {b}": search.OUTPUT / d / b for d, b in pairs}
    parameters = {"pairs": [list(pair) for pair in pairs], "select_on": paper.search.select_on}
    return [Cell(".", run, parameters | paper.heuristic.model_dump(), inputs)]


def run(job: Job, *, pairs: list[list[str]], select_on: str, selected: int, max_plateau: float) -> None:
    """Join and fit.

    Writes `runs.csv` (pair × inverse temperature), `pairs.csv` (pair, statistics, optimum, plateau),
    `correlations.csv` (Figure 3), `predictions.csv` (Figure 4), `leave_one_out.csv` and `folds.csv` (Table 1), `rules.csv` (what each rule for
    choosing a temperature costs in accuracy), and `heuristic.json` (the final fit).
    """
    grids = {(d, b): _grids(job.inputs[f"search {d} {b}"]) for d, b in pairs}
    statistics = {(d, b): job.inputs[f"statistics {d} {b}"].json("statistics.json") for d, b in pairs}
    runs = pd.concat([_runs(d, b, *grids[d, b]) for d, b in grids], ignore_index=True)
    table = pd.DataFrame([_pair(d, b, *grids[d, b], select_on) | statistics[d, b] for d, b in grids])
    summaries, folds, rules = _leave_one_out(table, runs, selected, max_plateau)
    all_pairs = heuristic.fit(table, statistics="all")
    fitted = heuristic.fit(_fitting_pairs(table, max_plateau), statistics=selected)
    write_csv(job.output / "runs.csv", runs)
    write_csv(job.output / "pairs.csv", table)
    write_csv(job.output / "correlations.csv", heuristic.correlations(table))
    write_csv(job.output / "predictions.csv", _predictions(table, all_pairs))
    write_csv(job.output / "leave_one_out.csv", summaries)
    write_csv(job.output / "folds.csv", folds)
    write_csv(job.output / "rules.csv", rules)
    write_text(job.output / "heuristic.json", fitted.to_json())


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


def _pair(dataset: str, backbone: str, test: TemperatureGrid, validation: TemperatureGrid, select_on: str) -> dict[str, Any]:
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


def _fitting_pairs(table: pd.DataFrame, max_plateau: float) -> pd.DataFrame:
    """The pairs whose optimum is a number, unless these are too few data sets to fit on."""
    clear = heuristic.identified(table, max_share=max_plateau)
    return clear if clear["dataset"].nunique() >= heuristic.MINIMUM_DATASETS else table


def _predictions(table: pd.DataFrame, fitted: heuristic.Heuristic) -> pd.DataFrame:
    """Best and predicted inverse temperature of every pair: fitted on all pairs, and with the data set left out."""
    left_out = heuristic.leave_one_dataset_out(table, statistics="all").predictions
    names = [term.statistic for term in fitted.terms]
    on_all = [fitted.predict(row).inverse_temperature for row in table[names].to_dict("records")]
    frame = table[["dataset", "backbone", "inverse_temperature", "plateau_low", "plateau_high"]].assign(fitted=on_all)
    return frame.merge(left_out[["dataset", "backbone", "predicted"]].rename(columns={"predicted": "left_out"}))


def _leave_one_out(
    table: pd.DataFrame, runs: pd.DataFrame, selected: int, max_plateau: float
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Table 1 on all pairs and on the identified ones, its folds, and the cost of following each prediction."""
    rows: dict[str, str | int] = {"Best Stat": "best", f"{selected}-Best Stats": selected, "All Stats": "all"}
    summaries, folds = [], []
    rules = [_rule(table, runs, name, values) for name, values in _rules_of_thumb(table).items()]
    for subset, pairs in {"all pairs": table, "identified pairs": _fitting_pairs(table, max_plateau)}.items():
        for name, statistics in rows.items():
            for method in ("least_squares", "ridge"):
                result = heuristic.leave_one_dataset_out(pairs, statistics=statistics, method=method)  # type: ignore[arg-type]
                labels = {"subset": subset, "row": name, "method": method}
                summaries.append(labels | result.summary())
                folds.append(result.folds.assign(statistics=result.folds["statistics"].map(" ".join), **labels))
                if subset == "all pairs":
                    predicted = result.predictions.set_index(["dataset", "backbone"])["predicted"]
                    rules.append(_rule(table, runs, f"{name}, {method.replace('_', ' ')}", predicted))
    return pd.DataFrame(summaries), pd.concat(folds, ignore_index=True), pd.concat(rules, ignore_index=True)


def _rules_of_thumb(table: pd.DataFrame) -> dict[str, pd.Series[float]]:
    """What a user would take without a search: inverse temperature by (dataset, backbone)."""
    indexed = table.set_index(["dataset", "backbone"])
    epsilon = 1e-3  # Section 2 quotes the bound of Liu, Li and Xu 2017 with a loss of "10e - 4".
    bound = 0.5 * np.log((indexed["n_classes"] - 1) / math.expm1(epsilon))
    others = {name: indexed.drop(name, level="dataset")["inverse_temperature"].median() for name in table["dataset"]}
    return {
        "none (1)": indexed["dim"] * 0.0 + 1.0,
        "square root of dimension": np.sqrt(indexed["dim"]),
        "lower bound from classes": bound.clip(lower=1.0),
        "median of other data sets": pd.Series(indexed.index.get_level_values("dataset").map(others), index=indexed.index),
        "chosen on validation": indexed["inverse_temperature_validation"],
    }


def _rule(table: pd.DataFrame, runs: pd.DataFrame, name: str, values: pd.Series[float]) -> pd.DataFrame:
    """Test accuracy at a rule's value, interpolated between the two neighbours on the grid, and what it costs."""
    rows = []
    for (dataset, backbone), pair in runs.groupby(["dataset", "backbone"]):
        value = float(values.loc[(dataset, backbone)])
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

"""Stage heuristic: statistics and searches joined into pairs, and the regression from the ones to the others (4.3)."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from softmax_temperature import heuristic as library
from softmax_temperature.cosine_classifier import TemperatureGrid
from softmax_temperature.heuristic.pairs import KEYS, MINIMUM_DATASETS, correlations, floats, identified, matrix
from softmax_temperature.heuristic.ridge import Study, fit_shipped, score_rules
from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import Artifact, write_json, write_text
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.stages import HEURISTIC, stage
from softmax_temperature.stages.classifier_temperature import PAPER, describe, search

UNTRAINED = "untrained"  # What the names of backbones with random weights begin with.
LeftOut = Mapping[tuple[str, str, library.Method], library.LeaveOneOut]  # By subset of pairs, row of Table 1, method.


@stage(PAPER, HEURISTIC)
def heuristic(params: Params) -> Iterator[Cell]:
    """One cell, which reads exactly the pairs that the parameters declare."""
    paper, pairs = params.classifier_temperature, params.embedded_pairs()
    inputs = {f"statistics {d} {b}": describe.output / d / b for d, b in pairs}
    inputs |= {f"search {d} {b}": search.output / d / b for d, b in pairs}
    plan = {"pairs": pairs, **paper.heuristic.model_dump(), "select_on": paper.search.select_on}
    yield Cell(".", _heuristic, plan, inputs)


def _heuristic(job: Job, *, pairs: list[tuple[str, str]], selected: int, max_plateau: float, select_on: str) -> None:
    """Write the tables of the paper's records, but Figure 2's, and `heuristic.json` (for `suggest`)."""
    rows, curves = [], []
    for data, backbone in pairs:
        keys = {"dataset": data, "backbone": backbone}
        test, validation = _grids(job.inputs[f"search {data} {backbone}"])
        statistics = job.inputs[f"statistics {data} {backbone}"].json("statistics.json")
        curves.append(pd.DataFrame(keys | _curve(test, validation)))
        rows.append(keys | _optimum(test, validation, select_on) | statistics)
    table, runs = pd.DataFrame(rows), pd.concat(curves, ignore_index=True)
    # All searches have one grid.
    clear = identified(table, max_share=max_plateau, grid=test.inverse_temperatures)
    left_out, scores = _left_out(table, clear, selected), score_rules(table, runs)
    labelled = [(dict(zip(("subset", "row", "method"), names, strict=True)), one) for names, one in left_out.items()]
    tables = {
        "runs": runs,
        "pairs": table,
        "correlations": correlations(table),
        "predictions": _predictions(table, left_out["all pairs", "All Stats", "least_squares"].predictions),
        "leave_one_out": pd.DataFrame([label | one.summary() for label, one in labelled]),
        "folds": pd.concat([one.folds.assign(**label) for label, one in labelled], ignore_index=True),
        "rules": _rules(table, runs, scores, left_out),
    }
    for name, made in tables.items():
        write_text(job.output / f"{name}.csv", made.to_csv(index=False, lineterminator="\n"))
    write_json(job.output / "heuristic.json", fit_shipped(table, runs, scores).model_dump())


def _left_out(table: pd.DataFrame, clear: pd.DataFrame, selected: int) -> LeftOut:
    """Table 1 on all pairs, and on those whose optimum is clear and whose backbone is trained, if these are enough."""
    trained = table[~table["backbone"].str.startswith(UNTRAINED)]
    parts = {"identified pairs": clear, "trained backbones": trained}  # The paper has no untrained extractor.
    subsets = {"all pairs": table, "identified pairs": table} | {
        name: some
        for name, some in parts.items()
        if some["dataset"].nunique() >= MINIMUM_DATASETS and len(some) < len(table)
    }
    rows: dict[str, str | int] = {"Best Stat": "best", f"{selected}-Best Stats": selected, "All Stats": "all"}
    methods: tuple[library.Method, ...] = ("least_squares", "ridge")
    return {
        (subset, row, method): library.leave_one_dataset_out(subsets[subset], statistics=rows[row], method=method)
        for subset, row, method in product(subsets, rows, methods)
    }


def _grids(artifact: Artifact) -> tuple[TemperatureGrid, TemperatureGrid]:
    """The grids of accuracies on test and on validation data."""
    record, curves = artifact.json("record.json"), artifact.tensors("curves.safetensors")
    own, rows = tuple(record["inverse_temperatures"]), record["rows"]
    test, validation = (TemperatureGrid(own, curves[split], rows[split]) for split in ("test", "validation"))
    return test, validation


def _curve(test: TemperatureGrid, validation: TemperatureGrid) -> dict[str, Any]:
    """Of each inverse temperature the best accuracy over epochs, averaged over repeats."""
    epoch = validation.curves.argmax(-1, keepdim=True)
    return {
        "inverse_temperature": list(test.inverse_temperatures),
        "test_accuracy": _mean(test.accuracy),
        "test_epoch": _mean(test.curves.argmax(-1).float() + 1),
        "validation_accuracy": _mean(validation.accuracy),
        "test_accuracy_at_validation_best": _mean(test.curves.gather(-1, epoch).squeeze(-1)),
        "repeats": test.accuracy.shape[0],
    }


def _mean(values: Tensor) -> list[float]:
    return [round(float(value), 6) for value in values.double().mean(0)]


def _optimum(test: TemperatureGrid, validation: TemperatureGrid, select_on: str) -> dict[str, Any]:
    """The optimum of one pair with its plateau, from the split that the parameters name, and from the other beside.

    `log_variance` is that of the logarithm of the optimum over repeats; there is none for a single one.
    """
    chosen = {"test": test, "validation": validation}[select_on]
    each = [TemperatureGrid(chosen.inverse_temperatures, curves[None], chosen.evaluated) for curves in chosen.curves]
    best = torch.tensor([one.best_inverse_temperature for one in each], dtype=torch.float64)
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


def _predictions(table: pd.DataFrame, left_out: pd.DataFrame) -> pd.DataFrame:
    """Best and predicted inverse temperature of every pair: fitted on all pairs, and with the data set left out.

    As in Table 1, predictions are the regression's own values, which may lie outside the searched range.
    """
    fitted = library.fit(table, statistics="all")
    values = fitted.regression.predict(matrix(table, fitted.statistics))
    optima = table[[*KEYS, "inverse_temperature", "plateau_low", "plateau_high"]].assign(fitted=values)
    return optima.merge(left_out[[*KEYS, "linear"]].rename(columns={"linear": "left_out"}), on=KEYS)


def _rules(table: pd.DataFrame, runs: pd.DataFrame, scores: pd.DataFrame, left_out: LeftOut) -> pd.DataFrame:
    """What each rule chooses for every pair, the test accuracy there, and what it costs."""
    scored = {rule: some.drop(columns="rule") for rule, some in scores.groupby("rule")}
    regressions = {
        f"{row}, {method.replace('_', ' ')}": one.predictions.assign(inverse_temperature=one.predictions["predicted"])
        for (subset, row, method), one in left_out.items()
        if subset == "all pairs"
    }
    lower_bound = library.lower_bound_from_classes(table["n_classes"])
    chosen = {
        "none (1)": table.assign(inverse_temperature=1.0),
        "square root of dimension": scored["square root of dimension"],
        "lower bound from classes": table.assign(inverse_temperature=lower_bound),
        "median of other data sets": scored["median of the study"],
        "chosen on validation": scored["search on validation data"],
        **regressions,
        "ridge of the logarithm (ours)": scored["heuristic"],
        "the same, backbone left out too": scored.get("heuristic, backbone left out too"),  # Not of one backbone.
        "best constant": scored["best constant"],
    }
    rules, study = pd.concat(chosen, names=["rule"]).reset_index("rule").reset_index(drop=True), Study.of(table, runs)
    rows = pd.MultiIndex.from_frame(table[KEYS]).get_indexer(pd.MultiIndex.from_frame(rules[KEYS]))
    at = floats(rules, "inverse_temperature")
    rules = rules.assign(test_accuracy=study.accuracy(rows, at).round(6), accuracy_lost=study.lost(rows, at).round(6))
    return rules[["rule", *KEYS, "inverse_temperature", "test_accuracy", "accuracy_lost"]]

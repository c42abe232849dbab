"""Stage heuristic: statistics and searches joined into pairs, and the regression from the ones to the others (4.3)."""

from softmax_temperature.params import Params
from softmax_temperature.params.classifier_temperature import HeuristicSection
from softmax_temperature.runner.artifacts import write_json, write_text
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.runner.folders import HEURISTIC
from softmax_temperature.stages import describe, search
from softmax_temperature.stages.heuristic_tables import heuristic_tables

PAPER = "classifier_temperature"
OUTPUT = HEURISTIC


class HeuristicCell(HeuristicSection):
    """What the cell is given; `pairs` are data sets and backbones."""

    pairs: list[list[str]]
    select_on: str


def cells(params: Params) -> list[Cell]:
    """One cell, which reads exactly the pairs that the parameters declare."""
    paper, pairs = params.classifier_temperature, params.embedded_pairs()
    inputs = {f"statistics {d} {b}": describe.OUTPUT / d / b for d, b in pairs}
    inputs |= {f"search {d} {b}": search.OUTPUT / d / b for d, b in pairs}
    settings = paper.heuristic.model_dump() | {"select_on": paper.search.select_on}
    return [Cell(".", run, HeuristicCell(pairs=[list(pair) for pair in pairs], **settings), inputs)]


def run(job: Job, plan: HeuristicCell) -> None:
    """Join and fit.

    Writes `runs.csv` (pair × inverse temperature), `pairs.csv` (pair, statistics, optimum, plateau),
    `correlations.csv` (Figure 3), `predictions.csv` (Figure 4), `leave_one_out.csv` and `folds.csv` (Table 1),
    `rules.csv` (what each rule for choosing a temperature costs in accuracy), and `heuristic.json` (for `suggest`).
    """
    searches = {(d, b): job.inputs[f"search {d} {b}"] for d, b in plan.pairs}
    statistics = {(d, b): job.inputs[f"statistics {d} {b}"].json("statistics.json") for d, b in plan.pairs}
    tables, fitted = heuristic_tables(
        searches, statistics, plan.select_on, selected=plan.selected, max_plateau=plan.max_plateau
    )
    for name, table in tables.items():
        write_text(job.output / f"{name}.csv", table.to_csv(index=False, lineterminator="\n"))
    write_json(job.output / "heuristic.json", fitted.model_dump())

"""Stage heuristic: statistics and searches joined into pairs, and the regression from
the ones to the others (4.3).
"""

from collections.abc import Iterator

import pandas as pd

from softmax_temperature.cosine_classifier import TemperatureGrid
from softmax_temperature.heuristic import tables
from softmax_temperature.heuristic.pairs import identified
from softmax_temperature.heuristic.ridge import fit_shipped, score_rules
from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import Artifact, write_json, write_text
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.stages import HEURISTIC, stage
from softmax_temperature.stages.classifier_temperature import PAPER, describe, search


@stage(PAPER, HEURISTIC)
def heuristic(params: Params) -> Iterator[Cell]:
    """One cell, which reads exactly the pairs that the parameters declare."""
    paper, pairs = params.classifier_temperature, params.embedded_pairs()
    inputs = {f"statistics {d} {b}": describe.output / d / b for d, b in pairs}
    inputs |= {f"search {d} {b}": search.output / d / b for d, b in pairs}
    plan = {
        "pairs": pairs,
        **paper.heuristic.model_dump(),
        "select_on": paper.search.select_on,
    }
    yield Cell(".", _heuristic, plan, inputs)


def _heuristic(
    job: Job,
    *,
    pairs: list[tuple[str, str]],
    selected: int,
    max_plateau: float,
    select_on: str,
) -> None:
    """Write the tables of the paper's records, but Figure 2's, and `heuristic.json`
    (for `suggest`).
    """
    rows, curves = [], []
    for data, backbone in pairs:
        keys = {"dataset": data, "backbone": backbone}
        test, validation = grids(job.inputs[f"search {data} {backbone}"])
        statistics = job.inputs[f"statistics {data} {backbone}"].json("statistics.json")
        curves.append(pd.DataFrame(keys | tables.curve(test, validation)))
        rows.append(keys | tables.optimum(test, validation, select_on) | statistics)
    table, runs = pd.DataFrame(rows), pd.concat(curves, ignore_index=True)
    # All searches have one grid.
    clear, scores = (
        identified(table, max_share=max_plateau, grid=test.inverse_temperatures),
        score_rules(table, runs),
    )
    for name, made in tables.study_tables(
        table, runs, scores, selected=selected, clear=clear
    ).items():
        write_text(
            job.output / f"{name}.csv", made.to_csv(index=False, lineterminator="\n")
        )
    write_json(
        job.output / "heuristic.json", fit_shipped(table, runs, scores).model_dump()
    )


def grids(search: Artifact) -> tuple[TemperatureGrid, TemperatureGrid]:
    """The grids of accuracies of a search, on test and on validation data."""
    record = search.json("record.json")
    curves = search.tensors("curves.safetensors")
    temperatures = tuple(record["inverse_temperatures"])
    rows = record["rows"]
    test = TemperatureGrid(temperatures, curves["test"], rows["test"])
    validation = TemperatureGrid(temperatures, curves["validation"], rows["validation"])
    return test, validation

"""Stage heuristic: the regression of searches on statistics, over all pairs (4.3)."""

from collections.abc import Iterator

import pandas as pd

from softmax_temperature.cosine_classifier import TemperatureGrid
from softmax_temperature.heuristic import tables
from softmax_temperature.heuristic.pairs import identified
from softmax_temperature.heuristic.ridge import fit_shipped, score_rules
from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import Artifact, write_json, write_text
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.stages import stage
from softmax_temperature.stages.classifier_temperature import describe, search


@stage
def heuristic(params: Params) -> Iterator[Cell]:
    """One cell, which reads exactly the pairs that the parameters declare."""
    paper = params.classifier_temperature
    pairs = params.embedded_pairs()
    inputs = {}
    for data, backbone in pairs:
        inputs[f"statistics {data} {backbone}"] = describe.output / data / backbone
        inputs[f"search {data} {backbone}"] = search.output / data / backbone
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
    """Write the tables of the paper's records except Figure 2, and `heuristic.json`.

    The command `suggest` reads the latter.
    """
    rows = []
    curves = []
    for data, backbone in pairs:
        keys = {"dataset": data, "backbone": backbone}
        test, validation = _grids(job.inputs[f"search {data} {backbone}"])
        statistics = job.inputs[f"statistics {data} {backbone}"].json("statistics.json")
        curves.append(pd.DataFrame(keys | tables.curve(test, validation)))
        rows.append(keys | tables.optimum(test, validation, select_on) | statistics)
    table = pd.DataFrame(rows)
    runs = pd.concat(curves, ignore_index=True)
    # All searches have one grid.
    grid = test.inverse_temperatures
    clear = identified(table, max_share=max_plateau, grid=grid)
    scores = score_rules(table, runs)
    study = tables.study_tables(table, runs, scores, selected=selected, clear=clear)
    for name, rows_of_table in study.items():
        text = rows_of_table.to_csv(index=False, lineterminator="\n")
        write_text(job.output / f"{name}.csv", text)
    fitted = fit_shipped(table, runs, scores)
    write_json(job.output / "heuristic.json", fitted.model_dump())


def _grids(artifact: Artifact) -> tuple[TemperatureGrid, TemperatureGrid]:
    """The grids of accuracies on test and on validation data."""
    record = artifact.json("record.json")
    curves = artifact.tensors("curves.safetensors")
    grid = tuple(record["inverse_temperatures"])
    rows = record["rows"]
    test = TemperatureGrid(grid, curves["test"], rows["test"])
    validation = TemperatureGrid(grid, curves["validation"], rows["validation"])
    return test, validation

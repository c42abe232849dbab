"""The stage `heuristic`: regress the best inverse temperature (section 4.3)."""

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
    """Yield one cell, which reads the statistics and search results of all pairs."""
    paper = params.classifier_temperature
    pairs = params.embedded_pairs()
    if not pairs:
        return  # Every pair lacks its data or its weights.
    inputs = {}
    for data, backbone in pairs:
        inputs[f"statistics {data} {backbone}"] = describe.output / data / backbone
        inputs[f"search {data} {backbone}"] = search.output / data / backbone
    plan = {
        "pairs": pairs,
        "weights": {name: params.backbones[name].weights for name in paper.backbones},
        **paper.heuristic.model_dump(),
        "select_on": paper.search.select_on,
    }
    yield Cell(".", _heuristic, plan, inputs)


def _heuristic(
    job: Job,
    *,
    pairs: list[tuple[str, str]],
    weights: dict[str, str],
    selected: int,
    max_plateau: float,
    select_on: str,
) -> None:
    """Write the pairs, the tables derived from them, and `heuristic.json`.

    `heuristic.json` holds the fitted regression. `collect` copies this file to the
    results, and the user can pass it to the `suggest` command.
    """
    rows = []
    curves = []
    for data, backbone in pairs:
        keys = {"dataset": data, "backbone": backbone}
        test, validation = grids(job.inputs[f"search {data} {backbone}"])
        statistics = job.inputs[f"statistics {data} {backbone}"].json("statistics.json")
        curves.append(pd.DataFrame(keys | tables.curve(test, validation)))
        optimum = tables.optimum(test, validation, select_on)
        rows.append(keys | {"weights": weights[backbone]} | optimum | statistics)
    table = pd.DataFrame(rows)
    runs = pd.concat(curves, ignore_index=True)
    # Take the grid of any search, because all searches have the same grid.
    grid = test.inverse_temperatures
    clear = identified(table, max_share=max_plateau, grid=grid)
    scores = score_rules(table, runs)
    made = tables.study_tables(table, runs, scores, selected=selected, clear=clear)
    for name, content in made.items():
        text = content.to_csv(index=False, lineterminator="\n")
        write_text(job.output / f"{name}.csv", text)
    shipped = fit_shipped(table, runs, scores)
    write_json(job.output / "heuristic.json", shipped.model_dump())


def grids(search: Artifact) -> tuple[TemperatureGrid, TemperatureGrid]:
    """Read the accuracies in `search` over its grid, on test and on validation data."""
    record = search.json("record.json")
    curves = search.tensors("curves.safetensors")
    temperatures = tuple(record["inverse_temperatures"])
    rows = record["rows"]
    test = TemperatureGrid(temperatures, curves["test"], rows["test"])
    validation = TemperatureGrid(temperatures, curves["validation"], rows["validation"])
    return test, validation

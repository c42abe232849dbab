"""All stages of the first paper, from nothing to its results, on the smallest
parameters.
"""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from softmax_temperature.data.splits import SPLITS
from softmax_temperature.dataset_statistics import STATISTICS
from softmax_temperature.networks.embeddings import open_embeddings
from softmax_temperature.papers.classifier_temperature import collect
from softmax_temperature.papers.classifier_temperature.records import read_records
from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.runner.errors import InputError
from softmax_temperature.stages.classifier_temperature import describe, search
from softmax_temperature.stages.embeddings import embed
from softmax_temperature.stages.heuristic import heuristic
from tests.pipeline.whole_runs import (
    WholePaper,
    changed,
    fitted,
    run,
    with_other_test_data,
)

PAPER, RESULTS = collect, Path("results/tiny/classifier_temperature")
pytestmark = pytest.mark.usefixtures("in_project")


class TestResults(WholePaper):
    pass


def test_splits_never_overlap() -> None:
    parts = open_embeddings(open_artifact(Path("data/embeddings/digits/untrained-64")))
    assert tuple(parts) == SPLITS
    train, validation = (
        set(parts[split].index.tolist()) for split in ("train", "validation")
    )
    assert not train & validation


def test_records_hold_every_declared_pair_and_temperature(tiny: Params) -> None:
    records, paper = read_records(RESULTS), tiny.classifier_temperature
    pairs = len(paper.datasets) * len(paper.backbones)
    assert len(records.pairs) == pairs
    assert len(records.runs) == pairs * len(paper.search.inverse_temperatures)
    assert len(records.rescaling) == 4 * paper.rescaling.repeats * len(
        paper.search.inverse_temperatures
    )
    assert records.runs["test_accuracy"].between(0, 1).all()
    assert not records.pairs.isna().any().any()


def test_the_optimum_is_where_the_accuracy_is_best_and_inside_its_plateau() -> None:
    records = read_records(RESULTS)
    for pair in records.pairs.to_dict("records"):
        runs = records.runs.query(
            f"dataset == {pair['dataset']!r} and backbone == {pair['backbone']!r}"
        )
        at_best = runs[runs["inverse_temperature"] == pair["inverse_temperature"]][
            "test_accuracy"
        ].iloc[0]
        assert at_best == pytest.approx(runs["test_accuracy"].max(), abs=1e-6)
        assert (
            pair["plateau_low"] <= pair["inverse_temperature"] <= pair["plateau_high"]
        )


def test_what_validation_data_choose_does_not_move_with_the_test_data(
    project: Path, tiny: Params, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_validation = changed(
        tiny, {"classifier_temperature/search/select_on": "validation"}
    )
    columns = [
        "dataset",
        "backbone",
        "inverse_temperature",
        "plateau_low",
        "best_accuracy",
    ]
    columns += ["inverse_temperature_validation", *STATISTICS]
    cell = "digits/untrained-16"
    curves = fitted(search, cell, "curves.safetensors")
    statistics = fitted(describe, cell, "statistics.json")
    tables = []
    for folder in (project, with_other_test_data(project, tmp_path)):
        monkeypatch.chdir(folder)
        for stage in (embed, describe, search):
            run(on_validation, stage)
        validation = replace(heuristic, output=Path("data/on_validation"))
        run(on_validation, validation)
        tables.append(pd.read_csv(validation.output / "pairs.csv"))
    assert fitted(search, cell, "curves.safetensors") == curves
    assert fitted(describe, cell, "statistics.json") == statistics
    assert set(tables[0]["selected_on"]) == {"validation"}
    assert tables[0][columns].to_dict() == tables[1][columns].to_dict()
    scored_on_test = "inverse_temperature_test"
    assert tables[0][scored_on_test].tolist() != tables[1][scored_on_test].tolist()


def test_no_rule_beats_the_best_of_the_grid() -> None:
    rules = read_records(RESULTS).rules
    assert (rules["accuracy_lost"] >= -1e-9).all()
    assert set(rules.groupby("rule").size()) == {len(read_records(RESULTS).pairs)}, (
        "every rule has every pair"
    )


def test_a_missing_cell_stops_the_aggregation_and_a_left_over_is_not_read(
    tiny: Params,
) -> None:
    one = {"classifier_temperature/backbones": ["untrained-16"]}
    params = changed(
        tiny, one | {"classifier_temperature/rescaling/backbone": "untrained-16"}
    )
    fewer = replace(heuristic, output=Path("data/fewer"))
    run(params, fewer)
    assert set(pd.read_csv("data/fewer/pairs.csv")["backbone"]) == {"untrained-16"}
    missing = search.output / "digits" / "untrained-16"
    missing.rename("data/aside")
    with pytest.raises(InputError, match=str(missing)):
        run(params, fewer)
    Path("data/aside").rename(missing)

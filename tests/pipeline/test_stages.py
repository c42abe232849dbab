"""All stages of the cosine-classifier paper, with the smallest parameters."""

import shutil
from contextlib import chdir
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from softmax_temperature.data.splits import SPLITS
from softmax_temperature.dataset_statistics import STATISTICS
from softmax_temperature.networks.embeddings import open_embeddings
from softmax_temperature.papers.classifier_temperature import collect
from softmax_temperature.papers.classifier_temperature.study import (
    BEST_ACCURACY,
    PAIR,
    RESCALING,
    SEARCH,
    TRAINED_PAIR,
    pairs,
    read,
    searches,
)
from softmax_temperature.papers.shared.factors import where
from softmax_temperature.papers.shared.provenance import provenance
from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import open_artifact, write_json
from softmax_temperature.runner.errors import InputError
from softmax_temperature.stages.classifier_temperature import (
    describe,
    rescaling,
    search,
)
from softmax_temperature.stages.embeddings import embed
from softmax_temperature.stages.heuristic import heuristic
from tests.pipeline.whole_runs import (
    WholePaper,
    changed,
    fitted,
    run,
    with_other_test_data,
)

PAPER = collect
RESULTS = Path("results/tiny/classifier_temperature")
pytestmark = pytest.mark.usefixtures("in_project")


class TestResults(WholePaper):
    pass


def test_training_and_validation_rows_never_overlap() -> None:
    parts = open_embeddings(open_artifact(Path("data/embeddings/digits/untrained-64")))
    assert tuple(parts) == SPLITS
    train = set(parts["train"].index.tolist())
    assert train.isdisjoint(parts["validation"].index.tolist())


def test_the_study_has_every_declared_pair_and_temperature(tiny: Params) -> None:
    runs = read(RESULTS)
    paper = tiny.classifier_temperature
    count = len(paper.datasets) * len(paper.backbones)
    grid = len(paper.search.inverse_temperatures)
    assert len(runs.select(PAIR)) == count
    assert len(runs.select(SEARCH)) == count * grid
    assert len(runs.select(RESCALING)) == 4 * paper.rescaling.repeats * grid
    assert searches(runs)["test_accuracy"].between(0, 1).all()
    assert not pairs(runs).isna().any().any()


def test_the_optimum_is_where_the_accuracy_is_best_and_inside_its_plateau() -> None:
    runs = read(RESULTS)
    accuracy = searches(runs).set_index(["dataset", "backbone", "inverse_temperature"])
    for pair in pairs(runs).to_dict("records"):
        of_pair = accuracy["test_accuracy"][pair["dataset"], pair["backbone"]]
        at_best = of_pair[pair["inverse_temperature"]]
        assert at_best == pytest.approx(of_pair.max(), abs=1e-6)
        assert (
            pair["plateau_low"] <= pair["inverse_temperature"] <= pair["plateau_high"]
        )


def test_choices_by_validation_data_do_not_change_with_test_data(
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


def test_figure_2_has_the_best_epoch_of_each_repeat(tiny: Params) -> None:
    runs = read(RESULTS)
    grid = tiny.classifier_temperature.search.inverse_temperatures
    for name, stored in rescaling.results(tiny).items():
        optimizer, loss = name.split("-")
        chosen = runs.select(RESCALING & where(optimizer=optimizer, loss=loss))
        rows = chosen.assign(accuracy=BEST_ACCURACY.of(runs, chosen))
        table = rows.pivot(
            index="seed", columns="inverse_temperature", values="accuracy"
        )
        best = stored.tensors("curves.safetensors")["test"].double().amax(-1).numpy()
        np.testing.assert_allclose(table[grid].to_numpy(), best, atol=1e-6)


def test_no_backbone_with_random_weights_counts_as_trained() -> None:
    runs = read(RESULTS)
    assert set(runs.table["weights"]) == {"untrained"}
    assert runs.select(TRAINED_PAIR).empty
    subsets = set(runs.tables["leave_one_out"]["subset"])
    assert subsets == {"all pairs", "identified pairs"}


def test_no_rule_beats_the_best_of_the_grid() -> None:
    runs = read(RESULTS)
    rules = runs.tables["rules"]
    assert (rules["accuracy_lost"] >= -1e-9).all()
    # Every rule has a cost for every pair.
    assert set(rules.groupby("rule").size()) == {len(runs.select(PAIR))}


def test_a_machine_without_cells_keeps_the_study(tiny: Params, tmp_path: Path) -> None:
    folder = tmp_path / RESULTS
    shutil.copytree(RESULTS, folder)
    shutil.copytree("data/published", tmp_path / "data/published")
    artifacts = [stage.output for stage in collect.STAGES]
    write_json(folder / "records.json", provenance(artifacts))
    with chdir(tmp_path):
        collect.collect(tiny, RESULTS)
    for path in RESULTS.rglob("*.csv"):
        kept = folder / path.relative_to(RESULTS)
        assert kept.read_text() == path.read_text(), path


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

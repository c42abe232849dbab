"""All stages of the first paper, from nothing to its results, on the smallest parameters."""

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from softmax_temperature.data.splits import SPLITS
from softmax_temperature.papers.classifier_temperature.claims import CLAIMS
from softmax_temperature.papers.classifier_temperature.collect import STAGES, collect
from softmax_temperature.papers.classifier_temperature.records import read_records
from softmax_temperature.papers.shared.sources import provenance
from softmax_temperature.params import Params, validate
from softmax_temperature.runner.artifacts import find_artifacts, open_artifact
from softmax_temperature.runner.cells import Cell, run_cells
from softmax_temperature.runner.errors import InputError
from softmax_temperature.stages import embed, heuristic, search
from tests.pipeline.whole_runs import finish, prepare, run_stages

RESULTS = Path("results/tiny/classifier_temperature")


def run_all(params: Params) -> None:
    """The stages in the order of dvc.yaml, in this process and the current folder."""
    prepare(params, params.datasets)
    run_stages(params, STAGES[1:])
    collect(params, RESULTS)


def run(params: Params, cells: list[Cell], output: Path) -> None:
    run_cells(cells, output=output, compute=params.compute, seed=params.seed)


@pytest.fixture(scope="module")
def project(make_project: Callable[[str], Path], tiny: Params) -> Path:
    return finish(make_project("first"), run_all, tiny)


@pytest.fixture(autouse=True)
def _in_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)


def test_every_artifact_verifies() -> None:
    folders = find_artifacts(Path("data"))
    assert len(folders) > 20
    assert [line for folder in folders for line in open_artifact(folder).problems()] == []


def test_splits_never_overlap() -> None:
    from softmax_temperature.networks.embeddings import open_embeddings

    parts = open_embeddings(open_artifact(Path("data/embeddings/digits/untrained-64")))
    assert tuple(parts) == SPLITS
    train, validation = (set(parts[split].index.tolist()) for split in ("train", "validation"))
    assert not train & validation


def test_records_hold_every_declared_pair_and_temperature(tiny: Params) -> None:
    records, paper = read_records(RESULTS), tiny.classifier_temperature
    pairs = len(paper.datasets) * len(paper.backbones)
    assert len(records.pairs) == pairs
    assert len(records.runs) == pairs * len(paper.search.inverse_temperatures)
    assert len(records.rescaling) == 4 * paper.rescaling.repeats * len(paper.search.inverse_temperatures)
    assert records.runs["test_accuracy"].between(0, 1).all()
    assert not records.pairs.isna().any().any()


def test_the_optimum_is_where_the_accuracy_is_best_and_inside_its_plateau() -> None:
    records = read_records(RESULTS)
    for pair in records.pairs.to_dict("records"):
        runs = records.runs[
            (records.runs["dataset"] == pair["dataset"]) & (records.runs["backbone"] == pair["backbone"])
        ]
        at_best = runs[runs["inverse_temperature"] == pair["inverse_temperature"]]["test_accuracy"].iloc[0]
        assert at_best == pytest.approx(runs["test_accuracy"].max(), abs=1e-6)
        assert pair["plateau_low"] <= pair["inverse_temperature"] <= pair["plateau_high"]


def test_no_rule_beats_the_best_of_the_grid() -> None:
    rules = read_records(RESULTS).rules
    assert (rules["accuracy_lost"] >= -1e-9).all()
    assert set(rules.groupby("rule").size()) == {len(read_records(RESULTS).pairs)}, (
        "every rule is applied to every pair"
    )


def test_every_claim_has_a_verdict() -> None:
    rows = json.loads((RESULTS / "claims.json").read_text())
    assert [row["id"] for row in rows] == [claim.id for claim in CLAIMS]
    assert {row["verdict"] for row in rows} <= {"holds", "contradicted", "inconclusive", "not tested"}
    assert {row["profile"] for row in rows} == {"smoke"}


def test_the_records_lead_from_every_cell_back_to_the_data() -> None:
    found = provenance([stage.OUTPUT for stage in STAGES])
    results = {cell["result"] for cell in found["cells"]}
    inputs = [digest for cell in found["cells"] for digest in cell["inputs"].values()]
    assert set(inputs) <= results
    assert {cell["stage"] for cell in found["cells"] if not cell["inputs"]} >= {"prepared"}
    assert all(cell["code"] in found["code"] for cell in found["cells"])


def test_every_number_names_the_cells_that_it_comes_from(without_records: Callable[..., list[str]]) -> None:
    assert without_records(RESULTS, STAGES) == []


def test_a_missing_cell_stops_the_aggregation_and_a_left_over_is_not_read(tiny: Params) -> None:
    content = tiny.model_dump()
    content["classifier_temperature"]["backbones"] = ["untrained-16"]
    content["classifier_temperature"]["rescaling"]["backbone"] = "untrained-16"
    fewer = validate(content, where="fewer")
    run(fewer, heuristic.cells(fewer), Path("data/fewer"))
    assert set(pd.read_csv("data/fewer/pairs.csv")["backbone"]) == {"untrained-16"}
    missing = search.OUTPUT / "digits" / "untrained-16"
    missing.rename("data/aside")
    try:
        with pytest.raises(InputError, match=str(missing)):
            run(fewer, heuristic.cells(fewer), Path("data/fewer"))
    finally:
        Path("data/aside").rename(missing)


def test_adding_a_backbone_runs_only_its_cells(tiny: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    content = tiny.model_dump()
    content["backbones"]["another"] = content["backbones"]["untrained-16"]
    content["classifier_temperature"]["backbones"].append("another")
    more = validate(content, where="more")
    ran: list[str] = []
    from softmax_temperature.runner import cells as module

    original = module._attempt
    monkeypatch.setattr(module, "_attempt", lambda task: (ran.append(task.cell.name), original(task))[1])
    for stage in (embed, search):
        run(more, stage.cells(more), stage.OUTPUT)
    assert ran == 2 * [f"{dataset}/another" for dataset in tiny.classifier_temperature.datasets]

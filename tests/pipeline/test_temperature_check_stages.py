"""All stages of the temperature_check paper, from nothing to its results, on the smallest parameters."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from softmax_temperature.papers.temperature_check.collect import STAGES, collect
from softmax_temperature.papers.temperature_check.records import read_records
from softmax_temperature.params import Params, validate
from softmax_temperature.params.temperature_check import Training
from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.stages import confirm_temperature_check, train_temperature_check
from tests.pipeline.whole_runs import digests, finish, prepare, run_stages

RESULTS = Path("results/tiny/temperature_check")
DATASETS = ("digits", "phrases")


def run_all(params: Params) -> None:
    """The stages in the order of dvc.yaml, in this process and the current folder."""
    prepare(params, DATASETS)
    run_stages(params, STAGES[1:])
    collect(params, RESULTS)


@pytest.fixture(scope="module")
def project(make_project: Callable[[str], Path], tiny: Params) -> Path:
    return finish(make_project("temperature_check"), run_all, tiny)


@pytest.fixture(autouse=True)
def _in_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)


def artifact(*names: Any) -> Any:
    return open_artifact(train_temperature_check.OUTPUT / Training(*names).cell)


def test_trainings_side_by_side_give_the_bytes_of_one_at_a_time(
    project: Path, make_project: Callable[[str], Path], tiny: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = make_project("second")
    monkeypatch.chdir(second)
    assert tiny.compute.engine == "serial"
    run_all(tiny.model_copy(update={"compute": tiny.compute.model_copy(update={"engine": "processes", "workers": 2})}))
    first = digests(project, "data/temperature_check", "results")
    assert len(first) > 50
    assert digests(second, "data/temperature_check", "results") == first


def test_the_learning_rate_is_rescaled_by_the_inverse_temperature(tiny: Params) -> None:
    rates = {cell.name: cell.parameters["recipe"]["lr"] for cell in train_temperature_check.cells(tiny)}
    assert rates["wrn/1/0.1/plain/0"] == pytest.approx(0.1)
    assert rates["wrn/0.1/0.1/plain/0"] == pytest.approx(10.0)


def test_all_trainings_of_a_seed_start_alike(tiny: Params) -> None:
    seeds: dict[tuple[str, str], set[int]] = {}
    for cell in train_temperature_check.cells(tiny):
        sweep, *_, seed = cell.name.split("/")
        seeds.setdefault((sweep, seed), set()).add(cell.parameters["training_seed"])
    assert {len(found) for found in seeds.values()} == {1}
    assert seeds["wrn", "0"] != seeds["wrn", "1"]


def test_the_start_scales_with_the_inverse_temperature_and_a_centred_pair_starts_at_nothing() -> None:
    norms = [artifact("wrn", beta, 0.1, "plain", 0).json("record.json")["initial_logit_norm"] for beta in (0.1, 1.0)]
    assert norms[1] == pytest.approx(10 * norms[0], rel=1e-5)
    assert artifact("wrn-pairs", 1.0, 0.1, "pair-1", 0).json("record.json")["initial_logit_norm"] == 0
    assert artifact("wrn-pairs", 1.0, 0.1, "pair-0", 0).json("record.json")["initial_logit_norm"] > 0


@pytest.mark.parametrize("beta", [0.1, 1.0])
def test_a_start_has_the_wanted_norm_whatever_the_inverse_temperature(beta: float) -> None:
    record = artifact("wrn-norms", beta, 0.1, "norm-20", 0).json("record.json")
    assert record["initial_logit_norm"] == pytest.approx(20, rel=1e-4)


def test_a_confirmation_is_a_fresh_seed_at_a_rate_that_was_tried() -> None:
    runs = read_records(RESULTS).runs
    rows = runs[(runs["sweep"] == "wrn-norms") & (runs["inverse_temperature"] == 1)].set_index("start")
    tried, confirmed = rows.loc["norm-20"], rows.loc["confirmed-norm-20"]
    assert (confirmed["seed"], set(tried["seed"])) == (1, {0})
    folder = confirm_temperature_check.OUTPUT / "wrn-norms/1/norm-20/1"
    assert open_artifact(folder).json("choice.json") == {"learning_rate": confirmed["learning_rate"]}
    assert confirmed["learning_rate"] in set(tried["learning_rate"])


def test_history_describes_tempered_logits() -> None:
    one = artifact("gru", 0.1, 0.1, "plain", 0)
    tensors = one.tensors("logits.safetensors")
    tempered = 0.1 * tensors["test.logits"].double()
    nll = torch.nn.functional.cross_entropy(tempered, tensors["test.labels"]).item()
    last = next(row for row in reversed(one.json("history.json")) if row["split"] == "test")
    assert last["nll"] == pytest.approx(nll)
    runs = read_records(RESULTS).runs
    found = runs[(runs["sweep"] == "gru") & (runs["inverse_temperature"] == 0.1) & (runs["seed"] == 0)].iloc[0]
    assert found["test_nll"] == pytest.approx(nll)


def test_only_the_usual_softmax_alone_is_described() -> None:
    assert artifact("wrn", 0.1, 0.1, "plain", 0).json("statistics.json") is None
    assert artifact("wrn", 1.0, 0.1, "cooled", 0).json("statistics.json") is None
    statistics = artifact("wrn", 1.0, 0.1, "plain", 0).json("statistics.json")
    assert statistics["dim"] == 64
    assert all(np.isfinite(value) for value in statistics.values())


def test_cooling_leaves_temperatures() -> None:
    assert len(artifact("wrn", 1.0, 0.1, "cooled", 0).json("temperatures.json")) == 2
    assert artifact("wrn", 1.0, 0.1, "plain", 0).json("temperatures.json") == []


def test_a_training_that_diverges_is_a_result(
    tiny: Params, make_project: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    content = tiny.model_dump()
    paper = content["temperature_check"]
    hot = paper["sweeps"]["wrn"] | {"learning_rates": [1e30], "cooled": False}
    paper["sweeps"], paper["early_learning"], paper["seeds"] = {"wrn": hot}, None, 1
    params = validate(content, where="hot")
    monkeypatch.chdir(make_project("hot"))
    run_all(params)
    runs = read_records(RESULTS).runs
    assert runs["diverged"].all()
    assert runs["test_accuracy"].isna().all()
    claims = json.loads((RESULTS / "claims.json").read_text())
    assert {row["verdict"] for row in claims} <= {"holds", "contradicted", "inconclusive", "not tested"}


def test_every_number_names_the_cells_that_it_comes_from(without_records: Callable[..., list[str]]) -> None:
    assert without_records(RESULTS, STAGES) == []

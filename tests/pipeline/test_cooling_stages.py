"""All stages of the Cooling paper, from nothing to its results, on the smallest parameters."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from softmax_temperature.papers.cooling import tables
from softmax_temperature.papers.cooling.claims import CLAIMS
from softmax_temperature.papers.cooling.collect import STAGES, collect
from softmax_temperature.papers.cooling.records import TABLES, read_records
from softmax_temperature.papers.cooling.selection import CHANCE
from softmax_temperature.params import Params, validate
from softmax_temperature.runner import cells as cells_module
from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.stages import fetch, train_cooling
from tests.pipeline.whole_runs import finish, prepare, run_stages

RESULTS = Path("results/tiny/cooling")
DATASET = "digits"
NAMES = ["experiment", "schedule", "arm", "seed"]


def run_all(params: Params) -> None:
    """The stages in the order of dvc.yaml, in this process and the current folder."""
    prepare(params, (DATASET,))
    run_stages(params, STAGES[1:])
    collect(params, RESULTS)


@pytest.fixture(scope="module")
def project(make_project: Callable[[str], Path], tiny: Params) -> Path:
    return finish(make_project("cooling"), run_all, tiny)


@pytest.fixture(autouse=True)
def _in_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)


def records_of(cell: str) -> tuple[Any, Any, Any]:
    """Record, history and temperatures of a training."""
    artifact = open_artifact(train_cooling.OUTPUT / cell)
    return artifact.json("record.json"), artifact.json("history.json"), artifact.json("temperatures.json")


def test_trainings_of_one_seed_start_alike_and_seeds_differ(tiny: Params) -> None:
    seeds: dict[str, set[int]] = {}
    for cell in train_cooling.cells(tiny):
        seeds.setdefault(cell.name.rpartition("/")[2], set()).add(cell.parameters["training_seed"])
    assert [len(found) for found in seeds.values()] == [1, 1]
    assert seeds["0"] != seeds["1"]


def test_without_a_first_cooling_arms_are_equal_and_after_it_they_differ() -> None:
    """The first epoch is the same for all arms, up to the division behind the last layer."""
    weights = {}
    for arm in ("none", "last_layer"):
        _, history, temperatures = records_of(f"digits-vgg/none/{arm}/0")
        weights[arm] = {(row["epoch"], row["split"]): (row["accuracy"], row["weight_norm"]) for row in history}
        assert len(temperatures) == (0 if arm == "none" else 2)
    for split in ("train", "validation", "test"):
        assert weights["none"][1, split] == weights["last_layer"][1, split]
    assert weights["none"][2, "train"][1] != weights["last_layer"][2, "train"][1]


def test_the_stored_temperature_is_in_the_stored_weights() -> None:
    for arm in ("last_layer", "distributed"):
        artifact = open_artifact(train_cooling.OUTPUT / f"digits-vgg/none/{arm}/1")
        held = float(artifact.tensors("weights.safetensors")["cooling_temperature"])
        total = artifact.json("temperatures.json")[-1]["total"]
        assert held == pytest.approx(total if arm == "last_layer" else 1.0, rel=1e-6)
        assert total != 1
    uncooled = open_artifact(train_cooling.OUTPUT / "digits-vgg/none/none/1").tensors("weights.safetensors")
    assert "cooling_temperature" not in uncooled


def test_a_run_in_the_table_is_what_its_weights_say(tiny: Params) -> None:
    from softmax_temperature.cooling import Cooling
    from softmax_temperature.stages.training_sets import image_set
    from softmax_temperature.training import build_network
    from softmax_temperature.training.images import normalise

    artifact, recipe = open_artifact(train_cooling.OUTPUT / "digits-vgg/none/last_layer/1"), tiny.cooling.recipe
    network = build_network(tiny.networks["vgg-tiny"], classes=10, seed=1)
    Cooling(network)
    network.load_state_dict(artifact.tensors("weights.safetensors"))
    test = image_set(open_artifact(fetch.OUTPUT / DATASET), "test", ".")
    with torch.no_grad():
        logits = network.eval()(normalise(test.inputs, recipe.mean, recipe.std)).double()
    (_, history, _), last = records_of("digits-vgg/none/last_layer/1"), tiny.cooling.recipe.epochs
    (row,) = [row for row in history if (row["epoch"], row["split"]) == (last, "test")]
    loss = torch.nn.functional.cross_entropy(logits, test.labels)
    assert row["nll"] == pytest.approx(float(loss), rel=1e-4)
    assert row["accuracy"] == pytest.approx(float((logits.argmax(1) == test.labels).double().mean()))


def test_there_is_a_row_for_the_last_cooling_of_each_epoch() -> None:
    temperatures = read_records(RESULTS).temperatures
    cooled = {arm for arm in read_records(RESULTS).runs["arm"] if not arm.startswith("none")}
    assert set(temperatures["arm"]) == cooled
    assert (temperatures.groupby(NAMES)["epoch"].apply(list).map(tuple) == (1, 2)).all()
    each_batch = temperatures[temperatures["arm"] == "last_layer-each-batch"]
    record, _, rows = records_of("digits-vgg-each-batch/none/last_layer-each-batch/0")
    steps = record["images"]["train"] // 8
    assert each_batch["cooling"].tolist() == [steps, 2 * steps]
    assert len(rows) == 2 * steps
    assert each_batch["total"].iloc[-1] == pytest.approx(math.prod(row["applied"] for row in rows), rel=1e-9)


def test_runs_say_what_the_last_epoch_came_to() -> None:
    runs = read_records(RESULTS).runs
    assert not (runs["diverged"] | runs["stuck"]).all()
    for row in runs.to_dict("records"):
        _, history, _ = records_of("/".join(str(row[name]) for name in NAMES))
        last = {one["split"]: one for one in history if one["epoch"] == 2}
        learned = [one["accuracy"] > CHANCE / 10 for one in history if one["split"] == "train"]
        assert row["stuck"] == (not any(learned))
        assert row["diverged"] == (any(learned) and not learned[-1])
        if row["diverged"] or row["stuck"]:
            assert math.isnan(row["test_accuracy"])
        else:
            assert row["test_accuracy"] == last["test"]["accuracy"]
            assert row["test_ece"] == last["test"]["ece"]


def test_every_table_and_claim_is_written() -> None:
    written = {path.stem for path in (RESULTS / "tables").glob("*.csv")}
    assert written == {*TABLES, *tables.TABLES, "deviations"}
    rows = json.loads((RESULTS / "claims.json").read_text())
    assert [row["id"] for row in rows] == [claim.id for claim in CLAIMS]
    assert {row["verdict"] for row in rows} <= {"holds", "contradicted", "inconclusive", "not tested"}
    table = pd.read_csv(RESULTS / "tables" / "table_1.csv")
    printed = table[table["published"].notna()]
    assert len(printed) == 24
    assert printed["status"].str.startswith("not run: ").all()
    assert (table["status"] == "measured").any()


def test_every_number_names_the_cells_that_it_comes_from(without_records: Callable[..., list[str]]) -> None:
    assert without_records(RESULTS, STAGES) == []


def test_the_theory_is_measured_as_predicted() -> None:
    checks = read_records(RESULTS).theory_checks
    assert checks["statement"].str.extract(r"(Lemma 3.3|Proposition 3.5|Theorem 3.7|relative)").notna().all().all()
    assert (checks["largest_relative_difference"] < 1e-10).all()
    assert checks["measured"].to_numpy() == pytest.approx(checks["predicted"].to_numpy(), rel=1e-10)
    ratios = checks[~checks["statement"].str.contains("Proposition")]
    assert not (ratios["predicted"] == 1).any(), "nothing would be shown"


def test_adding_an_arm_runs_only_its_cells(tiny: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    content = tiny.model_dump()
    content["cooling"]["arms"]["last_layer-0.9"] = {"mode": "last_layer", "factor": 0.9}
    content["cooling"]["experiments"]["digits-vgg-factors"]["arms"].append("last_layer-0.9")
    more = validate(content, where="more")
    ran: list[str] = []
    original = cells_module._attempt
    monkeypatch.setattr(cells_module, "_attempt", lambda task: (ran.append(task.cell.name), original(task))[1])
    run_stages(more, (train_cooling,))
    assert ran == ["digits-vgg-factors/none/last_layer-0.9/0"]


def test_a_diverging_training_is_a_result(
    make_project: Callable[[str], Path], tiny: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = tiny.model_dump()
    kept = ("digits-vgg-crelu", "digits-vgg-factors")
    content["cooling"]["experiments"] = {name: content["cooling"]["experiments"][name] for name in kept}
    content["cooling"]["experiments"]["digits-vgg-crelu"]["recipe"] = {"lr": 1e30}  # Weights overflow.
    content["cooling"]["arms"]["last_layer-1.25"]["factor"] = 1e6  # The temperature does.
    params = validate(content, where="diverging")
    monkeypatch.chdir(make_project("diverging"))
    run_all(params)
    runs = read_records(RESULTS).runs
    lost = runs[(runs["experiment"] == "digits-vgg-crelu") | (runs["arm"] == "last_layer-1.25")]
    assert lost["diverged"].all()
    assert not lost["stuck"].any()
    assert (lost["epochs_done"] == 0).all()
    assert lost[["test_accuracy", "train_accuracy", "test_nll", "test_ece"]].isna().all().all()
    assert (lost["temperature"] == 1).all()
    for cell in ("digits-vgg-crelu/none/none/0", "digits-vgg-factors/none/last_layer-1.25/0"):
        weights = open_artifact(train_cooling.OUTPUT / cell).tensors("weights.safetensors")
        assert all(bool(value.isfinite().all()) for value in weights.values())
    table = pd.read_csv(RESULTS / "tables" / "table_2.csv")
    ours = table[(table["experiment"] == "digits-vgg-crelu")]
    assert set(ours["status"]) == {"diverged"}

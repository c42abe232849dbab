"""All stages of the focal paper, from nothing to its results, on the smallest parameters."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from softmax_temperature.metrics import expected_calibration_error
from softmax_temperature.papers.focal import tables
from softmax_temperature.papers.focal.claims import CLAIMS
from softmax_temperature.papers.focal.collect import STAGES, collect
from softmax_temperature.papers.focal.records import TABLES, read_records
from softmax_temperature.params import Params, validate
from softmax_temperature.runner import cells as cells_module
from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.runner.errors import InputError
from softmax_temperature.stages import evaluate_focal, fetch, train_focal
from tests.pipeline.whole_runs import finish, prepare, run_stages

RESULTS = Path("results/tiny/focal")
NEEDED = ("digits", "glyphs-12", "phrases")


def run_all(params: Params) -> None:
    """The stages in the order of dvc.yaml, in this process and the current folder."""
    prepare(params, NEEDED)
    run_stages(params, STAGES[1:])
    collect(params, RESULTS)


@pytest.fixture(scope="module")
def project(make_project: Callable[[str], Path], tiny: Params) -> Path:
    return finish(make_project("focal"), run_all, tiny)


@pytest.fixture(autouse=True)
def _in_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)


def test_arms_of_one_seed_start_alike_and_seeds_differ(tiny: Params) -> None:
    seeds = {cell.name: cell.parameters["training_seed"] for cell in train_focal.cells(tiny)}
    assert seeds["digits/CE/0"] == seeds["digits/FL-3/0"] == seeds["digits-as-written/CE/0"]
    assert seeds["digits/CE/0"] != seeds["digits/CE/1"]


def test_the_stored_logits_are_those_of_the_stored_weights(tiny: Params) -> None:
    from softmax_temperature.data.prepared import open_prepared
    from softmax_temperature.training import build_network, to_rgb
    from softmax_temperature.training.images import normalise

    artifact, recipe = open_artifact(train_focal.OUTPUT / "digits/CE/0"), tiny.focal.recipe_of("digits", "CE")
    network = build_network(tiny.networks["resnet8-tiny"], classes=10, seed=1)
    network.load_state_dict(artifact.tensors("weights.safetensors"))
    images, labels = open_prepared(open_artifact(fetch.OUTPUT / "digits"), root=Path()).part("test").for_evaluation()
    with torch.no_grad():
        logits = network.eval()(normalise(to_rgb(images), recipe.mean, recipe.std))
    stored = artifact.tensors("logits.safetensors")
    torch.testing.assert_close(stored["test.logits"], logits, rtol=1e-4, atol=1e-5)
    assert torch.equal(stored["test.labels"], labels)


def test_the_records_are_complete_and_hold_no_gaps(tiny: Params) -> None:
    records = read_records(RESULTS)
    epochs = records.runs.merge(records.tasks[["task", "select"]], on="task")
    for rows in (epochs[epochs["evaluated"] == epochs["select"]], epochs[epochs["evaluated"] == "last"]):
        assert len(rows) == 3 * len(train_focal.cells(tiny))
    assert not records.runs.drop(columns="confident_accuracy").isna().any().any()
    assert set(records.ood["ood"]) == {"glyphs-12", "gaussian-noise"}
    assert set(records.history["split"]) == {"train", "validation", "test"}
    assert set(records.history["epoch"]) == {1, 2}
    spread = records.runs.groupby(["task", "arm", "seed", "evaluated"])["accuracy"].agg(np.ptp)
    assert (spread == 0).all(), "scaling keeps accuracy"


def test_a_run_in_the_table_is_what_its_logits_say() -> None:
    runs = read_records(RESULTS).runs
    row = runs[(runs["task"] == "digits") & (runs["arm"] == "FL-3") & (runs["seed"] == 1) & (runs["scaling"] == "nll")]
    stored = open_artifact(train_focal.OUTPUT / "digits/FL-3/1").tensors("logits.safetensors")
    probs = torch.softmax(stored["test.logits"].double() / float(row["temperature"].iloc[0]), dim=1)
    ours = expected_calibration_error(probs, stored["test.labels"])
    assert float(ours) == pytest.approx(float(row["expected_calibration_error"].iloc[0]), abs=1e-9)


def test_without_a_shift_the_shifted_images_are_the_test_images() -> None:
    cell = open_artifact(evaluate_focal.OUTPUT / "digits/FL-3/1")
    runs = {row["scaling"]: row for row in cell.json("runs.json")}
    assert [row["scaling"] for row in cell.json("shift.json")] == list(runs)
    for row in cell.json("shift.json"):
        assert row["shifted"] == "digits"
        assert row.items() - {("shifted", "digits")} <= runs[row["scaling"]].items()


def test_every_table_and_claim_is_written() -> None:
    written = {path.stem for path in (RESULTS / "tables").glob("*.csv")}
    assert written == {*TABLES, *tables.TABLES, "deviations"}
    rows = json.loads((RESULTS / "claims.json").read_text())
    assert [row["id"] for row in rows] == [claim.id for claim in CLAIMS]
    table = pd.read_csv(RESULTS / "tables" / "table_1.csv")
    printed = table[table["published"].notna()]
    assert printed["status"].str.startswith("not run: ").all()
    assert (table["status"] == "measured").any()


def test_every_number_names_the_cells_that_it_comes_from(without_records: Callable[..., list[str]]) -> None:
    assert without_records(RESULTS, STAGES) == []


def test_adding_an_arm_runs_only_its_cells(tiny: Params, monkeypatch: pytest.MonkeyPatch) -> None:
    content = tiny.model_dump()
    content["focal"]["arms"]["FL-9"] = {"loss": "focal", "options": {"gamma": 9.0}}
    content["focal"]["tasks"]["digits"]["arms"].append("FL-9")
    more = validate(content, where="more")
    ran: list[str] = []
    original = cells_module._attempt
    monkeypatch.setattr(cells_module, "_attempt", lambda task: (ran.append(task.cell.name), original(task))[1])
    run_stages(more, (train_focal, evaluate_focal))
    assert sorted(ran) == 2 * ["digits/FL-9/0"] + 2 * ["digits/FL-9/1"]


def test_a_diverging_arm_is_a_result(
    make_project: Callable[[str], Path], tiny: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = tiny.model_dump()
    content["focal"]["tasks"]["digits"]["arms"] = ["CE", "FL-3"]
    content["focal"]["tasks"]["digits"]["arm_changes"] = {"CE": {"recipe": {"lr": 1e30, "clip_norm": None}}}
    params = validate(content, where="diverging")
    monkeypatch.chdir(make_project("diverging"))
    run_all(params)
    records = read_records(RESULTS)
    diverged = records.trainings[records.trainings["diverged"]]
    assert set(diverged["arm"]) == {"CE"}
    assert set(diverged["task"]) == {"digits"}
    assert set(records.runs[records.runs["task"] == "digits"]["arm"]) == {"FL-3"}
    table = pd.read_csv(RESULTS / "tables" / "table_1.csv")
    ours = table[(table["task"] == "digits") & (table["method"] == "CE")]
    assert set(ours["status"]) == {"diverged"}
    weights = open_artifact(train_focal.OUTPUT / "digits/CE/0").tensors("weights.safetensors")
    assert all(bool(value.isfinite().all()) for value in weights.values())


def test_nothing_but_divergence_is_said_in_one_line(
    make_project: Callable[[str], Path], tiny: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = tiny.model_dump()
    content["focal"]["recipe"] |= {"lr": 1e30, "clip_norm": None}
    content["focal"]["tasks"] = {"digits": content["focal"]["tasks"]["digits"] | {"arms": ["FL-3"]}}
    params = validate(content, where="nothing")
    monkeypatch.chdir(make_project("nothing"))
    with pytest.raises(InputError, match=r"every training diverged.*Lower focal\.recipe\.lr"):
        run_all(params)
    assert not RESULTS.exists()

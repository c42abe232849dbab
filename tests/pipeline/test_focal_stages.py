"""All stages of the focal paper, from nothing to its results, on the smallest parameters."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from softmax_temperature.metrics import expected_calibration_error
from softmax_temperature.papers.focal import collect
from softmax_temperature.papers.focal.records import read_records
from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.runner.errors import InputError
from softmax_temperature.stages.fetch import fetch
from softmax_temperature.stages.focal import train_focal
from softmax_temperature.stages.focal_evaluation import evaluate_focal
from softmax_temperature.stages.trainings import image_set
from softmax_temperature.training import build_network
from tests.pipeline.whole_runs import WholePaper, changed, run_paper, weights_are_finite

PAPER, RESULTS = collect, Path("results/tiny/focal")
pytestmark = pytest.mark.usefixtures("in_project")


class TestResults(WholePaper):
    pass


def test_the_stored_logits_are_those_of_the_stored_weights(tiny: Params) -> None:
    artifact, recipe = open_artifact(train_focal.output / "digits/CE/0"), tiny.focal.recipe_of("digits", "CE")
    network = build_network(tiny.networks["resnet8-tiny"], classes=10, seed=1)
    network.load_state_dict(artifact.tensors("weights.safetensors"))
    test = image_set(open_artifact(fetch.output / "digits"), "test", ".")
    with torch.no_grad():
        logits = network.eval()(test.prepare(test.inputs, recipe))
    stored = artifact.tensors("logits.safetensors")
    torch.testing.assert_close(stored["test.logits"], logits, rtol=1e-4, atol=1e-5)
    assert torch.equal(stored["test.labels"], test.labels)


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
    [row] = (
        read_records(RESULTS)
        .runs.query("task == 'digits' and arm == 'FL-3' and seed == 1 and scaling == 'nll'")
        .to_dict("records")
    )
    stored = open_artifact(train_focal.output / "digits/FL-3/1").tensors("logits.safetensors")
    probs = torch.softmax(stored["test.logits"].double() / row["temperature"], dim=1)
    ours = expected_calibration_error(probs, stored["test.labels"])
    assert float(ours) == pytest.approx(row["expected_calibration_error"], abs=1e-9)


def test_without_a_shift_the_shifted_images_are_the_test_images() -> None:
    cell = open_artifact(evaluate_focal.output / "digits/FL-3/1")
    runs = {row["scaling"]: row for row in cell.json("runs.json")}
    assert [row["scaling"] for row in cell.json("shift.json")] == list(runs)
    for row in cell.json("shift.json"):
        assert row.pop("shifted") == "digits"
        assert row.items() <= runs[row["scaling"]].items()


LOST = {"lr": 1e30, "clip_norm": None}


def test_a_diverging_arm_is_a_result(
    make_project: Callable[[str], Path], tiny: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(make_project("diverging"))
    task = {"arms": ["CE", "FL-3"], "arm_changes": {"CE": {"recipe": LOST}}}
    run_paper(changed(tiny, {"focal/tasks/digits/": task}), PAPER)
    records = read_records(RESULTS)
    diverged = records.trainings[records.trainings["diverged"]]
    assert set(zip(diverged["task"], diverged["arm"], strict=True)) == {("digits", "CE")}
    assert set(records.runs[records.runs["task"] == "digits"]["arm"]) == {"FL-3"}
    table = pd.read_csv(RESULTS / "tables" / "table_1.csv")
    assert set(table[(table["task"] == "digits") & (table["method"] == "CE")]["status"]) == {"diverged"}
    assert weights_are_finite(train_focal, "digits/CE/0")


def test_nothing_but_divergence_is_said_in_one_line(
    make_project: Callable[[str], Path], tiny: Params, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(make_project("nothing"))
    digits = tiny.model_dump()["focal"]["tasks"]["digits"] | {"arms": ["FL-3"]}
    with pytest.raises(InputError, match=r"every training diverged.*Lower focal\.recipe\.lr"):
        run_paper(changed(tiny, {"focal/recipe/": LOST, "focal/tasks": {"digits": digits}}), PAPER)
    assert not RESULTS.exists()

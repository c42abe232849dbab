"""From the cells of stage focal-linear to tables and figures: what was trained is what is drawn."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from softmax_temperature.papers.focal.linear_tables import linear_tables
from softmax_temperature.params.focal import Linear
from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.runner.cells import run_cells
from softmax_temperature.runner.errors import InputError
from softmax_temperature.stages import focal_linear
from tests.serial import SERIAL

LOSSES = ["CE", "FL-1"]


def params(*losses: str) -> Any:
    gammas = {"CE": 0.0, "FL-1": 1.0, "FL-9": 9.0}
    section = {"train": 200, "test": 100, "epochs": 7, "lr": 0.3, "seeds": 2}
    linear = Linear.model_validate(section | {"gammas": {name: gammas[name] for name in losses}})
    return SimpleNamespace(seed=5, focal=SimpleNamespace(linear=linear))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the cells of three losses, one of which the tables are not asked for."""
    folder, before = tmp_path_factory.mktemp("linear"), Path.cwd()
    os.chdir(folder)
    try:
        run_cells(focal_linear.cells(params(*LOSSES, "FL-9")), output=focal_linear.OUTPUT, compute=SERIAL, seed=5)
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def tables(project: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, pd.DataFrame]:
    monkeypatch.chdir(project)
    return linear_tables(params(*LOSSES))


def test_tables_say_what_the_cells_hold(tables: dict[str, pd.DataFrame]) -> None:
    artifact = open_artifact(focal_linear.OUTPUT / "FL-1" / "1")
    tensors = artifact.tensors(focal_linear.TENSORS)
    rows = {
        name: table[(table["loss"] == "FL-1") & (table["seed"] == 1)]
        for name, table in tables.items()
        if name != "linear_points"
    }
    for column in ("weight_norm", "logit_norm"):
        assert rows["linear_history"][column].tolist() == pytest.approx(tensors[column].tolist(), abs=6e-7)
    assert rows["linear_mistakes"]["confidence"].tolist() == pytest.approx(
        tensors["misclassified_confidence"].tolist(), abs=6e-7
    )
    boundary = rows["linear_boundary"].iloc[0]
    assert boundary["test_accuracy"] == artifact.json("record.json")["accuracy"]["test"]
    assert boundary["test_accuracy"] == pytest.approx(1 - len(rows["linear_mistakes"]) / 100)


def test_points_and_boundary_of_seed_0_give_its_accuracy(tables: dict[str, pd.DataFrame]) -> None:
    points, boundary = tables["linear_points"], tables["linear_boundary"]
    for row in boundary[boundary["seed"] == 0].to_dict("records"):
        predicted = points["x_0"] * row["weight_0"] + points["x_1"] * row["weight_1"] > 0
        assert (predicted == points["label"]).mean() == pytest.approx(row["test_accuracy"])


def test_a_missing_cell_is_an_error(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    absent = params(*LOSSES)
    absent.focal.linear = absent.focal.linear.model_copy(update={"seeds": 3})
    with pytest.raises(InputError, match=r"data/focal/linear/CE/2: not there"):
        linear_tables(absent)

"""From the cells of stage focal-linear to tables and figures: what was trained is what is drawn."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from softmax_temperature.papers.focal import figures as theory_figures
from softmax_temperature.papers.focal.linear_tables import linear_tables
from softmax_temperature.papers.focal.theory import optimal_probability, threshold
from softmax_temperature.papers.shared.plots import save
from softmax_temperature.params.focal import Linear
from softmax_temperature.runner.artifacts import digest_of_file, open_artifact
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


@pytest.fixture
def linear(tables: dict[str, pd.DataFrame]) -> Any:
    return SimpleNamespace(**tables)


def test_tables_hold_the_declared_cells_and_nothing_else(tables: dict[str, pd.DataFrame]) -> None:
    assert {name: list(table.columns) for name, table in tables.items()} == {
        "linear_history": ["loss", "seed", "epoch", "weight_norm", "logit_norm"],
        "linear_mistakes": ["loss", "seed", "confidence"],
        "linear_boundary": ["loss", "seed", "weight_0", "weight_1", "test_accuracy"],
        "linear_points": ["x_0", "x_1", "label"],
    }
    assert {key: rows["epoch"].tolist() for key, rows in tables["linear_history"].groupby(["loss", "seed"])} == {
        (loss, seed): [1, 2, 3, 4, 5, 6, 7] for loss in LOSSES for seed in (0, 1)
    }
    assert len(tables["linear_points"]) == 100


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


def lines(axes: Axes) -> list[list[tuple[float, float]]]:
    return [list(zip(*(np.asarray(data).tolist() for data in line.get_data()), strict=True)) for line in axes.lines]


def test_figure_3a_marks_each_threshold() -> None:
    (axes,) = theory_figures.figure_3a().axes
    dots = [line[0] for line in lines(axes) if len(line) == 1]
    assert dots == [(threshold(gamma), 1) for gamma in theory_figures.GAMMAS_3A]


def test_figure_b1_draws_cross_entropy_as_the_diagonal_and_focal_loss_nearer_to_one_half() -> None:
    (axes,) = theory_figures.figure_b1().axes
    plain, *focal = lines(axes)
    assert np.ptp([q - p for q, p in plain]) < 1e-12
    assert [dict(line)[0.9] for line in focal] == [optimal_probability(0.9, gamma) for gamma in (1.0, 2.0, 3.0)]


def test_figure_c1_draws_the_mean_over_seeds(linear: Any) -> None:
    left, right = theory_figures.figure_c1(linear).axes
    for axes, column in ((left, "logit_norm"), (right, "weight_norm")):
        means = linear.linear_history.groupby(["loss", "epoch"])[column].mean()
        drawn = [line for line in lines(axes) if line]
        assert len(drawn) == len(LOSSES)
        for loss, line in zip(LOSSES, drawn, strict=True):
            assert [height for _, height in line] == pytest.approx(means[loss].tolist())


def test_figure_c2_has_a_panel_for_each_loss_and_circles_its_mistakes(linear: Any) -> None:
    figure = theory_figures.figure_c2(linear)
    mistakes, *panels = [axes for axes in figure.axes if axes.get_title()]
    shares = [patch.get_data()[0] for patch in mistakes.patches]  # type: ignore[attr-defined]
    assert [share.sum() for share in shares] == pytest.approx([100] * 2 * len(LOSSES))
    assert len(panels) == len(LOSSES)
    of_seed_0 = linear.linear_mistakes[linear.linear_mistakes["seed"] == 0]
    for loss, axes in zip(LOSSES, panels, strict=True):
        assert loss in axes.get_title()
        (circles,) = [line for line in axes.lines if line.get_label() == "misclassified"]
        assert len(circles.get_xdata()) == (of_seed_0["loss"] == loss).sum()


def test_figures_are_equal_bytes_from_run_to_run(linear: Any, tmp_path: Path) -> None:
    digests = []
    for folder in (tmp_path / "first", tmp_path / "second"):
        save(theory_figures.figure_c1(linear), folder, "c1")
        save(theory_figures.figure_c2(linear), folder, "c2")
        digests.append({path.name: digest_of_file(path) for path in folder.iterdir()})
    assert len(digests[0]) == 4
    assert digests[0] == digests[1]

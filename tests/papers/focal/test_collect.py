"""Factors of runs come from the parameters, and values of runs from the cells."""

from contextlib import chdir
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from softmax_temperature.papers.focal.collect import (
    MEASURED_COLUMNS,
    declared_linear,
    loss_factors,
    merged,
    read_run,
    values_of_evaluation,
)
from softmax_temperature.papers.focal.figures import figure_c2
from softmax_temperature.papers.focal.study import LINEAR, tidied
from softmax_temperature.papers.shared.collecting import gather
from softmax_temperature.papers.shared.factors import where
from softmax_temperature.papers.shared.runs import Runs
from softmax_temperature.params.focal import Linear
from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.runner.cells import run_cells
from softmax_temperature.runner.errors import InputError
from softmax_temperature.stages.focal_appendices import TENSORS, focal_linear
from tests.papers.focal.made_runs import ABOUT
from tests.serial import SERIAL

GAMMAS = {"CE": 0.0, "FL-1": 1.0, "FL-9": 9.0}


def params(*losses: str, seeds: int = 2) -> Any:
    section = {"train": 200, "test": 100, "epochs": 7, "lr": 0.3, "seeds": seeds}
    gammas = {name: GAMMAS[name] for name in losses}
    linear = Linear.model_validate(section | {"gammas": gammas})
    return SimpleNamespace(
        seed=5, papers=["focal"], focal=SimpleNamespace(linear=linear)
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the cells of three losses; the tests' parameters name only two."""
    folder = tmp_path_factory.mktemp("linear")
    with chdir(folder):
        run_cells(
            focal_linear.cells(params("CE", "FL-1", "FL-9")),
            output=focal_linear.output,
            compute=SERIAL,
            seed=5,
        )
    return folder


@pytest.fixture
def linear(project: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    monkeypatch.chdir(project)
    declared = list(declared_linear(params("CE", "FL-1")))
    runs = gather(Path("none"), declared, read_run, tables=MEASURED_COLUMNS)
    return tidied(Runs(runs.table.assign(**ABOUT), runs.measurements, runs.tables))


def test_runs_are_the_declared_cells_and_what_is_in_them(linear: Runs) -> None:
    assert linear.table["arm"].tolist() == ["CE", "CE", "FL-1", "FL-1"]
    number = linear.table.index[linear.table["cell"] == "focal/linear/FL-1/1"].item()
    artifact = open_artifact(focal_linear.output / "FL-1" / "1")
    tensors = artifact.tensors(TENSORS)
    for name in ("weight_norm", "logit_norm"):
        rows = linear.measured(name, split="test")
        values = rows[rows["run"] == number]["value"].tolist()
        assert values == pytest.approx(tensors[name].tolist(), abs=6e-7)
    mistakes = linear.tables["linear_mistakes"]
    confidences = mistakes[mistakes["run"] == number]["confidence"].tolist()
    stored = tensors["misclassified_confidence"].tolist()
    assert confidences == pytest.approx(stored, abs=6e-7)
    rows = linear.measured("accuracy", split="test")
    accuracy = rows[rows["run"] == number]["value"].item()
    recorded = artifact.json("record.json")["accuracy"]["test"]
    assert accuracy == recorded == pytest.approx(1 - len(confidences) / 100)


@pytest.mark.usefixtures("linear")
def test_a_missing_cell_is_an_error() -> None:
    declared = list(declared_linear(params("CE", "FL-1", seeds=3)))
    with pytest.raises(InputError, match="2 of 6 runs are neither in a cell here nor"):
        gather(Path("none"), declared, read_run, tables=MEASURED_COLUMNS)


def test_figure_c2_has_a_panel_for_each_loss_and_circles_its_mistakes(
    linear: Runs,
) -> None:
    figure = figure_c2(linear)
    assert figure is not None
    mistakes, *panels = [axes for axes in figure.axes if axes.get_title()]
    shares = [patch.get_data()[0] for patch in mistakes.patches]  # type: ignore[attr-defined]
    assert [share.sum() for share in shares] == pytest.approx([100] * 4)
    first_seed = linear.select(LINEAR & where(seed=0))
    wrong = linear.tables["linear_mistakes"]["run"]
    for (number, run), axes in zip(first_seed.iterrows(), panels, strict=True):
        assert run["arm"] in axes.get_title()
        (circles,) = [
            line for line in axes.lines if line.get_label() == "misclassified"
        ]
        assert len(np.asarray(circles.get_xdata())) == (wrong == number).sum()


@pytest.mark.parametrize(
    ("loss", "options", "factors"),
    [
        ("focal", {"gamma": 3.0}, {"gamma": "3"}),
        ("focal", {"gamma": 0.5}, {"gamma": "0.5"}),
        ("sample_dependent_focal", {}, {"gamma": "53"}),
        (
            "scheduled_focal",
            {"gammas": [5.0, 3.0, 1.0], "milestones": [14, 35]},
            {"gamma": "531", "milestones": "14, 35"},
        ),
        ("label_smoothing", {"smoothing": 0.05}, {"smoothing": 0.05}),
        ("mmce", {"as_released": True}, {"mmce_form": "released", "mmce_weight": 2.0}),
        ("mmce", {"weight": 1.0}, {"mmce_form": "written", "mmce_weight": 1.0}),
        ("mine", {"b": 1, "a": 2}, {"options": '{"a": 2, "b": 1}'}),
    ],
)
def test_factors_of_a_loss_are_its_class_and_options(
    loss: str, options: dict[str, Any], factors: dict[str, Any]
) -> None:
    made = loss_factors(loss, options)
    filled = {name: value for name, value in made.items() if value is not None}
    assert filled == {"loss": loss, **factors}


def test_an_evaluation_is_a_row_of_values_at_its_epoch() -> None:
    names = {"expected_calibration_error": 0.1, "expected_calibration_error_low": 0.05}
    rows = [
        {"evaluated": "best_validation", "scaling": "none", "samples": 9, **names},
        {"evaluated": "last", "scaling": "ece", "temperature": 2.0},
        {"evaluated": "last", "scaling": "nll", "temperature": 3.0},
    ]
    ood = [{"ood": "svhn", "scaling": "ece", "samples": 7, "auroc": 0.9}]
    epochs = {"epochs_done": 8, "selected_epoch": 5}
    values = values_of_evaluation(
        rows, select="best_validation", ood=ood, shift=[], **epochs
    )
    last = {"split": "test", "epoch": 8, "scaled": True}
    other = {"split": "svhn", "epoch": 5, "scaled": True}
    assert values == [
        {"split": "test", "epoch": 5, "scaled": False, "ece": 0.1, "ece_low": 0.05},
        {**last, "temperature": 2.0},
        {**last, "temperature_by_nll": 3.0},
        {**other, "samples": 7, "auroc": 0.9},
    ]
    assert merged(values)[1] == {**last, "temperature": 2.0, "temperature_by_nll": 3.0}

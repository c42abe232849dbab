"""From the cells of stage focal_linear to tables: what was trained is what is tabulated
and drawn.
"""

from contextlib import chdir
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from softmax_temperature.papers.focal.collect import linear_tables
from softmax_temperature.papers.focal.figures import figure_c2
from softmax_temperature.params.focal import Linear
from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.runner.cells import run_cells
from softmax_temperature.runner.errors import InputError
from softmax_temperature.stages.focal_appendices import TENSORS, focal_linear
from tests.serial import SERIAL

LOSSES = ["CE", "FL-1"]


def params(*losses: str, seeds: int = 2) -> Any:
    gammas = {"CE": 0.0, "FL-1": 1.0, "FL-9": 9.0}
    section = {"train": 200, "test": 100, "epochs": 7, "lr": 0.3, "seeds": seeds}
    linear = Linear.model_validate(
        section | {"gammas": {name: gammas[name] for name in losses}}
    )
    return SimpleNamespace(
        seed=5, papers=["focal"], focal=SimpleNamespace(linear=linear)
    )


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the cells of three losses, one of which the tables are not asked
    for.
    """
    folder = tmp_path_factory.mktemp("linear")
    with chdir(folder):
        run_cells(
            focal_linear.cells(params(*LOSSES, "FL-9")),
            output=focal_linear.output,
            compute=SERIAL,
            seed=5,
        )
    return folder


@pytest.fixture
def linear(project: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(project)
    return SimpleNamespace(**linear_tables(params(*LOSSES)))


def test_tables_hold_the_declared_cells_and_what_is_in_them(linear: Any) -> None:
    assert set(linear.linear_history["loss"]) == set(LOSSES)
    artifact = open_artifact(focal_linear.output / "FL-1" / "1")
    tensors = artifact.tensors(TENSORS)
    history, mistakes, boundary = (
        table[(table["loss"] == "FL-1") & (table["seed"] == 1)]
        for table in (
            linear.linear_history,
            linear.linear_mistakes,
            linear.linear_boundary,
        )
    )
    assert history["epoch"].tolist() == [1, 2, 3, 4, 5, 6, 7]
    for column in ("weight_norm", "logit_norm"):
        assert history[column].tolist() == pytest.approx(
            tensors[column].tolist(), abs=6e-7
        )
    assert mistakes["confidence"].tolist() == pytest.approx(
        tensors["misclassified_confidence"].tolist(), abs=6e-7
    )
    accuracy = artifact.json("record.json")["accuracy"]["test"]
    assert (
        boundary["test_accuracy"].item()
        == accuracy
        == pytest.approx(1 - len(mistakes) / 100)
    )


@pytest.mark.usefixtures("linear")
def test_a_missing_cell_is_an_error() -> None:
    with pytest.raises(InputError, match=r"data/focal/linear/CE/2: not there"):
        linear_tables(params(*LOSSES, seeds=3))


def test_figure_c2_has_a_panel_for_each_loss_and_circles_its_mistakes(
    linear: Any,
) -> None:
    mistakes, *panels = [axes for axes in figure_c2(linear).axes if axes.get_title()]
    shares = [patch.get_data()[0] for patch in mistakes.patches]  # type: ignore[attr-defined]
    assert [share.sum() for share in shares] == pytest.approx([100] * 2 * len(LOSSES))
    of_seed_0 = linear.linear_mistakes.query("seed == 0")["loss"]
    for loss, axes in zip(LOSSES, panels, strict=True):
        assert loss in axes.get_title()
        (circles,) = [
            line for line in axes.lines if line.get_label() == "misclassified"
        ]
        assert len(np.asarray(circles.get_xdata())) == (of_seed_0 == loss).sum()

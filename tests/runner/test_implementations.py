"""Parameters can name classes of the package, or classes in a user's file."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from softmax_temperature.losses import Loss, make_loss
from softmax_temperature.params import Params, read_yaml, validate
from softmax_temperature.runner.cells import Cell
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.fingerprint import PACKAGE, project_files
from softmax_temperature.stages.focal import train_focal
from softmax_temperature.tools.programs import require_dependencies
from softmax_temperature.tools.project import plan, summary
from tests.conftest import ROOT
from tests.profiles import profile

POLY = {"loss": "my_losses:PolyLoss", "options": {"epsilon": 1.0}}
DIGESTS = """
from softmax_temperature.runner.fingerprint import code_digest
print(code_digest("my_losses"), code_digest("softmax_temperature.losses.focal"))
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the loss of docs/adding.md and a module that the loss imports."""
    page = (ROOT / "docs/adding.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?class PolyLoss.*?)```", page, re.DOTALL)
    (tmp_path / "my_losses.py").write_text(f"import my_maths\n{example}")
    (tmp_path / "my_maths.py").write_text("ONE = 1\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("my_losses", "my_maths"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def smoke(arms: dict[str, Any]) -> Params:
    """Profile smoke with additional focal arms on its digits."""
    params = profile("smoke")
    content = params.model_dump()
    content["focal"]["arms"] |= arms
    content["focal"]["tasks"]["digits"]["arms"] = ["CE", *arms]
    return validate(content, where="changed")


@pytest.mark.usefixtures("project")
def test_a_loss_of_the_users_own_file_is_made_by_its_reference() -> None:
    loss = make_loss(POLY["loss"], POLY["options"])
    assert isinstance(loss, Loss)
    # The expected value is log 2 + 1 / 2.
    value = loss(torch.zeros(1, 2), torch.tensor([0]), 0.0)
    assert value.item() == pytest.approx(1.1931, abs=1e-4)


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("my_losses:PolyLoss", {}, "does not take the options .*'epsilon'"),
        ("my_losses:Poly", {}, "cannot be imported .*next to params.yaml"),
        ("their_losses:Poly", {}, "cannot be imported .*next to params.yaml"),
        ("torch.nn:CrossEntropyLoss", {}, "Derive it from .*losses.base.Loss"),
        ("my_losses.PolyLoss", {}, "unknown loss.* package.module:Class"),
    ],
)
@pytest.mark.usefixtures("project")
def test_a_class_that_is_no_loss_is_refused(
    name: str, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        make_loss(name, options)


def test_params_take_a_reference_and_no_other_unknown_name(tmp_path: Path) -> None:
    # The line comes from docs/adding.md: DVC and this project need the quotes in it.
    page = (ROOT / "docs/adding.md").read_text(encoding="utf-8")
    (arm,) = re.findall(r"`(Poly-1: {loss: .*my_losses.*})`", page)
    path = tmp_path / "arms.yaml"
    path.write_text(arm)
    assert read_yaml(path) == {"Poly-1": POLY}
    assert smoke({"Poly": POLY}).focal.arms["Poly"].loss == "my_losses:PolyLoss"
    with pytest.raises(InputError, match=r"unknown loss 'my_losses\.PolyLoss'"):
        smoke({"Poly": POLY | {"loss": "my_losses.PolyLoss"}})


@pytest.mark.usefixtures("project")
def test_users_files_are_part_of_the_code_of_only_the_cells_that_name_them() -> None:
    cells = {cell.name: cell for cell in train_focal.cells(smoke({"Poly": POLY}))}
    losses_of = {
        name: {key for key in cell.code() if ".networks" not in key}
        for name, cell in cells.items()
    }
    assert losses_of["digits/Poly/0"] == {
        "softmax_temperature.stages.focal",
        "my_losses:PolyLoss",
    }
    assert losses_of["digits/CE/0"] == {
        "softmax_temperature.stages.focal",
        "softmax_temperature.losses.cross_entropy:CrossEntropyLoss",
    }
    assert project_files("softmax_temperature.losses.focal") == []


def digests(project: Path) -> list[str]:
    """Compute the digests of a cell with the user's loss and a cell with focal loss."""
    command = [sys.executable, "-c", DIGESTS]
    printed = subprocess.run(
        command, cwd=project, text=True, capture_output=True, check=True
    ).stdout
    return printed.split()


def test_the_digest_changes_with_the_users_file_and_with_what_it_imports(
    project: Path,
) -> None:
    before = digests(project)
    for file in ("my_losses.py", "my_maths.py"):
        path = project / file
        text = path.read_text()
        path.write_text(f"# A comment.\n{text}")
        assert digests(project) == before
        path.write_text(f"{text}\nADDED = 1\n")
        after = digests(project)
        assert after[0] != before[0]
        assert after[1] == before[1]
        path.write_text(text)


def test_a_stage_refuses_a_file_that_dvc_does_not_watch(project: Path) -> None:
    cells = train_focal.cells(smoke({"Poly": POLY}))
    require_dependencies(
        "train_focal", cells
    )  # If there is no dvc.yaml, the dependencies are not checked.
    stage = {"cmd": "python pipeline/train_focal.py", "deps": ["src"]}
    write_graph(project, stage)
    with pytest.raises(InputError, match="stage train-focal: does not depend on my_lo"):
        require_dependencies("train_focal", cells)
    write_graph(project, stage | {"deps": ["my_losses.py"]})
    with pytest.raises(InputError, match=r"does not depend on my_maths\.py"):
        require_dependencies("train_focal", cells)
    write_graph(project, stage | {"deps": ["my_losses.py", "my_maths.py"]})
    require_dependencies("train_focal", cells)


def test_a_plan_promises_no_cells_that_the_stage_would_refuse(project: Path) -> None:
    params = smoke({"Poly": POLY})
    stage = {"cmd": "python pipeline/train_focal.py", "deps": ["src"]}
    write_graph(project, stage)
    with pytest.raises(InputError) as refused:
        require_dependencies("train_focal", train_focal.cells(params))
    plans = {stage.stage: stage for stage in plan(params)}
    assert plans["train_focal"].note == str(refused.value)
    assert plans["train_focal"].to_run == ()
    assert str(refused.value) in summary(list(plans.values()), params)
    write_graph(project, stage | {"deps": ["my_losses.py", "my_maths.py"]})
    plans = {stage.stage: stage for stage in plan(params)}
    assert "digits/Poly/0" in plans["train_focal"].to_run


def write_graph(project: Path, stage: dict[str, Any]) -> None:
    lines = [f"    cmd: {stage['cmd']}", f"    deps: {stage['deps']}"]
    text = "\n".join(["stages:", "  train-focal:", *lines])
    (project / "dvc.yaml").write_text(text)


def test_a_reference_is_found_wherever_a_plan_holds_its_section() -> None:
    (cell, *_) = train_focal.cells(smoke({}))
    assert isinstance(cell, Cell)
    assert any(name.startswith(f"{PACKAGE}.losses.") for name in cell.implementations())

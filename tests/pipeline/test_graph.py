"""dvc.yaml lists the program of each stage and exactly the modules that it imports, and stays small."""

from __future__ import annotations

import ast
import math
from importlib import import_module
from pathlib import Path

import nbformat
import pytest

from softmax_temperature.code_digest import PACKAGE, import_closure, source_path
from softmax_temperature.params import read_yaml
from softmax_temperature.profiles import profile_names, render_profile
from softmax_temperature.results import PAPERS

ROOT = Path(__file__).parents[2]
GRAPH = read_yaml(ROOT / "dvc.yaml")
STAGES = GRAPH["stages"]


def program(stage: str) -> Path:
    return ROOT / STAGES[stage]["cmd"].split()[1]


def imported(code: str) -> set[str]:
    """The package's modules that a piece of code names in its imports."""
    found = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(PACKAGE):
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                found.add(module if source_path(module).is_file() else node.module)
    return found


BY_NAME = {
    "train-focal": ("models", "objectives"),
    "collect-focal": ("models", "objectives"),
    "train-cooling": ("models", "objectives", "cooling/follower.py"),
    "train-segmentation": ("cooling/pixel_follower.py",),
    "collect-cooling": ("models", "objectives", "cooling/follower.py", "cooling/pixel_follower.py"),
}
"""Modules, and folders of them, that the cells of a stage choose by name; collecting reads their deviations."""


def modules(stage: str) -> set[str]:
    """What a stage runs: its program's imports, the paper it was asked for, and the imports of a notebook."""
    found = imported(program(stage).read_text())
    _, _, slug = stage.partition("-")
    for name in BY_NAME.get(stage, ()):
        place = ROOT / "src" / PACKAGE / name
        paths = [place] if place.suffix else [path for path in place.glob("*.py") if path.stem != "__init__"]
        found |= {f"{PACKAGE}.{place.parent.name if place.suffix else name}.{path.stem}" for path in paths}
    if stage.startswith("collect-"):
        found.add(f"{PACKAGE}.papers.{slug}.collect")
    if stage.startswith("notebook-"):
        found |= imported(notebook_code(ROOT / "notebooks" / f"{slug}.ipynb"))
    return {name for module in found for name in import_closure(module)}


def notebook_code(path: Path) -> str:
    notebook = nbformat.read(path, as_version=4)
    return "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")


def expected(stage: str) -> list[str]:
    return sorted(source_path(name).relative_to(ROOT).as_posix() for name in modules(stage))


@pytest.mark.parametrize("stage", sorted(STAGES))
def test_a_stage_depends_on_its_program_and_the_modules_it_imports(stage: str) -> None:
    listed = [dep for dep in STAGES[stage]["deps"] if dep.startswith("src/")]
    want = expected(stage)
    assert listed == want, "write under deps:\n" + "\n".join(f"      - {name}" for name in want)
    assert program(stage).relative_to(ROOT).as_posix() in STAGES[stage]["deps"]


@pytest.mark.parametrize("paper", ["focal", "cooling"])
@pytest.mark.parametrize("name", profile_names(ROOT / "profiles"))
def test_what_cells_choose_by_name_is_among_the_dependencies(name: str, paper: str) -> None:
    _, params = render_profile(name, ROOT / "profiles")
    stage = import_module(f"{PACKAGE}.stages.train_{paper}")
    chosen = {module for cell in stage.cells(params) for module in cell.code}
    paths = {source_path(name).relative_to(ROOT).as_posix() for module in chosen for name in import_closure(module)}
    for stage_name in (f"train-{paper}", f"collect-{paper}"):
        assert paths <= set(STAGES[stage_name]["deps"])


@pytest.mark.parametrize("stage", sorted(STAGES))
def test_keys_stand_in_one_order(stage: str) -> None:
    order = ["matrix", "cmd", "deps", "params", "outs"]
    keys = list(STAGES[stage])
    assert keys == [key for key in order if key in keys]


def test_programs_are_thin() -> None:
    for path in sorted((ROOT / "pipeline").glob("*.py")):
        assert len(path.read_text().splitlines()) < 60, path.name


def test_every_program_has_a_stage() -> None:
    used = {program(stage).name for stage in STAGES}
    assert used == {path.name for path in (ROOT / "pipeline").glob("*.py")}


def test_every_paper_is_collected_and_has_a_notebook() -> None:
    for paper in PAPERS:
        assert {f"collect-{paper}", f"notebook-{paper}"} <= set(STAGES)


@pytest.mark.parametrize("name", profile_names(ROOT / "profiles"))
def test_no_profile_makes_eighty_stages(name: str) -> None:
    """DVC's cost grows with the square of the number of stages."""
    _, params = render_profile(name, ROOT / "profiles")
    sizes = {"${datasets}": len(params.datasets)} | {f"${{{paper}.rebuild}}": 1 for paper in PAPERS}
    instances = 0
    for stage in STAGES.values():
        instances += math.prod(sizes[str(axis)] for axis in stage.get("matrix", {}).values())
    assert instances < 80

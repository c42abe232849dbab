"""dvc.yaml lists each stage's program, code and inputs, and stays small."""

import json
import re
import shutil
import sys
from pathlib import Path
from subprocess import run
from typing import Any

import pytest
from ruamel.yaml import YAML

from softmax_temperature.papers.shared.results import PAPERS
from softmax_temperature.params import Params, read_yaml
from softmax_temperature.runner.fingerprint import PACKAGE, import_closure, source_path
from softmax_temperature.stages import stages_of
from tests.conftest import ROOT

GRAPH = read_yaml(ROOT / "dvc.yaml")
STAGES = GRAPH["stages"]
SOURCE = "src/softmax_temperature"
GROWING = ("records.json", "runs.csv", "tables")
"""Results that a stage does not delete first, because they include other machines'
runs.
"""
RUN_BY = frozenset(
    {"runner", "params"}
)  # Code of these folders is not part of any cell.


def test_the_committed_lock_has_every_stage() -> None:
    # A commit while `dvc repro` writes the lock may record an empty file.
    papers = read_yaml(ROOT / "params.yaml")["papers"]
    expected = {
        name
        for stage, content in STAGES.items()
        for name in (
            [f"{stage}@{paper}" for paper in papers] if "matrix" in content else [stage]
        )
    }
    lock = (ROOT / "dvc.lock").read_text()
    assert set(re.findall(r"(?m)^  (\S+):$", lock)) == expected


def program(stage: str) -> Path:
    return ROOT / STAGES[stage]["cmd"].split()[1]


CELL_STAGES = {
    name: found for name in STAGES if (found := stages_of(program(name).stem))
}


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_depends_on_its_program_caches_no_results_and_keeps_data(
    stage: str,
) -> None:
    assert program(stage).relative_to(ROOT).as_posix() in STAGES[stage]["deps"]
    for path, options in (
        (path, own) for output in STAGES[stage]["outs"] for path, own in output.items()
    ):
        assert options.get("cache", True) == (not path.startswith("results/"))
        persists = path.startswith("data/") or Path(path).name in GROWING
        assert options.get("persist", False) == persists or path.endswith(".html")


@pytest.mark.parametrize("stage", CELL_STAGES)
def test_a_stage_names_the_code_folder_and_parameters_of_its_cells(
    stage: str,
) -> None:
    content = STAGES[stage]
    for module in {
        module for each in CELL_STAGES[stage] for module in import_closure(each.module)
    }:
        assert any(
            source_path(module).is_relative_to(ROOT / dep) for dep in content["deps"]
        ), module
    outputs = [Path(path) for output in content["outs"] for path in output]
    assert {
        next(path for path in outputs if each.output.is_relative_to(path))
        for each in CELL_STAGES[stage]
    } == set(outputs)
    for leaf in content["params"]:
        section: Any = Params
        for part in leaf.split("."):
            assert part in section.model_fields, leaf
            section = section.model_fields[part].annotation


@pytest.mark.parametrize("paper", PAPERS)
def test_stages_depend_on_the_code_that_makes_a_papers_records_and_notebook(
    paper: str,
) -> None:
    needs = {
        "collect": ("collect", "tables", "claims"),
        "notebook": ("figures", "tables", "claims", "study"),
    }
    shared = {"collect": "papers.shared.provenance", "notebook": "tools.notebooks"}
    for stage, parts in needs.items():
        deps = [dep.replace("${item.paper}", paper) for dep in STAGES[stage]["deps"]]
        names = [f"papers.{paper}.{part}" for part in parts] + [shared[stage]]
        for module in {
            each
            for name in names
            for each in import_closure(f"{PACKAGE}.{name}", excluded=RUN_BY)
        }:
            found = source_path(module)
            assert found.name == "__init__.py" or any(
                found.is_relative_to(ROOT / dep) for dep in deps
            ), module


def test_git_ignores_the_lists_of_shown_files_except_those_in_the_lock(
    tmp_path: Path,
) -> None:
    shutil.copy(ROOT / ".gitignore", tmp_path)
    lists = {"results/mini/shown/focal", "results/text/shown/focal"}
    for name in lists:
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    for command in (["init", "--quiet"], ["add", "."]):
        run(["git", *command], cwd=tmp_path, check=True)  # noqa: S607
    listed = run(
        ["git", "ls-files", "results"],  # noqa: S607
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    in_lock = {name for name in lists if name in (ROOT / "dvc.lock").read_text()}
    assert set(listed.stdout.split()) == in_lock == {"results/mini/shown/focal"}


def test_papers_are_a_matrix() -> None:
    for stage in ("collect", "notebook"):
        assert STAGES[stage]["matrix"] == {"paper": "${papers}"}
    for paper in PAPERS:
        assert (ROOT / "notebooks" / f"{paper}.ipynb").is_file()
        assert (ROOT / SOURCE / "papers" / paper / "collect.py").is_file()


def test_what_notebooks_show_is_a_parameter_of_their_stage_alone() -> None:
    for stage, content in STAGES.items():
        named = [
            name for name in content.get("params", []) if name.startswith("notebooks")
        ]
        assert named == (["notebooks"] if stage == "notebook" else []), stage


def test_another_level_makes_the_notebooks_stale_and_nothing_else(
    tmp_path: Path,
) -> None:
    (tmp_path / "params.yaml").write_text(
        "papers: [cooling]\nseed: 0\nnotebooks: {level: 0.9}\n"
    )
    stages = {
        name: {"cmd": "true", "params": content["params"]}
        for name, content in STAGES.items()
        if name in ("collect", "notebook", "train-cooling")
    }
    kept = {
        "collect": ["seed"],
        "notebook": stages["notebook"]["params"],
        "train-cooling": ["seed"],
    }
    for name, params in kept.items():
        assert set(params) <= set(STAGES[name]["params"])
        stages[name]["params"] = params
    YAML().dump({"stages": stages}, tmp_path / "dvc.yaml")
    for words in (["init", "--no-scm", "-q"], ["repro", "-q"]):
        run([sys.executable, "-m", "dvc", *words], cwd=tmp_path, check=True)
    change = (tmp_path / "params.yaml").read_text().replace("0.9", "0.95")
    (tmp_path / "params.yaml").write_text(change)
    status = [sys.executable, "-m", "dvc", "status", "--json"]
    found = run(status, cwd=tmp_path, check=True, capture_output=True)
    assert list(json.loads(found.stdout)) == ["notebook"]


def test_metrics_of_the_committed_results_fit_a_screen(project_root: Path) -> None:
    # DVC prints the path, two spaces, and a column for each name, four spaces apart.
    for path in project_root.glob("results/*/*/metrics.json"):
        names = json.loads(path.read_text())
        width = len(path.relative_to(project_root).as_posix()) + 2
        width += sum(map(len, names)) + 4 * (len(names) - 1)
        assert width <= 80, path


def test_the_plots_are_results_of_mini() -> None:
    places: list[str] = []
    for plot in GRAPH["plots"]:
        places += (
            [plot]
            if isinstance(plot, str)
            else [path for own in plot.values() for path in own["y"]]
        )
    assert [
        path
        for path in places
        if not (ROOT / path.replace("${profile}", "mini")).is_file()
    ] == []


def test_keys_have_one_order_and_the_file_stays_short() -> None:
    order = ["matrix", "cmd", "deps", "params", "outs", "always_changed"]
    for stage, content in STAGES.items():
        assert list(content) == [key for key in order if key in content], stage
    assert len((ROOT / "dvc.yaml").read_text().splitlines()) <= 260


def test_programs_are_thin_and_each_has_a_stage() -> None:
    paths = sorted((ROOT / "pipeline").glob("*.py"))
    without_stage = {"own_source.py", "picture.py"}
    assert {path.name for path in paths} == {
        program(stage).name for stage in STAGES
    } | without_stage
    for path in paths:
        assert len(path.read_text().splitlines()) < 60, path.name

"""dvc.yaml lists the program of each stage, the code and what it reads, and stays small."""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from softmax_temperature.papers.shared.results import PAPERS
from softmax_temperature.runner.reading import read_yaml
from softmax_temperature.tools.profiles import profile_names, render_profile

ROOT = Path(__file__).parents[2]
GRAPH = read_yaml(ROOT / "dvc.yaml")
STAGES = GRAPH["stages"]


def program(stage: str) -> Path:
    return ROOT / STAGES[stage]["cmd"].split()[1]


@pytest.mark.parametrize("stage", sorted(set(STAGES) - {"code"}))
def test_a_stage_depends_on_its_program_and_its_code(stage: str) -> None:
    assert STAGES[stage]["deps"][:2] == [program(stage).relative_to(ROOT).as_posix(), f"data/code/{stage}"]


def test_the_code_stage_sees_all_code() -> None:
    assert STAGES["code"]["deps"] == ["notebooks", "pipeline", "src/softmax_temperature"]


def test_a_notebook_stage_depends_on_its_notebook() -> None:
    for paper in PAPERS:
        assert f"notebooks/{paper}.ipynb" in STAGES[f"notebook-{paper}"]["deps"]


@pytest.mark.parametrize("paper", PAPERS)
def test_a_paper_is_collected_again_when_anything_changes_that_its_records_name(paper: str) -> None:
    stages = import_module(f"softmax_temperature.papers.{paper}.collect").STAGES
    assert {stage.OUTPUT.as_posix() for stage in stages} <= set(STAGES[f"collect-{paper}"]["deps"])


def test_the_report_is_made_from_what_every_notebook_shows() -> None:
    assert {"data/shown", "results/${profile}/environment.json"} <= set(STAGES["report"]["deps"])
    for paper in PAPERS:
        assert f"data/shown/{paper}" in outputs(f"notebook-{paper}")


def outputs(stage: str) -> dict[str, dict[str, bool]]:
    """Path to options."""
    return {path: dict(options) for output in STAGES[stage]["outs"] for path, options in output.items()}


@pytest.mark.parametrize("stage", sorted(STAGES))
def test_dvc_restores_nothing_by_itself(stage: str) -> None:
    """It would take what its cache holds for whole; see the head of dvc.yaml."""
    assert any(options.get("persist") for options in outputs(stage).values())


@pytest.mark.parametrize("stage", sorted(STAGES))
def test_of_the_results_only_single_files_persist(stage: str) -> None:
    """Programs replace or clear their folders below data/; of a folder of tables DVC removes the one of yesterday."""
    for path, options in outputs(stage).items():
        assert options.get("cache", True) == (not path.startswith("results/"))
        assert not options.get("persist") or path.startswith("data/") or Path(path).suffix


def test_the_plots_show_each_paper_and_nothing_twice() -> None:
    places = [place for plot in GRAPH["plots"] for place in ([plot] if isinstance(plot, str) else _data(plot))]
    made = [ROOT / place.replace("${profile}", "mini") for place in places]
    assert [path for path in made if not path.is_file()] == [], "mini's results are in Git"
    assert len(set(made)) == len(made)
    assert {path.relative_to(ROOT / "results/mini").parts[0] for path in made} == set(PAPERS)


def _data(plot: Mapping[str, Any]) -> list[str]:
    """The files that a plot draws from."""
    return [place for content in plot.values() for place in content["y"]]


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

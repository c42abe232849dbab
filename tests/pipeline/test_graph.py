"""dvc.yaml lists the program of each stage, the code and what it reads, and stays small."""

from pathlib import Path
from typing import Any

import pytest

from softmax_temperature.papers.shared.results import PAPERS
from softmax_temperature.params import Params
from softmax_temperature.runner.fingerprint import import_closure
from softmax_temperature.runner.reading import read_yaml
from softmax_temperature.stages.programs import PACKAGE, load

ROOT = Path(__file__).parents[2]
GRAPH = read_yaml(ROOT / "dvc.yaml")
STAGES = GRAPH["stages"]
SOURCE = "src/softmax_temperature"


def program(stage: str) -> Path:
    return ROOT / STAGES[stage]["cmd"].split()[1]


CELL_STAGES = [name for name in STAGES if (ROOT / SOURCE / "stages" / program(name).name).is_file()]


def outputs(stage: str) -> dict[str, dict[str, bool]]:
    """Path to options."""
    return {path: dict(options) for output in STAGES[stage]["outs"] for path, options in output.items()}


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_depends_on_its_program(stage: str) -> None:
    assert program(stage).relative_to(ROOT).as_posix() in STAGES[stage]["deps"]


@pytest.mark.parametrize("stage", CELL_STAGES)
def test_a_stage_depends_on_the_folders_of_the_code_that_its_cells_run(stage: str) -> None:
    deps = STAGES[stage]["deps"]
    for module in import_closure(f"{PACKAGE}.{program(stage).stem}"):
        place = module.replace("softmax_temperature", SOURCE, 1).replace(".", "/")
        if place not in (SOURCE, f"{SOURCE}/stages"):
            assert any(dep == f"{place}.py" or f"{place}/".startswith(f"{dep}/") for dep in deps), module


@pytest.mark.parametrize("stage", CELL_STAGES)
def test_a_stage_writes_the_folder_that_its_module_names(stage: str) -> None:
    assert list(outputs(stage)) == [load(program(stage).stem).OUTPUT.as_posix()]


@pytest.mark.parametrize("stage", CELL_STAGES)
def test_every_parameter_that_a_stage_names_exists(stage: str) -> None:
    for leaf in STAGES[stage]["params"]:
        section: Any = Params
        for part in leaf.split("."):
            assert part in section.model_fields, leaf
            section = section.model_fields[part].annotation


def test_papers_are_a_matrix() -> None:
    for stage in ("collect", "notebook"):
        assert STAGES[stage]["matrix"] == {"paper": "${papers}"}
    for paper in PAPERS:
        assert (ROOT / "notebooks" / f"{paper}.ipynb").is_file()
        assert (ROOT / SOURCE / "papers" / paper / "collect.py").is_file()


@pytest.mark.parametrize("stage", STAGES)
def test_of_the_results_nothing_is_cached_and_of_the_data_all_persists(stage: str) -> None:
    for path, options in outputs(stage).items():
        assert options.get("cache", True) == (not path.startswith("results/"))
        assert options.get("persist", False) == path.startswith("data/") or Path(path).suffix == ".html"


def test_the_plots_are_results_of_mini() -> None:
    places = [place for plot in GRAPH["plots"] for place in ([plot] if isinstance(plot, str) else _sources(plot))]
    assert [place for place in places if not (ROOT / place.replace("${profile}", "mini")).is_file()] == []


def _sources(plot: dict[str, Any]) -> list[str]:
    return [place for content in plot.values() for place in content["y"]]


def test_keys_stand_in_one_order_and_the_file_stays_short() -> None:
    order = ["matrix", "cmd", "deps", "params", "outs"]
    for stage, content in STAGES.items():
        assert list(content) == [key for key in order if key in content], stage
    assert len((ROOT / "dvc.yaml").read_text().splitlines()) <= 350


def test_programs_are_thin_and_each_has_a_stage() -> None:
    paths = sorted((ROOT / "pipeline").glob("*.py"))
    of_several_profiles = {"picture.py"}
    assert {path.name for path in paths} == {program(stage).name for stage in STAGES} | of_several_profiles
    for path in paths:
        assert len(path.read_text().splitlines()) < 60, path.name

"""Each stage's file of digests names exactly the code that the stage runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from softmax_temperature.runner.stage_code import imported, stage_modules, write_stage_code

from softmax_temperature.runner.fingerprint import import_closure
from softmax_temperature.runner.reading import read_yaml
from softmax_temperature.stages import train_cooling, train_focal
from softmax_temperature.tools.profiles import profile_names, render_profile

ROOT = Path(__file__).parents[2]
STAGES = {"focal": train_focal, "cooling": train_cooling}


def modules(stage: str) -> list[str]:
    program = ROOT / read_yaml(ROOT / "dvc.yaml")["stages"][stage]["cmd"].split()[1]
    return [name.removeprefix("softmax_temperature.") for name in stage_modules(stage, program, ROOT / "notebooks")]


def written(root: Path, tmp_path: Path) -> dict[str, str]:
    write_stage_code(root, tmp_path)
    return {path.name: path.read_text() for path in sorted(tmp_path.iterdir())}


@pytest.mark.parametrize("paper", STAGES)
@pytest.mark.parametrize("name", profile_names(ROOT / "profiles"))
def test_what_cells_choose_by_name_is_among_the_code(name: str, paper: str) -> None:
    _, params = render_profile(name, ROOT / "profiles")
    chosen = {module for cell in STAGES[paper].cells(params) for module in cell.code}
    needed = {each.removeprefix("softmax_temperature.") for module in chosen for each in import_closure(module)}
    for stage in (f"train-{paper}", f"collect-{paper}"):
        assert needed <= set(modules(stage))


def test_a_stage_does_not_rest_on_what_it_does_not_run() -> None:
    assert "papers.focal.claims" not in modules("train-focal")
    assert "papers.cooling.claims" not in modules("collect-focal")
    assert "cooling.follower" not in modules("train-focal")
    assert not [name for name in modules("search") if name.startswith(("papers", "objectives.", "models"))]


def test_a_module_that_a_string_names_counts() -> None:
    assert {"cooling.follower", "cooling.method"} <= set(modules("train-cooling"))
    assert "cooling.pixel_follower" in modules("train-segmentation")
    assert {"translation.search", "objectives.focal"} <= set(modules("train-translation"))
    assert "translation.search" not in modules("train-focal")


def test_a_paper_is_collected_and_shown_by_its_own_code() -> None:
    assert "papers.cooling.collect" in modules("collect-cooling")
    assert "papers.cooling.training_figures" in modules("notebook-cooling")


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("from softmax_temperature.stages import search", {"softmax_temperature.stages.search"}),
        ("from softmax_temperature.params import read_params", {"softmax_temperature.params"}),
        ("def work():\n    from softmax_temperature.data import splits", {"softmax_temperature.data.splits"}),
        ("import torch\nfrom pathlib import Path", set()),
    ],
)
def test_imports_of_a_piece_of_code(code: str, found: set[str]) -> None:
    assert imported(code) == found


def test_a_stage_that_is_no_more_has_no_file(tmp_path: Path) -> None:
    first = written(ROOT, tmp_path)
    (tmp_path / "renamed").write_text("")
    assert written(ROOT, tmp_path) == first


def test_every_stage_has_a_file_and_the_same_code_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = written(ROOT, tmp_path / "first"), written(ROOT, tmp_path / "second")
    assert first == second
    assert list(first) == sorted(read_yaml(ROOT / "dvc.yaml")["stages"])
    line = next(line for line in first["search"].splitlines() if line.endswith("  softmax_temperature.stages.search"))
    assert len(line.split()[0]) == 64
    assert first["search"].splitlines()[-1].endswith("  pipeline/search.py")

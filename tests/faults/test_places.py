"""The project works wherever its checkout lies, and in a country that writes commas for decimal points."""

from __future__ import annotations

import locale
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from softmax_temperature.runner.artifacts import digest_of_file, find_artifacts, open_artifact
from softmax_temperature.tools.profiles import render_profile
from tests.faults import written_numbers
from tests.faults.copies import copy_project

GERMAN = "de_DE.UTF-8"


def environment(**more: str) -> dict[str, str]:
    """With the programs of this environment first, the package from where this process has it, and no locale."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LC_") and name != "LANG"}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**kept, "PATH": path, "PYTHONPATH": os.pathsep.join(sys.path), **more}


def digests(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): digest_of_file(path) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def german(tmp_path: Path) -> dict[str, str]:
    """What makes a program German: the machine's own locale, or one that is compiled for the test."""
    before = locale.setlocale(locale.LC_ALL)
    try:
        locale.setlocale(locale.LC_ALL, GERMAN)
    except locale.Error:
        pass
    else:
        return {"LC_ALL": GERMAN}
    finally:
        locale.setlocale(locale.LC_ALL, before)
    compiler, place = shutil.which("localedef"), tmp_path / "locales"
    place.mkdir()
    if (
        compiler is None
        or subprocess.run(
            [compiler, "-i", "de_DE", "-f", "UTF-8", str(place / GERMAN)], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip(f"needs the locale {GERMAN}, or localedef and its sources")
    return {"LC_ALL": GERMAN, "LOCPATH": str(place)}


def test_a_decimal_comma_and_another_time_zone_change_no_byte(
    tmp_path: Path, german: dict[str, str], project_root: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder in (here, there):
        folder.mkdir()
    written_numbers.write(here)
    program = [sys.executable, "-m", written_numbers.__name__, str(there)]
    variables = environment(**german, TZ="Pacific/Kiritimati")
    done = subprocess.run(program, cwd=project_root, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    expected = digests(here)
    assert len(expected) > 20
    assert digests(there) == expected


def test_no_code_asks_for_the_locale(project_root: Path) -> None:
    """On a machine without such a locale the test above cannot fail."""
    for path in [*(project_root / "src").rglob("*.py"), *(project_root / "pipeline").glob("*.py")]:
        text = path.read_text(encoding="utf-8")
        assert "import locale" not in text, path
        assert not [line for line in text.splitlines() if ":n}" in line], path


@pytest.fixture
def checkout(tmp_path: Path, project_root: Path) -> Path:
    """What Git has, in a folder with spaces and letters of several scripts, with small parameters."""
    place = copy_project(tmp_path / "mein größter Ordner" / "実験 №1 (it's)")
    content = render_profile("smoke", project_root / "profiles")[1].model_dump(mode="json")
    content["datasets"]["digits"] |= {"train_limit": 60, "test_limit": 30}
    with (place / "params.yaml").open("w", encoding="utf-8") as file:
        YAML(typ="safe").dump(content, file)
    return place


def test_stages_run_under_dvc_in_any_folder(checkout: Path) -> None:
    """Its own code, by its own `dvc.yaml`; the other stages run in such folders in tests/pipeline."""
    variables = environment(PYTHONPATH=str(checkout / "src"))

    def repro() -> str:
        command = [sys.executable, "-m", "dvc", "repro", "fetch"]
        done = subprocess.run(command, cwd=checkout, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "Running stage 'fetch'" in repro()
    made = find_artifacts(checkout / "data" / "prepared")
    assert [problem for folder in made for problem in open_artifact(folder, kind="fetch").problems()] == []
    assert checkout / "data" / "prepared" / "digits" in made
    assert (checkout / "dvc.lock").is_file()
    assert "Running stage" not in repro()

"""The commands as a user calls them: exit codes, one clear line, nothing written on bad input."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from softmax_temperature.artifacts import new_artifact, write_json


@pytest.fixture
def project(tmp_path: Path, project_root: Path) -> Path:
    """A checkout without data, in a folder with a space and an umlaut."""
    folder = tmp_path / "ein schöner Ordner"
    folder.mkdir()
    for name in ("profiles", "pipeline"):
        shutil.copytree(project_root / name, folder / name)
    shutil.copy(project_root / "params.yaml", folder)
    return folder


def call(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return call(folder, "-c", "from softmax_temperature.cli import main; main()", *words)


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.yaml")}


def test_profile_writes_params(project: Path) -> None:
    done = command(project, "profile", "smoke", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["profile"] == "smoke"
    assert "profile: smoke" in (project / "params.yaml").read_text()


def test_an_unknown_profile_is_one_line_and_writes_nothing(project: Path) -> None:
    before = files(project)
    done = command(project, "profile", "mimi")
    assert done.returncode == 2
    assert done.stderr == "error: profiles: unknown profile 'mimi'. Did you mean 'mini'?\n"
    assert files(project) == before


@pytest.mark.parametrize(
    ("program", "words", "says"),
    [
        ("fetch", ["--dataset", "digts"], "--dataset: unknown name 'digts'. Did you mean 'digits'?"),
        ("collect", ["--paper", "classifier"], "--paper: unknown name 'classifier'. Did you mean"),
        ("notebook", ["--paper", "focus"], "--paper: unknown name 'focus'"),
    ],
)
def test_an_unknown_name_exits_with_2_and_writes_nothing(
    project: Path, program: str, words: list[str], says: str
) -> None:
    done = call(project, f"pipeline/{program}.py", *words)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {says}")
    assert len(done.stderr.splitlines()) == 1
    assert not (project / "data").exists()


def test_a_wrong_parameter_stops_a_stage_before_any_work(project: Path) -> None:
    params = project / "params.yaml"
    params.write_text(params.read_text().replace("  epochs: 100 ", "  epoch: 100 "))
    done = call(project, "pipeline/search.py")
    assert done.returncode == 2
    assert "classifier_temperature.search.epoch: unknown parameter. Did you mean 'epochs'?" in done.stderr
    assert not (project / "data").exists()


def test_a_stage_whose_input_is_missing_says_what_to_do(project: Path) -> None:
    done = call(project, "pipeline/describe.py")
    assert done.returncode == 2
    assert "data/embeddings/digits/" in done.stderr
    assert "dvc repro" in done.stderr


def test_verify_names_what_is_damaged(project: Path) -> None:
    with new_artifact(project / "data" / "a", kind="numbers", about={}) as output:
        write_json(output / "one.json", 1)
    assert command(project, "verify").stdout == "1 artifacts, 0 problems\n"
    (project / "data" / "a" / "one.json").write_text("2")
    done = command(project, "verify", "--json")
    assert done.returncode == 1
    (problem,) = json.loads(done.stdout)["problems"]
    assert problem.startswith("data/a/one.json: missing or damaged")


def test_help_names_every_command_and_imports_no_torch(project: Path) -> None:
    code = "import sys; from softmax_temperature import cli; assert 'torch' not in sys.modules; cli.main()"
    done = call(project, "-c", code, "--help")
    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in ("profile", "verify", "scorecard"))

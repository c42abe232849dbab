"""The commands as a user calls them: exit codes, one clear line, nothing written on bad input."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from PIL import Image

from softmax_temperature.runner.artifacts import new_artifact, write_json
from softmax_temperature.tools import cli


@pytest.fixture
def project(tmp_path: Path, project_root: Path) -> Path:
    """A checkout without data, in a folder with a space and an umlaut."""
    folder = tmp_path / "ein schöner Ordner"
    folder.mkdir()
    for name in ("profiles", "pipeline"):
        shutil.copytree(project_root / name, folder / name)
    for name in ("params.yaml", "dvc.yaml"):
        shutil.copy(project_root / name, folder)
    return folder


def call(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return call(folder, "-c", "from softmax_temperature.tools.cli import main; main()", *words)


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
        ("fetch", ["--dataset", os.fsdecode(b"caf\xe9")], "'caf\\udce9': is no name in UTF-8. Rename the"),
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
    params.write_text(params.read_text().replace("  epochs: 80 ", "  epoch: 80 "))
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
    assert command(project, "verify").stdout == "1 artifacts, 0 results and 0 objects in DVC's cache: 0 problems\n"
    (project / "data" / "a" / "one.json").write_text("2")
    done = command(project, "verify", "--json")
    assert done.returncode == 1
    (problem,) = json.loads(done.stdout)["problems"]
    assert problem.startswith("data/a/one.json: damaged")


def test_verify_refuses_a_folder_without_a_project(tmp_path: Path) -> None:
    done = command(tmp_path, "verify")
    assert done.returncode == 2
    assert done.stderr == "error: dvc.yaml: no such file. Run this in the project's root folder.\n"


COMMANDS: Mapping[str, Any] = typer.main.get_command(cli.app).commands  # type: ignore[attr-defined]


def test_help_names_every_command_and_says_what_exit_codes_mean(project: Path) -> None:
    done = command(project, "--help")
    assert done.returncode == 0, done.stderr
    assert {"profile", "plan", "verify", "scorecard", "calibrate", "embed", "suggest", "fit-heuristic"} == set(COMMANDS)
    assert all(f"  {name} " in done.stdout for name in COMMANDS)
    assert "Exit codes: 0 done" in done.stdout


def test_no_help_waits_for_torch(project: Path) -> None:
    code = (
        "import sys; from softmax_temperature.tools import cli\n"
        f"for name in {sorted(COMMANDS)}: cli.app([name, '--help'], standalone_mode=False)\n"
        "assert not {'torch', 'numpy', 'pandas', 'pyarrow', 'matplotlib'} & set(sys.modules)"
    )
    done = call(project, "-c", code)
    assert done.returncode == 0, done.stderr
    assert all(f"Usage: -c {name} " in done.stdout for name in COMMANDS)
    assert done.stdout.count("Exit codes: 0 done") == len(COMMANDS)
    assert done.stdout.count("--json") >= len(COMMANDS)


@pytest.fixture
def ready(project: Path, project_root: Path) -> Path:
    """The same with what the examples of the help speak of."""
    for name in ("results", "dvc.lock"):
        (project / name).symlink_to(project_root / name)
    shutil.copy(project_root / "README.md", project)
    generator = np.random.default_rng(0)
    labels = np.arange(120) % 3
    logits = generator.normal(size=(120, 3)) + 2 * np.eye(3)[labels]
    np.savez(project / "logits.npz", logits=logits, labels=labels)
    np.savez(project / "embeddings.npz", embeddings=logits, labels=labels)
    for name, grey in (("dark", 40), ("bright", 200)):
        (project / "images" / name).mkdir(parents=True)
        for number in range(8):
            Image.new("L", (16, 16), grey + number).save(project / "images" / name / f"{number}.png")
    return project


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_of_the_help_runs(
    ready: Path, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    help_text = " ".join(str(COMMANDS[name].help).split())
    example = help_text.partition("Example: softmax-temperature ")[2].split()
    assert example[0] == name
    monkeypatch.chdir(ready)
    monkeypatch.setattr(sys, "argv", ["softmax-temperature", *example])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code, capsys.readouterr()


def test_scorecard_as_json_holds_every_claim(
    ready: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ready)
    monkeypatch.setattr(sys, "argv", ["softmax-temperature", "scorecard", "--json"])
    with pytest.raises(SystemExit):
        cli.main()
    found = json.loads(capsys.readouterr().out)
    for profile, papers in found.items():
        for paper, claims in papers.items():
            path = ready / "results" / profile / paper / "claims.json"
            assert claims == json.loads(path.read_text())

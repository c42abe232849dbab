"""Every command prints its text, whatever the encoding of standard output."""

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from softmax_temperature.runner.console import CLOSED, print_any_text
from softmax_temperature.tools import cli
from tests.conftest import ROOT

COMMANDS = (
    "profile smoke",
    "plan",
    "plan --json",
    "verify",
    "scorecard",
    "calibrate --sample --bootstrap 20 --html page.html",
    "suggest embeddings.npz --verify --epochs 1",
    "--help",
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("dvc.yaml", "profiles", "results"):
        (tmp_path / name).symlink_to(ROOT / name)
    labels = np.arange(200) % 4
    embeddings = np.eye(4)[labels] + np.random.default_rng(0).normal(size=(200, 4))
    np.savez(tmp_path / "embeddings.npz", embeddings=embeddings, labels=labels)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "encoding",
    # Latin-1 lacks some characters of cp1252 and has all of ASCII.
    ["cp1252", pytest.param("latin-1", marks=pytest.mark.slow), "ascii"],
)
@pytest.mark.usefixtures("project")
def test_every_command_prints_in_any_encoding(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = {}
    for command in COMMANDS:
        stdout = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr(sys, "stdout", stdout)
        monkeypatch.setattr(sys, "argv", ["softmax-temperature", *command.split()])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        stdout.flush()
        text = stdout.buffer.getvalue().decode(encoding)
        assert (ended.value.code or 0, bool(text)) == (0, True), command
        printed[command.split()[0]] = text
    assert " -> " in printed["calibrate"].splitlines()[0]
    assert " +/- " in printed["suggest"]
    assert ("±" if encoding != "ascii" else "+/-") in printed["scorecard"]


def test_the_error_of_a_command_is_printed_too(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stderr = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(sys, "argv", ["softmax-temperature", "calibrate", "λ→.npz"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    stderr.flush()
    assert b"error: \\u03bb->.npz" in stderr.buffer.getvalue()
    assert not (project / "λ→-calibration").exists()


def test_a_console_of_windows_shows_the_scorecard(project: Path) -> None:
    code = "from softmax_temperature.tools.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "scorecard"],
        cwd=project,
        env={**os.environ, "PYTHONIOENCODING": "cp1252"},
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode("cp1252").startswith("Classifier temperature: ")


def test_streams_that_take_all_text_are_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stdout = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stdout)
    print_any_text()
    sys.stdout.write("→")
    assert stdout.getvalue() == "→"


MAIN = "from softmax_temperature.tools.cli import main; main()"


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", ["--version", "--help"])
def test_a_full_standard_output_is_one_line(
    arguments: str, unbuffered: str, project: Path
) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", MAIN, arguments],
            cwd=project,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: standard output: cannot be written (No space left")


def printed_to_full_output(
    *arguments: str,
    write_through: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> str:
    """Run a command in this process, and return what it says of its full output."""
    monkeypatch.setattr(sys, "argv", ["softmax-temperature", *arguments])
    # Without a buffer, the write fails; with one, its flush does.
    buffering = 0 if write_through else -1
    with (
        Path("/dev/full").open("wb", buffering) as device,
        io.TextIOWrapper(device, write_through=write_through) as full,
        monkeypatch.context() as patch,
    ):
        patch.setattr(sys, "stdout", full)
        with pytest.raises(SystemExit) as ended:
            cli.main()
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("write_through", [False, True])
def test_a_table_for_a_full_standard_output_is_one_line(
    write_through: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = printed_to_full_output(
        "scorecard",
        write_through=write_through,
        monkeypatch=monkeypatch,
        capsys=capsys,
    )
    (line,) = said.splitlines()
    assert line.startswith("error: standard output: cannot be written (No space left")


def test_files_are_written_before_standard_output_is(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["calibrate", "--sample", "--bootstrap", "0", "--output", "written"]
    said = printed_to_full_output(
        *command, write_through=False, monkeypatch=monkeypatch, capsys=capsys
    )
    assert said.endswith("Written files are complete.\n")
    names = {path.name for path in (project / "written").iterdir()}
    assert names == {"report.json", "reliability.png", "reliability.svg"}


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_closed_pipe_ends_a_command_without_a_word(
    unbuffered: str, project: Path
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "scorecard"],
        cwd=project,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (CLOSED, b"")


def test_the_exit_code_is_the_same_if_standard_error_is_full(project: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", MAIN, "unknown"],
            cwd=project,
            stderr=full,
            check=False,
        )
    assert done.returncode == 2

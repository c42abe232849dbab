"""Programs end with the right exit code and print one line for the user."""

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from softmax_temperature.runner.errors import CellsFailed, InputError
from softmax_temperature.runner.fingerprint import PACKAGE
from softmax_temperature.tools.programs import exit_code, stage_program
from tests.conftest import ROOT


def refuse() -> None:
    raise InputError("is empty", where="a.csv", remedy="Fill it.")


def fail() -> None:
    raise CellsFailed("training", {"a": "no memory"}, 2)


def fill_the_disk() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "a.csv")


@pytest.mark.parametrize(
    ("work", "code", "said"),
    [
        (lambda: None, 0, ""),
        (refuse, 2, "error: a.csv: is empty. Fill it.\n"),
        (
            fail,
            1,
            (
                "error: training: 1 of 2 cells failed; finished cells are kept "
                "and will not run again.\n"
            ),
        ),
        (
            fill_the_disk,
            2,
            (
                "error: a.csv: cannot be read or written (No space left on device). "
                "Free space"
            ),
        ),
        (lambda: signal.raise_signal(signal.SIGINT), 130, "stopped by SIGINT"),
        (lambda: signal.raise_signal(signal.SIGTERM), 143, "stopped by SIGTERM"),
    ],
)
def test_exit_codes(
    work: Callable[[], None], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    assert exit_code(work) == code
    printed = capsys.readouterr()
    assert printed.err.startswith(said)
    assert printed.out == ""
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_second_sigterm_does_not_interrupt_the_cleaning_up() -> None:
    cleaned = []

    def work() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGTERM)
            cleaned.append(True)

    assert exit_code(work) == 143
    assert cleaned


def test_a_program_runs_its_stages_in_order_or_one_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[str] = []
    monkeypatch.setattr(
        "softmax_temperature.runner.cells.run_cells",
        lambda _, *, output, **__: ran.append(output.name),
    )
    monkeypatch.chdir(ROOT)
    assert stage_program("train_cooling", None, []) == 0
    assert stage_program("train_cooling", None, ["--only", "train_segmentation"]) == 0
    assert ran == ["training", "segmentation", "segmentation"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "train_segmentatio"], "error: --only: unknown name"),
        (["--onl", "train_segmentation"], "No such option: --onl"),
        (["--params", "nowhere.yaml"], "error: nowhere.yaml: "),
    ],
)
def test_wrong_options_end_with_2_and_name_the_option(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stage_program("train_cooling", None, arguments) == 2
    assert said in capsys.readouterr().err


def test_help_lists_the_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert stage_program("fetch", "Prepare the data sets.", ["--help"]) == 0
    said = capsys.readouterr().out
    assert "Prepare the data sets." in said
    assert "--params" in said
    assert "--only" in said


def test_programs_run_their_own_checkouts_package(tmp_path: Path) -> None:
    # Another checkout's package is installed, and its folder also comes first in
    # PYTHONPATH.
    tools = tmp_path / "src" / "softmax_temperature" / "tools"
    tools.mkdir(parents=True)
    (tools.parent / "__init__.py").touch()
    (tools / "__init__.py").touch()
    (tools / "programs.py").write_text(
        "import os, subprocess, sys\n"
        "print(__file__, flush=True)\n"
        "code = 'import softmax_temperature; print(softmax_temperature.__file__)'\n"
        "subprocess.run([sys.executable, '-c', code], cwd='/', check=True)\n"
        "def stage_program(*_): return 0\n"
    )
    shutil.copytree(ROOT / "pipeline", tmp_path / "pipeline")
    done = subprocess.run(
        [sys.executable, "pipeline/fetch.py"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        str(tools / "programs.py"),
        str(tools.parent / "__init__.py"),
    ]


def test_every_program_puts_the_package_beside_it_first() -> None:
    for path in sorted((ROOT / "pipeline").glob("*.py")):
        imports = re.findall(
            r"^(?:import|from) ([a-z_]+)", path.read_text(), re.MULTILINE
        )
        if path.name != "own_source.py":
            assert imports.index("own_source") < imports.index(PACKAGE), path.name

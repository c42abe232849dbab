"""Overhead of a stage: start-up of a program, and `dvc repro` without changes.

Whole processes run in this checkout, as a user would start them. Each result is a
median, because the first start after a pause also reads the libraries from the disk.
"""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from softmax_temperature.runner.errors import InputError

ROOT = Path(__file__).resolve().parent.parent
HELP = (sys.executable, "pipeline/search.py", "--help")
REPRO = (sys.executable, "-m", "dvc", "repro")
PLAN = (
    sys.executable,
    "-c",
    "from softmax_temperature.tools.cli import main; main()",
    "plan",
)
STATUS = (sys.executable, "-m", "dvc", "status", "--quiet")


def measure(*, quick: bool = False) -> dict[str, Any]:
    """Time `--help` of a stage program, an unchanged `dvc repro`, and `plan`.

    Args:
        quick: Run each command once instead of taking the median of several runs.

    Returns:
        name, help_seconds (imports and argument parsing of a stage program),
        repro_seconds and plan_seconds.

    Raises:
        InputError: If the pipeline is not up to date, so that `dvc repro` would run a
            stage.
    """
    if run(STATUS).returncode != 0:
        raise InputError(
            "the pipeline is not up to date",
            where="dvc status",
            remedy="Run `make repro` first.",
        )
    return {
        "name": "stage overhead",
        "help_seconds": median_seconds(HELP, repeats=1 if quick else 7),
        "repro_seconds": median_seconds(REPRO, repeats=1 if quick else 3),
        "plan_seconds": median_seconds(PLAN, repeats=1 if quick else 3),
    }


def median_seconds(command: tuple[str, ...], *, repeats: int) -> float:
    """The median wall-clock seconds of a program, from its start to its end.

    Raises:
        RuntimeError: If the program failed, or ran a stage.
    """
    durations = []
    for _ in range(repeats):
        start = time.perf_counter()
        process = run(command)
        durations.append(time.perf_counter() - start)
        if process.returncode != 0 or "Running stage" in process.stdout:
            raise RuntimeError(
                f"{' '.join(command)}: exit code {process.returncode}\n"
                f"{process.stdout}{process.stderr}"
            )
    return statistics.median(durations)


def run(command: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """Run a program in the project's root, with this Python first on PATH.

    A stage's command `python` then starts this interpreter.
    """
    folder = Path(sys.executable).parent
    search_path = os.environ.get("PATH", os.defpath)
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{search_path}"}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )

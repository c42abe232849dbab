"""A killed and restarted stage writes the same bytes as an uninterrupted stage."""

import os
import signal
import subprocess
import sys
import time
from multiprocessing import get_context
from pathlib import Path

import pytest

from softmax_temperature.runner import progress
from softmax_temperature.runner.artifacts import (
    UNFINISHED,
    find_artifacts,
    open_artifact,
)
from tests.conftest import ROOT
from tests.faults import work
from tests.pipeline.whole_runs import finish
from tests.runner import toy

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
SECONDS = 120


def started(*words: str, folder: Path, step: int) -> subprocess.Popen[str]:
    """Start a program, and return its process once a cell has reported step `step`."""
    command = [sys.executable, "-m", *words]
    process = subprocess.Popen(
        command, cwd=folder, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    assert any(f": {step}/" in line for line in process.stderr), "ended too early"
    return process


def stage_in_a_copy_of_this_process(folder: Path, stage: str, stderr: int) -> None:
    """Run a stage, whose progress goes to the file descriptor `stderr`."""
    os.chdir(folder)
    sys.stderr = os.fdopen(stderr, "w", buffering=1)
    progress.SECONDS_BETWEEN_LINES = 0.0
    work.run_stage(stage)


def kill_at(step: int, *, stage: str, folder: Path) -> None:
    """Kill a process that runs a stage once a cell has reported step `step`.

    The process is forked from this one, which has already imported torch.
    """
    reader, writer = os.pipe()
    process = get_context("fork").Process(
        target=stage_in_a_copy_of_this_process, args=(folder, stage, writer)
    )
    process.start()
    os.close(writer)
    with os.fdopen(reader) as lines:
        assert any(f": {step}/" in line for line in lines), "ended too early"
        process.kill()
    process.join(SECONDS)
    assert process.exitcode == -signal.SIGKILL


def expect_whole(folder: Path) -> None:
    assert not [
        line
        for place in find_artifacts(folder / "data")
        for line in open_artifact(place).problems()
    ]
    assert not list(folder.rglob(f"*{UNFINISHED}"))


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGKILL, -signal.SIGKILL),
        (signal.SIGTERM, 143),
        # SIGINT ends a stage in the same way; `test_exit_codes` tests its exit code.
        pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow),
    ],
)
def test_a_stopped_stage_continues_at_its_checkpoints(
    number: signal.Signals, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = tmp_path / "stopped"
    stopped.mkdir()
    (stopped / "slow").touch()
    with started(
        "tests.runner.toy", "processes", "1", "2", folder=stopped, step=5
    ) as stage:
        stage.send_signal(number)
        assert stage.wait(SECONDS) == code
    monkeypatch.chdir(stopped)
    before = toy.steps()
    time.sleep(1)
    assert toy.steps() == before, "workers still run after the kill"
    (stopped / "slow").unlink()
    toy.run(1, 2)
    ran = toy.steps()
    # A checkpoint is written before its step is logged, so each kill can lose the log
    # entry of at most one step. No step runs twice.
    assert len(set(ran)) == len(ran) >= 2 * (toy.STEPS - 1)
    expected = tmp_path / "expected"
    expected.mkdir()
    monkeypatch.chdir(expected)
    toy.run(1, 2)
    assert toy.results(stopped / toy.OUTPUT) == toy.results()
    expect_whole(stopped)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project folder with the prepared data sets."""
    folder = tmp_path_factory.mktemp("prepared")
    return finish(folder, lambda: work.run_stage("fetch"))


@pytest.mark.parametrize(
    ("stage", "step"),
    [pytest.param("search", 20, marks=pytest.mark.slow), ("training", 3)],
)
def test_a_killed_search_or_training_ends_with_the_same_bytes(
    stage: str, step: int, prepared: Path, tmp_path: Path
) -> None:
    killed, expected = tmp_path / "killed", tmp_path / "expected"
    if stage == "search":
        finish(prepared, lambda: work.run_stage("embed"))
    for folder in (killed, expected):
        (folder / "data").mkdir(parents=True)
        for name in ("prepared", "embeddings"):
            (folder / "data" / name).symlink_to(prepared / "data" / name)
    output = work.STAGES[stage].output
    kill_at(step, stage=stage, folder=killed)
    assert list(killed.rglob("checkpoint.pt"))
    assert not (killed / output).exists()
    for folder in (killed, expected):
        expect_whole(finish(folder, lambda: work.run_stage(stage)))
    assert toy.results(killed / output) == toy.results(expected / output)

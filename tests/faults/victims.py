"""Programs that are started to be ended, and what is left of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from softmax_temperature.runner.artifacts import find_artifacts, open_artifact
from softmax_temperature.runner.cells import CHECKPOINT
from softmax_temperature.runner.checkpoints import load_checkpoint
from tests.faults.steps import HOLD_AT, STEPS
from tests.faults.work import CELLS, STEPS_OF_A_CELL

WORK = Path(__file__).with_name("work.py")
IN_VICTIMS = Path(__file__).with_name("in_victims")
MARK = "SOFTMAX_TEMPERATURE_FAULT_TEST"
ROOT = Path(__file__).parents[2]
WITHOUT_CHECKPOINTS = ("prepared", "embeddings")
"""Stages whose cells begin anew: they have no epochs."""


class Victim:
    """A program whose processes can be found by a mark in their environment, whoever their parent is by then.

    Args:
        command: what to start.
        folder: where; its output goes to a file there.
        variables: of its environment, besides those of this process.
    """

    def __init__(self, command: list[str], folder: Path, **variables: str) -> None:
        self.mark, self.log = uuid.uuid4().hex, folder / f"log-{time.monotonic_ns()}.txt"
        path = os.pathsep.join([str(IN_VICTIMS), str(ROOT), *sys.path])
        environment = {**os.environ, "PYTHONPATH": path, MARK: self.mark, "PYTHONUNBUFFERED": "1", **variables}
        self.began = time.time_ns()
        with self.log.open("wb") as log:
            # A group of its own, for the signals that go to a whole group.
            self.process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=log, stderr=log, process_group=0
            )

    @property
    def output(self) -> str:
        return self.log.read_text()

    def wait(self) -> int:
        """Its exit code, when it has ended by itself."""
        code = self.process.wait(timeout=280)
        self.expect_gone()
        return code

    def kill(self) -> bool:
        """SIGKILL to the program alone; the processes that it started have to notice. Whether it was still alive."""
        self.process.kill()
        code = self.process.wait()
        self.expect_gone()
        return code == -signal.SIGKILL

    def expect_gone(self, seconds: float = 60.0) -> None:
        """Fail if any of its processes is there after a while."""
        deadline = time.monotonic() + seconds
        while left := self._processes():
            if time.monotonic() > deadline:
                pytest.fail(f"orphans: {left}\n{self.output}")
            time.sleep(0.1)

    def wait_for_output(self, *texts: str) -> bool:
        """Until it has printed one of the texts; false if it ended before."""
        while not any(text in self.output for text in texts):
            if self.process.poll() is not None:
                return any(text in self.output for text in texts)
            time.sleep(0.01)
        return True

    def wait_for_progress(self, folder: Path, done: int, stage: str = "") -> None:
        """Until one of its cells, or of the stage with this output below data/, has come so far: epochs, or images.

        What an earlier run left does not count.
        """
        self.wait_until(lambda: max(progress(folder, stage, since=self.began).values(), default=0) >= done)

    def wait_until(self, reached: Callable[[], bool]) -> None:
        """Until something is reached, or the program has ended."""
        while self.process.poll() is None and not reached():
            time.sleep(0.005)

    def _processes(self) -> list[str]:
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK) == self.mark and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(f"{process.pid} {process.cmdline()}")
            except psutil.Error:
                continue  # It ended meanwhile, or is somebody else's.
        return found


def start(
    folder: Path, stage: str, *, engine: str = "serial", checkpoint_seconds: float = 0, hold_at: int = 0
) -> Victim:
    """Start a stage of `work.py`, whose cells wait for their end at a step, if one is given."""
    command = [sys.executable, str(WORK), stage, engine, str(checkpoint_seconds)]
    return Victim(command, folder, **{HOLD_AT: f"{hold_at}/{STEPS_OF_A_CELL[stage]}"})


def progress(folder: Path, stage: str = "", *, since: int = 0) -> dict[Path, int]:
    """How far each cell says that it has come, by its work folder.

    Args:
        folder: the project.
        stage: its output below data/, to ask for its cells alone.
        since: what was said before is left out; nanoseconds of the clock.
    """
    found = {}
    # Folders come and go meanwhile, which os.walk passes over and rglob does not.
    for place, _, names in os.walk(folder / "data/work" / stage):
        if "progress" in names and (path := Path(place, "progress")).stat().st_mtime_ns >= since:
            text = path.read_text()
            if "/" in text:  # Not while it is written.
                found[Path(place)] = int(text.split("/")[0])
    return found


def checkpoints(folder: Path) -> dict[Path, int]:
    """The epochs that each checkpoint has behind it, by the cell's work folder; fails if one cannot be read."""
    found = {}
    for path in (folder / "data/work").rglob(CHECKPOINT):
        state = load_checkpoint(path)
        assert state is not None, "a checkpoint is whole or absent"
        trainer = state["trainer"]
        found[path.parent] = trainer["completed_epochs" if "completed_epochs" in trainer else "epochs_done"]
    return found


def expect_little_lost(folder: Path) -> None:
    """Fail if what looks like an artifact or a checkpoint is none, or if a finished epoch is in no checkpoint."""
    problems = [line for place in find_artifacts(folder / "data") for line in open_artifact(place).problems()]
    assert not problems
    saved = checkpoints(folder)
    for place, done in progress(folder).items():
        stage = place.relative_to(folder / "data/work").parts[0]
        assert (place / "result").exists() or stage in WITHOUT_CHECKPOINTS or saved.get(place, 0) >= done, place


def expect_no_step_twice(folder: Path) -> None:
    """Fail if a cell of `work.py` that has checkpoints began anew, or before its last one, in any of its runs."""
    paths = list((folder / "data/work").rglob(STEPS))
    assert len(paths) == CELLS, "each cell's steps were noted"
    for path in paths:
        steps = [int(line) for line in path.read_text().split()]
        stage = path.relative_to(folder / "data/work").parts[0]
        assert stage in WITHOUT_CHECKPOINTS or steps == sorted(set(steps)), path


def results(folder: Path) -> dict[str, bytes]:
    """Every file of every result that was published, by its place."""
    published = [path for path in (folder / "data").rglob("*") if path.is_file()]
    work = folder / "data/work"
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in published if not path.is_relative_to(work)
    }

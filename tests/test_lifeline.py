"""A process ends with its parent, in whatever way the parent ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

CHILD = """
import os, signal, sys, time
from pathlib import Path
from softmax_temperature.lifeline import end_with_parent, watch_parent

def leave(*_):
    Path("left").touch()
    sys.exit()

signal.signal(signal.SIGTERM, leave)
{call}
Path("child").write_text(str(os.getpid()))
time.sleep(60)
"""
PARENT = """
import subprocess, sys
subprocess.run([sys.executable, "-c", sys.argv[1]], start_new_session=len(sys.argv) > 2)
"""


def start(folder: Path, call: str, *options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", PARENT, CHILD.format(call=call), *options]
    return subprocess.Popen(command, cwd=folder, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path.name} did not appear"
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("call", "in_order"),
    [
        ("end_with_parent(signal.SIGTERM)", True),
        ("end_with_parent(signal.SIGKILL)", False),
        ("end_with_parent(signal.SIGKILL, parent=os.getppid())", False),
        # What systems other than Linux do.
        ("watch_parent(signal.SIGTERM, os.getppid())", True),
        ("watch_parent(signal.SIGKILL, os.getppid())", False),
    ],
)
def test_a_child_ends_with_its_killed_parent(tmp_path: Path, call: str, in_order: bool) -> None:
    parent = start(tmp_path, call)
    wait_for(tmp_path / "child")
    (child,) = psutil.Process(parent.pid).children()
    time.sleep(0.1)
    assert child.is_running()
    parent.kill()
    parent.wait()
    psutil.wait_procs([child], timeout=30)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
    assert (tmp_path / "left").exists() == in_order


@pytest.mark.parametrize(
    ("call", "options"),
    [
        ("end_with_parent(signal.SIGTERM)", ["in another session"]),
        ("end_with_parent(signal.SIGTERM, parent=1)", []),
    ],
)
def test_a_child_that_was_adopted_before_it_asked_ends_at_once(tmp_path: Path, call: str, options: list[str]) -> None:
    """The child starts slowly: the process that started it may be gone by then, and another be its parent."""
    parent = start(tmp_path, call, *options)
    assert parent.wait() == 0
    assert (tmp_path / "left").exists()
    assert not (tmp_path / "child").exists()


def test_nothing_happens_while_the_parent_lives(tmp_path: Path) -> None:
    parent = start(tmp_path, "end_with_parent(signal.SIGTERM)")
    wait_for(tmp_path / "child")
    time.sleep(0.7)
    (child,) = psutil.Process(parent.pid).children()
    assert child.is_running()
    child.send_signal(signal.SIGTERM)
    assert parent.wait() == 0

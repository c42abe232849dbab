"""A process ends with its parent, in whatever way the parent ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from softmax_temperature.runner import lifeline

CHILD = """
import os, signal, sys, time
from pathlib import Path
import psutil
from softmax_temperature.runner.lifeline import end_with_parent, end_with_starter, watch_parent

def leave(*_):
    Path("left").touch()
    sys.exit()

signal.signal(signal.SIGTERM, leave)
{call}
Path("child").write_text(str(os.getpid()))
time.sleep(60)
"""
PARENT = """
import os, subprocess, sys
command = [*eval(sys.argv[2]), sys.executable, "-c", sys.argv[1]]
subprocess.run(command, env={**os.environ, "MARK": ""}, start_new_session=len(sys.argv) > 3)
"""
DIRECTLY: list[str] = []
THROUGH_A_SHELL = ["/bin/sh", "-c", '"$@"; exit $?', "sh"]
"""One that stays between the two, as Debian's does for any command."""
THROUGH_TWO = [*THROUGH_A_SHELL, *THROUGH_A_SHELL]
THROUGH_A_SESSION = [*THROUGH_A_SHELL, "setsid", "--wait"]
"""As with torchrun, whose processes have sessions of their own."""
END_WITH_STARTER = "end_with_starter(signal.SIGTERM, mark='MARK')"


def start(folder: Path, call: str, through: list[str], *options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", PARENT, CHILD.format(call=call), repr(through), *options]
    return subprocess.Popen(command, cwd=folder, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"{path.name} did not appear"
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("call", "through", "in_order"),
    [
        (END_WITH_STARTER, DIRECTLY, True),
        (END_WITH_STARTER, THROUGH_A_SHELL, True),
        (END_WITH_STARTER, THROUGH_TWO, True),
        (END_WITH_STARTER, THROUGH_A_SESSION, True),
        ("end_with_parent(signal.SIGKILL, parent=os.getppid())", DIRECTLY, False),
        # What systems other than Linux do.
        ("watch_parent(signal.SIGTERM, psutil.Process(), os.getppid())", DIRECTLY, True),
        ("watch_parent(signal.SIGKILL, psutil.Process(), os.getppid())", DIRECTLY, False),
    ],
)
def test_a_child_ends_with_its_killed_parent(tmp_path: Path, call: str, through: list[str], in_order: bool) -> None:
    parent = start(tmp_path, call, through)
    wait_for(tmp_path / "child")
    family = psutil.Process(parent.pid).children(recursive=True)
    assert len(family) >= 1 + through.count("/bin/sh")
    time.sleep(0.1)
    assert all(one.is_running() for one in family)
    parent.kill()
    parent.wait()
    psutil.wait_procs(family, timeout=30)
    assert all(not one.is_running() or one.status() == psutil.STATUS_ZOMBIE for one in family)
    assert (tmp_path / "left").exists() == in_order


@pytest.mark.parametrize("through", [DIRECTLY, THROUGH_A_SHELL])
def test_a_child_ends_with_the_shell_that_runs_it(tmp_path: Path, through: list[str]) -> None:
    parent = start(tmp_path, END_WITH_STARTER, [*THROUGH_A_SHELL, *through])
    wait_for(tmp_path / "child")
    (outermost,) = psutil.Process(parent.pid).children()
    family = outermost.children(recursive=True)
    outermost.kill()
    psutil.wait_procs(family, timeout=30)
    assert all(not one.is_running() or one.status() == psutil.STATUS_ZOMBIE for one in family)
    assert (tmp_path / "left").exists()
    assert parent.wait() == 0


@pytest.mark.parametrize(
    ("call", "options"),
    [
        (END_WITH_STARTER, ["in another session"]),
        ("end_with_parent(signal.SIGTERM, parent=1)", []),
    ],
)
def test_a_child_that_was_adopted_before_it_asked_ends_at_once(tmp_path: Path, call: str, options: list[str]) -> None:
    """The child starts slowly: the process that started it may be gone by then, and another be its parent."""
    parent = start(tmp_path, call, DIRECTLY, *options)
    assert parent.wait() == 0
    assert (tmp_path / "left").exists()
    assert not (tmp_path / "child").exists()


@pytest.mark.parametrize(("group_of_the_first", "does"), [(7, "ends with 1"), (1, "ends at once")])
def test_the_first_process_of_a_container_is_the_starter_only_in_one_group(
    monkeypatch: pytest.MonkeyPatch, group_of_the_first: int, does: str
) -> None:
    """An interactive shell that is the first process adopts what a killed `dvc` leaves, in its own session."""
    done = []
    first = SimpleNamespace(pid=1)
    monkeypatch.setattr(lifeline, "_ancestors", lambda: [psutil.Process(), first])
    monkeypatch.setattr(lifeline, "_variables", lambda process: {} if process is first else {"MARK": ""})
    monkeypatch.setattr(lifeline, "_session", lambda _: 1)
    monkeypatch.setattr(lifeline, "_group", lambda process: group_of_the_first if process == 1 else 7)
    monkeypatch.setattr(lifeline, "end_with_parent", lambda *_, parent: done.append(f"ends with {parent}"))
    monkeypatch.setattr(lifeline.signal, "raise_signal", lambda _: done.append("ends at once"))
    lifeline.end_with_starter(signal.SIGTERM, mark="MARK")
    assert done == [does]


@pytest.mark.parametrize("through", [DIRECTLY, THROUGH_A_SHELL, THROUGH_A_SESSION])
def test_nothing_happens_while_the_parent_lives(tmp_path: Path, through: list[str]) -> None:
    parent = start(tmp_path, END_WITH_STARTER, through)
    wait_for(tmp_path / "child")
    time.sleep(0.7)
    child = psutil.Process(parent.pid).children(recursive=True)[-1]
    assert child.is_running()
    child.send_signal(signal.SIGTERM)
    assert parent.wait() == 0

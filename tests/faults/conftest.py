"""What tests of faults need: signals that are heard, and a Ray cluster of three nodes on this machine."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.faults.victims import ROOT

NODES = Path(__file__).with_name("ray_nodes.py")
# A file system of its own, with an empty folder in the place of the first argument; then the others are run.
HIDE = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"')


@pytest.fixture(autouse=True)
def _interrupts_are_heard() -> Iterator[None]:
    """A shell has what it starts in the background ignore SIGINT, and children inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class RayNodes:
    """A program that holds nodes; see there."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process, self.said = process, ""

    def say(self, line: str = "") -> str:
        """What it answers to a line; to none, what it says when it is ready."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if line:
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
        return self._process.stdout.readline().strip()


@contextmanager
def ray_nodes(*arguments: str, before: tuple[Any, ...] = ()) -> Iterator[RayNodes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    command = [*before, sys.executable, str(NODES), *arguments]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=environment, cwd="/", text=True, **pipes) as process:
        nodes = RayNodes(process)
        nodes.said = nodes.say()
        assert nodes.said, "the nodes did not start"
        yield nodes


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[RayNodes]:
    """A head that runs no cells, and two nodes for one cell each; what it said is the head's address."""
    if not find_spec("ray"):
        pytest.skip("needs the extra `ray`")
    with ray_nodes() as cluster:
        yield cluster


@pytest.fixture
def nodes_without_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[RayNodes]:
    """A cluster like that, whose nodes take a thousandth of the memory for all of it, and so kill every task."""
    if not find_spec("ray"):
        pytest.skip("needs the extra `ray`")
    monkeypatch.setenv("RAY_memory_usage_threshold", "0.001")
    with ray_nodes() as cluster:
        yield cluster


@pytest.fixture
def blind_node(ray_cluster: RayNodes, tmp_path: Path) -> Iterator[Callable[[Path], None]]:
    """Starts the only node with a GPU; it does not see a folder, as if it were on another machine."""
    if not shutil.which(HIDE[0]) or subprocess.run([*HIDE, tmp_path, "true"], check=False).returncode:
        pytest.skip("needs unshare and user namespaces, to hide a folder from a node")
    with ExitStack() as stack:

        def start(folder: Path) -> None:
            stack.enter_context(ray_nodes(ray_cluster.said, before=(*HIDE, folder)))

        yield start

"""A cluster that is not there is refused at once, with one line."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from softmax_temperature.runner.ray_cluster import MEMORY_RETRIES, _connect, _ray, _refuse_what_no_node_has, answers

from softmax_temperature.params import Compute
from softmax_temperature.runner.errors import InputError

ROOT = Path(__file__).parents[2]
COMPUTE: dict[str, Any] = {
    "engine": "ray",
    "workers": 1,
    "threads_per_cell": 2,
    "device": "cpu",
    "checkpoint_seconds": 0,
    "ray_address": None,
    "gpus_per_cell": 0.5,
}
SETTINGS_FRAME = bytes((0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 5, 0, 0, 64, 0))


@contextmanager
def server(reply: bytes | None) -> Iterator[str]:
    """The address of something that accepts one connection, and says this once it was spoken to, or nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(1000)
                if reply is not None:
                    connection.sendall(reply)
                connection.recv(1000)  # Until the other side has had enough.

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        thread.join(10)


def test_ray_is_told_before_it_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_task_oom_retries": str(MEMORY_RETRIES)}
    for name in expected:
        monkeypatch.setenv(name, "")  # So that it is put back afterwards.
        monkeypatch.delenv(name)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match="Ray is not installed"):
        _ray()
    assert {name: os.environ[name] for name in expected} == expected


@pytest.mark.parametrize(("reply", "does"), [(SETTINGS_FRAME, True), (b"HTTP/1.1 400 Bad Request\r\n\r\n", False)])
def test_only_the_protocol_of_a_head_is_an_answer(reply: bytes, does: bool) -> None:
    with server(reply) as address:
        assert answers(address, seconds=5.0) is does


def test_silence_is_no_answer_and_does_not_last() -> None:
    with server(None) as address:
        start = time.monotonic()
        assert not answers(address, seconds=0.3)
        assert time.monotonic() - start < 60


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nonsense", "host:port", "127.0.0.1:99999"])
def test_what_cannot_be_reached_gives_no_answer(address: str) -> None:
    assert not answers(address, seconds=1.0)


def node(**resources: float) -> dict[str, Any]:
    return {"Alive": True, "Resources": resources}


def test_what_no_node_has_is_refused() -> None:
    compute = Compute.model_validate(COMPUTE)
    _refuse_what_no_node_has([node(CPU=1), node(CPU=2, GPU=1)], compute)
    # Not of one node together, and not of a dead one.
    for nodes in ([node(CPU=8), node(GPU=1)], [node(CPU=2, GPU=1) | {"Alive": False}], []):
        with pytest.raises(InputError, match=r"no node of the Ray cluster has 2 CPUs and 0\.5 GPUs"):
            _refuse_what_no_node_has(nodes, compute)
    with pytest.raises(InputError, match=r"divides single GPUs only, got 1\.5"):
        _refuse_what_no_node_has([node(CPU=9, GPU=9)], Compute.model_validate(COMPUTE | {"gpus_per_cell": 1.5}))


@pytest.mark.parametrize(
    ("address", "says"),
    [
        (None, "compute.engine: Ray does not start (no). Choose the engine processes"),
        ("auto", "compute.ray_address: cannot connect to Ray at auto (no). Start one with `ray start --head`"),
    ],
)
def test_what_ray_says_when_it_fails_comes_with_a_remedy_that_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str | None, says: str
) -> None:
    def init(**_: Any) -> None:
        raise RuntimeError("no")

    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))  # Where no cluster has been joined.
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    compute = Compute.model_validate(COMPUTE | {"ray_address": address})
    with pytest.raises(InputError, match=re.escape(says)):
        _connect(SimpleNamespace(init=init), compute)


@pytest.mark.parametrize("given", ["params", "environment"])
def test_a_stage_without_its_cluster_ends_at_once_with_2(tmp_path: Path, given: str) -> None:
    pytest.importorskip("ray", reason="needs the extra `ray`")
    text = (ROOT / "params.yaml").read_text(encoding="utf-8").replace("engine: processes", "engine: ray")
    if given == "params":
        text = text.replace("ray_address: null", "ray_address: 127.0.0.1:1")
    (tmp_path / "params.yaml").write_text(text, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "RAY_ADDRESS": "127.0.0.1:2"}
    command = [sys.executable, str(ROOT / "pipeline/fetch.py"), "--dataset", "digits"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 2
    where, port = {"params": ("compute.ray_address", 1), "environment": ("RAY_ADDRESS", 2)}[given]
    [error] = [line for line in done.stderr.splitlines() if "error" in line]
    assert error.startswith(f"error: {where}: no Ray cluster answers at 127.0.0.1:{port}. ")
    assert not (tmp_path / "data/prepared").exists()

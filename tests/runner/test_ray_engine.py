"""What a node says and brings is taken in by the stage, without a cluster; with one: tests/faults/test_ray_nodes.py."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from weakref import WeakValueDictionary

import pytest
from softmax_temperature.runner.parcels import packed, packed_beside
from softmax_temperature.runner.ray_cluster import known_nodes
from softmax_temperature.runner.ray_engine import _Brought, _Outcome, _received, _sign, _Traffic, _work

from softmax_temperature.runner import ray_engine
from softmax_temperature.runner.artifacts import new_artifact, open_artifact, write_json
from softmax_temperature.runner.cells import CHECKPOINT
from softmax_temperature.runner.errors import InputError

FINGERPRINT = "f" * 64


@dataclass(frozen=True)
class Task:
    """A task that reads one artifact, or nothing."""

    result: Path
    fingerprint: str = FINGERPRINT
    root: Path | None = None
    reads: Path | None = None

    @property
    def inputs(self) -> Mapping[str, Path]:
        return {"read": self.reads} if self.reads else {}


def brought(place: Path) -> _Brought:
    return _Brought({place: packed(place)} if place.exists() else {}, packed_beside(place, leave=frozenset()))


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """A task whose earlier run left a checkpoint in this folder; its result is in another one."""
    there = tmp_path / "there"
    with new_artifact(there / "cell/result", kind="test", about={"fingerprint": FINGERPRINT}) as output:
        write_json(output / "one.json", 1)
    write_json(there / "cell/timing.json", {"seconds": 1})
    (tmp_path / "here/cell").mkdir(parents=True)
    (tmp_path / "here/cell" / CHECKPOINT).write_text("old")
    monkeypatch.chdir(there)
    return Task(Path("cell/result"))


def test_a_finished_cell_leaves_no_checkpoint_of_an_earlier_run(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome = _Outcome(None, brought(task.result))
    monkeypatch.chdir(tmp_path / "here")
    assert _received(task, outcome) is None
    assert open_artifact(task.result).problems() == []
    assert sorted(path.name for path in Path("cell").iterdir()) == ["result", "timing.json"]


def test_a_failed_cell_keeps_the_checkpoint_that_came_with_it(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("cell", CHECKPOINT).write_text("new")
    outcome = _Outcome("failed", _Brought({}, brought(task.result).beside))
    monkeypatch.chdir(tmp_path / "here")
    assert _received(task, outcome) == "failed"
    assert Path("cell", CHECKPOINT).read_text() == "new"
    assert not task.result.exists()


def test_the_sign_of_a_stage_that_was_killed_is_cleared_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cell").mkdir()
    (tmp_path / "cell/.sign.0123abcd.unfinished").touch()
    with _sign(Path("cell")) as sign:
        assert sign.is_absolute()
        assert list((tmp_path / "cell").iterdir()) == [sign]
    assert not list((tmp_path / "cell").iterdir())


class Reference:
    """As Ray's: what it stands for is in the store as long as somebody has it."""

    def __init__(self, value: Any) -> None:
        self.value = value


class NodeDied(BaseException):
    """Ends a task in its middle; Ray then starts it again with the same arguments."""


class Store:
    """Ray with one node, which does a task in the moment in which it is sent."""

    exceptions = SimpleNamespace()

    def __init__(self) -> None:
        self.had: list[str] = []
        self._has: WeakValueDictionary[int, Reference] = WeakValueDictionary()

    def put(self, value: Any) -> Reference:
        reference = Reference(value)
        if "value.json" in value:
            self.had.append(json.loads(value["value.json"].tobytes()))
            self._has[len(self.had) - 1] = reference
        return reference

    def get(self, reference: Reference) -> Any:
        return reference.value

    def wait(self, running: list[Reference], **_: Any) -> tuple[list[Reference], list[Reference]]:
        return running[:1], running[1:]

    def remote(self, function: Callable[..., Any]) -> Any:
        def work(*given: Any) -> Reference:
            while True:
                with suppress(NodeDied):
                    return Reference(function(*given))

        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=work))

    @property
    def has(self) -> list[str]:
        return [self.had[number] for number in sorted(self._has)]


class NothingComesBack(Store):
    """The same, but no task ends, and the node may have left the cluster; one that is too small stays."""

    alive = True

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": self.alive, "Resources": {"CPU": 4.0}}, {"Alive": True, "Resources": {"CPU": 1.0}}]

    def wait(self, running: list[Reference], **_: Any) -> tuple[list[Reference], list[Reference]]:
        return [], running


def taken_in(
    function: Callable[[Task], str | None], tasks: list[Task], sign: Path, *, workers: int
) -> list[str | None]:
    """What the stage says of each task, as they come."""
    compute: Any = SimpleNamespace(workers=workers, threads_per_cell=1, gpus_per_cell=0)
    traffic, said = _Traffic(function, tasks, sign, compute), []
    while traffic.advance():
        said += [_received(tasks[number], outcome) for number, outcome in traffic.arrivals("nowhere")]
    return said


@pytest.mark.parametrize("workers", [1, 2, 9])
def test_an_artifact_is_put_into_the_store_once_and_stays_while_a_task_needs_it(
    workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "ray", store := Store())
    for name in ("common", "other"):
        with new_artifact(Path(name), kind="test", about={}) as output:
            write_json(output / "value.json", name)
    reads = [*["common"] * 5, "other"]
    tasks = [Task(Path(f"cells/{number}/result"), reads=Path(name)) for number, name in enumerate(reads)]
    seen = {}

    def copy(task: Task) -> None:
        assert not Path.cwd().is_relative_to(tmp_path)
        value = open_artifact(task.inputs["read"]).json("value.json")
        seen[task] = value, store.has
        with new_artifact(task.result, kind="test", about={"fingerprint": FINGERPRINT}) as output:
            write_json(output / "copy.json", value)

    assert set(taken_in(copy, tasks, tmp_path / "not there", workers=workers)) == {None}
    assert store.had == ["common", "other"]
    assert [open_artifact(task.result).json("copy.json") for task in tasks] == reads
    assert all(value in there for value, there in seen.values())
    if workers == 1:
        assert seen[tasks[-1]][1] == ["other"]


def test_a_task_that_was_sent_its_data_begins_again_with_what_it_was_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "ray", Store())
    task, found = Task(Path("cell/result")), []
    task.result.parent.mkdir()
    (task.result.parent / CHECKPOINT).write_text("at home")

    def work(task: Task) -> None:
        checkpoint = task.result.parent / CHECKPOINT
        found.append(checkpoint.read_text())
        checkpoint.write_text("on the node")
        if len(found) == 1:
            raise NodeDied
        with new_artifact(task.result, kind="test", about={"fingerprint": FINGERPRINT}):
            pass

    assert taken_in(work, [task], tmp_path / "not there", workers=1) == [None]
    assert found == ["at home", "at home"]


class RayError(Exception):
    """As Ray's, of which all others are kinds."""


class WorkerCrashedError(RayError):
    """As Ray's."""


class OutOfDiskError(RayError):
    """As Ray's."""


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (WorkerCrashedError("gone"), "memory runs out"),
        (OutOfDiskError("Local disk\nis full"), "not finished: Ray says OutOfDiskError: Local disk is full"),
    ],
)
def test_only_what_died_is_said_to_have_lacked_memory(error: RayError, says: str) -> None:
    def get(_: object) -> Any:
        raise error

    kinds = {name: type(name, (RayError,), {}) for name in ("RayTaskError", "NodeDiedError", "OutOfMemoryError")}
    kinds |= {"RayError": RayError, "WorkerCrashedError": WorkerCrashedError}
    traffic: Any = object.__new__(_Traffic)
    traffic._ray = SimpleNamespace(get=get, exceptions=SimpleNamespace(**kinds))
    outcome = traffic._outcome(None)
    assert outcome is not None
    assert says in (outcome.reason or "")


def test_a_stage_whose_last_node_has_left_says_once_what_it_waits_for(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ray = NothingComesBack()
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr(ray_engine, "SECONDS_BETWEEN_LOOKS", 0.0)
    monkeypatch.setattr(ray_engine, "answers", lambda _: True)
    compute: Any = SimpleNamespace(workers=1, threads_per_cell=2, gpus_per_cell=0)
    traffic = _Traffic(lambda _: None, [], Path("sign"), compute)
    said = []
    for alive in (True, False, False, True, False):
        ray.alive = alive
        assert list(traffic.arrivals("head")) == []
        said.append(capfd.readouterr().err.count("has 2 CPUs and 0 GPUs for a cell: waiting for one to join"))
    assert said == [0, 1, 0, 0, 1]


def test_a_head_that_dies_while_it_is_asked_for_its_nodes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    class NothingIsSaid(NothingComesBack):
        def nodes(self) -> Any:
            never.wait()

    never, answered = threading.Event(), iter([True, False, False, False])
    monkeypatch.setitem(sys.modules, "ray", NothingIsSaid())
    monkeypatch.setattr(ray_engine, "SECONDS_BETWEEN_LOOKS", 0.0)
    monkeypatch.setattr(ray_engine, "answers", lambda _: next(answered))
    monkeypatch.setattr(ray_engine, "known_nodes", lambda: known_nodes(seconds=0.05))
    compute: Any = SimpleNamespace(workers=1, threads_per_cell=1, gpus_per_cell=0)
    traffic = _Traffic(lambda _: None, [], Path("sign"), compute)
    assert list(traffic.arrivals("head")) == []
    with pytest.raises(InputError, match="head: the Ray cluster does not answer any more"):
        list(traffic.arrivals("head"))
    never.set()


def test_a_node_that_was_started_in_the_background_can_be_interrupted(tmp_path: Path, task: Task) -> None:
    (tmp_path / "sign").touch()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # As a shell has it for what it starts there.
    try:
        with pytest.raises(KeyboardInterrupt):
            _work(str(tmp_path), str(tmp_path / "sign"), lambda _: signal.raise_signal(signal.SIGINT), task, None)
    finally:
        signal.signal(signal.SIGINT, before)

"""Cells as tasks of a Ray cluster: Ray finds each a node with room, and another one when that node dies.

A node that sees the project's folder, at the same path, works there. One that does not is sent what the cell reads
through Ray's object store, works in a folder of its own, and sends back what the cell left. Either way the driver
compares what arrived with its manifest.

Ray's own backend for joblib is not used: it hands its results over all at once, and what it gave to a node that dies is
lost.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from softmax_temperature.runner.artifacts import ArtifactError
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.jobs import CHECKPOINT
from softmax_temperature.runner.parcels import Parcel, check_arrival, packed, packed_beside, unpack, unpack_artifact
from softmax_temperature.runner.progress import say
from softmax_temperature.runner.ray_cluster import answers, joined_cluster, known_nodes, what_no_node_has
from softmax_temperature.runner.stopping import PATIENCE, Stopped, held_back
from softmax_temperature.runner.unfinished import unfinished_file
from softmax_temperature.runner.workers import SECONDS_TO_SAVE

if TYPE_CHECKING:
    from softmax_temperature.params import Compute

RETRIES = 3
"""How often a task is given to another process after its own was lost; besides, `MEMORY_RETRIES` times for memory."""

SECONDS_BETWEEN_LOOKS, LOOKS = 5.0, 3
_SECONDS_TO_NOTICE = 1.0
"""That a signal may wait for its effect."""
_LOST = (
    "not finished: its process was killed time and again, as systems do when memory runs out. If that was so, let "
    "fewer cells share a node (compute.threads_per_cell, compute.gpus_per_cell); then run again"
)
_STAYS = frozenset({"holder", "lock", "progress"})
"""Beside a result, what means nothing on another machine."""


class Portable(Protocol):
    """A task that can be done on a machine that does not see the project's folder; its paths are relative to that."""

    @property
    def inputs(self) -> Mapping[str, Path]:
        """The artifacts that it reads, by name."""

    @property
    def result(self) -> Path:
        """Where it leaves its artifact, and beside it its work files."""

    @property
    def fingerprint(self) -> str:
        """What the artifact's manifest will name."""

    @property
    def root(self) -> Path | None:
        """The folder of the user's own files, which do not travel; None for a task that reads none."""


Task = TypeVar("Task", bound=Portable)


@dataclass(frozen=True)
class _Luggage:
    """What a task needs where the project's folder is not seen, as references to Ray's object store.

    Ray fetches what arguments refer to, but not what lies within them: only a node that needs it does.

    Attributes:
        artifacts: to parcels, by their paths.
        beside: to the parcel of the files beside its result, a checkpoint for instance.
    """

    artifacts: Mapping[Path, Any]
    beside: Any


@dataclass(frozen=True)
class _Brought:
    """What a task brings back from there; its attributes are as those of `_Luggage`, without references."""

    artifacts: Mapping[Path, Parcel]
    beside: Parcel


@dataclass(frozen=True)
class _Outcome:
    """What a node says of a task: why it failed, or None; what it brings, where it worked in a folder of its own."""

    reason: str | None
    brought: _Brought | None = None


def run_on_ray(
    function: Callable[[Task], str | None], tasks: Sequence[Task], *, compute: Compute
) -> Generator[tuple[int, str | None]]:
    """Call a function on every task, on the nodes of a Ray cluster.

    When a signal stops this process, or the iterator is closed early, tasks on nodes are interrupted as by SIGINT, and
    have as long to come to a checkpoint as tasks on this machine.

    Args:
        function: of a module; returns why a task failed, or None.
        tasks: what it is called on; at least one.
        compute: the cluster, what a cell asks of a node, and how many are on their way at a time.

    Yields:
        The number of a task with what the function said of it, or with why it did not end; as they come.

    Raises:
        InputError: see `joined_cluster`; or the cluster's head does not answer any more.
    """
    at_home = []
    with joined_cluster(compute) as head, _sign(tasks[0].result.parent) as sign:
        traffic = _Traffic(function, tasks, sign, compute)
        with _stopped_in_order(traffic):
            while traffic.advance():
                for number, outcome in traffic.arrivals(head):
                    reason = _received(tasks[number], outcome)
                    if reason and outcome.brought and tasks[number].root:
                        at_home.append(number)
                    else:
                        yield number, reason
    if at_home:
        say(f"{len(at_home)} cells run here: they failed on nodes that do not see the user's files, and may need them")
    for number in at_home:
        yield number, function(tasks[number])


class _Traffic(Generic[Task]):
    """Tasks on their way to nodes and back, so many at a time."""

    def __init__(self, function: Callable[[Task], str | None], tasks: Sequence[Task], sign: Path, compute: Compute):
        import ray

        self._ray, self._tasks, self._compute = ray, tasks, compute
        self._waiting = list(reversed(range(len(tasks))))
        self._running: dict[Any, int] = {}
        self._needs_luggage = False
        self._missing: str | None = None
        self._stored: dict[Path, Any] = {}
        self._where = (str(Path.cwd()), str(sign), function)
        self._work = ray.remote(_work).options(
            num_cpus=compute.threads_per_cell,
            num_gpus=compute.gpus_per_cell,
            max_retries=RETRIES,
            scheduling_strategy="SPREAD",
        )

    def advance(self) -> bool:
        """Send tasks off while there is room; whether any is on its way."""
        while self._waiting and len(self._running) < self._compute.workers:
            number = self._waiting.pop()
            with held_back():
                luggage = self._luggage(number) if self._needs_luggage else None
                self._running[self._work.remote(*self._where, self._tasks[number], luggage)] = number
        return bool(self._running)

    def arrivals(self, head: str) -> Iterator[tuple[int, _Outcome]]:
        """What has come back; nothing when it takes long.

        Raises:
            InputError: the head of the cluster does not answer any more.
        """
        for reference in self._ready(head):
            number, outcome = self._running.pop(reference), self._outcome(reference)
            if outcome is None:
                self._needs_luggage = True
                self._waiting.append(number)
            else:
                yield number, outcome

    def stop(self) -> None:
        """Interrupt what is on its way, and wait until it has ended, but no longer than it may take."""
        running = list(self._running)
        for reference in running:
            self._ray.cancel(reference, recursive=False)
        if running:
            self._back(len(running), PATIENCE + SECONDS_TO_SAVE)

    def _luggage(self, number: int) -> _Luggage:
        """Put into the object store what a task needs there, unless that was done; forget what no task needs any more.

        An artifact is known by its path alone: its digest is part of what these tasks were planned with.
        """
        needed = {path for other in (*self._waiting, *self._running.values()) for path in self._inputs(other)}
        mine = self._inputs(number)
        self._stored |= {path: self._ray.put(packed(path)) for path in mine if path not in self._stored}
        luggage = {path: self._stored[path] for path in mine}
        self._stored = {path: each for path, each in self._stored.items() if path in needed}
        return _Luggage(luggage, self._ray.put(packed_beside(self._tasks[number].result, leave=_STAYS)))

    def _inputs(self, number: int) -> Collection[Path]:
        return self._tasks[number].inputs.values()

    def _ready(self, head: str) -> list[Any]:
        for _ in range(LOOKS):
            ready = self._back(1, SECONDS_BETWEEN_LOOKS)
            # Ray itself would wait for the head a minute, and then end this process without a word of ours.
            if ready:
                self._missing = None
                return ready
            if answers(head):
                self._say_what_is_missing()
                return []
        remedy = "Start it again, then run the stage again: what is finished is kept."
        raise InputError("the Ray cluster does not answer any more", where=head, remedy=remedy)

    def _say_what_is_missing(self) -> None:
        """When the last node that could run a cell has left, Ray waits for another one, and says nothing."""
        nodes = known_nodes()
        if nodes is None:
            return
        before, self._missing = self._missing, what_no_node_has(nodes, self._compute)
        if self._missing and not before:
            say(f"{self._missing}: waiting for one to join")

    def _back(self, count: int, seconds: float) -> list[Any]:
        """So many of what is on its way, once they are back; or fewer, when it takes longer."""
        until = time.monotonic() + seconds
        while True:
            left = until - time.monotonic()
            with held_back():
                timeout = max(0.0, min(left, _SECONDS_TO_NOTICE))
                back, _ = self._ray.wait(list(self._running), num_returns=count, timeout=timeout)
            if len(back) >= count or left <= _SECONDS_TO_NOTICE:
                return list(back)

    def _outcome(self, reference: Any) -> _Outcome | None:
        faults = self._ray.exceptions
        try:
            with held_back():
                outcome: _Outcome | None = self._ray.get(reference)
        except faults.RayTaskError as error:
            return _Outcome(f"on a node of the cluster: {type(error.cause).__name__}: {error.cause}")
        except (faults.WorkerCrashedError, faults.NodeDiedError, faults.OutOfMemoryError):
            return _Outcome(_LOST)
        except faults.RayError as error:
            return _Outcome(f"not finished: Ray says {type(error).__name__}: {' '.join(str(error).split())}")
        return outcome


@contextmanager
def _stopped_in_order(traffic: _Traffic[Any]) -> Iterator[None]:
    try:
        yield
    except (GeneratorExit, Stopped):
        traffic.stop()
        raise


@contextmanager
def _sign(folder: Path) -> Iterator[Path]:
    """A file of a name that no other machine has by chance: who sees it sees this folder."""
    with unfinished_file(folder / "sign") as path:
        yield path.absolute()


def _work(
    folder: str, sign: str, function: Callable[[Any], str | None], task: Portable, luggage: _Luggage | None
) -> _Outcome | None:
    """Do a task on a node; None where that cannot be without its luggage."""
    # Ray interrupts it so, and a node that was started in the background would ignore that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if Path(sign).is_file():
        os.chdir(folder)
        return _Outcome(function(task))
    if not luggage:
        return None
    with TemporaryDirectory(prefix="softmax-temperature-") as scratch:
        os.chdir(scratch)
        _settle(task, luggage)
        reason = function(task)
        # Mapped, so still there for Ray when the folder is gone.
        result = {} if reason else {task.result: packed(task.result)}
        brought = _Brought(result, packed_beside(task.result, leave=_STAYS))
        os.chdir(folder if Path(folder).is_dir() else "/")
    return _Outcome(reason, brought)


def _settle(task: Portable, luggage: _Luggage) -> None:
    """Lay out in the current folder what a task finds in the project's."""
    import ray

    for path, reference in luggage.artifacts.items():
        unpack(ray.get(reference), path)
    unpack(ray.get(luggage.beside), task.result.parent)
    if task.root and not task.root.is_absolute():
        # A file in the place of the user's folder: nothing can be read there, or downloaded into what will be removed.
        task.root.parent.mkdir(parents=True, exist_ok=True)
        task.root.touch()


def _received(task: Portable, outcome: _Outcome) -> str | None:
    """Take in and verify what a node left; returns why the task counts as failed, or None."""
    try:
        if outcome.brought:
            unpack(outcome.brought.beside, task.result.parent)
            for path, parcel in outcome.brought.artifacts.items():
                unpack_artifact(parcel, path, fingerprint=task.fingerprint)
            if not outcome.reason:  # The node has removed its checkpoint; one of an earlier run may lie here.
                (task.result.parent / CHECKPOINT).unlink(missing_ok=True)
        elif not outcome.reason:
            check_arrival(task.result, fingerprint=task.fingerprint)
    except ArtifactError as error:
        return str(error)
    return outcome.reason

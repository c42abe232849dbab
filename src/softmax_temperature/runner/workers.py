"""Worker processes: one that is killed or hangs loses the task it worked on, and no other.

The process pools of Python and of joblib break as a whole when one of their processes is killed, and cannot end a task.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from multiprocessing import connection, resource_tracker
from typing import Any, Generic, TypeVar

from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.lifeline import end_with_parent

Task = TypeVar("Task")
Function = Callable[[Task], str | None]

_SPAWN = multiprocessing.get_context("spawn")  # Threads, and CUDA, do not survive a fork.
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_BEGUN, _DONE = "begun", "done"
SECONDS_TO_SAVE = 10.0
"""That a checkpoint may take."""
_SECONDS_BETWEEN_LOOKS = 1.0
"""At signals: Ray interrupts without one, and that wakes nobody."""


def run_in_workers(
    function: Function[Task],
    tasks: Sequence[Task],
    *,
    workers: int,
    threads: int,
    minutes: float | None,
    patience: float,
) -> Generator[tuple[int, str | None]]:
    """Call a function on every task, in worker processes that take one task at a time.

    Closing the iterator early asks the workers to stop (SIGTERM), and ends those that have not after a while.

    Args:
        function: module-level, as it travels to the workers by name.
        tasks: what it is called on; they are pickled.
        workers: how many processes.
        threads: of the linear algebra in each.
        minutes: that a task may take, or None.
        patience: seconds that a task may take to come to a checkpoint when it is asked to stop.

    Yields:
        The number of a task with what the function said of it, or with why it did not end; as they come.
    """
    waiting = deque(enumerate(tasks))
    pool = [_Worker(function, threads, minutes) for _ in range(min(workers, len(tasks)))]
    try:
        while waiting or any(worker.busy for worker in pool):
            for worker in pool:
                if waiting and not worker.busy:
                    worker.give(*waiting.popleft())
            yield from _next_ends([worker for worker in pool if worker.busy])
    finally:
        _end(pool, patience)


class _Worker(Generic[Task]):
    """A process, started when it is first given a task, and again after it was lost."""

    def __init__(self, function: Function[Task], threads: int, minutes: float | None) -> None:
        self._function, self._threads, self._minutes = function, threads, minutes
        self.process: multiprocessing.process.BaseProcess | None = None
        self._number: int | None = None
        self.deadline = math.inf

    @property
    def busy(self) -> bool:
        return self._number is not None

    def give(self, number: int, task: Task) -> None:
        """Have it work on a task."""
        if self.process is None or not self.process.is_alive():
            self.end()
            self._start()
        with suppress(BrokenPipeError):  # It was killed this moment; `hear` will say so.
            self.pipe.send(task)
        self._number = number

    def hear(self) -> tuple[int, str | None] | None:
        """The number of its task and what became of it, if it has come to an end.

        To be called when there is something in the pipe, or when the time is over.
        """
        if not self.pipe.poll():
            self.end()
            return self._ended(
                f"ended: it took longer than compute.cell_minutes = {self._minutes:g}. Raise that if it did not hang; "
                "a cell that saves checkpoints goes on at the last one"
            )
        try:
            word, said = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            return self._ended(f"not finished: {self._how_it_died()}")
        if word == _DONE:
            return self._ended(said)
        self.deadline = math.inf if self._minutes is None else time.monotonic() + 60 * self._minutes
        return None

    def end(self) -> None:
        """End the process at once, and wait until it is gone."""
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.pipe.close()

    def _ended(self, said: str | None) -> tuple[int, str | None]:
        assert self._number is not None, "only a busy worker is heard"
        number, self._number, self.deadline = self._number, None, math.inf
        return number, said

    def _start(self) -> None:
        """Start the process.

        Raises:
            InputError: the system does not let it start.
        """
        try:
            self.pipe, theirs = _SPAWN.Pipe()
            with theirs:
                self.process = self._started(theirs)
        except OSError as error:
            what = f"cannot start another process ({error.strerror})"
            remedy = "Lower it, or let the system have more memory, files and processes; then run again."
            raise InputError(what, where="compute.workers", remedy=remedy) from error

    def _started(self, pipe: connection.Connection) -> multiprocessing.process.BaseProcess:
        process = _SPAWN.Process(target=_work, args=(pipe, self._function, self._threads, os.getpid()), daemon=True)
        # A terminal sends SIGINT to the stage and to its workers. The stage knows what to do, and tells them; they are
        # born with it blocked. The first start would also start Python's tracker, which unblocks it.
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return process

    def _how_it_died(self) -> str:
        assert self.process is not None, "it had a task"
        self.process.join()
        code = self.process.exitcode or 0
        if code == -signal.SIGKILL:
            return (
                "its process was killed, as systems do when memory runs out. If that was so, lower compute.workers; "
                "then run again"
            )
        return f"its process ended by signal {-code}" if code < 0 else f"its process ended with exit code {code}"


def _next_ends(busy: Sequence[_Worker[Any]]) -> Iterator[tuple[int, str | None]]:
    """Wait a while for a worker's task to end in one way or another, or to be overdue."""
    left = min(worker.deadline for worker in busy) - time.monotonic()
    ready = connection.wait([worker.pipe for worker in busy], max(0.0, min(left, _SECONDS_BETWEEN_LOOKS)))
    now = time.monotonic()
    for worker in busy:
        if (worker.pipe in ready or worker.deadline <= now) and (end := worker.hear()):
            yield end


def _end(pool: Sequence[_Worker[Any]], patience: float) -> None:
    """Let busy workers come to a checkpoint, then end all processes."""
    processes = [worker.process for worker in pool if worker.process is not None]
    for process in processes:
        process.terminate()
    until = time.monotonic() + patience + SECONDS_TO_SAVE
    try:
        for process in processes:
            process.join(max(0.0, until - time.monotonic()))
    finally:
        for worker in pool:
            worker.end()


def _work(pipe: connection.Connection, function: Function[Any], threads: int, stage: int) -> None:
    """What a worker process does: one task after the other, until the stage closes its end of the pipe."""
    end_with_parent(signal.SIGKILL, parent=stage)
    # Before numpy and torch are imported: cells set their threads themselves, but libraries also start their own.
    os.environ.update(dict.fromkeys(_THREADS, str(threads)))
    with suppress(EOFError):
        while True:
            task = pipe.recv()
            pipe.send((_BEGUN, None))  # The time of the task, not that of starting a process.
            pipe.send((_DONE, function(task)))

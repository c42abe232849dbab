"""Engines: how a stage's cells are spread over processes or machines, and how progress is shown."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from softmax_temperature.runner.progress import SECONDS_BETWEEN_LINES, say
from softmax_temperature.runner.stopping import PATIENCE
from softmax_temperature.runner.workers import run_in_workers

if TYPE_CHECKING:
    from softmax_temperature.params import Compute
    from softmax_temperature.runner.ray_engine import Portable

Labels = Sequence[tuple[str, Path]]
Task = TypeVar("Task", bound="Portable")


def run_all(
    function: Callable[[Task], str | None], tasks: Sequence[Task], labels: Labels, *, title: str, compute: Compute
) -> list[str | None]:
    """Call a function on every task; returns what it said of each, in the order of the tasks.

    Of a task whose process was killed, or ended because it took too long, it is said instead what happened.

    Args:
        function: module-level, so that it can travel to another process.
        tasks: what it is called on.
        labels: for the display, the name of each task and the folder in which it leaves `progress` ("done/total").
        title: the stage, for the display.
        compute: engine, workers, their threads and time, and for Ray the cluster.
    """
    results: dict[int, str | None] = {}
    # Closed when a signal stops the stage: workers then come to a checkpoint.
    with _display(title, labels, results), closing(_results(function, tasks, compute)) as pairs:
        results.update(pairs)  # One by one, as they come: the display counts them.
    return [results[number] for number in range(len(tasks))]


def _results(
    function: Callable[[Task], str | None], tasks: Sequence[Task], compute: Compute
) -> Generator[tuple[int, str | None]]:
    """The number of each task and what the function said of it, as they come."""
    if compute.engine == "ray":
        from softmax_temperature.runner.ray_engine import run_on_ray

        yield from run_on_ray(_on_a_node(function, compute), tasks, compute=compute)
        return
    workers = 1 if compute.engine == "serial" else min(compute.workers, len(tasks))
    if workers == 1 and compute.cell_minutes is None:
        # One cell or one worker stays in this process: starting another costs seconds.
        for number, task in enumerate(tasks):
            yield number, function(task)
    else:
        yield from _in_workers(function, tasks, compute, workers)


def _in_workers(
    function: Callable[[Task], str | None], tasks: Sequence[Task], compute: Compute, workers: int
) -> Generator[tuple[int, str | None]]:
    return run_in_workers(
        function,
        tasks,
        workers=workers,
        threads=compute.threads_per_cell,
        minutes=compute.cell_minutes,
        patience=PATIENCE,
    )


def _on_a_node(function: Callable[[Task], str | None], compute: Compute) -> Callable[[Task], str | None]:
    """What a node of a cluster is to call: where time is limited, in a process there that can be ended."""
    return function if compute.cell_minutes is None else partial(_in_a_worker, function, compute)


def _in_a_worker(function: Callable[[Task], str | None], compute: Compute, task: Task) -> str | None:
    ((_, said),) = _in_workers(function, [task], compute, 1)
    return said


@contextmanager
def _display(title: str, labels: Labels, finished: Collection[int]) -> Iterator[None]:
    """Show progress until the block ends: a live bar on a terminal, what has changed every few seconds elsewhere."""
    stop = threading.Event()
    show = _show_bars if sys.stderr.isatty() else _print_lines
    thread = threading.Thread(target=show, args=(title, labels, finished, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _print_lines(title: str, labels: Labels, finished: Collection[int], stop: threading.Event) -> None:
    said = ""
    while not stop.wait(SECONDS_BETWEEN_LINES):
        if (line := _status(title, labels, finished)) != said:
            say(line)
            said = line
    if (last := f"{title}: {len(finished)}/{len(labels)} cells") != said:
        say(last)


def _show_bars(title: str, labels: Labels, finished: Collection[int], stop: threading.Event) -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns) as progress:
        bar = progress.add_task(title, total=len(labels))
        while not stop.wait(0.2):
            progress.update(bar, completed=len(finished), description=_status(title, labels, finished))
        progress.update(bar, completed=len(finished), description=title)


def _status(title: str, labels: Labels, finished: Collection[int]) -> str:
    running = [
        f"{name} {text}"
        for number, (name, place) in enumerate(labels)
        if number not in finished and (text := _fresh_progress(place))
    ]
    return f"{title}: {len(finished)}/{len(labels)} cells" + (f" ({', '.join(running)})" if running else "")


def _fresh_progress(place: Path) -> str:
    """What a cell last said of its progress, unless an earlier run left it."""
    path = place / "progress"
    fresh = path.is_file() and time.time() - path.stat().st_mtime < 60
    return path.read_text() if fresh else ""

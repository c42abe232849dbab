"""Engines: how a stage's cells are spread over processes or machines, through joblib, and how progress is shown."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import joblib

if TYPE_CHECKING:
    from softmax_temperature.params import Compute

Labels = Sequence[tuple[str, Path]]
Task = TypeVar("Task")

SECONDS_BETWEEN_LINES = 5.0


def run_all(
    function: Callable[[Task], str | None],
    tasks: Sequence[Task],
    labels: Labels,
    *,
    title: str,
    compute: Compute,
    lost: str,
) -> list[str | None]:
    """Call a function on every task; returns what it said of each, in the order of the tasks.

    Args:
        function: module-level, so that it can travel to another process.
        tasks: what it is called on.
        labels: for the display, the name of each task and the folder in which it leaves `progress` ("done/total").
        title: the stage, for the display.
        compute: engine, workers, and for Ray the cluster.
        lost: what to say of a task that did not end because a worker process was killed.
    """
    workers = min(compute.workers, len(tasks))
    results: dict[int, str | None] = {}
    # One cell or one worker stays in this process: starting another costs seconds.
    here = str(Path.cwd())
    calls = (joblib.delayed(_numbered)(here, function, number, task) for number, task in enumerate(tasks))
    # Ray's backend gives its results all at once.
    order = "list" if compute.engine == "ray" else "generator_unordered"
    with _engine(compute, workers), _display(title, labels, results), suppress(BrokenProcessPool):
        for number, result in joblib.Parallel(n_jobs=workers, return_as=order)(calls):
            results[number] = result  # noqa: PERF403  # What came before a break is kept.
    return [results.get(number, lost) for number in range(len(tasks))]


def say(line: str) -> None:
    """Print a line for whoever watches; on standard error, because standard output is for results."""
    print(line, file=sys.stderr, flush=True)


def _numbered(folder: str, function: Callable[[Any], Any], number: int, task: Any) -> tuple[int, Any]:
    os.chdir(folder)  # Workers of a cluster start elsewhere; the project lies at the same path on every machine.
    return number, function(task)


@contextmanager
def _engine(compute: Compute, workers: int) -> Iterator[None]:
    if compute.engine == "ray":
        import ray
        from ray.util.joblib import register_ray

        ray.init(address=compute.ray_address, ignore_reinit_error=True, include_dashboard=False)
        register_ray()
        with joblib.parallel_config(backend="ray", ray_remote_args={"num_gpus": compute.gpus_per_cell}):
            yield
    elif compute.engine == "processes" and workers > 1:
        with joblib.parallel_config(backend="loky", inner_max_num_threads=compute.threads_per_cell):
            yield
    else:
        with joblib.parallel_config(backend="sequential"):
            yield


@contextmanager
def _display(title: str, labels: Labels, finished: Collection[int]) -> Iterator[None]:
    """Show progress until the block ends: a live bar on a terminal, one line every few seconds elsewhere."""
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
    while not stop.wait(SECONDS_BETWEEN_LINES):
        say(_status(title, labels, finished))
    say(f"{title}: {len(finished)}/{len(labels)} cells")


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

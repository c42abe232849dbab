"""Progress of a long piece of work, on standard error: a bar on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

SECONDS_BETWEEN_LINES = 5.0


def say(line: str) -> None:
    """Print a line for whoever watches; on standard error, because standard output is for results."""
    print(line, file=sys.stderr, flush=True)


@contextmanager
def counting(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show how far the block is; yields a function to call with the number of pieces finished since the last call."""
    with _bar(title, total) if sys.stderr.isatty() else _lines(title, total) as advance:
        yield advance


@contextmanager
def _bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda count: progress.update(task, advance=count)


@contextmanager
def _lines(title: str, total: int) -> Iterator[Callable[[int], None]]:
    started = said = time.monotonic()
    done = 0

    def advance(count: int) -> None:
        nonlocal done, said
        done, now = done + count, time.monotonic()
        if now - said >= SECONDS_BETWEEN_LINES:
            said = now
            left = (now - started) * (total - done) / done
            say(f"{title}: {done:,} of {total:,}, about {left:,.0f} s left")

    yield advance


@contextmanager
def watching(title: str, folders: Mapping[str, Path], finished: Collection[str]) -> Iterator[None]:
    """Show how many cells are finished, and how far the others are, until the block ends.

    Args:
        title: the stage.
        folders: of each cell, the folder with its file `progress`, which says "done/total".
        finished: the names of the cells that have ended; the block adds to it.
    """
    stop = threading.Event()
    thread = threading.Thread(target=_watch, args=(title, folders, finished, stop), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _watch(title: str, folders: Mapping[str, Path], finished: Collection[str], stop: threading.Event) -> None:
    on_terminal = sys.stderr.isatty()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    said = ""
    with Progress(*columns, console=Console(stderr=True), disable=not on_terminal) as progress:
        bar = progress.add_task(title, total=len(folders))
        while not stop.wait(0.2 if on_terminal else SECONDS_BETWEEN_LINES):
            line = _status(title, folders, finished)
            progress.update(bar, completed=len(finished), description=line)
            if line != said and not on_terminal:
                say(line)
            said = line
        progress.update(bar, completed=len(finished), description=title)
    if not on_terminal and (last := f"{title}: {len(finished)}/{len(folders)} cells") != said:
        say(last)


def _status(title: str, folders: Mapping[str, Path], finished: Collection[str]) -> str:
    running = [
        f"{name} {text}"
        for name, folder in folders.items()
        if name not in finished and (text := _fresh_progress(folder / "progress"))
    ]
    return f"{title}: {len(finished)}/{len(folders)} cells" + (f" ({', '.join(running)})" if running else "")


def _fresh_progress(path: Path) -> str:
    """What a cell last said of its progress, unless an earlier run left it."""
    fresh = path.is_file() and time.time() - path.stat().st_mtime < 60
    return path.read_text() if fresh else ""

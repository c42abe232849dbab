"""Progress of a long piece of work, on standard error: a bar on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SECONDS_BETWEEN_LINES = 5.0


def say(line: str) -> None:
    """Print a line for whoever watches; on standard error, because standard output is for results."""
    print(line, file=sys.stderr, flush=True)


@contextmanager
def counting(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show how far the block is.

    Args:
        title: what is being done.
        total: of how many pieces it consists.

    Yields:
        A function to call with the number of pieces that were finished since the last call.
    """
    with _bar(title, total) if sys.stderr.isatty() else _lines(title, total) as advance:
        yield advance


@contextmanager
def _bar(title: str, total: int) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import Progress

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

"""Print the progress of long work on standard error, apart from the results."""

import sys
import time

SECONDS_BETWEEN_LINES = 30.0
_CLEAR = "\r\x1b[K"
"""Moves a terminal's cursor to the start of its line, and clears the line."""


def say(line: str) -> None:
    """Print `line` on standard error, in place of a progress line on a terminal."""
    clear = _CLEAR if sys.stderr.isatty() else ""
    print(f"{clear}{line}", file=sys.stderr, flush=True)


class Progress:
    """Prints lines, at least `SECONDS_BETWEEN_LINES` apart; others are dropped."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, line: str) -> None:
        """Print `line`, unless too little time has passed since the last one."""
        now = time.monotonic()
        if now - self._last >= SECONDS_BETWEEN_LINES:
            self._last = now
            say(line)


class CellProgress:
    """Prints the number of finished cells, the elapsed time, and the remaining time.

    On a terminal, one line is rewritten; in a log, lines are printed at intervals, and
    one at the end.
    """

    def __init__(self, stage: str, cells: int, to_run: int) -> None:
        self._stage = stage
        self._cells = cells
        self._to_run = to_run
        self._started = time.monotonic()
        self._lines = Progress()

    def __call__(self, done: int) -> None:
        """Show that `done` cells of this run have finished."""
        line = self._line(done)
        if done == self._to_run:
            say(line)
        elif sys.stderr.isatty():
            print(f"{_CLEAR}{line}", end="", file=sys.stderr, flush=True)
        else:
            self._lines(line)

    def _line(self, done: int) -> str:
        seconds = time.monotonic() - self._started
        finished = self._cells - self._to_run + done
        line = f"{self._stage}: {finished}/{self._cells} cells, {duration(seconds)}"
        if done == self._to_run:
            return line
        remaining = seconds / done * (self._to_run - done)
        return f"{line}, about {duration(remaining)} left"


def duration(seconds: float) -> str:
    """Format `seconds` as text, such as "40 s", "3 min" or "2 h 5 min"."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"
